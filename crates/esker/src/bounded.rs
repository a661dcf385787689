//! Memory for what may be wanted again: so many bytes, and what was not used for longest goes first.
//!
//! Every cache of a dataset is one of these, its budget comes from a hint, and
//! [`Dataset::caches`](crate::Dataset::caches) tells what each holds.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, Hash, RandomState};

/// Values that are kept by key within a budget of bytes.
#[derive(Debug)]
pub(crate) struct Bounded<K, V, S = RandomState> {
    kept: HashMap<K, Kept<V>, S>,
    /// Keys by when they were used.
    order: BTreeMap<u64, K>,
    clock: u64,
    memory: u64,
}

impl<K, V, S: Default> Default for Bounded<K, V, S> {
    fn default() -> Self {
        let (kept, order) = (HashMap::default(), BTreeMap::new());
        Bounded { kept, order, clock: 0, memory: 0 }
    }
}

#[derive(Debug)]
struct Kept<V> {
    value: V,
    bytes: u64,
    used: u64,
}

/// What one of a dataset's caches holds, for people who want to know where the memory is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheUse {
    /// Of what.
    pub what: &'static str,
    /// Bytes that it holds now.
    pub bytes: u64,
    /// Bytes that it may hold, by its hint; the newest thing stays also where it is more.
    pub budget: u64,
}

impl<K: Hash + Eq + Clone, V, S: BuildHasher> Bounded<K, V, S> {
    /// What it takes to keep something, beside what it has elsewhere: its place in a table that may be half empty, and
    /// one in a tree whose nodes may be.
    const EACH: u64 = (2 * size_of::<(K, Kept<V>)>() + 2 * size_of::<(u64, K)>() + 32) as u64;

    /// What is kept under the key, which thereby is used.
    pub(crate) fn get(&mut self, key: &K) -> Option<&mut V> {
        let kept = self.kept.get_mut(key)?;
        self.clock += 1;
        let used = std::mem::replace(&mut kept.used, self.clock);
        if let Some(key) = self.order.remove(&used) {
            self.order.insert(self.clock, key);
        }
        Some(&mut kept.value)
    }

    /// Keeps a value that takes so many bytes, and gives what had to go so that all together are
    /// at most `budget`. The newest stays, whatever it takes: whoever minds does not put it.
    pub(crate) fn put(&mut self, key: K, value: V, bytes: u64, budget: u64) -> Vec<V> {
        let bytes = bytes.saturating_add(Self::EACH);
        let mut gone: Vec<V> = self.remove(&key).into_iter().collect();
        while self.memory.saturating_add(bytes) > budget {
            let Some((_, oldest)) = self.order.pop_first() else { break };
            if let Some(old) = self.kept.remove(&oldest) {
                self.memory -= old.bytes;
                gone.push(old.value);
            }
        }
        self.clock += 1;
        self.memory += bytes;
        self.order.insert(self.clock, key.clone());
        self.kept.insert(key, Kept { value, bytes, used: self.clock });
        gone
    }

    /// Takes out what is kept under the key.
    pub(crate) fn remove(&mut self, key: &K) -> Option<V> {
        let old = self.kept.remove(key)?;
        self.order.remove(&old.used);
        self.memory -= old.bytes;
        Some(old.value)
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.kept.clear();
        self.order.clear();
        self.memory = 0;
    }

    /// Bytes that are kept.
    pub(crate) fn memory(&self) -> u64 {
        self.memory
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_was_used_last_is_kept_within_the_budget(
            budget in 0u64..2000,
            steps in prop::collection::vec((0u8..12, 0u64..600, any::<bool>()), 0..80),
        ) {
            let mut cache: Bounded<u8, usize> = Bounded::default();
            // Key, value and bytes, the one used last at the end.
            let mut model: Vec<(u8, usize, u64)> = Vec::new();
            for (number, (key, bytes, puts)) in steps.into_iter().enumerate() {
                let known = model.iter().position(|kept| kept.0 == key);
                let old = known.map(|at| model.remove(at));
                if puts {
                    let mut gone: Vec<usize> = old.map(|kept| kept.1).into_iter().collect();
                    model.push((key, number, bytes + Bounded::<u8, usize>::EACH));
                    let held = |model: &[(u8, usize, u64)]| model.iter().map(|k| k.2).sum::<u64>();
                    while model.len() > 1 && held(&model) > budget {
                        gone.push(model.remove(0).1);
                    }
                    prop_assert_eq!(cache.put(key, number, bytes, budget), gone);
                } else {
                    prop_assert_eq!(cache.get(&key).copied(), old.map(|kept| kept.1));
                    model.extend(old);
                }
                prop_assert_eq!(cache.memory(), model.iter().map(|kept| kept.2).sum::<u64>());
                prop_assert!(cache.memory() <= budget || model.len() == 1);
                prop_assert_eq!(cache.kept.len(), model.len());
                prop_assert_eq!(cache.order.len(), model.len());
            }
            cache.clear();
            prop_assert_eq!((cache.memory(), cache.get(&0)), (0, None));
        }
    }
}
