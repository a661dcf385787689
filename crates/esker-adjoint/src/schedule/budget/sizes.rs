//! How large states will be: known once they are encoded, predicted before.

use std::collections::BTreeMap;

/// By what part two sizes may differ and still be no trend.
const WAVER: f64 = 0.8;

/// The sizes of encoded states, known and predicted.
///
/// Between two known sizes the prediction is a straight line. Behind the last, growth goes on for as
/// many steps as it has been watched over, and then stops: two neighbours that differ by chance do not make
/// a trend. Nothing is predicted to be larger than a raw state.
#[derive(Debug, Clone)]
pub struct Sizes {
    raw: u64,
    known: BTreeMap<u64, u64>,
    predicted: Vec<u64>,
    /// Sums of the predicted sizes before each step.
    sums: Vec<u64>,
}

impl Sizes {
    /// Sizes of states before so many steps, none of which is known; `raw` bytes each at most.
    pub fn new(steps: u64, raw: u64) -> Sizes {
        let mut sizes =
            Sizes { raw: raw.max(1), known: BTreeMap::new(), predicted: Vec::new(), sums: vec![0] };
        sizes.predicted = vec![sizes.raw; steps as usize];
        sizes.add_up();
        sizes
    }

    /// A size became known.
    pub fn learn(&mut self, step: u64, bytes: u64) {
        // States may have other shapes later: what was seen is believed.
        self.raw = self.raw.max(bytes);
        let bytes = bytes.max(1);
        let before = self.known.insert(step, bytes);
        // Planning looks at a few percent at best; a prediction that came true is not made anew.
        let expected = self.predicted.get(step as usize).copied().unwrap_or(0);
        let off = expected.abs_diff(bytes) > expected / 256;
        if off || before.is_none() && self.known.len() <= 2 {
            self.predict();
        } else if let Some(slot) = self.predicted.get_mut(step as usize) {
            *slot = expected;
        }
    }

    /// Nothing is known any more.
    pub(crate) fn forget(&mut self) {
        self.known.clear();
        self.predicted.fill(self.raw);
        self.add_up();
    }

    /// The size of a state, as far as one can tell.
    pub fn of(&self, step: u64) -> u64 {
        self.known
            .get(&step)
            .or_else(|| self.predicted.get(step as usize))
            .copied()
            .unwrap_or(self.raw)
    }

    /// How much smaller than predicted states may well be. A state that is thought not to fit by so much
    /// is tried all the same: encoding it tells, and costs no step.
    pub(crate) fn slack(&self) -> u64 {
        let recent = self.known.values().rev().take(8);
        let (least, most) = recent.fold((u64::MAX, 0), |(a, b), &x| (a.min(x), b.max(x)));
        match self.known.len() {
            0 | 1 => 0,
            _ if most - least <= most / 64 => most - least,
            2..6 => most / 6,
            _ => (most - least) / 3,
        }
    }

    /// Whether states may have other sizes than those that are known: filters make them smaller than they are.
    pub(crate) fn may_vary(&self) -> bool {
        self.known.values().any(|&bytes| bytes != self.raw)
    }

    /// Whether the state has been encoded.
    pub(crate) fn is_known(&self, step: u64) -> bool {
        self.known.contains_key(&step)
    }

    /// The size of a state if it is known, else the largest that it can have.
    pub(crate) fn at_most(&self, step: u64) -> u64 {
        self.known.get(&step).copied().unwrap_or(self.raw)
    }

    /// How many states of the mean size in `from..to` fit into so many bytes.
    pub(crate) fn fit(&self, bytes: u64, from: u64, to: u64) -> u64 {
        let at = |step: u64| self.sums.get(step as usize).copied().unwrap_or(0);
        let sum = u128::from(at(to).saturating_sub(at(from)).max(1));
        (u128::from(bytes) * u128::from(to - from) / sum).min(u128::from(u64::MAX)) as u64
    }

    /// Whether all sizes in `from..to` are about the same.
    pub(crate) fn alike(&self, from: u64, to: u64) -> bool {
        let range = self.predicted.get(from as usize..to as usize).unwrap_or(&[]);
        let (least, most) = range.iter().fold((u64::MAX, 0), |(a, b), &x| (a.min(x), b.max(x)));
        most.saturating_sub(least) <= most / 128
    }

    fn predict(&mut self) {
        let known: Vec<(u64, u64)> = self.known.iter().map(|(&a, &b)| (a, b)).collect();
        let (Some(&first), Some(&last)) = (known.first(), known.last()) else { return };
        let line = |a: (u64, u64), b: (u64, u64), x: f64| {
            let (x0, y0, x1, y1) = (a.0 as f64, a.1 as f64, b.0 as f64, b.1 as f64);
            if x1 > x0 { y0 + (y1 - y0) * (x - x0) / (x1 - x0) } else { y1 }
        };
        // The trend of the last few. Sizes that only waver have none, and the mean of them is the better guess than
        // the very last.
        let recent = &known[known.len().saturating_sub(4)..];
        let mean = recent.iter().map(|p| p.1 as f64).sum::<f64>() / recent.len() as f64;
        let (start, span) = (recent[0], (last.0 - recent[0].0) as f64);
        let growing = recent.windows(2).all(|pair| pair[0].1 < pair[1].1);
        let growth = last.1 as f64 / start.1 as f64;
        // Two that differ by less than WAVER are taken for equal; three in a row are not.
        let trust = match recent.len() {
            0 | 1 => 0.0,
            _ if !growing => 0.0,
            2 => ((growth - 1.0) / WAVER).min(1.0),
            _ => 1.0,
        };
        let slope =
            if span > 0.0 { trust * (last.1 - start.1.min(last.1)) as f64 / span } else { 0.0 };
        let base = mean + trust * (last.1 as f64 - mean);
        let mut gaps = known.windows(2).peekable();
        for (step, slot) in self.predicted.iter_mut().enumerate() {
            let x = step as u64;
            while gaps.peek().is_some_and(|gap| gap[1].0 < x) {
                gaps.next();
            }
            let value = match gaps.peek() {
                _ if x <= first.0 => first.1 as f64,
                Some(gap) => line(gap[0], gap[1], x as f64),
                None => base + slope * ((x - last.0) as f64).min(span),
            };
            *slot = (value.round().max(1.0) as u64).min(self.raw);
        }
        for (&step, &bytes) in &self.known {
            if let Some(slot) = self.predicted.get_mut(step as usize) {
                *slot = bytes;
            }
        }
        self.add_up();
    }

    fn add_up(&mut self) {
        self.sums.clear();
        self.sums.push(0);
        let mut sum: u64 = 0;
        for &bytes in &self.predicted {
            sum = sum.saturating_add(bytes);
            self.sums.push(sum);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_goes_on_for_as_long_as_it_was_seen() {
        let mut sizes = Sizes::new(100, 10_000);
        assert_eq!(sizes.of(50), 10_000);
        sizes.learn(0, 100);
        assert_eq!(sizes.of(99), 100);
        sizes.learn(10, 200);
        assert_eq!((sizes.of(5), sizes.of(20), sizes.of(99)), (150, 300, 300));
        assert!(sizes.alike(20, 99) && !sizes.alike(0, 20));
        assert_eq!(sizes.fit(3000, 20, 99), 10);
    }
}
