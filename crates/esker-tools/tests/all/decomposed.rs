//! Variables decomposed by E3SM's maps: written by some ranks, read by others, and the same bytes
//! as ordinary variables after a canonical copy.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use esker::{
    Communicator, CreateOptions, Dataset, DimId, DimLen, ExternalType, Hints, OpenOptions, Owner,
    Requests, Selection, SelfComm, VarId,
};
use esker_testkit::{data, programs, python, skip};
use esker_tools::Unseen;
use esker_tools::check::{CheckOptions, Finding, Verdict, check};
use esker_tools::copy::{CopyOptions, canonical, copy};

/// A recorded map: a shape, and the runs of each recorded rank as (first element, length).
struct Recorded {
    shape: Vec<u64>,
    ranks: Vec<Vec<(u64, u64)>>,
}

fn recorded(case: &str) -> Option<Vec<Recorded>> {
    let name = format!("netcdf_classic/pnetcdf_e3sm_map_{case}_case_16p.nc");
    let path = data::shared()?.join(name);
    if !path.exists() {
        skip!("there is no {}", path.display());
        return None;
    }
    let file = Dataset::open(path).unwrap();
    let numbers = |name: &str| file.get::<u64>(file.var(name).unwrap(), &Selection::all()).unwrap();
    let maps = (1..).map_while(|k| {
        let shape = file.schema().attr(Owner::Global, &format!("D{k}.dims"))?;
        let (offsets, lengths) =
            (numbers(&format!("D{k}.offsets")), numbers(&format!("D{k}.lengths")));
        let mut runs = offsets.into_iter().zip(lengths);
        let ranks = numbers(&format!("D{k}.nreqs"));
        let ranks = ranks.iter().map(|n| runs.by_ref().take(*n as usize).collect()).collect();
        Some(Recorded { shape: shape.convert_to().unwrap(), ranks })
    });
    Some(maps.collect())
}

impl Recorded {
    /// The runs of one of `ranks` ranks: those of its share of the recorded ranks, sorted, adjacent
    /// ones of a row merged.
    fn part(&self, rank: usize, ranks: usize) -> Vec<(u64, u64)> {
        let cut = |rank: usize| self.ranks.len() * rank / ranks;
        let mut runs = self.ranks[cut(rank)..cut(rank + 1)].concat();
        runs.sort();
        let row = self.shape[self.shape.len() - 1];
        let mut merged: Vec<(u64, u64)> = Vec::new();
        for (first, len) in runs {
            match merged.last_mut() {
                Some((start, n)) if *start + *n == first && *start / row == first / row => {
                    *n += len
                }
                _ => merged.push((first, len)),
            }
        }
        merged
    }

    /// A selection of the runs, at an index of the dimensions before if there is one.
    fn list(&self, runs: &[(u64, u64)], outer: &[u64]) -> Selection {
        let (mut starts, mut counts) = (Vec::new(), Vec::new());
        for (first, len) in runs {
            let row = self.shape[self.shape.len() - 1];
            starts.extend(outer);
            counts.extend(outer.iter().map(|_| 1));
            if self.shape.len() == 2 {
                starts.push(first / row);
                counts.push(1);
            }
            starts.push(first % row);
            counts.push(*len);
        }
        Selection::list(outer.len() + self.shape.len(), starts, counts)
    }
}

/// The value of an element of a variable at a record.
fn value(var: usize, record: u64, element: u64) -> f64 {
    (var as u64 * 1000 + record * 100_000 + element % 777) as f64
}

const RECORDS: u64 = 2;
/// Of each map: two with records, one without.
const KINDS: [(ExternalType, bool); 3] =
    [(ExternalType::Float, true), (ExternalType::Double, true), (ExternalType::Int, false)];

/// Writes the case's variables, decomposed or ordinary. Collective.
fn write(maps: &[Recorded], comm: Arc<dyn Communicator>, path: &Path, decomposed: bool) {
    write_in("0", maps, comm, path, decomposed);
}

/// The same in so many sub-files.
fn write_in(
    subfiles: &str,
    maps: &[Recorded],
    comm: Arc<dyn Communicator>,
    path: &Path,
    decomposed: bool,
) {
    let (rank, ranks) = (comm.rank(), comm.size());
    let mut hints = Hints::default();
    hints.set("nc_num_subfiles", subfiles);
    let mut def = Dataset::create(path, CreateOptions::new().comm(comm).hints(hints)).unwrap();
    let time = def.add_dim("time", DimLen::Unlimited).unwrap();
    def.put_attr(Owner::Global, "title", "a case").unwrap();
    let mut vars: Vec<(VarId, usize, bool)> = Vec::new();
    let mut parts = Vec::new();
    let dims: Vec<Vec<DimId>> = maps
        .iter()
        .enumerate()
        .map(|(k, map)| {
            let dim = |(d, len): (usize, &u64)| {
                def.add_dim(&format!("m{k}_{d}"), DimLen::Fixed(*len)).unwrap()
            };
            map.shape.iter().enumerate().map(dim).collect()
        })
        .collect();
    for (k, map) in maps.iter().enumerate() {
        let runs = map.part(rank, ranks);
        let id =
            decomposed.then(|| def.add_decomposition(&dims[k], &map.list(&runs, &[])).unwrap());
        for (ty, record) in KINDS {
            let name = format!("v{}", vars.len());
            let outer = if record { vec![time] } else { vec![] };
            let var = match id {
                Some(id) => def.add_decomposed_var(&name, ty, &outer, id).unwrap(),
                None => def.add_var(&name, ty, &[&outer[..], &dims[k]].concat()).unwrap(),
            };
            def.put_attr(var, "units", "K").unwrap();
            vars.push((var, k, record));
        }
        parts.push(runs);
    }
    let mut ds = def.enddef().unwrap();
    for record in 0..RECORDS {
        let chosen = vars.iter().enumerate().filter(|(_, (_, _, r))| *r || record == 0);
        let data: Vec<(VarId, Selection, Vec<f64>)> = chosen
            .map(|(number, (var, k, is_record))| {
                let elements = parts[*k].iter().flat_map(|(first, len)| *first..first + len);
                let data = elements.map(|e| value(number, record, e)).collect();
                let outer = if *is_record { vec![record] } else { vec![] };
                let selection = match decomposed {
                    true => Selection::blob(&outer, &vec![1; outer.len()]),
                    false => maps[*k].list(&parts[*k], &outer),
                };
                (*var, selection, data)
            })
            .collect();
        let mut queue = Requests::new();
        for (var, selection, data) in &data {
            ds.iput(&mut queue, *var, selection, data).unwrap();
        }
        ds.wait_all(&mut queue).unwrap();
    }
    ds.close().unwrap();
}

/// Whole variables, planes, columns and blocks are what the ordinary file has. Collective.
fn compare(comm: Arc<dyn Communicator>, decomposed: &Path, ordinary: &Path, whole: bool) {
    let open =
        |path: &Path| Dataset::open_with(path, OpenOptions::new().comm(comm.clone())).unwrap();
    let (mut ours, mut theirs) = (open(decomposed), open(ordinary));
    let mut seed = 7 + comm.rank() as u64;
    let mut below = |n: u64| {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (seed >> 33) % n
    };
    for i in 0..theirs.schema().vars.len() {
        let there = VarId(i);
        let name = theirs.variable(there).unwrap().name.to_string();
        let here = ours.var(&name).unwrap();
        let shape = theirs.shape(there).unwrap();
        assert_eq!(ours.shape(here).unwrap(), shape);
        let mut selections = Vec::new();
        if whole {
            selections.push(Selection::all());
        }
        let (mut start, mut count) = (vec![0; shape.len()], shape.clone());
        let d = below(shape.len() as u64) as usize;
        (start[d], count[d]) = (below(shape[d]), 1);
        selections.push(Selection::slab(&start, &count));
        for stride in [1, 2] {
            let start: Vec<u64> = shape.iter().map(|len| below(*len)).collect();
            let count: Vec<u64> = shape
                .iter()
                .zip(&start)
                .map(|(len, s)| 1 + below((len - s).div_ceil(stride)))
                .collect();
            selections.push(Selection::strided(&start, &count, &vec![stride; shape.len()]));
        }
        for selection in &selections {
            let found: Vec<f64> = ours.get_all(here, selection).unwrap();
            let expected: Vec<f64> = theirs.get_all(there, selection).unwrap();
            assert!(found == expected, "{name}: {selection:?}");
            assert!(ours.get::<f64>(here, selection).unwrap() == expected, "{name}");
        }
    }
}

/// What others make of the decomposed file.
fn others_read(decomposed: &Path, ordinary: &Path) {
    let report = check(decomposed, &CheckOptions::default(), &mut Unseen).unwrap();
    assert_eq!(report.verdict(), Verdict::Valid);
    for program in ["ncvalidator", "ncdump"] {
        let arguments: &[&str] = if program == "ncdump" { &["-h"] } else { &["-q"] };
        if let Some(output) = programs::run(program, arguments, decomposed) {
            assert!(output.status.success(), "{program}: {output:?}");
        }
    }
    if let Some(python) = python::with("netCDF4") {
        let script = python::script(env!("CARGO_MANIFEST_DIR"), "decomposed.py");
        let output =
            Command::new(python).arg(script).arg(decomposed).arg(ordinary).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let compared: u64 = String::from_utf8_lossy(&output.stdout).trim().parse().unwrap();
        assert!(compared > 0);
    }
}

fn case(name: &str) {
    let Some(maps) = recorded(name) else { return };
    let dir = tempfile::tempdir().unwrap();
    let path = |what: &str| dir.path().join(format!("{what}.nc"));
    let ordinary = path("ordinary");
    esker::launch(4, |comm| write(&maps, comm, &ordinary, false));
    for ranks in [1, 2, 4, 7, 16] {
        let decomposed = path("decomposed");
        esker::launch(ranks, |comm| write(&maps, comm, &decomposed, true));
        for readers in [1, 3] {
            esker::launch(readers, |comm| compare(comm, &decomposed, &ordinary, true));
        }
        esker::launch(ranks, |comm| compare(comm, &decomposed, &ordinary, false));
        for copiers in [1, 3] {
            let made = path("canonical");
            let options = CopyOptions { buffer: 100_000, ..CopyOptions::default() };
            esker::launch(copiers, |comm| {
                canonical(&decomposed, &made, &options, comm, &mut Unseen).unwrap();
            });
            assert!(std::fs::read(&made).unwrap() == std::fs::read(&ordinary).unwrap());
        }
        if [1, 7].contains(&ranks) {
            others_read(&decomposed, &ordinary);
        }
    }
}

#[test]
fn the_atmosphere_decomposed_is_the_atmosphere() {
    case("f");
}

#[test]
fn the_ocean_decomposed_is_the_ocean() {
    case("g");
}

#[test]
fn a_plain_copy_keeps_blobs_and_maps() {
    let dir = tempfile::tempdir().unwrap();
    let (one, two, three) =
        (dir.path().join("1.nc"), dir.path().join("2.nc"), dir.path().join("3.nc"));
    let mut def = Dataset::create(&one, CreateOptions::new()).unwrap();
    let x = def.add_dim("x", DimLen::Fixed(10)).unwrap();
    let part = Selection::list(1, vec![7, 1], vec![2, 3]);
    let map = def.add_decomposition(&[x], &part).unwrap();
    let t = def.add_decomposed_var("t", ExternalType::Byte, &[], map).unwrap();
    let mut ds = def.enddef().unwrap();
    ds.put(t, &Selection::blob(&[], &[]), &[70i8, 80, 10, 20, 30]).unwrap();
    ds.close().unwrap();
    copy(&one, &two, &CopyOptions::default(), &mut Unseen).unwrap();
    assert_eq!(std::fs::read(&one).unwrap(), std::fs::read(&two).unwrap());
    let raw = Dataset::open_with(&two, OpenOptions::new().raw(true)).unwrap();
    assert_eq!(raw.get::<i8>(t, &Selection::all()).unwrap(), [70, 80, 10, 20, 30]);
    let ds = Dataset::open(&two).unwrap();
    let fill = -127;
    let expected = [fill, 10, 20, 30, fill, fill, fill, 70, 80, fill];
    assert_eq!(ds.get::<i8>(t, &Selection::all()).unwrap(), expected);
    let comm = Arc::new(SelfComm::new());
    let done = canonical(&two, &three, &CopyOptions::default(), comm, &mut Unseen).unwrap();
    assert_eq!((done.variables, done.bytes), (1, 10));
    let names: Vec<String> =
        Dataset::open(&three).unwrap().schema().dims.iter().map(|d| d.name.to_string()).collect();
    assert_eq!(names, ["x"]);
}

#[test]
fn a_copy_of_sub_files_is_the_file_without_them() {
    let Some(maps) = recorded("f") else { return };
    let dir = tempfile::tempdir().unwrap();
    let path = |what: &str| dir.path().join(format!("{what}.nc"));
    let (ordinary, one, spread) = (path("ordinary"), path("one"), path("spread"));
    let same = path("same");
    esker::launch(4, |comm| write(&maps, comm, &ordinary, false));
    esker::launch(4, |comm| write(&maps, comm, &one, true));
    for subfiles in ["1", "3", "-1"] {
        esker::launch(4, |comm| write_in(subfiles, &maps, comm, &spread, true));
        esker::launch(3, |comm| compare(comm, &spread, &ordinary, true));
        let made = path("canonical");
        esker::launch(2, |comm| {
            canonical(&spread, &made, &CopyOptions::default(), comm, &mut Unseen).unwrap();
        });
        assert!(std::fs::read(&made).unwrap() == std::fs::read(&ordinary).unwrap());
        for buffer in [100_000, 16 << 20] {
            let options = CopyOptions { buffer, ..CopyOptions::default() };
            copy(&spread, &made, &options, &mut Unseen).unwrap();
            // A copy of either: it is synced, and says so.
            copy(&one, &same, &options, &mut Unseen).unwrap();
            assert!(std::fs::read(&made).unwrap() == std::fs::read(&same).unwrap());
        }
    }
    esker::launch(4, |comm| write_in("3", &maps, comm, &spread, true));
    let options = CheckOptions { read_data: true, ..CheckOptions::default() };
    let report = check(&spread, &options, &mut Unseen).unwrap();
    // Room for the header, and nothing else.
    assert!(report.findings.iter().all(|f| f.code == "gap"), "{:?}", report.findings);
    for name in ["spread", "spread.0", "spread.1", "spread.2"] {
        assert_eq!(check(path(name), &options, &mut Unseen).unwrap().verdict(), Verdict::Valid);
        if let Some(output) = programs::run("ncvalidator", &["-q"], &path(name)) {
            assert!(output.status.success(), "{output:?}");
        }
    }
    std::fs::remove_file(path("spread.1")).unwrap();
    let report = check(&spread, &options, &mut Unseen).unwrap();
    assert_eq!(report.verdict(), Verdict::Invalid);
    let named = |f: &Finding| f.code == "subfile" && f.to_string().contains("spread.1.nc");
    assert!(report.findings.iter().any(named), "{:?}", report.findings);
    let error = copy(&spread, &path("canonical"), &CopyOptions::default(), &mut Unseen);
    assert!(error.unwrap_err().to_string().contains("spread.1.nc"));
}
