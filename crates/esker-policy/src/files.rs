//! Encoded patches, in their order, cut into files of like size.
//!
//! What is written last decides when all is written, so the largest file should be as small as it can be: a cut of a
//! sequence of sizes into at most F runs. With a capacity given, filling one file after the other to the brim needs the
//! fewest files; so a capacity is looked for that just suffices. Sizes lie with *homes*, each with a contiguous share of
//! the order, and nobody has them all. A [`Trial`] of many capacities goes once through the homes as a [`Carry`] for each
//! capacity, and leaves an interval that is [`TRIALS`] times shorter.
//!
//! ```
//! use esker_policy::files::{cut, largest};
//!
//! let sizes = [9, 1, 1, 1, 6, 6];
//! let starts = cut(3, &sizes);
//! assert_eq!(starts, [0, 1, 5]);
//! assert_eq!(largest(&starts, &sizes), 9);
//! ```

/// Capacities that are tried at once.
pub const TRIALS: usize = 64;

/// What all homes say of their sizes, added up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Total {
    /// Patches.
    pub patches: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The largest one's.
    pub largest: u64,
}

impl Total {
    /// Of one home.
    pub fn of(sizes: &[u64]) -> Total {
        let largest = sizes.iter().copied().max().unwrap_or(0);
        let bytes = sizes.iter().fold(0, |sum: u64, &size| sum.saturating_add(size));
        Total { patches: sizes.len() as u64, bytes, largest }
    }

    /// Of two homes together.
    pub fn and(self, other: Total) -> Total {
        Total {
            patches: self.patches + other.patches,
            bytes: self.bytes.saturating_add(other.bytes),
            largest: self.largest.max(other.largest),
        }
    }
}

/// How far the files are filled where a home's share begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Carry {
    /// Patches before.
    pub patch: u64,
    /// Files that were begun.
    pub files: u64,
    /// Bytes of the last one.
    pub filled: u64,
}

/// The rule by which files are filled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Filling {
    /// Patches of all homes.
    pub patches: u64,
    /// Files there shall be.
    pub files: u64,
    /// Bytes that a file may have.
    pub capacity: u64,
}

impl Filling {
    /// Whether this patch begins a file: the last one would overflow, or there are only as many patches left as
    /// files that nobody has begun.
    fn begins(&self, carry: &Carry, size: u64) -> bool {
        let left = self.patches.saturating_sub(carry.patch);
        carry.files == 0
            || carry.filled.saturating_add(size) > self.capacity
            || left <= self.files.saturating_sub(carry.files)
    }

    /// Goes through a home's share; tells each patch that begins a file.
    pub fn fill(&self, sizes: &[u64], carry: &mut Carry, mut begin: impl FnMut(u64)) {
        for &size in sizes {
            if self.begins(carry, size) {
                begin(carry.patch);
                carry.files += 1;
                carry.filled = 0;
            }
            carry.filled = carry.filled.saturating_add(size);
            carry.patch += 1;
        }
    }
}

/// The search for the least capacity. All homes make the same steps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trial {
    patches: u64,
    files: u64,
    /// No less suffices.
    least: u64,
    /// So much suffices.
    enough: u64,
}

impl Trial {
    /// So many files, if there are as many patches.
    pub fn new(files: u64, total: Total) -> Trial {
        let files = files.clamp(1, total.patches.max(1));
        let mean = total.bytes.div_ceil(files);
        let least = mean.max(total.largest);
        let enough = mean.saturating_add(total.largest).max(least);
        Trial { patches: total.patches, files, least, enough }
    }

    /// The number of files that there will be.
    pub fn files(&self) -> u64 {
        self.files
    }

    /// The capacities to try, or none if what suffices is within a five-hundredth of the least.
    pub fn capacities(&self) -> Vec<u64> {
        let open = self.enough - self.least;
        if open <= self.least / 500 {
            return Vec::new();
        }
        let steps = (TRIALS as u64).min(open);
        let at =
            |i: u64| self.least + (u128::from(open) * u128::from(i) / u128::from(steps)) as u64;
        (0..steps).map(at).collect()
    }

    /// The rule with this capacity.
    pub fn filling(&self, capacity: u64) -> Filling {
        Filling { patches: self.patches, files: self.files, capacity }
    }

    /// Takes what the last home has: for each of the capacities, the files that it needed.
    pub fn learn(&mut self, capacities: &[u64], ends: &[Carry]) {
        let suffices = |end: &Carry| end.files <= self.files;
        let first = ends.iter().position(suffices).unwrap_or(ends.len());
        if let Some(&capacity) = capacities.get(first) {
            self.enough = capacity;
        }
        if let Some(&capacity) = first.checked_sub(1).and_then(|last| capacities.get(last)) {
            self.least = capacity + 1;
        }
        self.enough = self.enough.max(self.least);
    }

    /// The rule by which files are filled in the end.
    pub fn done(&self) -> Filling {
        self.filling(self.enough)
    }
}

/// What a cut takes of the home that has most, and of the homes together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Effort {
    /// Times that carries went through all homes.
    pub passes: u64,
    /// Bytes of the largest share of sizes, carries and starts.
    pub memory: u64,
}

/// The first patch of each file, for sizes that lie with homes, each a share of the order.
pub fn cut_by_homes(files: u64, homes: &[&[u64]]) -> (Vec<u64>, Effort) {
    let total = homes.iter().fold(Total::default(), |sum, sizes| sum.and(Total::of(sizes)));
    if total.patches == 0 {
        return (Vec::new(), Effort::default());
    }
    let mut trial = Trial::new(files, total);
    let mut passes = 2;
    loop {
        let capacities = trial.capacities();
        if capacities.is_empty() {
            break;
        }
        passes += 1;
        let mut carries = vec![Carry::default(); capacities.len()];
        for sizes in homes {
            for (carry, &capacity) in carries.iter_mut().zip(&capacities) {
                trial.filling(capacity).fill(sizes, carry, |_| ());
            }
        }
        trial.learn(&capacities, &carries);
    }
    let (mut starts, mut carry) = (Vec::new(), Carry::default());
    for sizes in homes {
        trial.done().fill(sizes, &mut carry, |patch| starts.push(patch));
    }
    let share = homes.iter().map(|sizes| sizes.len() as u64).max().unwrap_or(0);
    let carries = (TRIALS * size_of::<Carry>()) as u64;
    (starts, Effort { passes, memory: 8 * (share + trial.files) + carries })
}

/// The first patch of each file. There are `files` of them if there are as many patches, and none is without one.
/// The largest is within a fiftieth of what it is in the best cut.
pub fn cut(files: u64, sizes: &[u64]) -> Vec<u64> {
    cut_by_homes(files, &[sizes]).0
}

/// The bytes of each file.
pub fn bytes_of_files(starts: &[u64], sizes: &[u64]) -> Vec<u64> {
    let ends = starts.iter().skip(1).copied().chain([sizes.len() as u64]);
    let place = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(sizes.len());
    starts
        .iter()
        .zip(ends)
        .map(|(&start, end)| sizes.get(place(start)..place(end)).unwrap_or(&[]).iter().sum())
        .collect()
}

/// The bytes of the largest file.
pub fn largest(starts: &[u64], sizes: &[u64]) -> u64 {
    bytes_of_files(starts, sizes).into_iter().max().unwrap_or(0)
}

/// As many patches for each file, whatever their sizes.
pub fn equal_counts(files: u64, sizes: &[u64]) -> Vec<u64> {
    let patches = sizes.len() as u64;
    let files = files.clamp(1, patches.max(1));
    let start = |file: u64| (u128::from(file) * u128::from(patches) / u128::from(files)) as u64;
    (0..if patches == 0 { 0 } else { files }).map(start).collect()
}

/// The rule of seeds/001 §IV-C: the next file when the running total is above what is left over the files that are left.
/// For comparison: it may leave files without patches, and be worse than equal counts.
pub fn paper(files: u64, sizes: &[u64]) -> Vec<u64> {
    let files = files.max(1);
    let mut left: u64 = sizes.iter().sum();
    let (mut starts, mut running) = (Vec::new(), 0);
    let mut begins = true;
    for (patch, &size) in sizes.iter().enumerate() {
        if begins {
            starts.push(patch as u64);
            begins = false;
        }
        running += size;
        let files_left = files - (starts.len() as u64 - 1);
        if files_left > 1 && u128::from(running) * u128::from(files_left) > u128::from(left) {
            (left, running, begins) = (left - running, 0, true);
        }
    }
    starts
}

/// The best cut, by one who has all sizes. For comparison.
pub fn optimal(files: u64, sizes: &[u64]) -> Vec<u64> {
    let total = Total::of(sizes);
    if total.patches == 0 {
        return Vec::new();
    }
    let trial = Trial::new(files, total);
    let (mut least, mut enough) = (trial.least, trial.enough);
    let fill = |capacity: u64| {
        let mut starts = Vec::new();
        trial.filling(capacity).fill(sizes, &mut Carry::default(), |patch| starts.push(patch));
        starts
    };
    while least < enough {
        let middle = least + (enough - least) / 2;
        if fill(middle).len() as u64 <= trial.files {
            enough = middle;
        } else {
            least = middle + 1;
        }
    }
    fill(enough)
}
