//! A container of several versions says so wherever a bit of it has changed: no version ever shows another's values.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use esker::{CreateOptions, Dataset, DimLen, ExternalType, Layout, OpenOptions, Selection, VarId};
use esker_store::{Access, CountingStore, MemoryStore, Store};
use esker_testkit::random::Random;
use esker_tools::Unseen;
use esker_tools::check::{CheckOptions, Report, Severity, Verdict, check};

const PATH: &str = "/run/several.esk";
const X: u64 = 300;
const FIXED: VarId = VarId(0);
const RECORDS: VarId = VarId(1);
const PACKED: VarId = VarId(2);

/// Three versions that waited for the disk, of which each changes some of everything.
fn several(store: &Arc<dyn Store>) {
    let options = CreateOptions::new().layout(Layout::Log).store(store.clone());
    let mut def = Dataset::create(PATH, options).unwrap();
    let t = def.add_dim("t", DimLen::Unlimited).unwrap();
    let x = def.add_dim("x", DimLen::Fixed(X)).unwrap();
    def.add_var("fixed", ExternalType::Int, &[x]).unwrap();
    def.add_var("records", ExternalType::Double, &[t, x]).unwrap();
    let packed = def.add_var("packed", ExternalType::Short, &[t, x]).unwrap();
    def.set_filters(packed, "shuffle zstd,3").unwrap();
    let mut ds = def.enddef().unwrap();
    for version in 0..3u64 {
        let salt = version as i32 * 1000;
        let values: Vec<i32> = (0..X as i32).map(|i| i + salt).collect();
        ds.put(FIXED, &Selection::all(), &values).unwrap();
        let record = Selection::slab(&[version, 0], &[1, X]);
        let values: Vec<f64> = values.iter().map(|v| f64::from(*v) / 8.0).collect();
        ds.put(RECORDS, &record, &values).unwrap();
        let values: Vec<i16> = (0..X as i16).map(|i| i % 50 + version as i16).collect();
        ds.put(PACKED, &record, &values).unwrap();
        // Over what the version before has.
        let part = Selection::strided(&[0, version], &[1, X / 7], &[1, 7]);
        ds.put(RECORDS, &part, &vec![f64::from(salt) + 0.5; X as usize / 7]).unwrap();
        ds.set_message(&format!("number {version}")).unwrap();
        ds.sync().unwrap();
    }
    ds.close().unwrap();
}

/// Everything that a version says, as bytes; and what its reader is told.
fn read(store: &Arc<dyn Store>, version: Option<u64>) -> esker::Result<(Vec<u8>, Vec<String>)> {
    let mut options = OpenOptions::new().store(store.clone());
    if let Some(version) = version {
        options = options.container_version(version);
    }
    let ds = Dataset::open_with(PATH, options)?;
    let mut all = ds.numrecs().to_le_bytes().to_vec();
    let fixed: Vec<i32> = ds.get(FIXED, &Selection::all())?;
    all.extend(fixed.iter().flat_map(|v| v.to_le_bytes()));
    for var in [RECORDS, PACKED] {
        let values: Vec<f64> = ds.get(var, &Selection::all())?;
        all.extend(values.iter().flat_map(|v| v.to_le_bytes()));
    }
    Ok((all, ds.notes().to_vec()))
}

fn all_versions(store: &Arc<dyn Store>) -> Report {
    let options =
        CheckOptions { store: store.clone(), all_versions: true, ..CheckOptions::default() };
    check(PATH, &options, &mut Unseen).unwrap()
}

fn flip(store: &MemoryStore, file: &Path, bit: u64) {
    let at = (bit / 8) as usize;
    let byte = store.bytes(file).unwrap()[at] ^ (1 << (bit % 8));
    store.open(file, Access::ReadWrite).unwrap().write_at(at as u64, &[byte]).unwrap();
}

#[test]
fn a_flipped_bit_in_any_file_is_an_error_of_the_versions_that_have_it() {
    let memory = MemoryStore::default();
    let store: Arc<dyn Store> = Arc::new(memory.clone());
    several(&store);
    let versions: Vec<u64> =
        esker::versions(&*store, Path::new(PATH), None).unwrap().iter().map(|v| v.number).collect();
    assert!(versions.len() >= 3, "{versions:?}");
    let truth: Vec<Vec<u8>> = versions.iter().map(|v| read(&store, Some(*v)).unwrap().0).collect();
    let newest = read(&store, None).unwrap().0;
    assert!(all_versions(&store).findings.is_empty(), "{:?}", all_versions(&store).findings);
    let mut dice = Random(17);
    let (mut noticed, mut flips) = (0, 0);
    let mut files: Vec<PathBuf> = memory.list();
    files.retain(|file| memory.bytes(file).is_some_and(|bytes| !bytes.is_empty()));
    for file in &files {
        let bits = 8 * memory.bytes(file).unwrap().len() as u64;
        // The first and the last byte, and some between.
        let those = (0..8).chain(bits - 8..bits).chain((0..150).map(|_| dice.below_u64(bits)));
        for bit in those.collect::<Vec<u64>>() {
            flip(&memory, file, bit);
            flips += 1;
            let what = format!("bit {bit} of {}", file.display());
            let mut failed = false;
            for (version, truth) in versions.iter().zip(&truth) {
                match read(&store, Some(*version)) {
                    Ok((values, _)) => assert!(values == *truth, "{what}: version {version}"),
                    Err(error) => {
                        failed = true;
                        // It names the container, and says what is wrong.
                        assert!(error.to_string().contains("several.esk"), "{what}: {error}");
                    }
                }
            }
            match read(&store, None) {
                Ok((values, notes)) => {
                    assert!(values == newest, "{what}: the newest version, told {notes:?}")
                }
                Err(_) => failed = true,
            }
            // What does not look like a container any more is refused.
            let options = CheckOptions {
                store: store.clone(),
                all_versions: true,
                ..CheckOptions::default()
            };
            let report = check(PATH, &options, &mut Unseen);
            let worst = report.as_ref().map_or(Some(Severity::Error), Report::worst);
            assert!(!failed || worst == Some(Severity::Error), "{what}: {report:?}");
            noticed += u32::from(worst.is_some());
            flip(&memory, file, bit);
        }
    }
    // Padding, and what nobody reads, are not many.
    assert!(noticed * 2 > flips, "{noticed} of {flips}");
    assert!(all_versions(&store).findings.is_empty());
}

#[test]
fn a_finding_names_the_versions_the_variable_the_record_and_the_place() {
    let memory = MemoryStore::default();
    let store: Arc<dyn Store> = Arc::new(memory.clone());
    several(&store);
    let data = memory.list().into_iter().find(|f| f.extension().is_some_and(|e| e == "data"));
    let data = data.unwrap();
    let len = memory.bytes(&data).unwrap().len() as u64;
    let numbers = |report: &Report| -> Vec<String> {
        report.findings.iter().map(|finding| finding.to_string()).collect()
    };
    // What the first version wrote is in all of them.
    flip(&memory, &data, 80);
    let report = all_versions(&store);
    assert_eq!((report.findings.len(), report.verdict()), (1, Verdict::Invalid));
    let told = &numbers(&report)[0];
    let says = |words: &str| assert!(told.contains(words), "{words}: {told}");
    ["versions ", " to ", "rank 0", ".0.data", "variable \"fixed\"", "0x00000000"]
        .into_iter()
        .for_each(says);
    assert_eq!(report.findings[0].code, "log-payload");
    flip(&memory, &data, 80);
    // What only the last ones have, and a decision.
    flip(&memory, &data, 8 * (len - 3));
    let told = numbers(&all_versions(&store));
    let first = format!("version{}", if told[0].contains("versions") { "s" } else { "" });
    assert!(told.len() == 1 && told[0].contains(&first), "{told:?}");
    assert!(told[0].contains("record"), "{told:?}");
    assert!(!told[0].contains(" 1 to ") && !told[0].contains(" 2 to "), "{told:?}");
    flip(&memory, &data, 8 * (len - 3));
    let decision = memory.list().into_iter().find(|f| f.to_string_lossy().contains("refs/main/"));
    let decision = decision.unwrap();
    flip(&memory, &decision, 100);
    let told = numbers(&all_versions(&store));
    assert!(
        told.iter().any(|t| t.contains("version ") && t.contains("cannot be opened")),
        "{told:?}"
    );
}

#[test]
fn each_payload_is_read_once_however_many_versions_have_it() {
    let memory = MemoryStore::default();
    several(&(Arc::new(memory.clone()) as Arc<dyn Store>));
    let data = memory.list().into_iter().filter(|f| f.extension().is_some_and(|e| e == "data"));
    let bytes: u64 = data.map(|f| memory.bytes(&f).unwrap().len() as u64).sum();
    let counting = Arc::new(CountingStore::new(memory));
    let store: Arc<dyn Store> = counting.clone();
    let all = esker::examine_all(&store, Path::new(PATH), &mut |_, _| {}).unwrap();
    assert_eq!(all.payload, bytes);
    assert!(all.versions.len() >= 3 && all.entries >= 12, "{all:?}");
    let read = counting.counts().bytes_read.load(Ordering::Relaxed);
    let others: u64 = 200 << 10;
    assert!(read < bytes + others, "{read} bytes were read of {bytes} bytes of values");
}

#[test]
fn what_is_no_container_has_no_versions() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let options = CreateOptions::new().store(store.clone());
    Dataset::create("/run/a.nc", options).unwrap().enddef().unwrap().close().unwrap();
    let options = CheckOptions { store, all_versions: true, ..CheckOptions::default() };
    let refused = check("/run/a.nc", &options, &mut Unseen).unwrap_err().to_string();
    assert!(refused.contains("/run/a.nc: it is no container"), "{refused}");
}
