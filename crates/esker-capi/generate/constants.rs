//! Fortran's constants, from those of the C header, and the include file for Fortran 77.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::nfmpi;

/// Constants that Fortran has and C has not, or has otherwise: type, name, value. In order of
/// use; a value may be a name.
const FORTRAN: &[(&str, &str, &str)] = &[
    ("integer", "nf_int1", "1"),
    ("integer", "nf_int2", "3"),
    ("integer", "nf_int4", "4"),
    ("integer", "nf_real", "5"),
    ("integer", "nf_real4", "5"),
    ("integer", "nf_real8", "6"),
    ("integer", "nf_32bit", "16777216"),
    ("integer", "nf_cdf2", "512"),
    ("integer", "nf_bp", "65536"),
    ("integer", "nf_format_cdf2", "2"),
    ("integer", "nf_format_bp", "6"),
    ("integer", "nf_format_unknown", "-1"),
    ("integer", "nf_align_chunk", "-1"),
    ("integer", "nf_unlimited", "0"),
    ("integer*8", "nfmpi_unlimited", "0"),
    ("integer*8", "nf_count_ignore", "-1_8"),
    ("integer", "nf_layout_contiguous", "0"),
    ("integer", "nf_layout_chunked", "1"),
    ("integer", "nf_layout_log", "2"),
    ("integer", "nf_layout_decomposed", "3"),
    ("integer", "nf_no_decom", "0"),
    ("integer", "nf_directed", "1"),
    ("integer", "nf_undirected", "2"),
    ("integer", "nf_global", "0"),
    ("integer", "nf_max_nfiles", "1024"),
    ("integer", "nf_fatal", "1"),
    ("integer", "nf_verbose", "2"),
    ("integer", "nf2_err", "-1"),
    ("integer", "nf_fill_byte", "-127"),
    ("integer", "nf_fill_int1", "-127"),
    ("integer", "nf_fill_char", "0"),
    ("integer", "nf_fill_short", "-32767"),
    ("integer", "nf_fill_int2", "-32767"),
    ("integer", "nf_fill_int", "-2147483647"),
    ("integer", "nf_fill_ubyte", "255"),
    ("integer", "nf_fill_ushort", "65535"),
    ("integer*8", "nf_fill_uint", "4294967295_8"),
    ("integer*8", "nf_fill_int64", "-9223372036854775806_8"),
    ("real", "nf_fill_float", "9.9692099683868690e+36"),
    ("real", "nf_fill_real", "9.9692099683868690e+36"),
    ("real", "nf_fill_real4", "9.9692099683868690e+36"),
    ("double precision", "nf_fill_double", "9.9692099683868690d+36"),
    ("double precision", "nf_fill_real8", "9.9692099683868690d+36"),
    ("double precision", "nf_fill_uint64", "1.8446744073709551614d+19"),
    ("real", "filfloat", "9.9692099683868690e+36"),
    ("double precision", "fildoub", "9.9692099683868690d+36"),
];

/// The names of netCDF 2 that old programs use.
const OLD: &[(&str, &str)] = &[
    ("ncbyte", "1"),
    ("ncchar", "2"),
    ("ncshort", "3"),
    ("nclong", "4"),
    ("ncfloat", "5"),
    ("ncdouble", "6"),
    ("ncrdwr", "1"),
    ("nccreat", "2"),
    ("ncexcl", "4"),
    ("ncindef", "8"),
    ("ncnsync", "16"),
    ("nchsync", "32"),
    ("ncndirty", "64"),
    ("nchdirty", "128"),
    ("ncfill", "0"),
    ("ncnofill", "256"),
    ("nclink", "32768"),
    ("ncnowrit", "0"),
    ("ncwrite", "1"),
    ("ncclob", "0"),
    ("ncnoclob", "4"),
    ("ncunlim", "0"),
    ("ncglobal", "0"),
    ("maxncop", "32"),
    ("maxncdim", "100"),
    ("maxncatt", "2000"),
    ("maxncvar", "2000"),
    ("maxncnam", "128"),
    ("maxvdims", "100"),
    ("ncnoerr", "0"),
    ("ncebadid", "-33"),
    ("ncenfile", "-31"),
    ("nceexist", "-35"),
    ("nceinval", "-36"),
    ("nceperm", "-37"),
    ("ncenotin", "-38"),
    ("nceindef", "-39"),
    ("ncecoord", "-40"),
    ("ncemaxds", "-41"),
    ("ncename", "-42"),
    ("ncenoatt", "-43"),
    ("ncemaxat", "-44"),
    ("ncebadty", "-45"),
    ("ncebadd", "-46"),
    ("nceunlim", "-47"),
    ("ncemaxvs", "-48"),
    ("ncenotvr", "-49"),
    ("nceglob", "-50"),
    ("ncenotnc", "-51"),
    ("ncests", "-52"),
    ("ncentool", "-53"),
    ("ncfoobar", "32"),
    ("ncsyserr", "-31"),
    ("ncfatal", "1"),
    ("ncverbos", "2"),
    ("filbyte", "-127"),
    ("filchar", "0"),
    ("filshort", "-32767"),
    ("fillong", "-2147483647"),
];

/// The module's own types of fill values; the others are as in Fortran 77.
const FILLS: [(&str, &str); 6] = [
    ("nf_fill_byte", "integer(1)"),
    ("nf_fill_int1", "integer(1)"),
    ("nf_fill_char", "integer(1)"),
    ("nf_fill_short", "integer(2)"),
    ("nf_fill_int2", "integer(2)"),
    ("nf_fill_ubyte", "integer(2)"),
];

struct Constant {
    ty: &'static str,
    name: String,
    value: String,
}

/// The integers of the C header that Fortran has under its names.
fn of_header() -> Vec<Constant> {
    let header = std::fs::read_to_string("src/header.h").unwrap_or_default();
    let mut known: BTreeMap<&str, i64> = BTreeMap::new();
    let mut pairs = Vec::new();
    for line in header.lines() {
        let mut words = line.split_whitespace();
        let (Some("#define"), Some(name)) = (words.next(), words.next()) else { continue };
        let text = line.split_once(name).map_or("", |(_, text)| text);
        let text = text.split("/*").next().unwrap_or("").trim().trim_matches(['(', ')']);
        let hexadecimal = text.strip_prefix("0x").and_then(|t| i64::from_str_radix(t, 16).ok());
        if let Some(value) = text.parse().ok().or(hexadecimal) {
            known.insert(name, value);
        }
        pairs.push((name, text));
    }
    // A name may stand for one that is defined further down, or for an alias itself.
    for _ in 0..2 {
        for (name, text) in &pairs {
            if let Some(value) = known.get(text).copied() {
                known.insert(name, value);
            }
        }
    }
    let mut out = Vec::new();
    for (name, _) in &pairs {
        let value = known.get(name).filter(|value| i32::try_from(**value).is_ok());
        let Some(value) = value else { continue };
        let name = match name.strip_prefix("NC_") {
            Some(rest) => format!("nf_{}", rest.to_lowercase()),
            None if name.starts_with("PNETCDF_") => name.to_lowercase(),
            None => continue,
        };
        if FORTRAN.iter().all(|(_, other, _)| *other != name) {
            out.push(Constant { ty: "integer", name, value: value.to_string() });
        }
    }
    out
}

fn all() -> Vec<Constant> {
    let fortran = FORTRAN.iter().map(|(ty, name, value)| Constant {
        ty,
        name: name.to_string(),
        value: value.to_string(),
    });
    let old = OLD.iter().map(|(name, value)| Constant {
        ty: "integer",
        name: name.to_string(),
        value: value.to_string(),
    });
    of_header().into_iter().chain(fortran).chain(old).collect()
}

/// The declarations of the module's constants.
pub(crate) fn module() -> String {
    let mut out = String::new();
    for Constant { ty, name, value } in all() {
        let ty = match ty {
            "integer*8" => "integer(8)",
            other => other,
        };
        let _ = writeln!(out, "  {ty}, parameter :: {name} = {value}");
        let new = if name == "nfmpi_unlimited" {
            "nf90mpi_unlimited".to_string()
        } else if let Some(rest) = name.strip_prefix("nf_") {
            format!("nf90_{rest}")
        } else {
            continue;
        };
        let ty = FILLS.iter().find(|(fill, _)| *fill == name).map_or(ty, |(_, ty)| ty);
        let _ = writeln!(out, "  {ty}, parameter :: {new} = {value}");
    }
    out
}

/// The text of `pnetcdf.inc`: good in fixed and in free form.
pub(crate) fn include() -> String {
    let mut out = String::from(
        "! pnetcdf.inc: PnetCDF's Fortran 77 interface, as Esker's libpnetcdf.so\n\
         ! has it. Made from the tables in crates/esker-capi; do not edit it by\n\
         ! hand. Good in fixed and in free form.\n",
    );
    let mut constant = |ty: &str, name: &str, value: &str| {
        let _ = writeln!(out, "      {ty} {name}\n      parameter ({name} = {value})");
    };
    for Constant { ty, name, value } in all() {
        constant(ty, &name, &value);
    }
    let mut function = |ty: &str, name: &str| {
        let _ = writeln!(out, "      {ty} {name}\n      external {name}");
    };
    for name in nfmpi::BY_HAND {
        let ty = match name {
            "strerror" | "strerrno" | "inq_libvers" => "character*80",
            "issyserr" => "logical",
            _ => "integer",
        };
        function(ty, &format!("nfmpi_{name}"));
    }
    for one in nfmpi::functions() {
        function("integer", &one.name);
    }
    out
}
