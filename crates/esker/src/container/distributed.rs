//! The index of the logs, distributed over the ranks (seeds/000 §7.3).
//!
//! Each rank indexes the logs whose number is its own modulo the number of ranks. Before a
//! collective read all ask each other for the entries that touch what they read, and make of the
//! answers an index for this one call. So nobody reads, or has to hold, the metadata of all logs.
//! Where the answers are more than the budget has room for, `sections` reads with a part of them
//! at a time.

use super::sections::{Round, Rounds};
use super::{Container, damaged};
use crate::base::Base;
use crate::error::{Error, Result};
use crate::hints::WhereIndexed;
use crate::io_thread::IoThread;
use crate::log::{Asked, Batch, Index, Question, Reach, View};
use crate::report::{Report, Strategy};

/// The part of the index that is this rank's.
#[derive(Debug)]
pub(super) struct Share {
    /// Knows all logs, and the entries of some.
    pub(super) index: Index,
    /// How many logs are of the version, and so do not grow.
    committed: usize,
    /// Whether those were read.
    seen: bool,
}

impl Container {
    /// Whether collective reads go through a distributed index from now on, when no rank has
    /// written more than `most` bytes of metadata. The same everywhere.
    pub(super) fn is_distributed(&self, base: &Base, most: u64) -> bool {
        let ranks = base.comm.size() as u64;
        match base.hints.index {
            _ if ranks == 1 => false,
            WhereIndexed::Local => false,
            WhereIndexed::Distributed => true,
            // Logs do not get shorter.
            WhereIndexed::Automatic if self.distributed => true,
            WhereIndexed::Automatic => {
                let all = self.bytes.1.saturating_add(most.saturating_mul(ranks));
                all > base.hints.index_memory
            }
        }
    }

    /// Takes into this rank's share what its logs have grown by.
    pub(crate) fn see_share(&mut self, base: &Base, records: u64, io: &IoThread) -> Result<()> {
        self.view.have_records(records);
        let mut share = match self.share.take() {
            Some(share) => share,
            None => self.new_share(base, io)?,
        };
        if share.index.logs.len() == share.committed {
            for source in self.own_sources(base)? {
                share.index.add(source);
            }
        }
        let first = if share.seen { share.committed } else { 0 };
        let (rank, ranks) = (base.comm.rank(), base.comm.size());
        let mine = (first..share.index.logs.len()).filter(|log| log % ranks == rank);
        // A share of which something could not be read is made anew the next time.
        share.index.catch_up(mine)?;
        damaged(base, &share.index)?;
        share.seen = true;
        self.share = Some(share);
        Ok(())
    }

    fn new_share(&mut self, base: &Base, io: &IoThread) -> Result<Share> {
        // What was indexed for collective reads so far is not needed any more, once nobody reads.
        io.drain();
        self.see_anew(base);
        let mut index = Index::new(half(base));
        index.see_in(self.view.state().index.grids().clone());
        if let Some(edition) = &self.edition {
            for (_, source) in self.sources_of(base, &*edition.manifest()?) {
                index.add(source);
            }
        }
        Ok(Share { committed: index.logs.len(), index, seen: false })
    }

    /// Reads through a distributed index. `view` makes the dataset's view of an index, `read` reads everything
    /// by what lays a batch. Collective.
    pub(crate) fn read_asking(
        &self,
        base: &Base,
        questions: Vec<Question>,
        view: impl Fn(Index) -> View,
        read: impl FnOnce(&mut dyn FnMut(&Batch, &mut [u8]) -> Result<()>, &mut Report) -> Result<()>,
        report: &mut Report,
    ) -> Result<()> {
        let Some(share) = &self.share else { return Err(Error::Garbled) };
        let rounds = Rounds::new(base, share, half(base));
        report.read_strategy = Strategy::Direct;
        // Most often one round has all that everyone needs.
        let asked = Asked { questions, after: None, room: rounds.room() };
        let first = rounds.first(asked);
        let outcome = first.and_then(|Round { index, reach, active }| {
            let has_all = reach == Reach::All;
            let view = view(if has_all { index } else { rounds.nothing() });
            let outcome = match has_all {
                true => {
                    let state = view.state();
                    let known = (&*state, &state.index);
                    read(&mut |batch, out| Ok(view.lay_batch(known, batch, false, out)?), report)
                }
                false => read(&mut |batch, out| rounds.lay(&view, batch, out), report),
            };
            rounds.note(view.state().index.take_peak());
            if active {
                rounds.finish()?;
            }
            outcome
        });
        rounds.report(report);
        rounds.outcome(outcome)
    }

    /// How many entries this rank has in its share, and how many in an index of all logs.
    #[cfg(test)]
    pub(crate) fn indexed(&self) -> (usize, usize) {
        let share = self.share.as_ref().map_or(0, |share| share.index.entries());
        (share, self.view.change().index.entries())
    }
}

/// What a rank's share of the index may take; the other half is for what it asks for.
fn half(base: &Base) -> usize {
    (base.hints.index_memory / 2) as usize
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};
    use std::sync::Arc;

    use crate::{
        Communicator, CreateOptions, Dataset, DimLen, ExternalType, Hints, Layout, OpenOptions,
        Selection, Strategy, VarId,
    };

    const EACH: u64 = 300;

    fn hints(pairs: &str) -> Hints {
        let mut hints = Hints::default();
        hints.set_pnetcdf(pairs);
        hints
    }

    /// Every rank writes every `ranks`th element, and each one apart.
    fn write(comm: &Arc<dyn Communicator>, path: &Path, pairs: &str) -> (Dataset, VarId) {
        let (me, ranks) = (comm.rank() as u64, comm.size() as u64);
        let options = CreateOptions::new().hints(hints(pairs)).layout(Layout::Log);
        let mut def = Dataset::create(path, options.comm(comm.clone())).unwrap();
        let x = def.add_dim("x", DimLen::Fixed(EACH * ranks)).unwrap();
        let v = def.add_var("v", ExternalType::Int, &[x]).unwrap();
        let mut ds = def.enddef().unwrap();
        for i in 0..EACH {
            let at = i * ranks + me;
            ds.put(v, &Selection::element(&[at]), &[at as i32]).unwrap();
        }
        (ds, v)
    }

    /// The rank's slab of all elements.
    fn slab(comm: &dyn Communicator) -> (Selection, Vec<i32>) {
        let me = comm.rank() as u64;
        let expected = (me * EACH..(me + 1) * EACH).map(|i| i as i32).collect();
        (Selection::slab(&[me * EACH], &[EACH]), expected)
    }

    /// The metadata log that a rank has written.
    fn metadata_of(path: &Path, rank: usize) -> PathBuf {
        let names = std::fs::read_dir(path.join("segments")).unwrap();
        let ending = format!(".{rank}.meta");
        let mut paths = names.map(|name| name.unwrap().path());
        paths.find(|path| path.to_str().unwrap().ends_with(&ending)).unwrap()
    }

    #[test]
    fn each_rank_indexes_its_share() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run.esk");
        crate::launch(8, |comm| {
            let (mut ds, v) = write(&comm, &path, "esker_index=distributed");
            let (mine, expected) = slab(&*comm);
            let indexed =
                |ds: &Dataset| ds.layout.get::<crate::container::Container>().unwrap().indexed();
            assert_eq!(ds.get_all::<i32>(v, &mine).unwrap(), expected);
            assert_eq!(indexed(&ds), (EACH as usize, 0));
            assert_eq!(ds.report().read_strategy, Strategy::Direct);
            // Again, in a log that has grown.
            let first = [comm.rank() as u64 * EACH];
            ds.put_all(v, &Selection::element(&first), &[-1]).unwrap();
            assert_eq!(ds.get_all::<i32>(v, &mine).unwrap()[0], -1);
            assert_eq!(indexed(&ds), (EACH as usize + 1, 0));
            ds.close().unwrap();
            // The committed logs, and one rank alone that needs them all.
            let options = OpenOptions::new().hints(hints("esker_index=distributed"));
            let mut ds = Dataset::open_with(&path, options.comm(comm.clone())).unwrap();
            assert_eq!(ds.get_all::<i32>(v, &mine).unwrap()[1..], expected[1..]);
            assert_eq!(indexed(&ds), (EACH as usize + 1, 0));
            if comm.rank() == 3 {
                assert_eq!(ds.get::<i32>(v, &mine).unwrap()[1..], expected[1..]);
                assert_eq!(indexed(&ds), (EACH as usize + 1, 8 * (EACH as usize + 1)));
            }
            ds.close().unwrap();
        });
    }

    #[test]
    fn the_index_is_distributed_when_it_is_too_much_for_one() {
        let dir = tempfile::tempdir().unwrap();
        for (memory, distributed) in [("1000000", false), ("1000", true)] {
            let path = dir.path().join(format!("{memory}.esk"));
            crate::launch(3, |comm| {
                let (mut ds, v) = write(&comm, &path, &format!("esker_index_memory={memory}"));
                let (mine, expected) = slab(&*comm);
                assert_eq!(ds.get_all::<i32>(v, &mine).unwrap(), expected);
                let (share, all) =
                    ds.layout.get::<crate::container::Container>().unwrap().indexed();
                let found = (share as u64, all as u64);
                assert_eq!(found, if distributed { (EACH, 0) } else { (0, 3 * EACH) });
                ds.close().unwrap();
            });
        }
    }

    /// What the index of a read may take beyond its budget: the entry of each rank that is told
    /// however little room there is, and a footprint that is decoded.
    fn beside(ranks: usize) -> u64 {
        2048 * ranks as u64
    }

    #[test]
    fn a_read_keeps_its_index_within_the_budget() {
        let dir = tempfile::tempdir().unwrap();
        for ranks in [1, 3, 7] {
            let path = dir.path().join(format!("{ranks}.esk"));
            crate::launch(ranks, |comm| {
                let (mut ds, v) = write(&comm, &path, "");
                // Over each other, in an order that is that of the ranks.
                let all = EACH * ranks as u64;
                for i in (0..all).step_by(5) {
                    let value = comm.rank() as i32 * 10_000 + i as i32;
                    ds.put(v, &Selection::slab(&[i], &[1]), &[value]).unwrap();
                }
                ds.close().unwrap();
            });
            let last = (ranks - 1) as i32 * 10_000;
            let value = move |i: u64| if i.is_multiple_of(5) { last + i as i32 } else { i as i32 };
            for budget in [16 << 10, 64 << 10, 8 << 20] {
                crate::launch(ranks, |comm| {
                    let pairs = format!("esker_index=distributed;esker_index_memory={budget}");
                    let options = OpenOptions::new().hints(hints(&pairs)).comm(comm.clone());
                    let mut ds = Dataset::open_with(&path, options).unwrap();
                    let all = EACH * ranks as u64;
                    let expected: Vec<i32> = (0..all).map(value).collect();
                    let v = VarId(0);
                    // Everything, on every rank but one; into another type, which goes through a
                    // buffer; and every third element backwards through memory.
                    let nothing = comm.rank() == 1;
                    let selection = if nothing { Selection::none() } else { Selection::all() };
                    let found = ds.get_all::<i32>(v, &selection).unwrap();
                    assert!(nothing || found == expected);
                    let found = ds.get_all::<f64>(v, &Selection::all()).unwrap();
                    assert!(found.iter().zip(&expected).all(|(a, b)| *a == f64::from(*b)));
                    let third = Selection::strided(&[1], &[all / 3], &[3]);
                    let found = ds.get_all::<i32>(v, &third).unwrap();
                    assert!(found.iter().zip(expected[1..].iter().step_by(3)).all(|(a, b)| a == b));
                    let peak = ds.report().index_memory;
                    assert!(peak > 0 && peak <= budget + beside(ranks), "{peak} of {budget}");
                    // One round for each read, if all fits; otherwise as many as there are sections.
                    let rounds = ds.report().rounds;
                    let fits = budget > 1 << 20;
                    assert!(ranks == 1 || (rounds == 3) == fits, "{rounds} rounds, {budget}");
                    ds.close().unwrap();
                });
            }
        }
    }

    #[test]
    fn a_damaged_value_ends_a_read_in_sections_on_every_rank() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run.esk");
        crate::launch(3, |comm| write(&comm, &path, "").0.close().unwrap());
        let mut names = std::fs::read_dir(path.join("segments")).unwrap();
        let data = names.find_map(|name| {
            let path = name.unwrap().path();
            path.to_str().unwrap().ends_with(".1.data").then_some(path)
        });
        let data = data.unwrap();
        let mut bytes = std::fs::read(&data).unwrap();
        let place = bytes.len() / 2;
        bytes[place] ^= 1;
        std::fs::write(&data, bytes).unwrap();
        crate::launch(3, |comm| {
            let pairs = "esker_index=distributed;esker_index_memory=16384";
            let options = OpenOptions::new().hints(hints(pairs)).comm(comm.clone());
            let mut ds = Dataset::open_with(&path, options).unwrap();
            let (mine, expected) = slab(&*comm);
            let read = ds.get_all::<i32>(VarId(0), &mine);
            assert!(read.unwrap_err().to_string().contains("does not match its checksum"));
            // The others' elements are read in the same way as before.
            let part = Selection::slab(&[comm.rank() as u64 * EACH], &[2]);
            assert_eq!(ds.get_all::<i32>(VarId(0), &part).unwrap(), expected[..2]);
        });
    }

    #[test]
    fn damage_in_one_share_is_everyones_failure() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run.esk");
        crate::launch(4, |comm| {
            write(&comm, &path, "").0.close().unwrap();
            comm.barrier().unwrap();
            if comm.rank() == 0 {
                let meta = metadata_of(&path, 2);
                let mut bytes = std::fs::read(&meta).unwrap();
                let middle = bytes.len() / 2;
                bytes[middle] ^= 1;
                std::fs::write(&meta, bytes).unwrap();
            }
            comm.barrier().unwrap();
            for pairs in ["esker_index=distributed", "esker_index=automatic;esker_index_memory=1"] {
                let options = OpenOptions::new().hints(hints(pairs));
                let mut ds = Dataset::open_with(&path, options.comm(comm.clone())).unwrap();
                let (mine, _) = slab(&*comm);
                let v = VarId(0);
                // And it stays one.
                for _ in 0..2 {
                    let error = ds.get_all::<i32>(v, &mine).unwrap_err().to_string();
                    assert!(error.contains("the log of rank 2 is damaged"), "{error}");
                }
            }
        });
    }

    #[test]
    fn a_log_that_could_not_be_read_is_read_the_next_time() {
        let dir = tempfile::tempdir().unwrap();
        for index in ["local", "distributed"] {
            let path = dir.path().join(format!("{index}.esk"));
            crate::launch(4, |comm| {
                let hints = hints(&format!("esker_index={index}"));
                write(&comm, &path, "").0.close().unwrap();
                let options = OpenOptions::new().hints(hints).comm(comm.clone());
                let mut ds = Dataset::open_with(&path, options).unwrap();
                let (mine, expected) = slab(&*comm);
                let (meta, away) = (metadata_of(&path, 1), path.join("away"));
                comm.barrier().unwrap();
                if comm.rank() == 0 {
                    std::fs::rename(&meta, &away).unwrap();
                }
                comm.barrier().unwrap();
                assert!(ds.get_all::<i32>(VarId(0), &mine).is_err());
                if comm.rank() == 0 {
                    std::fs::rename(&away, &meta).unwrap();
                }
                comm.barrier().unwrap();
                assert_eq!(ds.get_all::<i32>(VarId(0), &mine).unwrap(), expected);
                ds.close().unwrap();
            });
        }
    }
}
