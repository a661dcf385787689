//! Numbers for people: bytes, shares, counts.

/// Bytes with three digits and a decimal unit, as disks are sold: `5.45 MB`.
pub(crate) fn bytes(count: u64) -> String {
    const UNITS: [&str; 6] = ["kB", "MB", "GB", "TB", "PB", "EB"];
    if count < 1000 {
        return format!("{count} B");
    }
    let mut value = count as f64 / 1000.0;
    let mut unit = 0;
    // 999.5 would be rounded to four digits.
    while value >= 999.5 && unit + 1 < UNITS.len() {
        value /= 1000.0;
        unit += 1;
    }
    let digits = if value < 9.995 { 2 } else { usize::from(value < 99.95) };
    format!("{value:.digits$} {}", UNITS[unit])
}

/// `part` of `whole` in percent: `0%`, `<0.1%`, `12.3%`.
pub(crate) fn share(part: u64, whole: u64) -> String {
    let percent = if whole == 0 { 0.0 } else { part as f64 / whole as f64 * 100.0 };
    match percent {
        0.0 => "0%".to_string(),
        p if p < 0.05 => "<0.1%".to_string(),
        p => format!("{p:.1}%"),
    }
}

/// A count with its digits in groups of three: `12 345`.
pub(crate) fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

/// A number with this many significant digits, as C's `%g` writes it.
pub(crate) fn general(value: f64, digits: usize) -> String {
    if value == 0.0 || !value.is_finite() {
        return value.to_string();
    }
    let digits = digits.max(1);
    // Rounding to the digits first, so that 9.9999 of two digits counts as 10.
    let scientific = format!("{value:.*e}", digits - 1);
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let trim = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_string(),
        false => text.to_string(),
    };
    if (-5..digits as i32).contains(&exponent) {
        let places = (digits as i32 - 1 - exponent).max(0) as usize;
        trim(&format!("{value:.places$}"))
    } else {
        format!("{}e{exponent}", trim(mantissa))
    }
}

/// Seconds with three digits: `0 s`, `12.5 ms`, `3.25 s`, `4 min 10 s`, `3 h 5 min`, `2 d 3 h`.
pub(crate) fn duration(seconds: f64) -> String {
    let whole = seconds.round() as u64;
    match seconds {
        s if !s.is_finite() || s <= 0.0 => "0 s".to_string(),
        ..1e-3 => format!("{} µs", general(seconds * 1e6, 3)),
        ..1.0 => format!("{} ms", general(seconds * 1e3, 3)),
        ..99.5 => format!("{} s", general(seconds, 3)),
        _ if whole < 3600 => format!("{} min {} s", whole / 60, whole % 60),
        _ if whole < 86_400 => format!("{} h {} min", whole / 3600, whole / 60 % 60),
        _ => format!("{} d {} h", whole / 86_400, whole / 3600 % 24),
    }
}

/// `1 variable`, `2 variables`.
pub(crate) fn plural(count: usize, noun: &str) -> String {
    let s = if count == 1 { "" } else { "s" };
    format!("{} {noun}{s}", grouped(count as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_three_digits() {
        let cases = [
            (0, "0 B"),
            (999, "999 B"),
            (1000, "1.00 kB"),
            (5_447_472, "5.45 MB"),
            (9_999, "10.0 kB"),
            (99_960, "100 kB"),
            (999_499, "999 kB"),
            (999_500, "1.00 MB"),
            (u64::MAX, "18.4 EB"),
        ];
        for (count, text) in cases {
            assert_eq!(bytes(count), text, "{count}");
        }
    }

    #[test]
    fn numbers_are_short() {
        let cases = [
            (0.0, "0"),
            (288.15, "288.15"),
            (288.149_999_99, "288.15"),
            (1e20, "1e20"),
            (-1.234_567_89e-7, "-1.23457e-7"),
            (999_999.9, "1e6"),
            (123_456.0, "123456"),
            (0.000_012_5, "0.0000125"),
            (f64::NAN, "NaN"),
        ];
        for (value, text) in cases {
            assert_eq!(general(value, 6), text);
        }
    }

    #[test]
    fn durations_have_the_unit_that_a_person_would_take() {
        let cases = [
            (0.0, "0 s"),
            (2.5e-6, "2.5 µs"),
            (0.0125, "12.5 ms"),
            (3.254, "3.25 s"),
            (99.6, "1 min 40 s"),
            (11_100.0, "3 h 5 min"),
            (183_600.0, "2 d 3 h"),
            (f64::NAN, "0 s"),
        ];
        for (seconds, text) in cases {
            assert_eq!(duration(seconds), text, "{seconds}");
        }
    }

    #[test]
    fn shares_and_counts_read_well() {
        assert_eq!(share(1, 3), "33.3%");
        assert_eq!(share(0, 0), "0%");
        assert_eq!(share(1, 1_000_000), "<0.1%");
        assert_eq!(grouped(1_234_567), "1 234 567");
        assert_eq!(plural(1, "record"), "1 record");
        assert_eq!(plural(0, "record"), "0 records");
    }
}
