//! What a commit leaves beside its manifest, so that a manifest that is lost or damaged is missed.
//!
//! A container has one file of *promises*: a head, and behind it a slot for each version, at a place
//! that follows from the version's number. So commits never write where another one does, and a
//! slot lies in one sector of any disk.

/// What a container's file of promises says of one version.
///
/// ```
/// use esker_format::log::{Promise, PromiseSlot};
/// let promise =
///     Promise { version: 3, first: 1, durable: true, names: false, manifest: 7, header: 9, data: 80, metadata: 40 };
/// let bytes = promise.encode();
/// assert_eq!(PromiseSlot::decode(3, &bytes), PromiseSlot::Promise(promise));
/// assert_eq!(PromiseSlot::decode(4, &bytes), PromiseSlot::Damaged);
/// assert_eq!(PromiseSlot::decode(4, &[0; 64]), PromiseSlot::Empty);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Promise {
    /// The version.
    pub version: u64,
    /// The oldest version of this dataset: those before it were of one that it replaced.
    pub first: u64,
    /// Whether it was promised to survive a loss of power.
    pub durable: bool,
    /// Whether it only gives names to versions: its values are those of the one before it.
    pub names: bool,
    /// The crc32c of the manifest's bytes.
    pub manifest: u32,
    /// The crc32c of the header in it.
    pub header: u32,
    /// Bytes of payload in the logs that it names.
    pub data: u64,
    /// Bytes of metadata in them.
    pub metadata: u64,
}

/// What stands at a version's place in a file of promises.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PromiseSlot {
    /// Nobody has written there.
    Empty,
    /// What a commit wrote.
    Promise(Promise),
    /// Something else.
    Damaged,
}

const MAGIC: &[u8; 4] = b"ESKP";
const FORMAT: u32 = 1;

impl Promise {
    /// Bytes of the head, and of each slot.
    pub const LEN: u64 = 64;

    /// What a file of promises begins with.
    pub fn head() -> [u8; Promise::LEN as usize] {
        let mut bytes = [0; Promise::LEN as usize];
        bytes[..4].copy_from_slice(MAGIC);
        bytes[4..8].copy_from_slice(&FORMAT.to_le_bytes());
        sealed(bytes)
    }

    /// Where the slot of a version is; versions count from 1.
    pub fn offset(version: u64) -> u64 {
        version.saturating_mul(Promise::LEN)
    }

    /// Its bytes.
    pub fn encode(&self) -> [u8; Promise::LEN as usize] {
        let mut bytes = [0; Promise::LEN as usize];
        bytes[..8].copy_from_slice(&self.version.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.first.to_le_bytes());
        bytes[16..20].copy_from_slice(&(1 + u32::from(self.durable)).to_le_bytes());
        bytes[20..24].copy_from_slice(&self.manifest.to_le_bytes());
        bytes[24..28].copy_from_slice(&self.header.to_le_bytes());
        bytes[28..32].copy_from_slice(&u32::from(self.names).to_le_bytes());
        bytes[32..40].copy_from_slice(&self.data.to_le_bytes());
        bytes[40..48].copy_from_slice(&self.metadata.to_le_bytes());
        sealed(bytes)
    }
}

/// The last four bytes are the crc32c of the others.
fn sealed(mut bytes: [u8; Promise::LEN as usize]) -> [u8; Promise::LEN as usize] {
    let sum = crc32c::crc32c(&bytes[..60]);
    bytes[60..].copy_from_slice(&sum.to_le_bytes());
    bytes
}

impl PromiseSlot {
    /// What these bytes say of a version. Fewer than a slot has are not whole.
    pub fn decode(version: u64, bytes: &[u8]) -> PromiseSlot {
        if bytes.iter().all(|byte| *byte == 0) {
            return PromiseSlot::Empty;
        }
        let Some(promise) = decode(bytes).filter(|promise| promise.version == version) else {
            return PromiseSlot::Damaged;
        };
        // What is not as a writer makes it was not made by one.
        match promise.encode() == *bytes {
            true => PromiseSlot::Promise(promise),
            false => PromiseSlot::Damaged,
        }
    }
}

fn decode(bytes: &[u8]) -> Option<Promise> {
    let word = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let long = |at: usize| Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
    Some(Promise {
        version: long(0)?,
        first: long(8)?,
        durable: word(16)? == 2,
        names: word(28)? == 1,
        manifest: word(20)?,
        header: word(24)?,
        data: long(32)?,
        metadata: long(40)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_promise_comes_back_whole_or_is_damaged() {
        for durable in [true, false] {
            let promise = Promise {
                version: 5,
                first: 2,
                durable,
                names: !durable,
                manifest: 0xdead_beef,
                header: 17,
                data: 1 << 40,
                metadata: 99,
            };
            let bytes = promise.encode();
            assert_eq!(PromiseSlot::decode(5, &bytes), PromiseSlot::Promise(promise));
            for bit in 0..bytes.len() * 8 {
                let mut damaged = bytes;
                damaged[bit / 8] ^= 1 << (bit % 8);
                assert_eq!(PromiseSlot::decode(5, &damaged), PromiseSlot::Damaged, "bit {bit}");
            }
            for len in 1..bytes.len() {
                assert_eq!(PromiseSlot::decode(5, &bytes[..len]), PromiseSlot::Damaged, "{len}");
            }
        }
        assert_eq!(PromiseSlot::decode(5, &[]), PromiseSlot::Empty);
        assert_ne!(Promise::head(), [0; 64]);
    }
}
