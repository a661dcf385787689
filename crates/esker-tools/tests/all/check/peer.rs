//! Beside PnetCDF's ncvalidator, when it is installed.

use std::path::Path;
use std::process::{Command, Stdio};

use esker::NumRecs;
use esker_tools::Unseen;
use esker_tools::check::{CheckOptions, Finding, Report, Severity, Value, Verdict, check};

use esker_testkit::random::Random;
use esker_testkit::{damage, data, programs};

use super::files;

/// What ncvalidator says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Peer {
    Accepts,
    Refuses,
    /// It crashed, or went on for too long.
    Fails,
    Absent,
}

pub(crate) fn ask(path: &Path) -> Peer {
    if !programs::have("ncvalidator") {
        return Peer::Absent;
    }
    // On some damaged files it computes for minutes or allocates without end.
    let bounded = "ulimit -t 20; ulimit -v 2000000; exec ncvalidator -q \"$0\"";
    let mut command = Command::new("sh");
    command.arg("-c").arg(bounded).arg(path).stdout(Stdio::null()).stderr(Stdio::null());
    match command.status().map(|status| status.code()) {
        Ok(Some(0)) => Peer::Accepts,
        Ok(Some(1)) => Peer::Refuses,
        _ => Peer::Fails,
    }
}

fn ours(path: &Path) -> Report {
    check(path, &CheckOptions::default(), &mut Unseen).unwrap()
}

#[test]
fn real_files_are_judged_as_ncvalidator_judges_them() {
    for folder in ["netcdf_classic", "malformed_classic", "netcdf4"] {
        for path in data::files(folder) {
            let expected = match ask(&path) {
                Peer::Accepts => Verdict::Valid,
                Peer::Refuses => Verdict::Invalid,
                Peer::Fails => panic!("ncvalidator fails on {}", path.display()),
                Peer::Absent => return,
            };
            let report = ours(&path);
            let excepted = expected == Verdict::Invalid && argued(&report);
            assert!(excepted || report.verdict() == expected, "{}: {report:?}", path.display());
        }
    }
}

/// What ncvalidator refuses and we do not, with reasons.
fn argued(report: &Report) -> bool {
    // It expects a file of 0 bytes when there are records but no variables.
    let unused = report.findings.iter().any(|f| f.code == "numrecs-unused");
    // It takes STREAMING for -1 records in CDF-5 and for 4294967295 in the other versions.
    let streaming = report.numrecs == Some(NumRecs::Streaming);
    // It computes the header's length from names up to their first zero byte. Files of
    // netCDF-C's own tests have such names, which we warn about.
    let zero = |value: &Option<Value>| matches!(value, Some(Value::Text(t)) if t.contains('\0'));
    let names = report.findings.iter().any(|f| f.code == "name" && zero(&f.value));
    // It refuses a file that a killed writer has left, with records that were never counted; every
    // value that is counted can be read, and we warn.
    let uncounted = |f: &Finding| f.code == "trailing" && f.severity == Severity::Warning;
    unused || streaming || names || report.findings.iter().any(uncounted)
}

#[test]
fn what_ncvalidator_refuses_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("damaged.nc");
    let (mut refused, mut excepted) = (0, 0);
    for round in 0..150 {
        let random = &mut Random(round);
        let header = damage::header(random);
        let mut bytes = header.encode();
        bytes.resize(header.data_end(header.records(0)) as usize, 1);
        damage::mutate(random, &mut bytes);
        std::fs::write(&path, &bytes).unwrap();
        let peer = ask(&path);
        if peer == Peer::Absent {
            return;
        }
        let report = ours(&path);
        if peer == Peer::Refuses && report.verdict() == Verdict::Invalid {
            refused += 1;
        } else if peer == Peer::Refuses {
            assert!(argued(&report), "round {round}: {report:?} of {bytes:?}");
            excepted += 1;
        }
    }
    assert!(refused > 50 && excepted < 15, "{refused} refused by both, {excepted} not");
}

#[test]
fn sound_files_are_accepted_by_both() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("sound.nc");
    for bytes in [files::fixed().bytes(232), files::records().bytes(216)] {
        std::fs::write(&path, bytes).unwrap();
        assert!(matches!(ask(&path), Peer::Accepts | Peer::Absent));
        assert_eq!(ours(&path).verdict(), Verdict::Valid);
    }
}
