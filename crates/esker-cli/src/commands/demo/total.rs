//! What all ranks did together: the slowest rank's times, everyone's counts.

use std::sync::Arc;
use std::time::Duration;

use esker::{Communicator, Phases, Report, Strategy};
use esker_comm::{ReduceOp, Reduction, Result};

use super::life::Deeds;

/// The deeds of all ranks.
#[derive(Debug)]
pub(super) struct Total {
    pub(super) ranks: usize,
    /// Bytes of values written, and read back.
    pub(super) bytes: u64,
    pub(super) compared: u64,
    /// Each activity's time on the rank where it was longest.
    pub(super) spent: [(&'static str, Duration); 5],
    pub(super) written: Moved,
    pub(super) read: Moved,
}

/// How all ranks' values were moved one way.
#[derive(Debug)]
pub(super) struct Moved {
    pub(super) strategy: Strategy,
    pub(super) aggregators: u64,
    /// Collective calls.
    pub(super) calls: u64,
    pub(super) runs: u64,
    pub(super) messages: u64,
    pub(super) message_bytes: u64,
    /// Reads and writes of the file.
    pub(super) system_calls: u64,
    /// The longest of any rank.
    pub(super) phases: Phases,
}

impl Total {
    /// Adds up; every rank gets the sum. Collective.
    pub(super) fn of(comm: &Arc<dyn Communicator>, deeds: &Deeds) -> Result<Total> {
        let Deeds { simulate, halo, write, sync, read, writing, reading, compared } = deeds;
        let mut sums = [writing.bytes, *compared];
        comm.all_reduce(Reduction::U64(&mut sums), ReduceOp::Sum)?;
        let mut times = [simulate, halo, write, sync, read].map(|t| t.as_nanos() as u64);
        comm.all_reduce(Reduction::U64(&mut times), ReduceOp::Max)?;
        let names = ["simulate", "wait", "write", "sync", "read back"];
        Ok(Total {
            ranks: comm.size(),
            bytes: sums[0],
            compared: sums[1],
            spent: std::array::from_fn(|i| (names[i], Duration::from_nanos(times[i]))),
            written: Moved::of(comm, writing, writing.write_strategy)?,
            read: Moved::of(comm, reading, reading.read_strategy)?,
        })
    }
}

impl Moved {
    fn of(comm: &Arc<dyn Communicator>, report: &Report, strategy: Strategy) -> Result<Moved> {
        let system_calls = report.writes + report.reads;
        let mut sums = [report.runs, report.messages, report.message_bytes, system_calls];
        comm.all_reduce(Reduction::U64(&mut sums), ReduceOp::Sum)?;
        let mut times = report.phases.named().map(|(_, time)| time.as_nanos() as u64);
        comm.all_reduce(Reduction::U64(&mut times), ReduceOp::Max)?;
        let [plan, agree, convert, exchange, write, read, sync] = times.map(Duration::from_nanos);
        let [runs, messages, message_bytes, system_calls] = sums;
        Ok(Moved {
            strategy,
            aggregators: report.aggregators,
            calls: report.calls,
            runs,
            messages,
            message_bytes,
            system_calls,
            phases: Phases { plan, agree, convert, exchange, write, read, sync },
        })
    }
}
