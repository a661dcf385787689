//! Reading one log to its end: which of its writes are whole.

use std::collections::{BTreeSet, HashMap};
use std::io::ErrorKind;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use esker_codec::Scratch;
use esker_format::log::{
    BLOCK, Definition, Entry, Footprint, Frame, FrameKind, Head, LogPart, Session,
};
use esker_format::{Header, NumRecs, VarId};
use esker_store::{File, Lane, ReadPool};

use super::fault::{FaultKind, LogFault, TornTail};
use crate::container::{data_path, meta_path};
use crate::error::{Error, Result};
use crate::log::{Filtered, LogSource, SortedRuns};

/// Bytes of payload that are read at a time: a whole number of blocks.
const STRETCH: u64 = 64 * BLOCK as u64;

/// How far a log is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// As far as the version has it.
    Committed,
    /// Up to this byte of its metadata: what is behind it was given up.
    Until(u64),
    /// As far as there is something.
    Everything,
}

/// What a log holds.
#[derive(Debug, Default)]
pub(super) struct LogRead {
    /// Writes that are whole.
    pub(super) entries: u64,
    /// Their bytes of payload.
    pub(super) bytes: u64,
    /// Of these, what was never committed.
    pub(super) tail_entries: u64,
    pub(super) tail_bytes: u64,
    /// The numbers of entries (of those in frames that can be read) that are not.
    pub(super) bad: BTreeSet<u64>,
    /// Whether something was left out.
    pub(super) damaged: bool,
    /// Where the whole frames end, and the payloads they describe.
    pub(super) meta_end: u64,
    pub(super) data_end: u64,
    /// The record after the last that is touched.
    pub(super) records: u64,
    pub(super) faults: Vec<LogFault>,
    pub(super) torn: Option<TornTail>,
    /// How far it was committed.
    committed: (u64, u64),
    /// The same as the fields above, of what was committed.
    committed_records: u64,
    pub(super) committed_damaged: bool,
    /// Whether the log is not there at all.
    pub(super) missing: bool,
    /// The rank that its head names.
    pub(super) rank: Option<u32>,
}

impl LogRead {
    /// Leaves out what was never committed.
    pub(super) fn forget_tail(&mut self) {
        self.entries -= self.tail_entries;
        self.bytes -= self.tail_bytes;
        (self.tail_entries, self.tail_bytes) = (0, 0);
        self.records = self.committed_records;
        self.damaged = self.committed_damaged;
        (self.meta_end, self.data_end) = self.committed;
        self.faults.retain(|fault| fault.committed);
        self.torn = None;
    }

    /// Where reading ends for the version that is made.
    pub(super) fn end(&self) -> u64 {
        self.meta_end
    }
}

/// Reads logs, and tells how far it is.
pub(super) struct Reader<'a> {
    pool: &'a Arc<ReadPool>,
    path: &'a Path,
    header: &'a Header,
    total: u64,
    done: u64,
    progress: &'a mut dyn FnMut(u64, u64),
    buffer: Vec<u8>,
    /// A payload that went through filters.
    encoded: Vec<u8>,
    scratch: Scratch,
}

/// What is known of a footprint: where its definition is, and what it says.
struct Known {
    place: Range<u64>,
    most: u64,
    span: u64,
    elements: u64,
}

/// One log while it is read.
struct One<'h> {
    header: &'h Header,
    read: LogRead,
    footprints: HashMap<u64, Known>,
    /// Whether nothing may be there but what the version has.
    committed_only: bool,
    rank: u32,
    meta: PathBuf,
    data: PathBuf,
}

/// The log of a session's part.
pub(super) fn open(
    pool: &Arc<ReadPool>,
    path: &Path,
    session: &Session,
    part: &LogPart,
) -> LogSource {
    let open = |path: &Path, block| -> Arc<dyn File> {
        Lane::open(pool.file(path), part.lane.into(), part.lanes.into(), block)
    };
    LogSource {
        meta: open(&meta_path(path, session, part.file), session.meta_block),
        data: open(&data_path(path, session, part.file), session.data_block),
        orders: LogSource::in_one_session(0),
        rank: part.rank,
        // Which is looked at apart, to be told in other words.
        identity: None,
        meta_len: None,
        // Payloads that are not there are found one by one.
        data_len: Some(i64::MAX as u64),
        read: 0,
    }
}

/// The footprint whose definition is at this place of a metadata log.
pub(super) fn footprint(
    log: &LogSource,
    place: &Range<u64>,
    most: u64,
) -> Result<Option<Footprint>> {
    let mut bytes = vec![0; (place.end - place.start) as usize];
    let n = log.meta.read_at(place.start, &mut bytes)?;
    Ok(Footprint::decode(&bytes[..n], most))
}

impl<'a> Reader<'a> {
    pub(super) fn new(
        pool: &'a Arc<ReadPool>,
        path: &'a Path,
        header: &'a Header,
        total: u64,
        progress: &'a mut dyn FnMut(u64, u64),
    ) -> Reader<'a> {
        let (buffer, encoded, scratch) = (Vec::new(), Vec::new(), Scratch::default());
        Reader { pool, path, header, total, done: 0, progress, buffer, encoded, scratch }
    }

    fn tell(&mut self, bytes: u64) {
        self.done = self.done.saturating_add(bytes).min(self.total);
        (self.progress)(self.done, self.total);
    }

    /// Reads a log as far as it is wanted.
    pub(super) fn read(
        &mut self,
        session: &Session,
        part: &LogPart,
        reach: Reach,
    ) -> Result<LogRead> {
        let committed_only = reach == Reach::Committed;
        let inside = |path: PathBuf| match path.strip_prefix(self.path) {
            Ok(rest) => rest.to_path_buf(),
            Err(_) => path,
        };
        let mut one = One {
            header: self.header,
            read: LogRead { committed: (part.meta_len, part.data_len), ..LogRead::default() },
            footprints: HashMap::new(),
            committed_only,
            rank: part.rank,
            meta: inside(meta_path(self.path, session, part.file)),
            data: inside(data_path(self.path, session, part.file)),
        };
        let mut log = open(self.pool, self.path, session, part);
        let there = match log.meta.len() {
            Ok(len) => len,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                one.lost(part, "the metadata log is not there");
                return Ok(one.read);
            }
            Err(error) => return Err(error.into()),
        };
        log.meta_len = match reach {
            Reach::Committed => Some(part.meta_len),
            Reach::Until(end) => Some(end.max(part.meta_len)),
            Reach::Everything => None,
        };
        one.head(&log, session, there)?;
        if one.read.missing {
            return Ok(one.read);
        }
        log.skip_head()?;
        one.read.meta_end = log.read;
        let mut reader = log.clone();
        reader.read_on(|frame| match frame {
            Ok(frame) => self.frame(&mut one, &log, &frame),
            Err(damage) => {
                let what = format!(
                    "{} bytes of metadata cannot be read: {}",
                    damage.to - damage.from,
                    damage.why
                );
                one.metadata_fault(damage.from..damage.to, what);
                Ok(())
            }
        })?;
        one.end(&log, part, there.min(log.meta_len.unwrap_or(u64::MAX)), reader.read)?;
        self.tell(one.read.meta_end);
        Ok(one.read)
    }

    fn frame(&mut self, one: &mut One<'_>, log: &LogSource, frame: &Frame) -> Result<()> {
        // So that a definition cannot ask for more memory than there are values.
        let there = log.data.len().unwrap_or(0).max(one.read.committed.1);
        let defined = frame.footprints.iter().filter(|_| frame.kind == FrameKind::Entries);
        for Definition { number, place, .. } in defined {
            let found = footprint(log, place, frame.data_end.min(there))?;
            if let Some((span, elements)) = found.and_then(|f| Some((f.span()?, f.elements()?))) {
                let (place, most) = (place.clone(), frame.data_end.min(there));
                one.footprints.insert(*number, Known { place, most, span, elements });
            }
        }
        let committed = frame.end <= one.read.committed.0;
        for entry in &frame.entries {
            let number = one.read.entries + one.read.bad.len() as u64;
            let fault = match one.nonsense(entry) {
                Some(what) => Some((FaultKind::Entry, entry.place, what)),
                None => match self.payload(log, frame, entry)? {
                    Some(fault) => Some(fault),
                    None if entry.encoded => self.undecodable(one, log, entry)?,
                    None => None,
                },
            };
            match fault {
                None => one.good(entry, committed),
                Some((kind, offset, what)) => {
                    one.read.bad.insert(number);
                    one.bad(entry, committed, kind, offset, what);
                }
            }
        }
        one.read.meta_end = frame.end;
        one.read.data_end = one.read.data_end.max(frame.data_end);
        Ok(())
    }

    /// Reads a payload; gives what is wrong with it, and where.
    fn payload(
        &mut self,
        log: &LogSource,
        frame: &Frame,
        entry: &Entry,
    ) -> Result<Option<(FaultKind, u64, String)>> {
        let sums = frame.sums.get(entry.sums.clone()).unwrap_or_default();
        self.encoded.clear();
        let mut at = 0;
        while at < entry.len {
            let sums = sums.get((at / BLOCK as u64) as usize..).unwrap_or_default();
            let len = STRETCH.min(entry.len - at);
            self.buffer.resize(len as usize, 0);
            let n = match log.data.read_at(entry.place + at, &mut self.buffer) {
                Ok(n) => n,
                Err(error) if error.kind() == ErrorKind::NotFound => 0,
                Err(error) => return Err(error.into()),
            };
            let blocks = self.buffer[..n].chunks(BLOCK).zip(sums);
            let bad = blocks.clone().position(|(block, sum)| crc32c::crc32c(block) != *sum);
            if (n as u64) < len {
                let what = format!("{} bytes of values are missing: the data log ends", entry.len);
                return Ok(Some((FaultKind::Missing, entry.place + at + n as u64, what)));
            }
            if let Some(bad) = bad {
                let what = format!("{} bytes of values do not match their checksums", entry.len);
                let place = entry.place + at + (bad * BLOCK) as u64;
                return Ok(Some((FaultKind::Payload, place, what)));
            }
            if entry.encoded {
                self.encoded.extend_from_slice(&self.buffer);
            }
            at += len;
            self.tell(len);
        }
        Ok(None)
    }

    /// Decodes the payload that was read last as a reader would; gives what is wrong with it.
    fn undecodable(
        &mut self,
        one: &One<'_>,
        log: &LogSource,
        entry: &Entry,
    ) -> Result<Option<(FaultKind, u64, String)>> {
        let fault = |why: String| {
            let what = format!("{} bytes of values cannot be decoded: {why}", entry.len);
            Ok(Some((FaultKind::Payload, entry.place, what)))
        };
        let var = VarId(entry.write.var as usize);
        let Entry { footprint: number, .. } = entry;
        let (Some(variable), Some(known)) =
            (one.header.schema.variable(var), one.footprints.get(number))
        else {
            return fault("its variable or its footprint is not there".to_string());
        };
        let filters = match Filtered::of(variable) {
            Ok(Some(filters)) => filters,
            Ok(None) => return fault("the variable has no filters".to_string()),
            Err(why) => return fault(why),
        };
        let Some(footprint) = footprint(log, &known.place, known.most)? else {
            return fault("its footprint is not there".to_string());
        };
        let runs = SortedRuns::new(&footprint);
        let shape = runs.payload_shape(entry.write.records.count, known.elements);
        let (out, scratch) = (&mut self.buffer, &mut self.scratch);
        match filters.decode(&shape, &self.encoded, out, scratch) {
            Ok(()) => Ok(None),
            Err(why) => fault(why),
        }
    }
}

impl One<'_> {
    fn fault(&self, kind: FaultKind, offset: u64, bytes: u64, what: String) -> LogFault {
        let file = match kind {
            FaultKind::Payload | FaultKind::Missing => self.data.clone(),
            FaultKind::Frame | FaultKind::Entry => self.meta.clone(),
        };
        let (rank, committed) = (self.rank, true);
        LogFault { kind, rank, file, offset, variable: None, records: None, bytes, committed, what }
    }

    /// The log is not there.
    fn lost(&mut self, part: &LogPart, what: &str) {
        self.read.missing = true;
        if part.meta_len > 0 {
            let what = format!("{what}, and with it {} bytes of values", part.data_len);
            let mut fault = self.fault(FaultKind::Missing, 0, part.data_len, what);
            fault.file = self.meta.clone();
            self.read.faults.push(fault);
            (self.read.damaged, self.read.committed_damaged) = (true, true);
        }
    }

    /// Whether the log is the one that the manifest means.
    fn head(&mut self, log: &LogSource, session: &Session, there: u64) -> Result<()> {
        let mut bytes = vec![0; (Head::enough() as u64).min(there) as usize];
        let n = log.meta.read_at(0, &mut bytes)?;
        let Some((head, _)) = Head::decode(&bytes[..n]) else { return Ok(()) };
        if self.read.committed.0 == 0 {
            // Of a lane the head is the only one who knows.
            self.rank = head.rank;
            self.read.rank = Some(head.rank);
        }
        if head.identity != session.identity || head.rank != self.rank {
            let what = format!(
                "the log says that it is rank {}'s of session {:016x}, not of {:016x}",
                head.rank, head.identity, session.identity
            );
            let bytes = self.read.committed.1;
            let mut fault = self.fault(FaultKind::Frame, 0, bytes, what);
            fault.committed = self.read.committed.0 > 0;
            self.read.faults.push(fault);
            self.read.missing = true;
            self.read.damaged = true;
            self.read.committed_damaged = true;
        }
        Ok(())
    }

    fn metadata_fault(&mut self, place: Range<u64>, what: String) {
        let committed = place.start < self.read.committed.0;
        let mut fault = self.fault(FaultKind::Frame, place.start, place.end - place.start, what);
        fault.committed = committed;
        self.read.faults.push(fault);
        self.read.damaged = true;
        self.read.committed_damaged |= committed;
        self.read.meta_end = place.end;
    }

    /// What an entry says that cannot be.
    fn nonsense(&self, entry: &Entry) -> Option<String> {
        let write = &entry.write;
        let Some(&Known { span, elements, .. }) = self.footprints.get(&entry.footprint) else {
            let lost = "which elements its values belong to was lost with damaged metadata";
            return Some(lost.to_string());
        };
        let schema = &self.header.schema;
        let var = usize::try_from(write.var).ok().map(VarId);
        let Some(variable) = var.and_then(|var| schema.variable(var)) else {
            let count = schema.vars.len();
            return Some(format!("it is of variable number {}, and there are {count}", write.var));
        };
        let is_record = schema.is_record(variable);
        let shape = schema.shape(variable, 1);
        let room = shape.iter().fold(1, |n: u64, len| n.saturating_mul(*len));
        let fits = write.first.checked_add(span).is_some_and(|end| end <= room)
            && u64::from(write.width) == variable.ty.size()
            && (is_record || (write.records.first, write.records.count) == (0, 1))
            && write.records.end().is_some_and(|end| end <= schema.version.max_count());
        let bytes = elements
            .checked_mul(write.records.count)
            .and_then(|n| n.checked_mul(write.width.into()));
        if !fits || (!entry.encoded && bytes != Some(entry.len)) {
            return Some(format!("its {} bytes do not fit the variable", entry.len));
        }
        if entry.encoded && !Filtered::may_store(entry.len) {
            return Some(format!("its {} bytes are more than filters make", entry.len));
        }
        let NumRecs::Count(records) = self.header.numrecs else { return None };
        let end = write.records.end();
        let beyond = end.filter(|end| self.committed_only && is_record && *end > records);
        beyond.map(|end| format!("it reaches to record {}, and there are {records}", end - 1))
    }

    fn good(&mut self, entry: &Entry, committed: bool) {
        let read = &mut self.read;
        read.entries += 1;
        read.bytes += entry.len;
        let var = VarId(entry.write.var as usize);
        let schema = &self.header.schema;
        if schema.variable(var).is_some_and(|variable| schema.is_record(variable)) {
            read.records = read.records.max(entry.write.records.end().unwrap_or(0));
        }
        if committed {
            read.committed_records = read.records;
        } else {
            read.tail_entries += 1;
            read.tail_bytes += entry.len;
        }
    }

    fn bad(&mut self, entry: &Entry, committed: bool, kind: FaultKind, offset: u64, what: String) {
        let mut fault = self.fault(kind, offset, entry.len, what);
        fault.committed = committed;
        let var = VarId(entry.write.var as usize);
        let schema = &self.header.schema;
        if let Some(variable) = schema.variable(var) {
            fault.variable = Some(variable.name.to_string());
            if schema.is_record(variable) {
                let records = &entry.write.records;
                let last = records.end().map_or(records.first, |end| end - 1);
                fault.records = Some((records.first, last));
            }
        }
        self.read.faults.push(fault);
        self.read.damaged = true;
        self.read.committed_damaged |= committed;
    }

    /// Looks at what is behind the last whole frame.
    fn end(&mut self, log: &LogSource, part: &LogPart, there: u64, reached: u64) -> Result<()> {
        if reached < part.meta_len {
            let what = match there < part.meta_len {
                true => format!(
                    "the metadata log ends at byte {there}, though {} bytes of it were committed",
                    part.meta_len
                ),
                false => "no whole metadata follow, though more were committed".to_string(),
            };
            self.metadata_fault(reached..part.meta_len, what);
            // Everything that can be read was.
            self.read.meta_end = reached;
            return Ok(());
        }
        let metadata = behind(&*log.meta, reached, there)?;
        // The end of a lane is not known.
        let payload = match (part.lanes, log.data.len()) {
            (0 | 1, Ok(len)) => len.saturating_sub(self.read.data_end.max(part.data_len)),
            _ => 0,
        };
        let open_ended = log.meta_len.is_none();
        if open_ended && (metadata > 0 || payload > 0) {
            let (rank, file) = (self.rank, self.meta.clone());
            self.read.torn = Some(TornTail { rank, file, offset: reached, metadata, payload });
        }
        Ok(())
    }
}

/// How many bytes behind `from` there are up to the last that is not zero.
fn behind(file: &dyn File, from: u64, to: u64) -> Result<u64> {
    let mut last = 0;
    let mut at = from;
    let mut bytes = vec![0; (to.saturating_sub(from)).min(1 << 20) as usize];
    while at < to {
        let len = bytes.len().min((to - at) as usize);
        let n = file.read_at(at, &mut bytes[..len]).map_err(Error::from)?;
        if let Some(place) = bytes[..n].iter().rposition(|byte| *byte != 0) {
            last = at - from + place as u64 + 1;
        }
        if n == 0 {
            break;
        }
        at += n as u64;
    }
    Ok(last)
}
