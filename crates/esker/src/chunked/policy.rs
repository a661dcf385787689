//! Who owns a chunk: access size minus workload penalty.
#[derive(Debug)]
pub struct Assigner {
    owned: Vec<u64>,
    fair: f64,
    weight: f64,
    homes: u64,
}

impl Assigner {
    /// For so many ranks that share units of `total` bytes; `weight` of the workload penalty.
    pub fn new(ranks: usize, total: u64, weight: f64) -> Assigner {
        Assigner {
            owned: vec![0; ranks],
            fair: total.max(1) as f64 / ranks as f64,
            weight,
            homes: 1,
        }
    }

    /// A home that sees one unit in `homes` only: what it assigns counts so many times.
    pub fn scaled(self, homes: u64) -> Assigner {
        Assigner { homes, ..self }
    }

    /// The owner of a unit of `bytes` bytes, of which ranks have (rank, bytes), sorted by rank.
    pub fn owner(&mut self, bytes: u64, accesses: &[(u32, u64)]) -> u32 {
        let mut best = (f64::MIN, 0u64, 0u32);
        let mut next = accesses.iter().peekable();
        for rank in 0..self.owned.len() as u32 {
            let access = next.next_if(|(r, _)| *r == rank).map_or(0, |(_, n)| *n);
            let penalty = self.weight * self.owned[rank as usize] as f64 / self.fair;
            let score = access as f64 / bytes.max(1) as f64 - penalty;
            if score > best.0 || (score == best.0 && access > best.1) {
                best = (score, access, rank);
            }
        }
        self.owned[best.2 as usize] += bytes * self.homes;
        best.2
    }
}
