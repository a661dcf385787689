//! Numbers in as few bytes as they need: seven bits a byte, the lowest first.

/// Appends `value`.
pub fn put(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

/// Takes a number off the front of `bytes`; `None` if there is no whole one or it has more than
/// 64 bits.
pub fn take(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for (i, byte) in bytes.iter().enumerate().take(10) {
        let bits = u64::from(byte & 0x7f);
        if i == 9 && bits > 1 {
            return None;
        }
        value |= bits << (7 * i);
        if byte & 0x80 == 0 {
            *bytes = &bytes[i + 1..];
            return Some(value);
        }
    }
    None
}

/// Appends the difference from `before` to `value`, whichever is larger: small differences both ways are short.
pub fn put_difference(bytes: &mut Vec<u8>, before: u64, value: u64) {
    let difference = value.wrapping_sub(before) as i64;
    put(bytes, ((difference << 1) ^ (difference >> 63)) as u64);
}

/// The number that [`put_difference`] appended.
pub fn take_difference(bytes: &mut &[u8], before: u64) -> Option<u64> {
    let folded = take(bytes)?;
    let difference = (folded >> 1) as i64 ^ -((folded & 1) as i64);
    Some(before.wrapping_add(difference as u64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn numbers_and_differences_come_back(value: u64, before: u64, shift in 0u32..64) {
            let value = value >> shift;
            let mut bytes = Vec::new();
            put(&mut bytes, value);
            put_difference(&mut bytes, before, value);
            let mut rest = &bytes[..];
            prop_assert_eq!(take(&mut rest), Some(value));
            prop_assert_eq!(take_difference(&mut rest, before), Some(value));
            prop_assert!(rest.is_empty());
            let torn = &bytes[..bytes.len() - 1];
            let mut rest = torn;
            take(&mut rest);
            prop_assert_eq!(take(&mut rest), None);
        }
    }

    #[test]
    fn more_than_64_bits_are_refused() {
        assert_eq!(take(&mut &[0xff; 10][..]), None);
        assert_eq!(
            take(&mut &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1][..]),
            Some(u64::MAX)
        );
    }
}
