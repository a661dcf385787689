//! Several writers with chosen numbers and without, whose calls fail, who die, skip and abort, lose power: what they were told is there, once, in the order of numbers, with
//! its values. Compared with plain arrays, version by version.
//!
//! `ESKER_TRANSACTIONS` runs more histories.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use esker::{
    BeginOptions, CreateOptions, Dataset, DimLen, Error, ExternalType, Layout, NumberState,
    OpenOptions, Selection, Transaction, VarId, VersionState,
};
use esker_store::{Fault, FaultyStore, MemoryStore, Store};
use esker_testkit::random::Random;

const PATH: &str = "/run/a.esk";
const FILL: i32 = -2_147_483_647;
const X: u64 = 10;
const V: VarId = VarId(0);
/// The newest version when it begins.
const CREATED: u64 = 2;

fn create(store: &MemoryStore) {
    let options = CreateOptions::new().layout(Layout::Log).store(Arc::new(store.clone()));
    let mut def = Dataset::create(PATH, options).unwrap();
    let x = def.add_dim("x", DimLen::Fixed(X)).unwrap();
    def.add_var("v", ExternalType::Int, &[x]).unwrap();
    let mut ds = def.enddef().unwrap();
    ds.sync().unwrap();
    ds.close().unwrap();
}

/// What became of a transaction, as far as its program was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// It is this number, or will be.
    Told(u64),
    /// It is not there, and never will be.
    Refused,
    /// Nobody has said.
    Unknown,
}

/// A transaction: its message is its place among all.
#[derive(Debug, Clone)]
struct Told {
    number: Option<u64>,
    base: u64,
    needs: Option<u64>,
    wrote: BTreeMap<u64, i32>,
    fate: Fate,
}

/// One that is going on.
struct Open {
    tx: Transaction,
    store: FaultyStore<MemoryStore>,
    token: usize,
}

struct World {
    store: MemoryStore,
    dice: Random,
    told: Vec<Told>,
    open: Vec<Open>,
    next: i32,
}

impl World {
    fn newest(&self) -> u64 {
        let shared: &dyn Store = &self.store;
        let all = esker::versions(shared, Path::new(PATH), Some(1)).unwrap();
        all[0].number
    }

    /// A store in which something goes wrong, some calls later; mostly nothing does.
    fn faulty(&mut self) -> FaultyStore<MemoryStore> {
        let fail = Fault::Fail(ErrorKind::StorageFull);
        let half = Fault::FailHalf(ErrorKind::StorageFull);
        let fault = self.dice.pick(&[Fault::Kill, Fault::Tear, fail, half]);
        let at = if self.dice.below(2) == 0 { self.dice.below_u64(40) } else { u64::MAX };
        FaultyStore::new(self.store.clone(), at, fault)
    }

    fn begin(&mut self) {
        let newest = self.newest();
        let number = (self.dice.below(4) > 0).then(|| newest + 1 + self.dice.below_u64(4));
        let needs = number.filter(|number| *number > 2 && self.dice.below(4) == 0);
        let needs = needs.map(|number| number - 1 - self.dice.below_u64(2).min(number - 2));
        let (token, store) = (self.told.len(), self.faulty());
        let mut options = BeginOptions::new().message(&token.to_string()).durable(true);
        options = options.number(number.unwrap_or(0)).store(Arc::new(store.clone()));
        if let Some(needed) = needs {
            options = options.needs(needed);
        }
        let Ok(mut tx) = Transaction::begin(PATH, options) else { return };
        let base = tx.container_version().unwrap();
        let mut wrote = BTreeMap::new();
        for _ in 0..=self.dice.below(3) {
            let place = self.dice.below_u64(X);
            self.next += 1;
            if tx.put(V, &Selection::element(&[place]), &[self.next]).is_err() {
                // It may be there or not: nobody would commit it.
                std::mem::forget(tx);
                return;
            }
            wrote.insert(place, self.next);
        }
        if self.dice.below(3) == 0 {
            let _ = tx.sync();
        }
        self.told.push(Told { number, base, needs, wrote, fate: Fate::Unknown });
        self.open.push(Open { tx, store, token });
    }

    fn end(&mut self) {
        if self.open.is_empty() {
            return;
        }
        let who = self.dice.below(self.open.len());
        let Open { mut tx, store, token } = self.open.swap_remove(who);
        let fate = match self.dice.below(8) {
            0 => match tx.abort() {
                Ok(()) => Fate::Refused,
                Err(_) => Fate::Unknown,
            },
            // Its process dies.
            1 => {
                std::mem::forget(tx);
                Fate::Refused
            }
            _ => {
                let mut outcome = tx.commit();
                for _ in 0..2 {
                    if outcome.is_err() && store.calls() > 0 {
                        // As a program that finds room on its disk.
                        outcome = tx.commit();
                    }
                }
                match outcome {
                    Ok(committed) => Fate::Told(committed.number()),
                    Err(Error::Conflict { .. } | Error::GivenUp { .. }) => Fate::Refused,
                    Err(error) if error.to_string().contains("was decided by another writer") => {
                        Fate::Refused
                    }
                    Err(_) => {
                        if self.dice.below(2) == 0 {
                            let _ = tx.abort();
                        }
                        Fate::Unknown
                    }
                }
            }
        };
        self.told[token].fate = fate;
    }

    fn skip(&mut self) {
        let number = self.newest() + 1 + self.dice.below_u64(3);
        let store = self.faulty();
        let _ = esker::skip(&store, Path::new(PATH), number, "skipped");
    }

    fn lose_power(&mut self) {
        for open in self.open.drain(..) {
            std::mem::forget(open.tx);
            self.told[open.token].fate = Fate::Refused;
        }
        self.store.lose_power();
    }

    /// Decides every number that anybody has chosen, as a program that cleans up would.
    fn settle(&mut self) {
        for open in self.open.drain(..) {
            std::mem::forget(open.tx);
            self.told[open.token].fate = Fate::Refused;
        }
        let chosen = self.told.iter().filter_map(|told| told.number).max().unwrap_or(0);
        let path = Path::new(PATH);
        for number in 1..=chosen.max(self.newest()) {
            if esker::number_state(&self.store, path, number).unwrap() == NumberState::Open {
                esker::skip(&self.store, path, number, "skipped").unwrap();
            }
        }
        // Whoever writes next promotes what somebody who died has left.
        esker::tag(&self.store, path, "end", None, "").unwrap();
    }

    fn judge(&self, what: &str) {
        let path = Path::new(PATH);
        let mut versions = esker::versions(&self.store, path, None).unwrap();
        versions.reverse();
        let mut owners: BTreeMap<u64, usize> = BTreeMap::new();
        for version in versions.iter().filter(|version| version.state == VersionState::Open) {
            if let Ok(token) = version.message.parse() {
                owners.insert(version.number, token);
            }
        }
        let mut tokens: Vec<usize> = owners.values().copied().collect();
        tokens.sort_unstable();
        tokens.dedup();
        assert_eq!(tokens.len(), owners.len(), "{what}: one is there twice: {owners:?}");
        for (token, told) in self.told.iter().enumerate() {
            let there = owners.iter().find(|(_, owner)| **owner == token).map(|(n, _)| *n);
            // What was there before is there.
            let voided = told.needs.is_some_and(|n| n > CREATED && !owners.contains_key(&n));
            match told.fate {
                Fate::Told(number) if voided => {
                    assert_eq!(there, None, "{what}: {token}, number {number}: {told:?}");
                }
                Fate::Told(number) => {
                    assert_eq!(
                        there,
                        Some(number),
                        "{what}: {token} {told:?}: {owners:?}, {versions:?}"
                    );
                }
                Fate::Refused => assert_eq!(there, None, "{what}: {token} {told:?}"),
                Fate::Unknown => {}
            }
            if let (Some(number), Some(there)) = (told.number, there) {
                assert_eq!(number, there, "{what}: {token}");
            }
        }
        // Nobody without a number writes over what he has not seen.
        for (number, token) in
            owners.iter().filter(|(_, token)| self.told[**token].number.is_none())
        {
            let mine = &self.told[*token];
            for (_, other) in owners.range(mine.base + 1..*number) {
                let theirs = &self.told[*other].wrote;
                let meet = mine.wrote.keys().any(|place| theirs.contains_key(place));
                assert!(!meet, "{what}: {token} lies over {other}, unseen");
            }
        }
        let mut state = vec![FILL; X as usize];
        for version in &versions {
            if let Some(token) = owners.get(&version.number) {
                for (place, value) in &self.told[*token].wrote {
                    state[*place as usize] = *value;
                }
            }
            let options = OpenOptions::new().container_version(version.number);
            let opened = Dataset::open_with(PATH, options.store(Arc::new(self.store.clone())));
            match version.state {
                VersionState::Open => {
                    let found: Vec<i32> = opened.unwrap().get(V, &Selection::all()).unwrap();
                    assert_eq!(found, state, "{what}: version {}", version.number);
                }
                VersionState::GivenUp => assert!(opened.is_err()),
                ref other => panic!("{what}: version {}: {other:?}", version.number),
            }
        }
    }
}

#[test]
fn what_writers_are_told_is_there_once_and_in_the_order_of_numbers() {
    let turns = std::env::var("ESKER_TRANSACTIONS").map_or(150, |n| n.parse().unwrap());
    let (mut visible, mut lost) = (0, 0);
    for turn in 0..turns {
        let store = MemoryStore::default();
        create(&store);
        store.list().iter().for_each(|name| store.sync_names(name).unwrap());
        let dice = Random(turn);
        let (told, open) = (Vec::new(), Vec::new());
        let mut world = World { store, dice, told, open, next: 0 };
        for _ in 0..30 {
            match world.dice.below(12) {
                0 => world.skip(),
                1 if turn % 3 == 0 => {
                    world.lose_power();
                    lost += 1;
                }
                2..=6 => world.begin(),
                _ => world.end(),
            }
        }
        world.settle();
        world.judge(&format!("turn {turn}"));
        visible += world.told.iter().filter(|told| matches!(told.fate, Fate::Told(_))).count();
    }
    assert!(visible as u64 > turns * 3, "too few were committed: {visible}");
    assert!(turns < 20 || lost > 0);
}
