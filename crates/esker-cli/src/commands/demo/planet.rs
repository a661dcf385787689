//! A made-up planet with a climate: what the demonstration's file holds.
//!
//! Nothing here is science. Land is where some waves on the sphere add up to more than a
//! threshold; temperature falls towards the poles and swings with the season, more over land
//! than over sea; rain falls in bands. Everything is a pure function of place and month, so
//! the file is the same on every machine.

use std::f64::consts::PI;

/// Months in the file.
pub(super) const MONTHS: usize = 12;
/// Rows, from south to north.
pub(super) const LATITUDES: usize = 72;
/// Columns, from Greenwich eastwards.
pub(super) const LONGITUDES: usize = 144;
/// What stands where there is no sea.
pub(super) const FILL: f32 = 1e20;

/// The middle of each row in degrees.
pub(super) fn latitudes() -> Vec<f64> {
    (0..LATITUDES).map(|i| -90.0 + 180.0 * (i as f64 + 0.5) / LATITUDES as f64).collect()
}

/// The middle of each column in degrees.
pub(super) fn longitudes() -> Vec<f64> {
    (0..LONGITUDES).map(|i| 360.0 * (i as f64 + 0.5) / LONGITUDES as f64).collect()
}

/// The middle of each month in days, in years of 365 days.
pub(super) fn days() -> Vec<f64> {
    (0..MONTHS).map(|month| (month as f64 + 0.5) * 365.0 / 12.0).collect()
}

/// One month of the planet's climate, row by row from the south.
pub(super) struct Month {
    /// Air temperature in K.
    pub(super) air: Vec<f32>,
    /// Sea surface temperature in K, [`FILL`] over land.
    pub(super) sea: Vec<f32>,
    /// Rain in kg m-2 s-1.
    pub(super) rain: Vec<f32>,
}

/// How high the land is in m at each point, 0 over the sea.
pub(super) fn heights() -> Vec<f32> {
    each_point(|lat, lon| (height(lat, lon).max(0.0) * 2500.0) as f32)
}

/// The climate of a month, 0 to 11.
pub(super) fn month(month: usize) -> Month {
    let season = -((month as f64 + 0.5) / 12.0 * 2.0 * PI).cos();
    Month {
        air: each_point(|lat, lon| air(lat, lon, season) as f32),
        sea: each_point(|lat, lon| {
            let sea = 271.35f64.max(sea_level(lat, season * 0.3) + waves(lat, lon, 4.0) * 3.0);
            if height(lat, lon) > 0.0 { FILL } else { sea as f32 }
        }),
        rain: each_point(|lat, lon| rain(lat, lon, season) as f32),
    }
}

fn each_point(value: impl Fn(f64, f64) -> f32) -> Vec<f32> {
    let (lats, lons) = (latitudes(), longitudes());
    let row = |lat: &f64| {
        let lat = lat.to_radians();
        lons.iter().map(move |lon| (lat, lon.to_radians()))
    };
    lats.iter().flat_map(row).map(|(lat, lon)| value(lat, lon)).collect()
}

/// Waves along six directions through the sphere: smooth everywhere, also at the poles.
fn waves(lat: f64, lon: f64, scale: f64) -> f64 {
    const DIRECTIONS: [(f64, f64, f64, f64); 6] = [
        (0.9, 0.3, -0.2, 0.4),
        (-0.4, 0.8, 0.5, 2.1),
        (0.2, -0.5, 0.9, 4.0),
        (0.7, -0.7, 0.3, 5.3),
        (-0.6, -0.6, 0.6, 1.2),
        (0.1, 0.9, -0.8, 3.3),
    ];
    let (x, y, z) = (lat.cos() * lon.cos(), lat.cos() * lon.sin(), lat.sin());
    let along =
        |(a, b, c, phase): &(f64, f64, f64, f64)| (scale * (a * x + b * y + c * z) + phase).sin();
    DIRECTIONS.iter().map(along).sum::<f64>() / 3.0
}

/// Positive over land, in units of 2500 m.
fn height(lat: f64, lon: f64) -> f64 {
    waves(lat, lon, 2.6) + 0.45 * waves(lat, lon, 7.0) + 0.2 * waves(lat, lon, 17.0) - 0.15
}

fn sea_level(lat: f64, season: f64) -> f64 {
    // The sun stands over the summer hemisphere.
    let thermal_equator = 0.14 * season;
    300.0 - 40.0 * (lat - thermal_equator).sin().powi(2) + 6.0 * season * lat.sin()
}

fn air(lat: f64, lon: f64, season: f64) -> f64 {
    let height = height(lat, lon);
    let land = (height * 6.0).clamp(0.0, 1.0);
    let swing = 16.0 * land * season * lat.sin();
    sea_level(lat, season) + swing - 6.5 * 2.5 * height.max(0.0) + 2.0 * waves(lat, lon, 9.0)
}

fn rain(lat: f64, lon: f64, season: f64) -> f64 {
    let band = |at: f64, width: f64| (-((lat - at) / width).powi(2)).exp();
    let tropics = band(0.12 * season, 0.14);
    let westerlies = 0.5 * (band(0.85, 0.25) + band(-0.85, 0.25));
    let mm_per_day = (0.4 + 7.0 * tropics + 4.0 * westerlies) * (1.0 + 0.6 * waves(lat, lon, 6.0));
    mm_per_day.max(0.0) / 86_400.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_planet_is_habitable() {
        let land = heights().iter().filter(|h| **h > 0.0).count();
        let share = land as f64 / (LATITUDES * LONGITUDES) as f64;
        assert!((0.2..0.5).contains(&share), "{share} is land");
        for m in 0..MONTHS {
            let month = month(m);
            assert!(month.air.iter().all(|t| (200.0..330.0).contains(t)));
            assert!(month.sea.iter().all(|t| *t == FILL || (271.0..310.0).contains(t)));
            assert!(month.rain.iter().all(|r| (0.0..1e-3).contains(r)));
        }
    }

    #[test]
    fn july_is_warmer_than_january_in_the_north() {
        let north = |m: usize| month(m).air[LATITUDES * LONGITUDES / 2..].iter().sum::<f32>();
        assert!(north(6) > north(0));
    }
}
