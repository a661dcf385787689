//! Lists of blocks (`varn`).
//!
//! There may be millions of blocks, and programs give the same list for hundreds of variables: nothing is allocated for
//! a block, and a list that was given before is only compared.

use std::ffi::c_int;

use esker::Selection;

use crate::codes::*;
use crate::file::File;
use crate::transfer::{Chosen, Offset};

/// Lists that are remembered: programs write over a few decompositions in turn.
const REMEMBERED: usize = 8;

/// Bytes of all that are.
const MOST: usize = 32 << 20;

/// Shorter ones are as quickly made again.
const WORTH: usize = 16;

/// The lists of a call: for each block a place with a number per dimension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Places {
    starts: *const *const Offset,
    counts: *const *const Offset,
    num: usize,
}

impl Places {
    /// The place of a block in one of the lists; null if there is none.
    ///
    /// # Safety
    ///
    /// A list that is not null has `num` places, and `block` is one of them.
    unsafe fn of(lists: *const *const Offset, block: usize) -> *const Offset {
        match lists.is_null() {
            true => std::ptr::null(),
            // SAFETY: the caller vouches for it; C may not align it.
            false => unsafe { lists.add(block).read_unaligned() },
        }
    }
}

/// What a list means the same in, and how it was checked.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Against {
    shape: Vec<i64>,
    is_record: bool,
    reads: bool,
}

/// Lists that the program gave, found by where they are and then compared: programs change what is there.
#[derive(Debug, Default)]
pub(crate) struct Lists {
    /// The last one first.
    known: Vec<Known>,
}

#[derive(Debug)]
struct Known {
    places: Places,
    against: Against,
    selection: Selection,
    elements: u64,
}

impl Known {
    fn bytes(&self) -> usize {
        let numbers =
            self.selection.as_list().map_or(0, |(starts, counts)| starts.len() + counts.len());
        numbers * size_of::<u64>()
    }
}

// SAFETY: the pointers are compared with others, and never followed from here.
unsafe impl Send for Lists {}

impl Lists {
    /// The same list, if it was given before and is what it was.
    ///
    /// # Safety
    ///
    /// The lists are as the call in C says.
    unsafe fn find(&mut self, places: Places, against: &Against) -> Option<(Selection, u64)> {
        let same = |known: &Known| known.places == places && known.against == *against;
        let found = self.known.iter().position(same)?;
        let known = self.known.remove(found);
        // SAFETY: the caller vouches for the lists.
        if !unsafe { is_still(&known.selection, places, against.shape.len()) } {
            return None;
        }
        let chosen = (known.selection.clone(), known.elements);
        self.known.insert(0, known);
        Some(chosen)
    }

    fn keep(&mut self, places: Places, against: Against, selection: &Selection, elements: u64) {
        if places.num < WORTH {
            return;
        }
        self.known.insert(0, Known { places, against, selection: selection.clone(), elements });
        self.known.truncate(REMEMBERED);
        let mut held = 0;
        let mut fits = |known: &Known| {
            held += known.bytes();
            held <= MOST
        };
        let fit = self.known.iter().take_while(|known| fits(known)).count();
        self.known.truncate(fit);
    }
}

/// Whether a list has these numbers.
unsafe fn is_still(selection: &Selection, places: Places, rank: usize) -> bool {
    let Some((starts, counts)) = selection.as_list() else { return false };
    if starts.len() != places.num * rank || counts.len() != starts.len() {
        return false;
    }
    let blocks = starts.chunks_exact(rank).zip(counts.chunks_exact(rank));
    for (block, (start, count)) in blocks.enumerate() {
        // SAFETY: the caller vouches for the lists, each null or with a number per dimension; C may not align them.
        let same = unsafe {
            let has = |place: *const Offset, numbers: &[u64]| {
                let mut each = numbers.iter().enumerate();
                each.all(|(d, n)| place.add(d).read_unaligned() as u64 == *n)
            };
            let start_place = Places::of(places.starts, block);
            let count_place = Places::of(places.counts, block);
            !start_place.is_null()
                && has(start_place, start)
                && match count_place.is_null() {
                    true => count.iter().all(|n| *n == 1),
                    false => has(count_place, count),
                }
        };
        if !same {
            return false;
        }
    }
    true
}

impl File {
    /// Checks a list of blocks and makes a selection of it.
    ///
    /// # Safety
    ///
    /// The lists are as the call in C says.
    pub(crate) unsafe fn choose_list(
        &mut self,
        varid: c_int,
        reads: bool,
        num: c_int,
        starts: *const *const Offset,
        counts: *const *const Offset,
    ) -> Result<Chosen> {
        let nothing = Chosen { selection: Selection::none(), elements: 0, map: None };
        if num == 0 {
            return Ok(nothing);
        }
        let (shape, is_record) = self.shape(varid)?;
        let rank = shape.len();
        let num = usize::try_from(num).map_err(|_| NC_EINVAL)?;
        if rank == 0 {
            if num != 1 {
                return Err(NC_EINVAL);
            }
            return Ok(Chosen { selection: Selection::slab(&[], &[]), elements: 1, map: None });
        }
        if starts.is_null() {
            return Err(NC_ENULLSTART);
        }
        let places = Places { starts, counts, num };
        let mut against = Against { shape, is_record, reads };
        if is_record && !reads {
            // A put may make records.
            against.shape[0] = 0;
        }
        // SAFETY: the caller vouches for the lists.
        if let Some((selection, elements)) = unsafe { self.lists.find(places, &against) } {
            return Ok(Chosen { selection, elements, map: None });
        }
        let (mut start_list, mut count_list) =
            (Vec::with_capacity(num * rank), Vec::with_capacity(num * rank));
        let mut elements = 0u64;
        let (mut start, mut count) = (vec![0i64; rank], vec![1i64; rank]);
        // SAFETY: the lists have `num` places, each null or with a number per dimension.
        let read = |lists: *const *const Offset, block: usize, into: &mut [i64]| unsafe {
            let list = Places::of(lists, block);
            if list.is_null() {
                return false;
            }
            into.iter_mut().enumerate().for_each(|(d, n)| *n = list.add(d).read_unaligned());
            true
        };
        for block in 0..num {
            if !read(starts, block, &mut start) {
                return Err(NC_ENULLSTART);
            }
            let counted = read(counts, block, &mut count);
            if !counted {
                count.fill(1);
            }
            let given = counted.then_some(&count[..]);
            let shape = (&against.shape[..], is_record);
            self.check_slab(shape, reads, Some(&start), given, None, !counted)?;
            let product = count.iter().try_fold(1u64, |n, len| n.checked_mul(*len as u64));
            let product = product.ok_or(NC_EINTOVERFLOW)?;
            if product == 0 {
                continue;
            }
            elements = elements.checked_add(product).ok_or(NC_EINTOVERFLOW)?;
            start_list.extend(start.iter().map(|n| *n as u64));
            count_list.extend(count.iter().map(|n| *n as u64));
        }
        if elements == 0 {
            return Ok(nothing);
        }
        let selection = Selection::list(rank, start_list, count_list);
        self.lists.keep(places, against, &selection, elements);
        Ok(Chosen { selection, elements, map: None })
    }
}
