//! The kernels: how real programs cut their arrays among ranks.
//!
//! Each is a pure function of the number of ranks and a [`Scale`] to a [`Plan`].

mod blocks;
mod btio;
mod chombo;
mod chunks;
mod e3sm;
mod flash;
mod hacc;
mod land;
mod pandana;

pub use chombo::BoxList;
pub use e3sm::{Case, DecompositionMap, MapError};

use std::path::Path;

use thiserror::Error;

use crate::plan::{Calls, Data, Dim, Element, Plan, RankPlan, Request, Slabs, Var};

/// A way of cutting arrays among ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kernel {
    /// One array, a contiguous block of it on each rank; one blocking call.
    Contiguous,
    /// IOR's strided pattern: short transfers of the ranks take turns; one blocking call.
    Strided,
    /// The same pattern with an independent call for each transfer.
    StridedCalls,
    /// A matrix cut into rectangles; one blocking call.
    Checkerboard,
    /// S3D's checkpoint: four 3-D fields of 1, 1, 3 and 11 components in blocks, queued.
    Blocks3d,
    /// FLASH's checkpoint: 24 variables of 80 to 82 blocks of 16^3 on each rank.
    Flash,
    /// BTIO: cells along the diagonals of a cube, 5 components, a record at a time, queued.
    Btio,
    /// E3SM's atmosphere: 414 variables, lists of runs of about two elements, queued.
    E3smF,
    /// E3SM's ocean: 52 variables, lists of runs of about a hundred elements, queued.
    E3smG,
    /// A synthetic case like E3SM's land: 560 variables, 240 records, lists of short runs, queued.
    E3smI,
    /// A checkerboard of square blocks, a quarter of a chunk each, of random bits; one blocking
    /// call.
    Random100,
    /// The same of which half are zeros.
    Random50,
    /// The same of which nine tenths are zeros.
    Random10,
    /// Pandana: 108 one-dimensional variables of very different lengths, to which each rank
    /// appends its part, queued.
    Pandana,
    /// Chombo's benchmark: three levels of small boxes of one component, each rank's along a curve, in lexicographic order in the file;
    /// queued.
    Chombo,
    /// The same with an independent call for each box.
    ChomboCalls,
    /// Boxes of 32^3 cells and ten components, queued.
    Chombo32,
    /// HACC's checkpoint: nine variables of particles, a transaction for each with checksums of the ranks' parts.
    Hacc,
}

/// What was recorded in a real run, for the kernels that need it.
#[derive(Debug)]
pub enum Recorded {
    /// E3SM's decomposition maps.
    Map(DecompositionMap),
    /// The boxes of an AMR run.
    Boxes(BoxList),
}

/// How large a kernel is made. What is not given is the kernel's own choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scale {
    /// Bytes in the file, about; E3SM's recorded kernels have records instead.
    pub bytes: Option<u64>,
    /// Records of the E3SM kernels.
    pub records: Option<u64>,
    /// Bytes of one transfer of the strided kernels.
    pub transfer: u64,
}

impl Default for Scale {
    fn default() -> Scale {
        Scale { bytes: None, records: None, transfer: 4096 }
    }
}

impl Scale {
    fn bytes(&self) -> u64 {
        self.bytes.unwrap_or(64 << 20)
    }
}

/// Why there is no plan.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum KernelError {
    /// It needs a decomposition map that was not given.
    #[error(
        "the kernel needs E3SM's decomposition map {0}; name its folder by --maps or ESKER_SHARED_DATA"
    )]
    NoMap(&'static str),
    /// It needs a list of boxes that was not given.
    #[error(
        "the kernel needs the boxes of a run, {0}; name their folder by --maps or ESKER_SHARED_DATA"
    )]
    NoBoxes(&'static str),
}

impl Kernel {
    /// All, in the order in which they are shown.
    pub const ALL: [Kernel; 18] = [
        Kernel::Contiguous,
        Kernel::Strided,
        Kernel::StridedCalls,
        Kernel::Checkerboard,
        Kernel::Blocks3d,
        Kernel::Flash,
        Kernel::Btio,
        Kernel::E3smF,
        Kernel::E3smG,
        Kernel::E3smI,
        Kernel::Random100,
        Kernel::Random50,
        Kernel::Random10,
        Kernel::Pandana,
        Kernel::Chombo,
        Kernel::ChomboCalls,
        Kernel::Chombo32,
        Kernel::Hacc,
    ];

    /// The name by which users call it.
    pub fn name(self) -> &'static str {
        match self {
            Kernel::Contiguous => "contiguous",
            Kernel::Strided => "strided",
            Kernel::StridedCalls => "strided-calls",
            Kernel::Checkerboard => "checkerboard",
            Kernel::Blocks3d => "blocks3d",
            Kernel::Flash => "flash",
            Kernel::Btio => "btio",
            Kernel::E3smF => "e3sm-f",
            Kernel::E3smG => "e3sm-g",
            Kernel::E3smI => "e3sm-i",
            Kernel::Random100 => "random-100",
            Kernel::Random50 => "random-50",
            Kernel::Random10 => "random-10",
            Kernel::Pandana => "pandana",
            Kernel::Chombo => "chombo",
            Kernel::ChomboCalls => "chombo-calls",
            Kernel::Chombo32 => "chombo-32",
            Kernel::Hacc => "hacc",
        }
    }

    /// The kernel of that name.
    pub fn from_name(name: &str) -> Option<Kernel> {
        Kernel::ALL.into_iter().find(|kernel| kernel.name() == name)
    }

    /// The recorded decomposition map that it needs.
    pub fn case(self) -> Option<Case> {
        match self {
            Kernel::E3smF => Some(Case::F),
            Kernel::E3smG => Some(Case::G),
            _ => None,
        }
    }

    /// The recorded list of boxes that it needs.
    fn boxes(self) -> Option<&'static str> {
        match self {
            Kernel::Chombo | Kernel::ChomboCalls => {
                Some("amrex_cns_rt3d_256x256x512_bf4_mg16_eff0.97_boxes.json")
            }
            Kernel::Chombo32 => Some("amrex_cns_rt3d_256x256x512_bf8_mg32_eff0.7_boxes.json"),
            _ => None,
        }
    }

    /// Whether it needs what [`recorded`](Self::recorded) reads; its size is that of the record.
    pub fn is_recorded(self) -> bool {
        self.case().is_some() || self.boxes().is_some()
    }

    /// Reads what it needs from a folder with E3SM's maps; boxes are there or in the folder `amr` beside it.
    pub fn recorded(self, folder: &Path) -> Result<Option<Recorded>, MapError> {
        if let Some(case) = self.case() {
            return Ok(Some(Recorded::Map(DecompositionMap::read(case, folder)?)));
        }
        let Some(name) = self.boxes() else { return Ok(None) };
        let here = folder.join(name);
        let path = if here.is_file() { here } else { folder.join("../amr").join(name) };
        Ok(Some(Recorded::Boxes(BoxList::read(&path)?)))
    }

    /// What each of `ranks` ranks does. `recorded` is what [`recorded`](Self::recorded) reads.
    pub fn plan(
        self,
        ranks: usize,
        scale: &Scale,
        recorded: Option<&Recorded>,
    ) -> Result<Plan, KernelError> {
        let e3sm = |case: Case| match recorded {
            Some(Recorded::Map(map)) => Ok(e3sm::plan(case.output(), map, ranks, scale.records)),
            _ => Err(KernelError::NoMap(case.file_name())),
        };
        let chombo = |components: u64, calls: Calls| match recorded {
            Some(Recorded::Boxes(list)) => Ok(chombo::plan(list, ranks, scale, components, calls)),
            _ => Err(KernelError::NoBoxes(self.boxes().unwrap_or_default())),
        };
        match self {
            Kernel::Contiguous => Ok(blocks::contiguous(ranks, scale)),
            Kernel::Strided => Ok(blocks::strided(ranks, scale)),
            Kernel::StridedCalls => Ok(blocks::strided_calls(ranks, scale)),
            Kernel::Checkerboard => Ok(blocks::checkerboard(ranks, scale)),
            Kernel::Blocks3d => Ok(blocks::blocks3d(ranks, scale)),
            Kernel::Flash => Ok(flash::plan(ranks, scale)),
            Kernel::Btio => Ok(btio::plan(ranks, scale)),
            Kernel::Random100 => Ok(blocks::tiles(ranks, scale, 100)),
            Kernel::Random50 => Ok(blocks::tiles(ranks, scale, 50)),
            Kernel::Random10 => Ok(blocks::tiles(ranks, scale, 10)),
            Kernel::Pandana => Ok(pandana::plan(ranks, scale)),
            Kernel::Hacc => Ok(hacc::plan(ranks, scale)),
            Kernel::Chombo => chombo(1, Calls::Queued),
            Kernel::ChomboCalls => chombo(1, Calls::Independent),
            Kernel::Chombo32 => chombo(10, Calls::Queued),
            Kernel::E3smF => e3sm(Case::F),
            Kernel::E3smG => e3sm(Case::G),
            Kernel::E3smI => {
                let map = land::map(scale.bytes, scale.records);
                Ok(e3sm::plan(&land::LAND, &map, ranks, scale.records))
            }
        }
    }
}

/// Start and length of part `i` of `n` things in `parts` parts that differ by one at most.
pub(crate) fn part(n: u64, parts: u64, i: u64) -> (u64, u64) {
    let start = n * i / parts;
    (start, n * (i + 1) / parts - start)
}

/// `ranks` as a product of `D` factors that are as equal as possible, smallest first: the
/// fastest dimension is cut most, as programs do that count ranks along x first.
fn grid<const D: usize>(ranks: usize) -> [u64; D] {
    let mut factors = [1; D];
    let mut primes = Vec::new();
    let (mut left, mut prime) = (ranks as u64, 2);
    while left > 1 {
        if left.is_multiple_of(prime) {
            primes.push(prime);
            left /= prime;
        } else {
            prime += 1;
        }
    }
    for prime in primes.into_iter().rev() {
        if let Some(smallest) = factors.iter_mut().min() {
            *smallest *= prime;
        }
    }
    factors.sort_unstable();
    factors
}

/// Where a rank is in a grid of ranks, the last dimension counted first.
fn position<const D: usize>(grid: [u64; D], rank: usize) -> [u64; D] {
    let mut left = rank as u64;
    let mut position = [0; D];
    for d in (0..D).rev() {
        position[d] = left % grid[d];
        left /= grid[d];
    }
    position
}

/// The root's integer part.
fn root(n: u64, degree: i32) -> u64 {
    let guess = (n as f64).powf(1.0 / f64::from(degree)).round() as u64;
    let fits = |candidate: u64| candidate.pow(degree as u32) <= n;
    if fits(guess) { guess } else { guess - 1 }
}

fn fixed(name: &str, len: u64) -> Dim {
    Dim { name: name.into(), len: Some(len) }
}

fn var(name: &str, element: Element, dims: &[usize]) -> Var {
    let (data, chunk) = (Data::Distinct, Vec::new());
    Var { name: name.into(), element, dims: dims.to_vec(), data, chunk }
}

/// A plan of one variable and one blocking call, in which a rank has one hyperslab.
fn one_call(dims: Vec<Dim>, variable: Var, slabs: impl Iterator<Item = Slabs>) -> Plan {
    let request = Request { var: 0, list: 0, record: None };
    let rank = |slabs| RankPlan { lists: vec![slabs], steps: vec![vec![request]] };
    Plan {
        dims,
        vars: vec![variable],
        records: 0,
        pipeline: String::new(),
        transactions: false,
        steps: vec![Calls::Blocking],
        ranks: slabs.map(rank).collect(),
    }
}
