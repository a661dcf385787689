//! Weaving: a table that says for each wanted element where it comes from.
//!
//! Irregular decompositions have runs of one or two elements, and hundreds of variables have the
//! same ones, so that what a run costs is what a read costs. A table is made of the runs once, and
//! from then on an element is one load and one store, whichever entry it is in, and a hole costs
//! what an element does.

use std::sync::Arc;

use esker_format::log::BLOCK;

use super::lay::{HOLE, Laying, Part, Want};
use super::layers::Layer;
use crate::bounded::Bounded;
use crate::mixed::{ByNumber, mix};

/// Runs of fewer elements on average are woven; a copy of longer ones is faster.
const SHORT: f64 = 16.0;

/// Payload that is loaded for one table, and how often what is wanted if that is more.
const MOST: u64 = 64 * 1024;
const TIMES: u64 = 3;

/// A read of fewer elements is not worth a table.
const FEW: u64 = 64;

/// Layers of one table.
const LAYERS: usize = 256;

/// Bytes before the loaded payloads, the first of which are the fill value.
const FRONT: usize = 16;

/// What a table was made of: the wanted elements, and of each layer what decides which of its
/// elements are wanted.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Key {
    width: u64,
    layers: Vec<(u32, u64, u64, u64, u64)>,
    wants: Vec<(u64, u64)>,
}

/// A table, for one window of one variable or of many.
#[derive(Debug)]
pub(crate) struct Weave {
    /// For each wanted element its place in the loaded bytes, in elements.
    table: Vec<u32>,
    loads: Vec<Load>,
    /// Bytes that are loaded, those in front included.
    bytes: usize,
}

/// Blocks of a layer's payload, and where they are loaded to.
#[derive(Debug)]
struct Load {
    layer: usize,
    from: u64,
    to: u64,
    at: usize,
}

/// Tables that were made lately, by a hash of what each was made of; `None` where none is worth it.
pub(crate) type Weaves = Bounded<u64, (Key, Option<Arc<Weave>>), ByNumber>;

impl Key {
    fn of(width: u64, layers: &[Layer], wants: &[Want]) -> Key {
        let layer = |layer: &Layer| {
            let found = &layer.found;
            (found.log, found.footprint, found.first, layer.before, found.len)
        };
        Key {
            width,
            layers: layers.iter().map(layer).collect(),
            wants: wants.iter().map(|want| (want.from, want.to)).collect(),
        }
    }

    /// Fast rather than good: what it finds is compared.
    fn hash(&self) -> u64 {
        let layers = self.layers.iter().fold(self.width, |hash, layer| {
            let (log, footprint, first, before, len) = *layer;
            [log.into(), footprint, first, before, len].into_iter().fold(hash, mix)
        });
        self.wants.iter().fold(layers, |hash, (from, to)| mix(mix(hash, *from), *to))
    }

    fn memory(&self) -> usize {
        size_of::<Key>() + size_of_val(&self.layers[..]) + size_of_val(&self.wants[..])
    }
}

impl Weave {
    /// The table of these wants; `None` if it would need much that is not wanted.
    fn new(width: u64, layers: &mut [Layer], wants: &[Want]) -> Option<Weave> {
        // As if the wanted elements stood one behind the other.
        let mut elements = 0;
        let dense = wants.iter().map(|want| {
            let at = elements * width;
            elements += want.to - want.from;
            Want { at, ..*want }
        });
        let dense: Vec<Want> = dense.collect();
        let mut parts: Vec<Part> = Vec::new();
        let mut table = vec![0; usize::try_from(elements).ok()?];
        let mut loads = Vec::new();
        let mut bytes = FRONT as u64;
        for (number, layer) in layers.iter_mut().enumerate() {
            let cursor = layer.cursor;
            let runs = layer.runs.clone()?;
            layer.parts(&runs, &dense, &mut parts);
            layer.cursor = cursor;
            let Some(first) = parts.first() else { continue };
            let from = first.from / BLOCK as u64 * BLOCK as u64;
            let mut end = first.from;
            // Seen from where the payload would begin.
            let base = (bytes / width).wrapping_sub(from / width);
            for part in &parts {
                if part.from > end + HOLE {
                    return None;
                }
                end = end.max(part.from + part.len);
                let target = (part.at / width) as usize;
                let places = table.get_mut(target..target + (part.len / width) as usize)?;
                let start = base.wrapping_add(part.from / width) as u32;
                places.iter_mut().zip(start..).for_each(|(place, n)| *place = n);
            }
            let to = end.next_multiple_of(BLOCK as u64).min(layer.found.len);
            loads.push(Load { layer: number, from, to, at: bytes as usize });
            bytes += to - from;
            if bytes > MOST.max(TIMES * elements * width) || bytes / width > u32::MAX.into() {
                return None;
            }
        }
        Some(Weave { table, loads, bytes: bytes as usize })
    }

    fn memory(&self) -> usize {
        size_of_val(&self.table[..]) + size_of_val(&self.loads[..]) + size_of::<Weave>()
    }
}

impl Laying<'_> {
    /// Whether runs are so short that tables are worth it.
    pub(super) fn is_for_weaving(&self, layers: &[Layer], wants: &[Want]) -> bool {
        let Some(first) = layers.first() else { return false };
        let alike =
            |layer: &Layer| !layer.found.encoded && layer.found.little == first.found.little;
        if self.over || self.view.has_under() || layers.len() > LAYERS || !layers.iter().all(alike)
        {
            return false;
        }
        let wanted: u64 = wants.iter().map(|want| want.to - want.from).sum();
        let (Some(low), Some(high)) = (wants.first(), wants.last()) else { return false };
        if (high.to - low.from) / TIMES > wanted {
            return false;
        }
        let elements: u64 = layers.iter().map(|layer| layer.found.elements).sum();
        let count = |layer: &Layer| layer.runs.as_ref().map_or(0, |runs| runs.count());
        let runs: f64 = layers.iter().map(|layer| count(layer) as f64).sum();
        let mean = (elements as f64 / runs).min(wanted as f64 / wants.len() as f64);
        wanted >= FEW && mean < SHORT
    }

    /// Lays a window by a table. Gives whether it has: not if much would be read in vain.
    pub(super) fn weave(
        &self,
        layers: &mut [Layer],
        wants: &[Want],
        out: &mut [u8],
    ) -> esker_store::Result<bool> {
        let width = self.width();
        let index = self.index;
        let key = Key::of(width, layers, wants);
        let (hash, budget) = (key.hash(), index.weaves_budget());
        let known =
            index.weaves().get(&hash).filter(|kept| kept.0 == key).map(|kept| kept.1.clone());
        let weave = known.unwrap_or_else(|| {
            let made = Weave::new(width, layers, wants).map(Arc::new);
            let memory = key.memory() + made.as_ref().map_or(0, |weave| weave.memory());
            if memory as u64 <= budget {
                index.weaves().put(hash, (key, made.clone()), memory as u64, budget);
            }
            made
        });
        let Some(weave) = weave else { return Ok(false) };
        let mut loaded = self.view.take_scratch(weave.bytes);
        let reversed = layers.first().is_some_and(|layer| self.is_reversed(&layer.found));
        let mut fill = self.fill();
        if reversed {
            fill.reverse();
        }
        loaded[..fill.len()].copy_from_slice(&fill);
        for Load { layer, from, to, at } in &weave.loads {
            let target = &mut loaded[*at..*at + (to - from) as usize];
            self.read_checked(&layers[*layer].found, *from, target)?;
        }
        let mut table = &weave.table[..];
        for want in wants {
            let (now, later) = table.split_at(((want.to - want.from) as usize).min(table.len()));
            table = later;
            let at = want.at as usize;
            let target = &mut out[at..at + now.len() * width as usize];
            match width {
                1 => gather::<1>(now, &loaded, target, reversed),
                2 => gather::<2>(now, &loaded, target, reversed),
                4 => gather::<4>(now, &loaded, target, reversed),
                _ => gather::<8>(now, &loaded, target, reversed),
            }
        }
        self.view.give_scratch(loaded);
        Ok(true)
    }
}

/// Puts the elements at these places of `source`, one behind the other, into `target`.
fn gather<const W: usize>(places: &[u32], source: &[u8], target: &mut [u8], reversed: bool) {
    let (source, _) = source.as_chunks::<W>();
    let (target, _) = target.as_chunks_mut::<W>();
    let each = target.iter_mut().zip(places);
    match reversed {
        true => each.for_each(|(target, place)| {
            let mut element = source.get(*place as usize).copied().unwrap_or([0; W]);
            element.reverse();
            *target = element;
        }),
        false => each.for_each(|(target, place)| {
            *target = source.get(*place as usize).copied().unwrap_or([0; W]);
        }),
    }
}

#[cfg(test)]
mod tests {
    use crate::{CreateOptions, Dataset, DimLen, ExternalType, Layout, Selection, VarId};

    const LEN: u64 = 90_000;

    /// Short runs of a rank's, some beside each other, some over those of other ranks.
    fn runs(rank: u64, turn: u64) -> (Vec<u64>, Vec<u64>) {
        let (mut starts, mut counts) = (Vec::new(), Vec::new());
        let mut at = rank + turn * 7;
        let mut seed = rank * 31 + turn * 17 + 1;
        while at + 4 < LEN {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let len = 1 + (seed >> 60) % 3;
            starts.push(at);
            counts.push(len);
            at += len + (seed >> 40) % 4;
        }
        (starts, counts)
    }

    #[test]
    fn short_runs_are_woven_and_the_newest_wins() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run.esk");
        let types =
            [ExternalType::Byte, ExternalType::Short, ExternalType::Int, ExternalType::Double];
        crate::launch(3, |comm| {
            let options = CreateOptions::new().layout(Layout::Log).comm(comm.clone());
            let mut def = Dataset::create(&path, options).unwrap();
            let x = def.add_dim("x", DimLen::Fixed(LEN)).unwrap();
            let vars = types.map(|ty| def.add_var(&format!("{ty:?}"), ty, &[x]).unwrap());
            let mut ds = def.enddef().unwrap();
            for turn in 0..2 {
                let rank = comm.rank() as u64;
                let (starts, counts) = runs(rank, turn);
                let elements: u64 = counts.iter().sum();
                let selection = Selection::list(1, starts, counts);
                let data: Vec<i8> = (0..elements).map(|i| value(rank, turn, i)).collect();
                for v in vars {
                    ds.put_all(v, &selection, &data).unwrap();
                }
            }
            ds.close().unwrap();
        });
        let mut expected: Vec<Option<i8>> = vec![None; LEN as usize];
        for turn in 0..2 {
            for rank in 0..3 {
                let (starts, counts) = runs(rank, turn);
                let places = starts.iter().zip(counts).flat_map(|(start, n)| *start..start + n);
                for (i, place) in (0..).zip(places) {
                    expected[place as usize] = Some(value(rank, turn, i));
                }
            }
        }
        assert!(expected.contains(&None));
        let ds = Dataset::open(&path).unwrap();
        let fills = [-127.0, -32_767.0, -2_147_483_647.0, f64::from_bits(0x479e_0000_0000_0000)];
        for (number, fill) in fills.into_iter().enumerate() {
            let v = VarId(number);
            let same = |found: &[f64], from: usize| {
                let expected = expected[from..].iter().map(|e| e.map_or(fill, f64::from));
                found.iter().zip(expected).all(|(a, b)| *a == b)
            };
            // Through a buffer in the file's order, or straight into memory in the machine's.
            let found = ds.get::<f64>(v, &Selection::all()).unwrap();
            assert!(found.len() as u64 == LEN && same(&found, 0), "{number}");
            let part = Selection::slab(&[77], &[40_000]);
            let found = ds.get_values(v, &part).unwrap();
            assert!(same(&ds.get::<f64>(v, &part).unwrap(), 77), "{number}");
            let (mut as_doubles, bytes) = (Vec::new(), found.native_bytes());
            match found.ty() {
                ExternalType::Byte => as_doubles.extend(bytes.iter().map(|b| f64::from(*b as i8))),
                ExternalType::Short => as_doubles
                    .extend(bytes.as_chunks().0.iter().map(|b| f64::from(i16::from_ne_bytes(*b)))),
                ExternalType::Int => as_doubles
                    .extend(bytes.as_chunks().0.iter().map(|b| f64::from(i32::from_ne_bytes(*b)))),
                _ => as_doubles.extend(bytes.as_chunks().0.iter().map(|b| f64::from_ne_bytes(*b))),
            }
            assert!(same(&as_doubles, 77), "{number}");
        }
        let container = ds.layout.get::<crate::container::Container>().unwrap();
        assert!(container.view.state().index.weaves().memory() > 0, "nothing was woven");
    }

    fn value(rank: u64, turn: u64, i: u64) -> i8 {
        ((rank * 5 + turn * 11 + i) % 120) as i8
    }
}
