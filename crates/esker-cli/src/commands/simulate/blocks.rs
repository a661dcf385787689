//! Options of the simulations that begin with blocks of an array, dealt to ranks.

use esker_policy::dealt::{Dealing, Dealt};
use esker_tools::simulate::{MOST_RANKS, grid_for};

use crate::arguments::size;
use crate::failure::Failure;

/// An array in blocks, and ranks that have them.
#[derive(Debug, clap::Args)]
pub(super) struct Blocks {
    /// Ranks, up to 1M (1,048,576)
    #[arg(long, value_name = "N", default_value = "1536", value_parser = ranks)]
    pub(super) ranks: u64,
    /// Ranks of a node
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) per_node: u64,
    /// Blocks along each dimension (default: 16,32,32, doubled or halved until a rank has 8 to 16)
    #[arg(long, value_name = "N,…", value_delimiter = ',', value_parser = length)]
    grid: Vec<u64>,
    /// Elements of a block along each dimension (default: 128 in each)
    #[arg(long, value_name = "N,…", value_delimiter = ',', value_parser = length)]
    block: Vec<u64>,
    /// How much longer or shorter than the mean a rank's stretch may be, 0 to 1: work is balanced, not blocks
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, value_parser = share)]
    uneven: f64,
    /// What chance begins with
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
}

impl Blocks {
    /// Who has which block.
    pub(super) fn dealt(&self, dealing: Dealing) -> Result<Dealt, Failure> {
        let grid = if self.grid.is_empty() { grid_for(self.ranks) } else { self.grid.clone() };
        let block = if self.block.is_empty() { vec![128; grid.len()] } else { self.block.clone() };
        let dealt = Dealt::new(&grid, &block, self.ranks, dealing).map_err(Failure::sentence)?;
        Ok(dealt.uneven(self.uneven, self.seed))
    }
}

/// The dealing of this name.
pub(super) fn dealing(name: &str) -> Result<Dealing, String> {
    let names = Dealing::ALL.map(Dealing::name).join(", ");
    Dealing::from_name(name).ok_or_else(|| format!("blocks are dealt by {names}"))
}

/// A length above 0.
pub(super) fn length(text: &str) -> Result<u64, String> {
    let length = size(text).ok().filter(|length| *length > 0);
    length.ok_or_else(|| "write a number above 0, as 64, 4k or 1M".to_string())
}

fn ranks(text: &str) -> Result<u64, String> {
    let ranks = size(text).ok().filter(|ranks| (1..=u64::from(MOST_RANKS)).contains(ranks));
    ranks.ok_or_else(|| format!("write a number from 1 to {MOST_RANKS}, as 64, 4k or 1M"))
}

fn share(text: &str) -> Result<f64, String> {
    let share = text.parse::<f64>().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "write a number from 0 to 1".to_string())
}
