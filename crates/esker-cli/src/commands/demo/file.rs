//! The demonstration's file: the planet's climate with CF metadata.

use std::path::Path;

use esker::{CreateOptions, Dataset, Define, Result, Selection};
use esker::{DimLen, ExternalType, Owner, Values, VarId, Version};

use super::planet::{self, FILL, LATITUDES, LONGITUDES, MONTHS};

/// Writes the file; an existing one is not replaced.
pub(super) fn make(path: &Path) -> Result<()> {
    let options = CreateOptions::new().version(Version::Cdf2).clobber(false);
    let mut define = Dataset::create(path, options)?;
    let time = define.add_dim("time", DimLen::Unlimited)?;
    let lat = define.add_dim("lat", DimLen::Fixed(LATITUDES as u64))?;
    let lon = define.add_dim("lon", DimLen::Fixed(LONGITUDES as u64))?;

    for (name, value) in [
        ("Conventions", "CF-1.8"),
        ("title", "A year on a made-up planet"),
        ("source", "esker demo"),
        ("comment", "Not science: smooth functions of place and month"),
    ] {
        define.put_attr(Owner::Global, name, value)?;
    }
    let time_var = variable(
        &mut define,
        "time",
        ExternalType::Double,
        &[time],
        &[
            ("standard_name", "time"),
            ("long_name", "time"),
            ("units", "days since 2001-01-01"),
            ("calendar", "noleap"),
            ("axis", "T"),
        ],
    )?;
    let lat_var = variable(
        &mut define,
        "lat",
        ExternalType::Double,
        &[lat],
        &[
            ("standard_name", "latitude"),
            ("long_name", "latitude"),
            ("units", "degrees_north"),
            ("axis", "Y"),
        ],
    )?;
    let lon_var = variable(
        &mut define,
        "lon",
        ExternalType::Double,
        &[lon],
        &[
            ("standard_name", "longitude"),
            ("long_name", "longitude"),
            ("units", "degrees_east"),
            ("axis", "X"),
        ],
    )?;
    let orog = variable(
        &mut define,
        "orog",
        ExternalType::Float,
        &[lat, lon],
        &[
            ("standard_name", "surface_altitude"),
            ("long_name", "height of the land"),
            ("units", "m"),
        ],
    )?;
    let plane = [time, lat, lon];
    let tas = variable(
        &mut define,
        "tas",
        ExternalType::Float,
        &plane,
        &[
            ("standard_name", "air_temperature"),
            ("long_name", "air temperature near the ground"),
            ("units", "K"),
            ("cell_methods", "time: mean"),
        ],
    )?;
    let tos = variable(
        &mut define,
        "tos",
        ExternalType::Float,
        &plane,
        &[
            ("standard_name", "sea_surface_temperature"),
            ("long_name", "sea surface temperature"),
            ("units", "K"),
            ("cell_methods", "time: mean"),
        ],
    )?;
    define.put_attr(tos, "_FillValue", Values::Float(vec![FILL]))?;
    let pr = variable(
        &mut define,
        "pr",
        ExternalType::Float,
        &plane,
        &[
            ("standard_name", "precipitation_flux"),
            ("long_name", "rain and snow"),
            ("units", "kg m-2 s-1"),
            ("cell_methods", "time: mean"),
        ],
    )?;

    let mut dataset = define.enddef()?;
    dataset.put(lat_var, &Selection::all(), &planet::latitudes())?;
    dataset.put(lon_var, &Selection::all(), &planet::longitudes())?;
    dataset.put(orog, &Selection::all(), &planet::heights())?;
    // One record after the other, as a model would write them.
    for (month, day) in planet::days().into_iter().enumerate() {
        let climate = planet::month(month);
        let start = [month as u64, 0, 0];
        let slab = Selection::slab(&start, &[1, LATITUDES as u64, LONGITUDES as u64]);
        dataset.put(time_var, &Selection::element(&start[..1]), &[day])?;
        dataset.put(tas, &slab, &climate.air)?;
        dataset.put(tos, &slab, &climate.sea)?;
        dataset.put(pr, &slab, &climate.rain)?;
    }
    dataset.close()
}

fn variable(
    define: &mut Define,
    name: &str,
    ty: ExternalType,
    dims: &[esker::DimId],
    attrs: &[(&str, &str)],
) -> Result<VarId> {
    let var = define.add_var(name, ty, dims)?;
    for (name, value) in attrs {
        define.put_attr(var, name, *value)?;
    }
    Ok(var)
}

/// Compares every value with what [`make`] was to write: how many there are, or the name of
/// the first variable that differs.
pub(super) fn compare(dataset: &Dataset) -> Result<std::result::Result<u64, String>> {
    let mut months: [Vec<f32>; 3] = Default::default();
    for month in (0..MONTHS).map(planet::month) {
        for (all, one) in months.iter_mut().zip([month.air, month.sea, month.rain]) {
            all.extend(one);
        }
    }
    let [air, sea, rain] = months;
    let expected = [
        ("time", Values::Double(planet::days())),
        ("lat", Values::Double(planet::latitudes())),
        ("lon", Values::Double(planet::longitudes())),
        ("orog", Values::Float(planet::heights())),
        ("tas", Values::Float(air)),
        ("tos", Values::Float(sea)),
        ("pr", Values::Float(rain)),
    ];
    let mut count = 0;
    for (name, values) in expected {
        let read = match dataset.schema().var(name) {
            Some(var) => dataset.get_values(var, &Selection::all())?,
            None => return Ok(Err(name.to_string())),
        };
        if read != values {
            return Ok(Err(name.to_string()));
        }
        count += values.len() as u64;
    }
    Ok(Ok(count))
}
