//! Variables that Esker seals, after damage and after other programs: what a check says, and how an edit is accepted.

use std::path::{Path, PathBuf};
use std::process::Command;

use esker::{CreateOptions, Dataset, DimLen, ExternalType, Selection, Version};
use esker_testkit::programs;
use esker_tools::Unseen;
use esker_tools::check::{CheckOptions, RepairOptions, Report, Target, Verdict, check, repair};

const CHUNKED: &[f64] = &[0., 1., 2., 3., 4., 5., 6., 7., 8., 9., 10., 11.];
const DECOMPOSED: &[f64] = &[20., 21., 22., 23., 24., 25.];
const PLAIN: &[f64] = &[30., 31., 32., 33., 34., 35.];

/// A chunked variable, a decomposed one and a plain one. The header has room, as after a redefinition.
fn made(directory: &Path) -> PathBuf {
    made_in(directory, Version::Cdf2)
}

fn made_in(directory: &Path, version: Version) -> PathBuf {
    let path = directory.join("a.nc");
    let options = CreateOptions::new().version(version);
    let mut def = Dataset::create(&path, options).unwrap();
    let y = def.add_dim("y", DimLen::Fixed(2)).unwrap();
    let x = def.add_dim("x", DimLen::Fixed(6)).unwrap();
    let chunked = def.add_var("chunked", ExternalType::Float, &[y, x]).unwrap();
    def.set_chunks(chunked, &[1, 4]).unwrap();
    def.set_filters(chunked, "zstd").unwrap();
    def.put_attr(chunked, "units", "K").unwrap();
    let map = def.add_decomposition(&[x], &Selection::slab(&[0], &[6])).unwrap();
    let spread = def.add_decomposed_var("decomposed", ExternalType::Int, &[], map).unwrap();
    def.put_attr(spread, "units", "m").unwrap();
    let plain = def.add_var("plain", ExternalType::Int, &[x]).unwrap();
    let mut ds = def.enddef().unwrap();
    ds.put(chunked, &Selection::all(), CHUNKED).unwrap();
    ds.put(spread, &Selection::blob(&[], &[]), DECOMPOSED).unwrap();
    ds.put(plain, &Selection::all(), PLAIN).unwrap();
    ds.sync().unwrap();
    ds.close().unwrap();
    path
}

fn look(path: &Path) -> Report {
    check(path, &CheckOptions::default(), &mut Unseen).unwrap()
}

fn codes(report: &Report) -> Vec<&str> {
    report.findings.iter().map(|finding| finding.code).collect()
}

fn values(path: &Path, name: &str) -> Result<Vec<f64>, String> {
    let ds = Dataset::open(path).map_err(|e| e.to_string())?;
    let var = ds.var(name).map_err(|e| e.to_string())?;
    ds.get(var, &Selection::all()).map_err(|e| e.to_string())
}

fn require(path: &Path, chunked: &str, decomposed: &str) {
    assert_eq!(values(path, chunked).unwrap(), CHUNKED);
    assert_eq!(values(path, decomposed).unwrap(), DECOMPOSED);
    assert_eq!(values(path, "plain").unwrap(), PLAIN);
}

/// Changes a byte of the file, so many behind where these are first.
fn change(path: &Path, what: &[u8], behind: usize, to: u8) {
    let mut bytes = std::fs::read(path).unwrap();
    let at = bytes.windows(what.len()).position(|window| window == what).unwrap() + behind;
    assert_ne!(bytes[at], to);
    bytes[at] = to;
    std::fs::write(path, bytes).unwrap();
}

fn accepted(path: &Path) -> (Report, PathBuf) {
    let to = path.with_extension("accepted.nc");
    let _ = std::fs::remove_file(&to);
    let options =
        RepairOptions { accept_edits: true, ..RepairOptions::new(Target::Copy(to.clone())) };
    let repaired = repair(path, &options, &mut Unseen).unwrap();
    (repaired.after, to)
}

#[test]
fn a_broken_seal_and_a_damaged_map_are_findings_of_their_own() {
    let directory = tempfile::tempdir().unwrap();
    let path = made(directory.path());
    assert_eq!(look(&path).verdict(), Verdict::Valid);
    require(&path, "chunked", "decomposed");
    let sound = std::fs::read(&path).unwrap();
    // A name; the name of an attribute that makes it what it is.
    for (what, behind, to) in
        [(&b"chunked\0"[..], 0, b'k'), (b"decomposed\0\0", 0, b'D'), (b"__chunk_dims", 3, b'X')]
    {
        std::fs::write(&path, &sound).unwrap();
        change(&path, what, behind, to);
        let report = look(&path);
        assert_eq!(report.verdict(), Verdict::Invalid, "{what:?}");
        assert!(codes(&report).contains(&"seal"), "{what:?}: {report:?}");
        let finding = report.findings.iter().find(|finding| finding.code == "seal").unwrap();
        assert!(finding.offset.is_some() && finding.object.contains("variable"), "{finding:?}");
        // A repair leaves it, and says how to go on.
        let options = RepairOptions::new(Target::Copy(path.with_extension("new.nc")));
        let repaired = repair(&path, &options, &mut Unseen).unwrap();
        assert_eq!(repaired.written, None, "{what:?}");
        let left = repaired.left.iter().find(|left| left.finding.code == "seal").unwrap();
        assert!(left.why.contains("--accept-edits"), "{}", left.why);
    }
    // A number of the map.
    std::fs::write(&path, &sound).unwrap();
    let ds = Dataset::open(&path).unwrap();
    let map =
        ds.header().schema.var("D1.blob_count").or_else(|| ds.header().schema.var("D1.nreqs"));
    let at = ds.header().place(map.unwrap()).unwrap().begin as usize;
    drop(ds);
    let mut bytes = sound.clone();
    bytes[at + 3] ^= 4;
    std::fs::write(&path, &bytes).unwrap();
    let report = look(&path);
    assert!(codes(&report).contains(&"map"), "{report:?}");
    assert_eq!(report.verdict(), Verdict::Invalid);
}

#[test]
fn an_edit_is_accepted_by_who_knows_of_it_and_damage_is_not_hidden_by_that() {
    let directory = tempfile::tempdir().unwrap();
    let path = made(directory.path());
    let sound = std::fs::read(&path).unwrap();
    // As ncrename leaves them.
    change(&path, b"chunked\0", 0, b'C');
    change(&path, b"decomposed\0\0", 0, b'D');
    assert!(values(&path, "Chunked").unwrap_err().contains("__esker_seal"));
    let (after, to) = accepted(&path);
    assert_eq!(after.verdict(), Verdict::Valid, "{after:?}");
    require(&to, "Chunked", "Decomposed");
    // It can be written again.
    let options = esker::OpenOptions::new().writable(true);
    Dataset::open_with(&to, options).unwrap().close().unwrap();
    // Accepting says nothing of what chunks know better: another chunk shape, another fill value.
    std::fs::write(&path, &sound).unwrap();
    let shape = [&b"__chunk_shape\0\0\0"[..], &[0, 0, 0, 4, 0, 0, 0, 2]].concat();
    change(&path, &shape, shape.len() + 3, 2);
    assert!(codes(&look(&path)).contains(&"seal"));
    let (after, to) = accepted(&path);
    assert_eq!(after.verdict(), Verdict::Invalid, "{after:?}");
    assert!(values(&to, "chunked").is_err());
    // One that is no chunked variable any more is not made an ordinary one.
    std::fs::write(&path, &sound).unwrap();
    change(&path, b"__chunk_dims", 3, b'X');
    let (after, _) = accepted(&path);
    assert!(codes(&after).contains(&"seal"), "{after:?}");
}

fn tool(name: &str, words: &[&str], directory: &Path) {
    programs::good(Command::new(name).args(words).current_dir(directory));
}

#[test]
fn what_nco_changes_is_kept_or_an_error() {
    if !programs::have("ncks") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let path = made(directory.path());
    let sound = std::fs::read(&path).unwrap();
    let place = directory.path();
    // What attributes say to people, and global attributes.
    tool("ncatted", &["-h", "-a", "units,chunked,o,c,C", "a.nc"], place);
    tool("ncatted", &["-h", "-a", "units,decomposed,o,c,k", "a.nc"], place);
    require(&path, "chunked", "decomposed");
    assert_eq!(look(&path).verdict(), Verdict::Valid);
    // A header that grows moves variables, but not the chunks behind them.
    for len in [1, 9000] {
        std::fs::write(&path, &sound).unwrap();
        let title = format!("title,global,o,c,{}", "T".repeat(len));
        tool("ncatted", &["-h", "-a", &title, "a.nc"], place);
        kept_or_an_error(&path);
    }
    // Names.
    std::fs::write(&path, &sound).unwrap();
    tool("ncrename", &["-h", "-v", "chunked,fhunked", "a.nc"], place);
    let error = values(&path, "fhunked").unwrap_err();
    assert!(error.contains("__esker_seal") && error.contains("fhunked"), "{error}");
    assert_eq!(values(&path, "plain").unwrap(), PLAIN);
    let (after, to) = accepted(&path);
    assert_eq!(after.verdict(), Verdict::Valid, "{after:?}");
    require(&to, "fhunked", "decomposed");
    // A fill value, and a seal that is taken away: damage for all that anybody can know.
    for (what, words) in
        [("_FillValue,chunked,o,f,-1", "chunked"), ("__esker_seal,chunked,d,,", "__esker_seal")]
    {
        std::fs::write(&path, &sound).unwrap();
        tool("ncatted", &["-h", "-a", what, "a.nc"], place);
        let error = values(&path, "chunked").unwrap_err();
        assert!(error.contains(words), "{what}: {error}");
        assert_eq!(look(&path).verdict(), Verdict::Invalid, "{what}");
    }
    // Written anew: chunks are in no variable, and do not come along. Decomposed variables do, with their maps.
    std::fs::write(&path, &sound).unwrap();
    tool("ncks", &["-h", "-O", "-6", "a.nc", "b.nc"], place);
    let other = directory.path().join("b.nc");
    assert!(values(&other, "chunked").is_err());
    kept_or_an_error(&other);
    tool("ncks", &["-h", "-O", "-6", "-v", "decomposed,plain", "a.nc", "b.nc"], place);
    kept_or_an_error(&other);
    // In another CDF version, where numbers of 64 bits are written in another way.
    made_in(directory.path(), Version::Cdf5);
    tool("ncks", &["-h", "-O", "-6", "a.nc", "b.nc"], place);
    for name in ["decomposed", "plain"] {
        let error = values(&other, name).unwrap_err();
        assert!(error.contains("records_counted") && error.contains("esker copy -k"), "{error}");
        assert!(!error.contains(&u64::MAX.to_string()), "{error}");
    }
}

/// Other variables are as they were; those that are sealed too, or an error that names them.
fn kept_or_an_error(path: &Path) {
    assert_eq!(values(path, "plain").unwrap(), PLAIN);
    for (name, expected) in [("chunked", CHUNKED), ("decomposed", DECOMPOSED)] {
        match values(path, name) {
            Ok(found) => assert_eq!(found, expected, "{name}"),
            Err(error) => assert!(error.contains(name), "{error}"),
        }
    }
}
