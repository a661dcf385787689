//! Values that several commands take on their command line, and how they are written.

use esker::Version;
use esker_tools::copy::DimRange;

/// Reads a file version: `1`, `2`, `5` or one of the names that netCDF's tools use.
pub(crate) fn kind(text: &str) -> Result<Version, String> {
    match text.to_ascii_lowercase().replace([' ', '_'], "-").as_str() {
        "1" | "classic" | "cdf1" | "cdf-1" | "nc3" | "netcdf3" => Ok(Version::Cdf1),
        "2" | "64-bit-offset" | "cdf2" | "cdf-2" | "nc6" => Ok(Version::Cdf2),
        "5" | "64-bit-data" | "cdf5" | "cdf-5" | "nc5" => Ok(Version::Cdf5),
        "3" | "4" | "7" | "nc4" | "nc7" | "netcdf-4" | "netcdf4" | "netcdf-4-classic-model" => {
            Err("netCDF-4 files cannot be written; use classic, 64-bit-offset or cdf5".into())
        }
        _ => Err("use 1 (classic), 2 (64-bit-offset) or 5 (cdf5)".into()),
    }
}

/// Reads a number of bytes: `512`, `4k`, `1MiB`. The letters count in steps of 1024.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = text.get(digits.len()..).unwrap_or("");
    let power = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "ki" | "kib" => 1,
        "m" | "mi" | "mib" => 2,
        "g" | "gi" | "gib" => 3,
        "t" | "ti" | "tib" => 4,
        _ => return Err(format!("\"{unit}\" is no unit of bytes: use k, M, G or T")),
    };
    let count: u64 =
        digits.parse().map_err(|_| "write a number of bytes, as 512 or 4k".to_string())?;
    count.checked_mul(1024u64.pow(power)).ok_or_else(|| "that is too many bytes".into())
}

/// Reads a time: `0.5`, `20ms`, `3min`. Without a unit it is seconds.
pub(crate) fn seconds(text: &str) -> Result<f64, String> {
    let digits = text.trim_end_matches(|c: char| c.is_alphabetic());
    let unit = match text.get(digits.len()..).unwrap_or("") {
        "" | "s" => 1.0,
        "us" | "µs" => 1e-6,
        "ms" => 1e-3,
        "min" => 60.0,
        "h" => 3600.0,
        unit => return Err(format!("\"{unit}\" is no unit of time: use us, ms, s, min or h")),
    };
    let time = digits.trim_end().parse::<f64>().map(|time| time * unit).ok();
    let time = time.filter(|time| time.is_finite() && *time > 0.0);
    time.ok_or_else(|| "write a time above 0, as 0.5, 20ms or 3min".to_string())
}

/// Reads a range: `lat=10:20:2` counts as Python does (20 is out), `lat,10,20,2` as NCO does
/// (20 is in). Bounds may be left out or count from the end; one index alone keeps that index.
pub(crate) fn dim_range(text: &str) -> Result<DimRange, String> {
    let (dim, parts, inclusive): (&str, Vec<&str>, bool) = match text.rsplit_once('=') {
        Some((dim, range)) => (dim, range.split(':').collect(), false),
        None => {
            let mut parts = text.split(',');
            (parts.next().unwrap_or(""), parts.collect(), true)
        }
    };
    let usage = "write NAME=FIRST:END[:STEP] or NAME,FIRST,LAST[,STEP]";
    if dim.is_empty() || parts.is_empty() || parts.len() > 3 {
        return Err(usage.into());
    }
    let number = |place: usize| match parts.get(place).map(|p| p.trim()) {
        None | Some("") => Ok(None),
        Some(text) => text.parse::<i64>().map(Some).map_err(|_| {
            format!("\"{text}\" is no index (indices count from 0, coordinate values are not read)")
        }),
    };
    let (first, second, step) = (number(0)?, number(1)?, number(2)?);
    let step = match step.map(u64::try_from) {
        None => 1,
        Some(Ok(step)) if step > 0 => step,
        _ => return Err("the step must be at least 1".into()),
    };
    let range = match parts.len() {
        1 => {
            let index = Some(first.ok_or(usage)?);
            DimRange::inclusive(dim, index, index, 1)
        }
        _ if inclusive => DimRange::inclusive(dim, first, second, step),
        _ => DimRange::new(dim, first, second, step),
    };
    match (range.start.unwrap_or(0), range.stop) {
        // Of two signs, only the dimension's length can tell.
        (start, Some(stop)) if (start < 0) == (stop < 0) && stop <= start => {
            Err(format!("the range of \"{dim}\" holds no index"))
        }
        _ => Ok(range),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_of_a_version_is_understood() {
        for name in ["1", "classic", "nc3", "cdf1"] {
            assert_eq!(kind(name), Ok(Version::Cdf1));
        }
        for name in ["2", "64-bit offset", "64-bit-offset", "nc6"] {
            assert_eq!(kind(name), Ok(Version::Cdf2));
        }
        for name in ["5", "cdf5", "CDF5", "64-bit data", "64-bit-data", "nc5"] {
            assert_eq!(kind(name), Ok(Version::Cdf5));
        }
        assert!(kind("nc4").unwrap_err().contains("netCDF-4"));
        assert!(kind("6").is_err());
    }

    #[test]
    fn sizes_have_units() {
        assert_eq!(size("512"), Ok(512));
        assert_eq!(size("4k"), Ok(4096));
        assert_eq!(size("1MiB"), Ok(1 << 20));
        assert!(size("").is_err());
        assert!(size("4q").is_err());
        assert!(size("99999999999999G").is_err());
    }

    #[test]
    fn times_have_units() {
        assert_eq!(seconds("0.5"), Ok(0.5));
        assert_eq!(seconds("20ms"), Ok(0.02));
        assert_eq!(seconds("3min"), Ok(180.0));
        for wrong in ["", "s", "-1", "0", "inf", "nan", "3 fortnights", "1e400"] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn ranges_end_as_their_notation_does() {
        let range = |start, stop, step| Ok(DimRange::new("lat", start, stop, step));
        assert_eq!(dim_range("lat=10:20"), range(Some(10), Some(20), 1));
        assert_eq!(dim_range("lat=10:20:2"), range(Some(10), Some(20), 2));
        assert_eq!(dim_range("lat,10,20,2"), range(Some(10), Some(21), 2));
        assert_eq!(dim_range("lat=:20"), range(None, Some(20), 1));
        assert_eq!(dim_range("lat=5:"), range(Some(5), None, 1));
        assert_eq!(dim_range("lat,,,12"), range(None, None, 12));
        assert_eq!(dim_range("lat=7"), range(Some(7), Some(8), 1));
        assert_eq!(dim_range("lat,7"), range(Some(7), Some(8), 1));
        assert_eq!(dim_range("lat=-5:"), range(Some(-5), None, 1));
        assert_eq!(dim_range("lat=-1"), range(Some(-1), None, 1));
        assert_eq!(dim_range("lat=2:-2"), range(Some(2), Some(-2), 1));
    }

    #[test]
    fn a_range_that_says_nothing_is_refused() {
        for text in [
            "lat",
            "=1:2",
            "lat=",
            "lat=5:5",
            "lat=1:2:0",
            "lat=1:2:-1",
            "lat,30.5,40.5",
            "lat=1:2:3:4",
        ] {
            assert!(dim_range(text).is_err(), "{text}");
        }
    }
}
