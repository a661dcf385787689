//! `esker check`: is a file sound, and if not, where is it not?

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use esker_tools::check::{
    self, CheckOptions, Finding, Repair, RepairOptions, Report, Severity, Target, Verdict,
};
use serde_json::{Value, json};

use crate::failure::{Ended, Failure, Outcome};
use crate::terminal::table::printable;
use crate::terminal::{Screen, json, say};

/// Validate the structure of files: offsets, overlaps, padding, records, names, length
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Of a container, every frame and every value that its newest version has is read and compared with
its checksums; `esker recover` makes a version of what is whole. With --all-versions it is what any
version has that can be opened, each value once, and a finding names the versions. Of the folder of an adjoint run
(RUN.chk), every checkpoint is.

Exit codes: 0 every file is valid (or mended), 1 a file is invalid, 2 it cannot be told.

Examples:
  esker check *.nc                           findings, with offset, object and value
  esker check -q run.nc && echo sound        for scripts
  esker check --all-versions run.esk         what every version of a container has
  esker check --repair -o good.nc bad.nc     mend a copy
  esker check --repair --in-place bad.nc     mend the file itself")]
pub(super) struct Arguments {
    /// The files, containers and folders of adjoint runs
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Mend what can be mended without guessing, on a copy (of a.nc as
    /// a.repaired.nc, unless -o names another)
    #[arg(long)]
    repair: bool,
    /// Mend the file itself instead of a copy
    #[arg(long, requires = "repair", conflicts_with = "output")]
    in_place: bool,
    /// Where the mended copy goes
    #[arg(short, long, value_name = "FILE", requires = "repair")]
    output: Option<PathBuf>,
    /// With --repair: take whole records after the last counted one for records, whose writer
    /// died before it counted them
    #[arg(long, requires = "repair")]
    adopt_records: bool,
    /// With --repair: cut off what lies after the data
    #[arg(long, requires = "repair")]
    cut_trailing: bool,
    /// With --repair, on a copy: accept what another program has changed of chunked or decomposed
    /// variables (their names, for example), which is told from damage by nobody but you; every
    /// chunk and map of the copy is read then
    #[arg(long, requires = "repair", conflicts_with = "in_place")]
    accept_edits: bool,
    /// Read every byte of the files too, which shows that the storage can
    #[arg(long)]
    read: bool,
    /// Of containers, read what any version has that can be opened, not only the newest
    #[arg(long, conflicts_with = "repair")]
    all_versions: bool,
    /// JSON instead of text
    #[arg(long)]
    json: bool,
    /// Say nothing, the exit code tells
    #[arg(short, long, conflicts_with = "json")]
    quiet: bool,
}

pub(super) fn run(arguments: &Arguments, screen: &mut Screen) -> Ended {
    if arguments.output.is_some() && arguments.files.len() > 1 {
        return Err(Failure::sentence("-o names one file, so it mends one file at a time"));
    }
    let mut worst = Verdict::Valid;
    let mut documents = Vec::new();
    for path in &arguments.files {
        let judged = judge(arguments, path, screen);
        let verdict = judged.as_ref().map_or(Verdict::CannotTell, Judged::verdict);
        // The exit codes are in the order of badness.
        if verdict.exit_code() > worst.exit_code() {
            worst = verdict;
        }
        match (&judged, arguments.json) {
            (Ok(judged), true) => documents.push(judged.json(path)),
            (Ok(judged), false) if !arguments.quiet => judged.text(path, screen)?,
            (Ok(_), false) => {}
            (Err(error), json) => {
                if let Failure::Sentence(sentence) = Failure::file(path, error) {
                    say(format_args!("esker: {sentence}"));
                }
                if json {
                    let verdict = Verdict::CannotTell.name();
                    let (file, error) = (path.display().to_string(), error.to_string());
                    documents.push(json!({"file": file, "verdict": verdict, "error": error}));
                }
            }
        }
    }
    if arguments.json {
        json::write(screen, &documents)?;
    }
    Ok(match worst {
        Verdict::Valid => Outcome::Good,
        Verdict::Invalid => Outcome::Bad,
        Verdict::CannotTell => Outcome::Unknown,
    })
}

/// What is known of one file: the findings, and what a repair did about them.
struct Judged {
    report: Report,
    repair: Option<Repair>,
}

fn judge(arguments: &Arguments, path: &Path, screen: &Screen) -> esker::Result<Judged> {
    let mut bar = screen.bar("checking");
    let mut progress = |done, total| bar.update(done, total);
    let (read_data, all_versions) = (arguments.read, arguments.all_versions);
    let options = CheckOptions { read_data, all_versions, ..CheckOptions::default() };
    let report = check::check(path, &options, &mut progress)?;
    let repair = match arguments.repair {
        true => {
            let options = RepairOptions {
                adopt_records: arguments.adopt_records,
                cut_trailing: arguments.cut_trailing,
                accept_edits: arguments.accept_edits,
                ..RepairOptions::new(target(arguments, path))
            };
            Some(check::repair(path, &options, &mut progress)?)
        }
        false => None,
    };
    Ok(Judged { report, repair })
}

fn target(arguments: &Arguments, path: &Path) -> Target {
    match (&arguments.output, arguments.in_place) {
        (_, true) => Target::InPlace,
        (Some(output), _) => Target::Copy(output.clone()),
        (None, _) => Target::Copy(path.with_extension("repaired.nc")),
    }
}

impl Judged {
    /// The verdict on the file as it is now: after a repair, on the mended one.
    fn verdict(&self) -> Verdict {
        self.repair.as_ref().map_or(&self.report, |repair| &repair.after).verdict()
    }

    fn text(&self, path: &Path, screen: &mut Screen) -> io::Result<()> {
        let (depth, report) = (screen.depth, &self.report);
        let name = printable(&path.display().to_string());
        for finding in &report.findings {
            let severity = match finding.severity {
                Severity::Error => depth.bad(finding.severity),
                _ => depth.faint(finding.severity),
            };
            writeln!(screen, "{name}: {severity}: {}", printable(&finding.to_string()))?;
        }
        if let Some(repair) = &self.repair {
            for mend in &repair.mended {
                writeln!(screen, "{name}: mended: {}", printable(&mend.to_string()))?;
            }
            for left in &repair.left {
                let finding = printable(&left.finding.to_string());
                writeln!(screen, "{name}: left: {finding} ({})", left.why)?;
            }
            if let Some(written) = &repair.written {
                let written = printable(&written.display().to_string());
                writeln!(screen, "{name}: written to {written}")?;
            }
        }
        let verdict = match self.verdict() {
            Verdict::Valid => depth.good("valid"),
            other => depth.bad(other.name()),
        };
        let now = if self.repair.is_some() { "now " } else { "" };
        match report.version {
            Some(version) => writeln!(screen, "{name}: {now}{verdict} ({version})"),
            None => writeln!(screen, "{name}: {now}{verdict}"),
        }
    }

    fn json(&self, path: &Path) -> Value {
        let report = &self.report;
        let mut document = json!({
            "file": path.display().to_string(),
            "verdict": self.verdict().name(),
            "format": report.version.map(|version| version.to_string()),
            "bytes": report.file_len,
            "findings": report.findings.iter().map(finding).collect::<Vec<_>>(),
        });
        if let Some(repair) = &self.repair {
            let mended = repair.mended.iter().map(
                |mend| json!({"code": mend.code, "offset": mend.offset, "sentence": mend.sentence}),
            );
            let left = repair.left.iter().map(|left| {
                let mut document = finding(&left.finding);
                document["why"] = Value::from(left.why);
                document
            });
            document["repair"] = json!({
                "written": repair.written.as_ref().map(|path| path.display().to_string()),
                "mended": mended.collect::<Vec<_>>(),
                "left": left.collect::<Vec<_>>(),
            });
        }
        document
    }
}

fn finding(finding: &Finding) -> Value {
    let value = finding.value.as_ref().map(|value| match value {
        check::Value::Text(text) => Value::from(text.as_str()),
        check::Value::Number(number) => match i64::try_from(*number) {
            Ok(number) => Value::from(number),
            Err(_) => Value::from(number.to_string()),
        },
    });
    json!({
        "severity": finding.severity.name(),
        "code": finding.code,
        "offset": finding.offset,
        "object": finding.object,
        "value": value,
        "sentence": finding.sentence,
    })
}
