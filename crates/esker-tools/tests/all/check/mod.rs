//! What `esker check` promises.

mod files;
mod peer;
mod repair;

use std::path::Path;
use std::sync::Arc;

use esker_format::HeaderJournal;
use esker_store::{CreateMode, MemoryStore, Store};
use esker_testkit::random::Random;
use esker_testkit::{damage, memory};
use esker_tools::Unseen;
use esker_tools::check::{CODES, CheckOptions, Report, Severity, Value, Verdict, check};
use files::{Classic, fixed, records, var};

const NAME: &str = "run.nc";

fn store_with(bytes: &[u8]) -> MemoryStore {
    let store = MemoryStore::default();
    put(&store, Path::new(NAME), bytes);
    store
}

fn put(store: &MemoryStore, name: &Path, bytes: &[u8]) {
    store.create(name, CreateMode::Truncate).unwrap().write_at(0, bytes).unwrap();
}

fn check_in(store: &MemoryStore) -> Report {
    let options =
        CheckOptions { store: Arc::new(store.clone()), read_data: true, ..CheckOptions::default() };
    let report = check(NAME, &options, &mut Unseen).unwrap();
    let listed = |code: &str| CODES.iter().any(|c| c.name == code);
    assert!(report.findings.iter().all(|f| listed(f.code)), "{:?}", report.findings);
    report
}

fn check_bytes(bytes: &[u8]) -> Report {
    check_in(&store_with(bytes))
}

/// Severity and code of everything found.
fn codes(report: &Report) -> Vec<(Severity, &'static str)> {
    report.findings.iter().map(|f| (f.severity, f.code)).collect()
}

use Severity::{Error, Note, Warning};

#[test]
fn sound_files_have_no_findings_but_free_space() {
    assert_eq!(codes(&check_bytes(&fixed().bytes(232))), [(Note, "gap")]);
    assert_eq!(codes(&check_bytes(&records().bytes(216))), [(Note, "gap")]);
    let empty = Classic::default().bytes(32);
    assert_eq!(codes(&check_bytes(&empty)), []);
    for seed in 0..2_000 {
        let header = damage::header(&mut Random(seed));
        let mut bytes = header.encode();
        bytes.resize(header.data_end(header.records(0)) as usize, 0);
        let report = check_bytes(&bytes);
        let found = codes(&report);
        let fine = |code: &&str| ["gap", "streaming", "numrecs-unused"].contains(code);
        assert!(found.iter().all(|(_, code)| fine(code)), "{seed}: {:?}", report.findings);
        assert_eq!(report.verdict(), Verdict::Valid);
    }
}

#[test]
fn an_unknown_type_is_named_with_its_place_and_variable() {
    let mut file = fixed();
    file.vars[1].ty = 0;
    let report = check_bytes(&file.bytes(232));
    let finding = &report.findings[0];
    // Where ncvalidator says: Error @ [0x00000068]: Variable "b": Unknown NC data type (0)
    let said = "[0x00000068] variable \"b\": unknown data type 0: CDF-1 has 1 to 6";
    assert_eq!(finding.to_string(), said);
    assert_eq!((finding.offset, finding.code), (Some(0x68), "type"));
    assert_eq!(finding.value, Some(Value::Number(0)));
    assert_eq!(report.verdict().exit_code(), 1);
}

/// A code, its severity, and the damage that it names.
type Case = (&'static str, Severity, fn(&mut Classic));

#[test]
fn every_fault_of_a_header_has_its_code() {
    let cases: Vec<Case> = vec![
        ("vsize", Warning, |f| f.vars[0].vsize = 20),
        ("begin", Error, |f| f.vars[0].begin = 20),
        ("order", Error, |f| (f.vars[0].begin, f.vars[1].begin) = (216, 200)),
        ("overlap", Error, |f| f.vars[0].begin = 204),
        ("dimension-id", Error, |f| f.vars[0].dims = vec![7]),
        ("unlimited-place", Error, |f| {
            f.dims.push(("t", 0));
            f.vars[0].dims = vec![0, 1];
        }),
        ("second-unlimited", Error, |f| f.dims.extend([("t", 0), ("u", 0)])),
        ("duplicate-name", Error, |f| f.vars[1].name = b"a".to_vec()),
        ("duplicate-name", Error, |f| f.dims.push(("x", 5))),
        ("negative", Error, |f| f.dims[0].1 = 0x8000_0000),
        ("name", Warning, |f| f.vars[1].name = b"a/b".to_vec()),
        ("name", Warning, |f| f.vars[1].name = "e\u{301}".into()),
        ("name", Error, |f| f.vars[1].name = b"".to_vec()),
        ("name-utf8", Warning, |f| f.vars[1].name = b"\xe9t\xe9".to_vec()),
        ("numrecs-unused", Warning, |f| f.numrecs = 3),
        ("fill-type", Warning, |f| f.vars[0].attrs = vec![("_FillValue", 3, 1, vec![0; 4])]),
        ("fill-length", Warning, |f| f.vars[0].attrs = vec![("_FillValue", 4, 2, vec![0; 8])]),
        ("duplicate-name", Error, |f| {
            f.vars[0].attrs = vec![("q", 4, 1, vec![0; 4]), ("q", 4, 1, vec![0; 4])];
        }),
    ];
    for (code, severity, change) in cases {
        let mut file = fixed();
        change(&mut file);
        let report = check_bytes(&file.bytes(232));
        assert!(codes(&report).contains(&(severity, code)), "{code}: {:?}", report.findings);
        let valid = severity < Error;
        assert_eq!(report.verdict() == Verdict::Valid, valid, "{code}: {:?}", report.findings);
        assert!(report.findings.iter().all(|f| f.offset.is_some()), "{:?}", report.findings);
    }
}

#[test]
fn overlaps_and_unaligned_data_name_both_variables() {
    let mut file = fixed();
    file.vars[1].begin = 205;
    let report = check_bytes(&file.bytes(221));
    let found: Vec<String> = report.findings.iter().map(|f| f.to_string()).collect();
    let at = "[0x00000070] variable \"b\": its data begin at 205";
    assert!(found.contains(&format!("{at}, which is not a multiple of 4")), "{found:?}");
    let inside = "inside the data of variable \"a\" (bytes 200 to 216)";
    assert!(found.contains(&format!("{at}, {inside}")), "{found:?}");
}

#[test]
fn a_record_that_reaches_into_the_next_is_an_error() {
    let mut file = records();
    file.vars[1].begin = 208;
    let report = check_bytes(&file.bytes(220));
    assert!(codes(&report).contains(&(Error, "record-gap")), "{:?}", report.findings);
    let mut file = records();
    file.vars.push(var("late", &[1], 4, 12, 204));
    let report = check_bytes(&file.bytes(216));
    assert!(codes(&report).contains(&(Error, "overlap")), "{:?}", report.findings);
}

#[test]
fn a_short_file_is_told_which_variable_and_record_is_cut() {
    let report = check_bytes(&fixed().bytes(210));
    let said = "[0x000000d2] variable \"a\": the file ends at byte 210, but its data are bytes 200 \
                to 216: 10 of its 16 bytes are there; 1 more variable lacks data";
    assert_eq!(report.findings.last().unwrap().to_string(), said);
    assert_eq!(report.verdict(), Verdict::Invalid);

    let report = check_bytes(&records().bytes(213));
    let said = "[0x00000004] the number of records: it is 2, but the file ends at byte 213 and has \
                1 whole record; record 1 is cut in variable \"b\", after 1 of 3 bytes (a complete \
                file has 216 bytes)";
    assert_eq!(report.findings[0].to_string(), said);

    // Only the padding of the last record is missing.
    let report = check_bytes(&records().bytes(215));
    assert_eq!(codes(&report), [(Note, "gap"), (Warning, "padding-cut")]);
    assert_eq!(report.verdict(), Verdict::Valid);
}

#[test]
fn bytes_after_the_data_are_counted_in_records() {
    let said = |len| {
        let report = check_bytes(&records().bytes(len));
        let finding = report.findings.last().unwrap().clone();
        // What a writer that was killed has not counted makes no file invalid.
        assert_eq!((finding.severity, finding.code), (Warning, "trailing"));
        assert_eq!(report.verdict(), Verdict::Valid);
        assert_eq!(finding.offset, Some(216));
        finding.sentence
    };
    assert_eq!(said(217), "1 byte lies after the end of the data: a part of a record (8 bytes)");
    assert_eq!(said(232), "16 bytes lie after the end of the data: as many as 2 more records");
    let sentence = said(227);
    assert!(sentence.ends_with("as many as 1 more record and 3 bytes of another"), "{sentence}");
    let mut zeros = records().bytes(216);
    zeros.resize(220, 0);
    let report = check_bytes(&zeros);
    assert!(report.findings.last().unwrap().sentence.ends_with("; all are zero"));
    // Room before an empty record section is no trailing byte.
    let mut empty = records();
    empty.numrecs = 0;
    assert_eq!(check_bytes(&empty.bytes(200)).verdict(), Verdict::Valid);
    assert_eq!(check_bytes(&empty.bytes(190)).verdict(), Verdict::Valid);
    assert_eq!(codes(&check_bytes(&empty.bytes(201))).last(), Some(&(Warning, "trailing")));
    // Where there are no records, nothing was to come.
    let report = check_bytes(&fixed().bytes(240));
    assert_eq!(codes(&report).last(), Some(&(Error, "trailing")), "{report:?}");
}

#[test]
fn a_lone_record_variable_that_was_padded_is_recognised() {
    let vars = vec![var("b", &[0, 1], 1, 4, 200)];
    let file = Classic { numrecs: 5, dims: vec![("t", 0), ("x", 3)], vars };
    assert_eq!(check_bytes(&file.bytes(215)).verdict(), Verdict::Valid);
    let report = check_bytes(&file.bytes(220));
    let sentence = &report.findings.last().unwrap().sentence;
    assert!(sentence.contains("as if each record were padded to 4 bytes"), "{sentence}");
}

#[test]
fn a_streamed_file_is_valid_and_counted() {
    let mut file = records();
    file.numrecs = u32::MAX;
    let report = check_bytes(&file.bytes(216));
    assert_eq!(codes(&report)[0], (Note, "streaming"));
    assert_eq!(report.findings[0].value, Some(Value::Number(2)));
    let report = check_bytes(&file.bytes(219));
    assert!(codes(&report).contains(&(Warning, "trailing")));
    assert_eq!(report.verdict(), Verdict::Valid);
}

#[test]
fn what_is_no_classic_file_is_invalid_and_what_cannot_be_read_is_neither() {
    let cases: [(&[u8], &str); 6] = [
        (b"", "empty"),
        (b"\0", "zeros"),
        (&[0; 5000], "zeros"),
        (b"\x89HDF\r\n\x1a\n", "magic"),
        (b"CDF\x07\0\0\0\0", "magic"),
        (b"CDF\x01\0\0", "header-cut"),
    ];
    for (bytes, code) in cases {
        let report = check_bytes(bytes);
        assert_eq!(codes(&report), [(Error, code)], "{:?}", report.findings);
        assert_eq!(report.verdict(), Verdict::Invalid);
    }
    let result = check("/nowhere/at/all.nc", &CheckOptions::default(), &mut Unseen);
    assert_eq!(Verdict::of(&result), Verdict::CannotTell);
    assert_eq!(Verdict::of(&result).exit_code(), 2);
    let result = check("/", &CheckOptions::default(), &mut Unseen);
    assert_eq!(Verdict::of(&result), Verdict::CannotTell);
}

/// The headers before and after a redefinition that adds an attribute's worth of bytes.
fn redefinition() -> (Vec<u8>, HeaderJournal) {
    let mut after = fixed();
    after.vars[0].attrs = vec![("units", 2, 4, b"m/s ".to_vec())];
    let file = fixed().bytes(232);
    // Without the free space after them, which is not theirs.
    let (old, new) = (fixed().bytes(116), after.bytes(116 + 20 + 4));
    (file, HeaderJournal { old, new })
}

#[test]
fn a_journal_says_which_header_the_file_has() {
    let (file, journal) = redefinition();
    let mut new = file.clone();
    new[..journal.new.len()].copy_from_slice(&journal.new);
    let mut torn = new.clone();
    torn[..80].copy_from_slice(&file[..80]);
    let mut foreign = file.clone();
    foreign[20..24].copy_from_slice(b"y\0\0\0");
    let whole = journal.encode();
    let cases = [
        (&file, &whole[..], "journal-old", Warning),
        (&new, &whole[..], "journal-new", Warning),
        (&torn, &whole[..], "journal-torn", Error),
        (&foreign, &whole[..], "journal-foreign", Warning),
        (&file, &whole[..whole.len() - 3], "journal-broken", Warning),
    ];
    for (bytes, beside, code, severity) in cases {
        let store = store_with(bytes);
        put(&store, &esker::journal_path(Path::new(NAME)), beside);
        let report = check_in(&store);
        let expected = [(Note, "gap"), (severity, code)];
        assert_eq!(codes(&report), expected, "{:?}", report.findings);
    }
    let store = store_with(&file);
    let draft = esker_store::draft_path(Path::new(NAME), esker_store::DraftForm::New, 7);
    put(&store, &draft, b"half a file");
    assert_eq!(codes(&check_in(&store)), [(Note, "gap"), (Warning, "leftover")]);
}

#[test]
fn damaged_files_are_checked_and_mended_without_panic_in_bounded_memory() {
    for round in 0..10_000 {
        let random = &mut Random(round);
        let header = damage::header(random);
        let mut bytes = header.encode();
        bytes.resize(header.data_end(header.records(0)) as usize, 1);
        damage::mutate(random, &mut bytes);
        let store = store_with(&bytes);
        let (report, used) = memory::peak(|| check_in(&store));
        assert!(used <= 64 * bytes.len() + 64 * 1024, "{used} bytes for {}", bytes.len());
        repair::holds(&store, &report, &bytes);
    }
}
