//! Whether a file is what the specification says, and where it is not.
//!
//! [`check`] looks at the whole structure of a classic file and gives a [`Report`]: a list of
//! [`Finding`]s, each with a byte offset, an object, a value and a sentence, and a
//! [`Verdict`]. [`repair`] mends what can be mended without guessing.
//!
//! The findings come from the header's bytes (`header`), the places of the variables
//! (`places`), the file's length (`length`, `extent`), the attributes (`attributes`), the chunked
//! variables (`chunks`), graphs of variables (`graphs`) and the files beside it (`beside`, `subfiles`). [`CODES`] lists every kind
//! of finding.
//!
//! An error makes a file invalid: PnetCDF's ncvalidator refuses it too, or values cannot be
//! read. What readers have always coped with (old names, a wrong redundant size, odd fill
//! values) is a warning.
//!
//! ```
//! use esker_tools::{Unseen, check::{CheckOptions, Verdict, check}};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! # let path = dir.path().join("bad.nc");
//! // One dimension, "x", of length 3, whose name is padded with something else than zeros.
//! std::fs::write(&path, b"CDF\x01\0\0\0\0\0\0\0\x0a\0\0\0\x01\0\0\0\x01x!!!\0\0\0\x03\
//!                         \0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0")?;
//! let report = check(&path, &CheckOptions::default(), &mut Unseen)?;
//! assert_eq!(report.verdict(), Verdict::Invalid);
//! let found: Vec<String> = report.findings.iter().map(|f| f.to_string()).collect();
//! let expected = "[0x00000015] dimension \"x\": the padding after the name is not zero (0x21)";
//! assert_eq!(found, [expected]);
//! # Ok(()) }
//! ```

mod attributes;
mod beside;
mod checkpoints;
mod chunks;
mod codes;
mod container;
mod extent;
mod finding;
mod folder;
mod graphs;
mod header;
mod length;
mod maps;
mod mend;
mod places;
mod repair;
mod subfiles;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use esker::{Error, HeaderState, NumRecs, Version};
use esker_format::{Decoded, Header};
use esker_store::{Access, File, LocalStore, Store};

use crate::Progress;
use beside::{Beside, Journal};
use extent::Extent;

pub use codes::{CODES, Code};
pub use finding::{Finding, Severity, Value};
pub use mend::Mend;
pub use repair::{Left, Repair, RepairOptions, Target, repair};

/// How to check.
#[derive(Debug, Clone)]
pub struct CheckOptions {
    /// Where the file is.
    pub store: Arc<dyn Store>,
    /// Whether to read every byte of the file too, which shows that the storage can.
    pub read_data: bool,
    /// Of a container, whether to read what any of its versions has, not only the newest.
    pub all_versions: bool,
}

impl Default for CheckOptions {
    fn default() -> Self {
        CheckOptions { store: Arc::new(LocalStore), read_data: false, all_versions: false }
    }
}

/// What a check says in the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// A classic netCDF file without errors; there may be warnings.
    Valid,
    /// Not a classic netCDF file, or one with errors.
    Invalid,
    /// The file could not be read.
    CannotTell,
}

impl Verdict {
    /// The verdict on what [`check`] returned: an error of the system says nothing about the
    /// file.
    pub fn of(result: &esker::Result<Report>) -> Verdict {
        result.as_ref().map_or(Verdict::CannotTell, Report::verdict)
    }

    /// `valid`, `invalid` or `cannot tell`.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Valid => "valid",
            Verdict::Invalid => "invalid",
            Verdict::CannotTell => "cannot tell",
        }
    }

    /// The exit status of a command that checks: 0, 1 and 2.
    pub fn exit_code(self) -> u8 {
        match self {
            Verdict::Valid => 0,
            Verdict::Invalid => 1,
            Verdict::CannotTell => 2,
        }
    }
}

/// What was found in a file.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// The file, behind symbolic links.
    pub path: PathBuf,
    /// Its length.
    pub file_len: u64,
    /// Its version, when it has one.
    pub version: Option<Version>,
    /// The number of records as stored, when the header decodes.
    pub numrecs: Option<NumRecs>,
    /// What was found, in the order of the file where there is one.
    pub findings: Vec<Finding>,
}

impl Report {
    /// Valid unless a finding is an error.
    pub fn verdict(&self) -> Verdict {
        match self.worst() {
            Some(Severity::Error) => Verdict::Invalid,
            _ => Verdict::Valid,
        }
    }

    /// The severity of the worst finding.
    pub fn worst(&self) -> Option<Severity> {
        self.findings.iter().map(|f| f.severity).max()
    }
}

/// Checks the file at `path`.
///
/// An error means that the file could not be read; everything that is wrong with it is a
/// finding. Chunked variables are read whole. Of a container, every frame and every payload that its newest version has is read, or the version that the path names (`RUN.esk@7`), or, with [`CheckOptions::all_versions`], all of them have, each payload once; of the folder of an adjoint run (RUN.chk), every segment.
/// When the header does not decode, what stopped the decoder is the last finding
/// about the file itself.
pub fn check(
    path: impl AsRef<Path>,
    options: &CheckOptions,
    progress: &mut dyn Progress,
) -> esker::Result<Report> {
    let store = &*options.store;
    if checkpoints::are_there(&options.store, path.as_ref())? {
        return checkpoints::check(&options.store, path.as_ref(), progress);
    }
    if options.all_versions {
        return match esker::is_container(store, path.as_ref())? {
            true => container::check_all(&options.store, path.as_ref(), progress),
            false => {
                let path = path.as_ref().display();
                Err(Error::Refused(format!("{path}: it is no container, so it has no versions")))
            }
        };
    }
    if esker::is_container(store, path.as_ref())? {
        return container::check(&options.store, path.as_ref(), None, progress);
    }
    if let Some((path, version)) = esker::version_in_path(store, path.as_ref())? {
        return container::check(&options.store, &path, Some(version), progress);
    }
    let path = esker::classic_of(store, path.as_ref()).map_err(Error::from)?;
    let file = store.open(&path, Access::Read)?;
    let path = store.resolve(&path)?;
    let file_len = file.len()?;
    let beside = Beside::look(store, &path, &*file)?;
    let mut findings = Vec::new();
    let (mut version, mut numrecs) = (None, None);
    match decode(&path, &*file, &beside)? {
        Ok(decoded) => {
            let header = &decoded.header;
            (version, numrecs) = (Some(header.schema.version), Some(header.numrecs));
            inspect(&decoded, &*file, file_len, &mut findings)?;
            let note = esker::uncounted_records(store, &path);
            findings.extend(note.iter().map(|note| length::uncounted(note)));
            subfiles::check(options, &path, header, &mut findings, progress)?;
            maps::check(options, &path, header, &mut findings);
            chunks::check(&options.store, &path, header, progress, &mut findings)?;
            graphs::check(&options.store, &path, header, &mut findings)?;
        }
        Err(error) => {
            findings.push(header::fatal(&error, &*file, file_len)?);
            let mut magic = [0; 4];
            if file.read_at(0, &mut magic)? == 4 && magic[..3] == *b"CDF" {
                version = Version::from_byte(magic[3]);
            }
        }
    }
    // By place; what has none (files beside this one) comes last.
    findings.sort_by_key(|f| f.offset.unwrap_or(u64::MAX));
    beside.check(&path, &mut findings);
    if options.read_data {
        read_everything(&*file, file_len, progress)?;
    }
    Ok(Report { path, file_len, version, numrecs, findings })
}

/// The header as readers see it: with a torn one in the file, the new one of the journal.
fn decode(
    path: &Path,
    file: &dyn File,
    beside: &Beside,
) -> esker::Result<Result<Decoded, esker_format::DecodeError>> {
    if let Journal::Whole(journal, HeaderState::Torn) = &beside.journal {
        return Ok(Header::decode_noting(&beside::settled(journal, file)?, file.len()?));
    }
    match esker::read_header_noting(path, file) {
        Ok(decoded) => Ok(Ok(decoded)),
        Err(Error::Decode { source, .. }) => Ok(Err(source)),
        Err(error) => Err(error),
    }
}

fn inspect(
    decoded: &Decoded,
    file: &dyn File,
    file_len: u64,
    findings: &mut Vec<Finding>,
) -> esker::Result<()> {
    let extent = Extent::of(&decoded.header, file_len);
    findings.extend(decoded.tolerated.iter().map(header::tolerated));
    findings.extend(decoded.broken.iter().map(|(_, error)| header::broken(error)));
    attributes::check(decoded, findings);
    places::check(decoded, &extent, findings);
    length::check(&decoded.header, &extent, file, findings)
}

/// Bytes read at a time.
const BLOCK: u64 = 4 << 20;

fn read_everything(
    file: &dyn File,
    file_len: u64,
    progress: &mut dyn Progress,
) -> esker::Result<()> {
    let mut block = vec![0; BLOCK.min(file_len) as usize];
    let mut done = 0;
    while done < file_len {
        let n = file.read_at(done, &mut block)? as u64;
        if n == 0 {
            break;
        }
        done += n;
        progress.progress(done.min(file_len), file_len);
        if progress.is_cancelled() {
            break;
        }
    }
    Ok(())
}
