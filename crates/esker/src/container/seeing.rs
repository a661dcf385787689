//! What this rank's reads see: of committed logs the sections that may have what is asked for, and all that this session's logs have
//! grown by.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::path::Path;
use std::sync::PoisonError;

use esker_format::log::{Cut, LogPart, Manifest, Section, Session};
use esker_store::Lane;

use super::edition::Edition;
use super::{Container, broken, damaged, data_path, meta_path};
use crate::base::Base;
use crate::error::Result;
use crate::log::{Lengths, LogSource, UNCOMMITTED, place_of};

/// What a read wants to see: records of variables; everything, if nobody says.
pub(crate) type Wanted<'w> = Option<&'w dyn Fn() -> Vec<(u64, Range<u64>)>>;

/// Which entries the view's index has.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// Whether it has all that was committed before this session.
    all: bool,
    /// Records of variables of which it has everything, and how often was asked.
    asked: HashMap<u64, Asked>,
    /// The sections that it has: session, log, where they begin.
    sections: HashSet<(u64, u32, u64)>,
    /// The numbers of committed logs, by session and log.
    logs: HashMap<(u64, u32), usize>,
    /// The numbers of the session's own logs.
    own: Option<Range<usize>>,
    /// How much of this rank's log was seen.
    lengths: Lengths,
    /// When the other ranks' logs were read.
    together: u64,
}

#[derive(Debug, Default)]
struct Asked {
    records: Vec<Range<u64>>,
    times: u32,
}

impl Asked {
    /// The records to be looked for so that there are these: some more each time, so that who reads one behind the other does not ask
    /// for each. `None` if they are there.
    fn missing(&self, wanted: &Range<u64>) -> Option<Range<u64>> {
        let holds = |known: &Range<u64>| known.start <= wanted.start && wanted.end <= known.end;
        if wanted.is_empty() || self.records.iter().any(holds) {
            return None;
        }
        let more = 1u64 << self.times.min(40);
        Some(wanted.start..wanted.end.max(wanted.start.saturating_add(more)))
    }

    fn has(&mut self, records: Range<u64>) {
        self.times += 1;
        let touches = |known: &Range<u64>| known.start <= records.end && records.start <= known.end;
        let (touching, apart) = self.records.drain(..).partition(touches);
        let touching: Vec<Range<u64>> = touching;
        self.records = apart;
        let around = |a: Range<u64>, b: Range<u64>| a.start.min(b.start)..a.end.max(b.end);
        self.records.push(touching.into_iter().fold(records, around));
    }
}

impl Container {
    /// Makes visible to this rank's reads what is `wanted` of what was committed, what this rank has written, and what all had when they
    /// were last together.
    pub(crate) fn see(&self, base: &Base, records: u64, wanted: Wanted<'_>) -> Result<()> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        self.see_committed(base, &mut seen, wanted)?;
        if let Some(own) = &self.own {
            let lengths = own.flushed()?;
            if seen.own.is_none() {
                let sources = self.own_sources(base)?;
                let mut state = self.view.change();
                let first = state.index.logs.len();
                sources.into_iter().for_each(|source| {
                    state.index.add(source);
                });
                seen.own = Some(first..state.index.logs.len());
            }
            let logs = seen.own.clone().unwrap_or(0..0);
            if seen.together != self.together {
                self.view.change().index.catch_up(logs)?;
            } else if seen.lengths != lengths {
                let mine = logs.start + base.comm.rank();
                self.view.change().index.catch_up(mine..mine + 1)?;
            }
            (seen.together, seen.lengths) = (self.together, lengths);
        }
        damaged(base, &self.view.state().index)?;
        self.view.have_records(records);
        Ok(())
    }

    /// Forgets what was seen: others have committed. Nobody may be reading.
    pub(super) fn see_anew(&self, base: &Base) {
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = Seen::default();
        self.view.change().renew_index(base.hints.index_memory as usize);
    }

    fn see_committed(&self, base: &Base, seen: &mut Seen, wanted: Wanted<'_>) -> Result<()> {
        let Some(edition) = self.edition.as_ref().filter(|_| !seen.all) else { return Ok(()) };
        let Some(wanted) = wanted else {
            // Whoever reads after a failure tries again.
            self.load(base, edition, seen, (0..u64::MAX, 0..u64::MAX))?;
            seen.all = true;
            return Ok(());
        };
        for (var, records) in wanted() {
            if seen.all {
                break;
            }
            let missing = seen.asked.entry(var).or_default().missing(&records);
            if let Some(records) = missing {
                self.load(base, edition, seen, (var..var + 1, records.clone()))?;
                seen.asked.entry(var).or_default().has(records);
            }
        }
        Ok(())
    }

    /// Puts into the index what may touch these records of these variables.
    fn load(
        &self,
        base: &Base,
        edition: &Edition,
        seen: &mut Seen,
        (vars, records): (Range<u64>, Range<u64>),
    ) -> Result<()> {
        let mut state = self.view.change();
        let index = &mut state.index;
        let Some(sections) = edition.sections(vars, records)? else {
            // Of a container of before only the logs themselves know.
            for (key, source) in self.sources_of(base, &*edition.manifest()?) {
                seen.logs.entry(key).or_insert_with(|| index.add(source));
            }
            index.catch_up(seen.logs.values().copied())?;
            seen.all = true;
            return Ok(());
        };
        let own = self.own.as_ref().map(|own| own.session.identity);
        for section in sections.into_iter().filter(|section| Some(section.identity) != own) {
            let Section { identity, log, begin, .. } = section;
            if seen.sections.contains(&(identity, log, begin)) {
                continue;
            }
            let number = match seen.logs.get(&(identity, log)) {
                Some(number) => *number,
                None => {
                    let session = edition.session(identity)?;
                    let lacking = || {
                        let why = format!("its session {} has no log {log}", session.stem);
                        broken(&base.path, why)
                    };
                    let part = session.part(log).ok_or_else(lacking)?;
                    let number = index.add(self.source(base, &session, &part, &[], false));
                    seen.logs.insert((identity, log), number);
                    number
                }
            };
            let places = section.cuts.iter().map(|cut| (cut.end, place_of(cut.over, cut.number)));
            index.logs[number].add_places(places);
            let place = begin..section.end();
            index.take_section(number, place, (section.number, section.data_end))?;
            seen.sections.insert((identity, log, begin));
        }
        index.settle();
        Ok(())
    }

    /// All committed logs of a version but this session's own, in their order, by session and number.
    pub(super) fn sources_of(
        &self,
        base: &Base,
        manifest: &Manifest,
    ) -> Vec<((u64, u32), LogSource)> {
        let own = self.own.as_ref().map(|own| own.session.identity);
        let sessions = manifest.sessions.iter().filter(|s| Some(s.identity) != own);
        let logs = sessions.flat_map(|session| {
            (0..).zip(&session.logs).map(move |(log, part)| {
                let source = self.source(base, session, part, &part.cuts, false);
                (
                    (session.identity, log),
                    LogSource {
                        meta_len: Some(part.meta_len),
                        data_len: Some(part.data_len),
                        ..source
                    },
                )
            })
        });
        logs.collect()
    }

    /// The logs of this session, as they grow.
    pub(super) fn own_sources(&self, base: &Base) -> Result<Vec<LogSource>> {
        let Some(own) = &self.own else { return Ok(Vec::new()) };
        // What of it was committed before others did, and what behind them.
        let known = match &self.edition {
            Some(edition) if own.met => Some(edition.session_with_cuts(own.session.identity)?),
            _ => None,
        };
        let cuts = |log: usize| match &known {
            Some(session) => session.logs.get(log).map_or(&[][..], |part| &part.cuts),
            None => &[],
        };
        let logs = own.session.logs.iter().enumerate();
        Ok(logs.map(|(i, part)| self.source(base, &own.session, part, cuts(i), true)).collect())
    }

    /// The log of a session's part, in which versions brought what `cuts` say; what is `growing` behind them lies over everything.
    fn source(
        &self,
        base: &Base,
        session: &Session,
        part: &LogPart,
        cuts: &[Cut],
        growing: bool,
    ) -> LogSource {
        let open = |path: &Path, block| {
            Lane::open(self.pool.file(path), part.lane.into(), part.lanes.into(), block)
        };
        let mut source = LogSource {
            meta: open(&meta_path(&base.path, session, part.file), session.meta_block),
            data: open(&data_path(&base.path, session, part.file), session.data_block),
            orders: Default::default(),
            rank: part.rank,
            identity: Some(session.identity),
            meta_len: None,
            data_len: None,
            read: 0,
        };
        source.add_places(cuts.iter().map(|cut| (cut.end, place_of(cut.over, cut.number))));
        if growing {
            source.add_places([(u64::MAX, UNCOMMITTED)]);
        }
        source
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_reads_records_one_behind_the_other_asks_a_logarithm_of_times() {
        let mut asked = Asked::default();
        let mut times = 0;
        for record in 0..10_000 {
            if let Some(records) = asked.missing(&(record..record + 1)) {
                assert!(records.contains(&record));
                asked.has(records);
                times += 1;
            }
            assert_eq!(asked.missing(&(record..record + 1)), None);
        }
        assert!(times < 20, "{times}");
        assert_eq!(asked.missing(&(3..3)), None);
        assert!(asked.missing(&(1 << 30..(1 << 30) + 1)).is_some());
        asked.has(1 << 30..(1 << 30) + 1);
        assert_eq!(asked.records.len(), 2);
    }
}
