//! The chunks of each kernel's variables, and values that compression is measured with.

use super::Kernel;
use crate::plan::{Data, Plan, Var};

/// Variables smaller than this in all, or in a record, are not worth a chunk.
const SMALL: u64 = 4096;

const MIB: u64 = 1 << 20;

impl Kernel {
    /// Gives the plan's variables chunks as in seeds/000 §5.5, with these filters, and values
    /// like those of real programs. Small variables have no chunks.
    pub fn add_chunks(self, plan: &mut Plan, pipeline: &str) {
        plan.pipeline = pipeline.into();
        let shapes: Vec<Vec<u64>> = plan.vars.iter().map(|var| self.chunk(plan, var)).collect();
        for (var, chunk) in plan.vars.iter_mut().zip(shapes) {
            var.chunk = chunk;
            if var.data == Data::Distinct {
                var.data = Data::Field;
            }
        }
    }

    /// The shape of a variable's chunks: one record, and of that what the kernel says.
    fn chunk(self, plan: &Plan, var: &Var) -> Vec<u64> {
        let shape = plan.inner_shape(var);
        let size = var.element.size();
        if shape.is_empty() || shape.iter().product::<u64>() * size < SMALL {
            return Vec::new();
        }
        let inner = match self {
            Kernel::Checkerboard | Kernel::Random100 | Kernel::Random50 | Kernel::Random10 => {
                twice_the_block(plan, &shape)
            }
            Kernel::Flash => blocks_of_a_rank(plan, &shape),
            Kernel::E3smG => cut_longest(&shape, 10 * MIB / size),
            _ => cut_longest(&shape, MIB / size),
        };
        let records = plan.is_record(var).then_some(1);
        records.into_iter().chain(inner).collect()
    }
}

/// Whole in all dimensions but the longest, which is cut so that a chunk has about so many
/// elements.
fn cut_longest(shape: &[u64], elements: u64) -> Vec<u64> {
    let mut chunk = shape.to_vec();
    let others = |d: usize| shape.iter().enumerate().filter(move |(o, _)| *o != d);
    if let Some(d) = (0..shape.len()).max_by_key(|d| shape[*d]) {
        let rest: u64 = others(d).map(|(_, len)| len).product();
        chunk[d] = (elements / rest.max(1)).clamp(1, shape[d]);
    }
    chunk
}

/// Twice what a rank has along each dimension, so that a rank has a quarter of a chunk.
fn twice_the_block(plan: &Plan, shape: &[u64]) -> Vec<u64> {
    let blocks = plan.ranks.iter().flat_map(|rank| &rank.lists);
    let mut largest = vec![1; shape.len()];
    for block in blocks {
        largest.iter_mut().zip(&block.counts).for_each(|(l, count)| *l = (*l).max(*count));
    }
    largest.iter().zip(shape).map(|(block, len)| (2 * block).min(*len)).collect()
}

/// As many blocks as a rank has, about.
fn blocks_of_a_rank(plan: &Plan, shape: &[u64]) -> Vec<u64> {
    let mut chunk = shape.to_vec();
    let ranks = plan.ranks.len() as u64;
    if let Some(blocks) = chunk.first_mut() {
        *blocks = (*blocks / ranks).max(1);
    }
    chunk
}
