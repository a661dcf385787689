//! What happens by chance, the same on every rank.

use esker::{Hints, MemoryLayout, Selection};

/// A small generator with a good spread; the same on every rank.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Dice {
        Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0xD1B5_4A32_D192_ED03)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `n`.
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.next() % n.max(1)
    }

    pub(crate) fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i as u64 + 1) as usize);
        }
    }
}

/// A hyperslab: start, count, stride.
pub(crate) type Slab = (Vec<u64>, Vec<u64>, Vec<u64>);

/// The linear numbers of a slab's elements.
pub(crate) fn elements((start, count, stride): &Slab, shape: &[u64]) -> Vec<u64> {
    let mut out = vec![0];
    for d in 0..shape.len() {
        let mut next = Vec::new();
        for base in &out {
            for i in 0..count[d] {
                next.push(base * shape[d] + start[d] + i * stride[d]);
            }
        }
        out = next;
    }
    out
}

pub(crate) fn random_slab(dice: &mut Dice, shape: &[u64]) -> Slab {
    let mut slab = (Vec::new(), Vec::new(), Vec::new());
    for len in shape {
        let start = dice.below(*len);
        let stride = if dice.one_in(3) { 1 + dice.below(3) } else { 1 };
        let most = (len - start).div_ceil(stride);
        let count = if dice.one_in(2) { most } else { 1 + dice.below(most) };
        slab.0.push(start);
        slab.1.push(count);
        slab.2.push(stride);
    }
    slab
}

/// Cuts a slab along one of its dimensions into one part for each rank; some may be empty.
pub(crate) fn split(dice: &mut Dice, slab: &Slab, ranks: u64) -> Vec<Option<Slab>> {
    if slab.0.is_empty() {
        let owner = dice.below(ranks);
        return (0..ranks).map(|rank| (rank == owner).then(|| slab.clone())).collect();
    }
    let d = dice.below(slab.0.len() as u64) as usize;
    let interleaved = dice.one_in(2);
    let (start, count, stride) = (slab.0[d], slab.1[d], slab.2[d]);
    (0..ranks)
        .map(|rank| {
            let mut part = slab.clone();
            if interleaved {
                part.0[d] = start + rank * stride;
                part.1[d] = count.saturating_sub(rank).div_ceil(ranks);
                part.2[d] = stride * ranks;
            } else {
                let (from, to) = (count * rank / ranks, count * (rank + 1) / ranks);
                part.0[d] = start + from * stride;
                part.1[d] = to - from;
            }
            (part.1[d] > 0).then_some(part)
        })
        .collect()
}

/// What one rank moves: the selection, its elements in the selection's order, and its shape.
pub(crate) struct Chosen {
    pub(crate) selection: Selection,
    pub(crate) order: Vec<u64>,
    pub(crate) shape: Vec<u64>,
}

/// A slab as one hyperslab, or as a list of its elements in any order.
pub(crate) fn chosen(dice: &mut Dice, slab: &Slab, shape: &[u64]) -> Chosen {
    let mut order = elements(slab, shape);
    if !shape.is_empty() && dice.one_in(3) {
        dice.shuffle(&mut order);
        let mut starts = Vec::new();
        for element in &order {
            let mut rest = *element;
            let mut index = vec![0; shape.len()];
            for d in (0..shape.len()).rev() {
                index[d] = rest % shape[d];
                rest /= shape[d];
            }
            starts.extend(index);
        }
        let selection = Selection::list(shape.len(), starts, Vec::new());
        let shape = vec![order.len() as u64];
        return Chosen { selection, order, shape };
    }
    let selection = Selection::strided(&slab.0, &slab.1, &slab.2);
    Chosen { selection, order, shape: slab.1.clone() }
}

/// Nothing, in one of its spellings.
pub(crate) fn nothing(dice: &mut Dice, shape: &[u64]) -> Selection {
    if shape.is_empty() || dice.one_in(2) {
        return Selection::none();
    }
    let mut count = vec![1; shape.len()];
    count[dice.below(shape.len() as u64) as usize] = 0;
    Selection::slab(&vec![0; shape.len()], &count)
}

/// How elements lie in memory: the layout, each element's place, the length of the buffer.
pub(crate) struct Placed {
    pub(crate) layout: MemoryLayout,
    pub(crate) places: Vec<usize>,
    pub(crate) len: usize,
}

pub(crate) fn dense(count: usize) -> Placed {
    Placed { layout: MemoryLayout::dense(), places: (0..count).collect(), len: count }
}

/// Memory with the dimensions in any order, some of them backwards, with gaps between.
pub(crate) fn placed(dice: &mut Dice, shape: &[u64]) -> Placed {
    let count: u64 = shape.iter().product();
    if count == 0 || dice.one_in(2) {
        return dense(count as usize);
    }
    let mut fastest_first: Vec<usize> = (0..shape.len()).collect();
    dice.shuffle(&mut fastest_first);
    let mut strides = vec![0isize; shape.len()];
    let mut offset = dice.below(3) as usize;
    let mut step = 1 + dice.below(3) as usize;
    for d in fastest_first {
        let len = shape[d] as usize;
        strides[d] = step as isize;
        if dice.one_in(3) {
            offset += (len - 1) * step;
            strides[d] = -strides[d];
        }
        step = step * len + dice.below(3) as usize;
    }
    let mut places = Vec::new();
    for element in 0..count {
        let mut rest = element;
        let mut place = offset as isize;
        for d in (0..shape.len()).rev() {
            place += (rest % shape[d]) as isize * strides[d];
            rest /= shape[d];
        }
        places.push(place as usize);
    }
    let len = places.iter().max().map_or(0, |p| p + 1) + dice.below(3) as usize;
    Placed { layout: MemoryLayout::strided(offset, shape, &strides), places, len }
}

pub(crate) fn random_hints(dice: &mut Dice, ranks: u64) -> Hints {
    let mut hints = Hints::default();
    if dice.one_in(2) {
        hints.set("cb_buffer_size", &(16 + dice.below(3000)).to_string());
        hints.set("striping_unit", &(1 + dice.below(200)).to_string());
    }
    if dice.one_in(2) {
        hints.set("cb_nodes", &(1 + dice.below(ranks)).to_string());
    }
    let switch = ["enable", "disable", "automatic"];
    for name in ["romio_cb_write", "romio_cb_read", "romio_ds_write", "romio_ds_read"] {
        hints.set(name, switch[dice.below(3) as usize]);
    }
    if dice.one_in(3) {
        hints.set("ind_rd_buffer_size", &(8 + dice.below(200)).to_string());
        hints.set("ind_wr_buffer_size", &(8 + dice.below(200)).to_string());
        hints.set("esker_sieve_hole", &(1 + dice.below(60)).to_string());
    }
    // Memory of the node for two buffers of small windows, for one, or for none. What comes by chance later stays what it
    // was before there was this hint.
    let mut apart = Dice(dice.0 ^ 16);
    match apart.below(4) {
        0 => {}
        1 => hints.set("esker_node_memory", "disable"),
        _ => hints.set("esker_node_memory", &(4096 + apart.below(70_000)).to_string()),
    }
    if apart.below(3) == 0 {
        hints.set("esker_gather_nodes", "enable");
    }
    assert!(hints.warnings().is_empty(), "{:?}", hints.warnings());
    hints
}
