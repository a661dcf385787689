//! The volumes: raw, NumPy, NIfTI and classic netCDF files of the shared test data.

use std::io;
use std::path::{Path, PathBuf};

use esker_format::Header;

pub(crate) struct Volume {
    pub(crate) name: &'static str,
    pub(crate) shape: Vec<usize>,
    pub(crate) values: Vec<f32>,
    pub(crate) fill: Option<f32>,
}

impl Volume {
    pub(crate) fn ordinary(&self, x: f32) -> bool {
        x.is_finite() && self.fill != Some(x)
    }

    pub(crate) fn range(&self) -> (f64, f64) {
        let ordinary = self.values.iter().copied().filter(|&x| self.ordinary(x));
        let (low, high) = ordinary
            .fold((f32::INFINITY, f32::NEG_INFINITY), |(low, high), x| (low.min(x), high.max(x)));
        (low.into(), high.into())
    }

    /// The middle, at most `most` long in every dimension.
    pub(crate) fn crop(&self, most: usize) -> Volume {
        let shape: Vec<usize> = self.shape.iter().map(|&len| len.min(most)).collect();
        let count: usize = shape.iter().product();
        let value = |mut point: usize| {
            let (mut at, mut stride) = (0, 1);
            for (&len, &whole) in shape.iter().zip(&self.shape).rev() {
                at += (point % len + (whole - len) / 2) * stride;
                point /= len;
                stride *= whole;
            }
            self.values[at]
        };
        Volume { name: self.name, values: (0..count).map(value).collect(), shape, fill: self.fill }
    }

    /// As `NAME_LENxLENxLEN_FILL.f32`.
    pub(crate) fn export(&self, dir: &Path) -> io::Result<()> {
        let shape: Vec<String> = self.shape.iter().map(usize::to_string).collect();
        let fill = self.fill.map_or("none".into(), |fill| format!("{fill:?}"));
        let bytes: Vec<u8> = self.values.iter().flat_map(|x| x.to_le_bytes()).collect();
        std::fs::write(dir.join(format!("{}_{}_{fill}.f32", self.name, shape.join("x"))), bytes)
    }
}

fn little_endian(bytes: &[u8]) -> Vec<f32> {
    bytes.as_chunks::<4>().0.iter().map(|x| f32::from_le_bytes(*x)).collect()
}

/// A variable of a classic file; of a record variable all records.
fn variable(name: &'static str, file: &Path, var: &str, fill: Option<f32>) -> io::Result<Volume> {
    let bytes = std::fs::read(file)?;
    let wrong = |what: String| io::Error::other(format!("{}: {what}", file.display()));
    let header = Header::decode(&bytes, bytes.len() as u64).map_err(|e| wrong(e.to_string()))?;
    let records = header.records(bytes.len() as u64);
    let (_, variable, place) = header
        .vars()
        .find(|(_, v, _)| &*v.name == var)
        .ok_or_else(|| wrong(format!("no {var}")))?;
    let shape = header.schema.shape(variable, records);
    let shape: Vec<usize> = shape.into_iter().map(|len| len as usize).collect();
    let count: usize = shape.iter().product();
    let (mut at, mut values) = (place.begin as usize, Vec::with_capacity(count));
    while values.len() < count {
        let run = &bytes[at..at + (place.bytes as usize).min(4 * (count - values.len()))];
        values.extend(run.as_chunks::<4>().0.iter().map(|x| f32::from_be_bytes(*x)));
        at += header.layout.record_size as usize;
    }
    Ok(Volume { name, shape, values, fill })
}

fn load(data: &Path) -> io::Result<Vec<Volume>> {
    let volumes = data.join("volumes");
    let npy = std::fs::read(volumes.join("devito_acoustic_wave_192.npy"))?;
    let wave = little_endian(&npy[npy.len() - 4 * 192 * 192 * 192..]);
    let vorticity = little_endian(&std::fs::read(volumes.join("vorticity.128_128_41"))?);
    let brain_len = 168 * 206 * 128;
    let mut nifti = vec![0; 352 + 4 * brain_len];
    let packed = std::fs::read(volumes.join("inia19-t1-brain.nii.gz"))?;
    let written = libdeflater::Decompressor::new()
        .gzip_decompress(&packed, &mut nifti)
        .map_err(io::Error::other)?;
    let brain = little_endian(&nifti[352..written]);
    let plain = |name, shape: [usize; 3], values| Volume {
        name,
        shape: shape.to_vec(),
        values,
        fill: None,
    };
    let classic = |file: &str| data.join("netcdf_classic").join(file);
    Ok(vec![
        plain("wave", [192, 192, 192], wave),
        plain("vorticity", [41, 128, 128], vorticity),
        plain("brain", [128, 206, 168], brain),
        variable("ccsm-TS", &classic("geocat_ccsm_b003_TS.nc"), "TS", None)?,
        variable("echam-t", &classic("geocat_cdo_echam_rectilinear_grid_3D.nc"), "t", None)?,
        variable(
            "echam-rhumidity",
            &classic("geocat_cdo_echam_rectilinear_grid_3D.nc"),
            "rhumidity",
            None,
        )?,
        variable("atlas-TEMP", &classic("ferret_ocean_atlas_subset.nc"), "TEMP", Some(-1e34))?,
        variable("levitus-TEMP", &classic("ferret_levitus_climatology.cdf"), "TEMP", Some(-1e10))?,
    ])
}

/// All volumes, if the shared test data are there.
pub(crate) fn volumes() -> Option<Vec<Volume>> {
    let data = match std::env::var_os("ESKER_SHARED_DATA") {
        Some(path) => PathBuf::from(path),
        None => PathBuf::from(env!("CARGO_MANIFEST_DIR"))
            .ancestors()
            .map(|above| above.join("shared/data"))
            .find(|path| path.is_dir())?,
    };
    match load(&data) {
        Ok(volumes) => Some(volumes),
        Err(error) => {
            println!("skipped: {error}");
            None
        }
    }
}
