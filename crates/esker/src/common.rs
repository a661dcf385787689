//! What ranks that have a dataset together must have alike.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use esker_comm::{Communicator, Message};
use esker_format::Alignment;

use crate::base::{joined, parts_of, told_of_root};
use crate::error::{Error, Result};
use crate::held::Held;
use crate::hints::Hints;
use crate::options::FillMode;

/// What every rank must have alike: windows, places and who takes part are computed on each.
#[derive(Debug)]
pub(crate) struct Common {
    pub(crate) path: PathBuf,
    pub(crate) hints: Hints,
    pub(crate) align: Alignment,
    pub(crate) fill: FillMode,
    /// Whether new records are filled.
    pub(crate) fill_grown: bool,
    /// Whether the file may end before its last value.
    pub(crate) short_file: bool,
    pub(crate) writable: bool,
    /// Whether the path is a container's.
    pub(crate) is_container: bool,
    /// Whether all of it is one transaction.
    pub(crate) held: Option<Held>,
}

/// Rank 0's for everyone, or its error, and whether this rank is to write as it is. Rank 0 waits for nobody.
/// Collective.
pub(crate) fn same_everywhere(
    comm: &dyn Communicator,
    own: Result<Common>,
) -> Result<(Common, bool)> {
    if comm.size() == 1 {
        return Ok((own?, true));
    }
    let own = match own {
        Ok(own) => own,
        Err(error) => return told_of_root(comm, Err(error)).and(Err(Error::Garbled)),
    };
    let Common { path, mut hints, align, fill, fill_grown, short_file, writable, .. } = own;
    let (is_container, held) = (own.is_container, own.held);
    let fills = fill == FillMode::Fill;
    let numbers = [
        align.header,
        align.variable,
        align.records,
        align.header_room,
        align.record_room,
        align.records_from,
        align.never_back.into(),
        fills.into(),
        fill_grown.into(),
        short_file.into(),
        writable.into(),
        is_container.into(),
    ];
    let numbers = Message::from_u64s(&numbers);
    let pairs = hints.given();
    let held = Message::from_u64s(&Held::to_u64s(held.as_ref()));
    let parts = [path.as_os_str().as_bytes(), pairs.as_bytes(), &numbers[..], &held[..]];
    let parts = parts_of(&told_of_root(comm, Ok(joined(&parts)))?)?;
    let parts = <[Vec<u8>; 4]>::try_from(parts);
    let [path, pairs, numbers, held] = parts.map_err(|_| Error::Garbled)?;
    let held = Held::from_u64s(&Message::from(held).to_u64s());
    let path = PathBuf::from(OsString::from_vec(path));
    // From the same text on every rank, so that a value out of its bounds is refused by all.
    hints.become_others(&String::from_utf8_lossy(&pairs));
    let numbers = Message::from(numbers).to_u64s();
    let (sizes, switches) = numbers.split_at_checked(6).ok_or(Error::Garbled)?;
    let [header, variable, records, header_room, record_room, records_from] =
        <[u64; 6]>::try_from(sizes).map_err(|_| Error::Garbled)?;
    let switches: Vec<bool> = switches.iter().map(|n| *n == 1).collect();
    let [never_back, fills, fill_grown, short_file, for_writing, is_container] =
        <[bool; 6]>::try_from(switches).map_err(|_| Error::Garbled)?;
    let align =
        Alignment { header, variable, records, header_room, record_room, records_from, never_back };
    let fill = if fills { FillMode::Fill } else { FillMode::NoFill };
    let alike = writable == for_writing;
    let common =
        Common { path, hints, align, fill, fill_grown, short_file, writable, is_container, held };
    Ok((common, alike))
}
