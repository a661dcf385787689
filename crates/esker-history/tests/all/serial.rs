//! Whatever happens, every commit that was acknowledged is there once, in order, and no other history could be told apart from
//! one writer after the other.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use esker_format::log::Records;
use esker_history::*;
use esker_store::Segments;
use proptest::prelude::*;

use crate::lossy::{Lossy, Trouble};

/// What a writer does.
#[derive(Debug, Clone)]
enum Act {
    Commit { writer: u64, behind: u64, first: u64, len: u64, fact: u8, large: bool },
    As { writer: u64, ahead: u64, give_up: bool, needs: u64 },
    Tag { writer: u64, back: u64 },
    Expire { last: u64 },
    Collect { dead: u64 },
}

fn act() -> impl Strategy<Value = Act> {
    let commit = (0u64..4, 0u64..4, 0u64..60, 1u64..12, 0u8..4, prop::bool::weighted(0.25));
    let commit = commit.prop_map(|(writer, behind, first, len, fact, large)| Act::Commit {
        writer,
        behind,
        first,
        len,
        fact,
        large,
    });
    let chosen = (0u64..4, 1u64..4, prop::bool::weighted(0.2), 0u64..4);
    let chosen = chosen.prop_map(|(writer, ahead, give_up, needs)| {
        // Most need nothing.
        let needs = if needs > 2 { 0 } else { needs };
        Act::As { writer, ahead, give_up, needs }
    });
    prop_oneof![
        8 => commit,
        2 => chosen,
        1 => (0u64..4, 0u64..6).prop_map(|(writer, back)| Act::Tag { writer, back }),
        1 => (1u64..5).prop_map(|last| Act::Expire { last }),
        1 => (0u64..4).prop_map(|dead| Act::Collect { dead }),
    ]
}

fn trouble() -> impl Strategy<Value = Trouble> {
    prop_oneof![
        Just(Trouble::Before),
        Just(Trouble::After),
        Just(Trouble::Twice),
        (1u64..40).prop_map(Trouble::Late),
        Just(Trouble::Death),
    ]
}

/// What became of a commit, by its token.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Fate {
    /// It was acknowledged, with this number.
    Acknowledged(u64),
    /// It was acknowledged, and its turn comes later.
    Prepared(u64),
    /// It was refused, and must not be there.
    Refused,
    /// Nobody knows.
    Unknown,
}

#[derive(Debug, Clone)]
struct Told {
    base: u64,
    elements: std::ops::Range<u64>,
    /// The number that it needs; 0 for none.
    needs: u64,
    fate: Fate,
}

/// What all writers were told.
type Ledger = Arc<Mutex<Vec<Told>>>;

/// The object in which every commit leaves its token, once.
const TOKENS: u64 = 1;
/// The object on which commits may conflict.
const GRID: u64 = 2;

fn data(object: u64, record: u64, elements: std::ops::Range<u64>, token: usize) -> Item {
    let (first, end) = (elements.start, elements.end);
    let data = Data { object, records: Records::one(record), first, end };
    Item::data(data, (token as u64).to_le_bytes().to_vec())
}

fn token(item: &Item) -> usize {
    u64::from_le_bytes(item.value.as_ref().unwrap()[..8].try_into().unwrap()) as usize
}

/// Carries out what a writer does; what it is told goes into the ledger.
fn perform(segments: Arc<dyn Segments>, act: &Act, ledger: &Ledger) {
    let main = Branch::main();
    let reserve = |base, elements, needs| {
        let mut all = ledger.lock().unwrap();
        all.push(Told { base, elements, needs, fate: Fate::Unknown });
        all.len() - 1
    };
    let tell = |token: usize, fate| ledger.lock().unwrap()[token].fate = fate;
    match act.clone() {
        Act::Commit { writer, behind, first, len, fact, large } => {
            let history = History::new(segments, 100 + writer);
            let Ok(newest) = history.newest(&main) else { return };
            let base = newest.saturating_sub(behind);
            let elements = first..first + len;
            let token = reserve(base, elements.clone(), 0);
            let mut items = vec![
                data(TOKENS, 0, token as u64..token as u64 + 1, token),
                data(GRID, 0, elements, token),
                Item::fact(16, &[fact], Some((token as u64).to_le_bytes().to_vec())),
            ];
            if large {
                items.extend((0..400).map(|i| data(3, i, 0..1 + token as u64, token)));
            }
            // Facts are set by whoever comes last; the grid is what must not be overwritten unseen.
            let mut rebase = GridOnly;
            let attempt = Attempt::new(main, base).items(items);
            let mut told = history.commit(attempt.clone(), &mut rebase);
            if let Err(Error::InDoubt { .. } | Error::Store(_)) = told {
                // Whoever does not know may ask again: it is one commit.
                told = history.commit(attempt, &mut rebase);
            }
            tell(
                token,
                match told {
                    Ok(number) => Fate::Acknowledged(number),
                    Err(Error::Conflict { .. } | Error::Fenced { .. } | Error::Expired { .. }) => {
                        Fate::Refused
                    }
                    Err(_) => Fate::Unknown,
                },
            );
        }
        Act::As { writer, ahead, give_up, needs } => {
            let history = History::new(segments, 100 + writer);
            let Ok(newest) = history.newest(&main) else { return };
            let number = newest + ahead;
            let needs = if needs > 0 { number.saturating_sub(needs) } else { 0 };
            let token = reserve(u64::MAX, 0..0, needs);
            let items = vec![data(TOKENS, 0, token as u64..token as u64 + 1, token)];
            let mut attempt = Attempt::new(main, newest).items(items);
            if needs > 0 {
                attempt = attempt.needs(&[needs]);
            }
            let once = || match give_up {
                true => history.give_up(attempt.clone(), number, GivenUp::Aborted),
                false => history.commit_as(attempt.clone(), number),
            };
            let told = match once() {
                Err(Error::InDoubt { .. } | Error::Store(_)) => once(),
                told => told,
            };
            tell(
                token,
                match told {
                    _ if give_up => Fate::Refused,
                    Ok(_) => Fate::Prepared(number),
                    Err(Error::Decided { .. } | Error::Needed { .. }) => Fate::Refused,
                    Err(_) => Fate::Unknown,
                },
            );
        }
        Act::Tag { writer, back } => {
            let history = History::new(segments, 100 + writer);
            let _ = history.last(&main).and_then(|last| {
                let of = history.exact(&main, last.number().saturating_sub(back).max(1))?;
                let name = Branch::new(&format!("t{}", of.number())).unwrap();
                history.tag(&name, &of, "", 0)
            });
        }
        Act::Expire { last } => {
            let history = History::new(segments, 200);
            let _ = history.expire(&main, Keep { last, ..Keep::default() }, "", 0);
        }
        Act::Collect { dead } => {
            let history = History::new(segments, 201);
            let _ = history.collect(&mut |writer| writer == 100 + dead, false, 0);
        }
    }
}

/// Conflicts are overlaps on the grid, element by element.
struct GridOnly;

impl Rebase for GridOnly {
    fn rebase(
        &mut self,
        ours: &mut Vec<Item>,
        theirs: &[Item],
        base: u64,
        number: u64,
    ) -> std::result::Result<(), Conflict> {
        let of_grid = |item: &&Item| matches!(&item.key, Key::Data(data) if data.object == GRID);
        let mut grid: Vec<Item> = ours.iter().filter(of_grid).cloned().collect();
        let theirs: Vec<Item> = theirs.iter().filter(of_grid).cloned().collect();
        Strict::default().rebase(&mut grid, &theirs, base, number)
    }
}

/// Compares everything that can be read with what the writers were told.
fn judge(lossy: &Lossy, ledger: &Ledger) -> std::result::Result<(), TestCaseError> {
    let main = Branch::main();
    let history = History::new(Arc::new(lossy.inner.clone()), 999);
    let told = ledger.lock().unwrap().clone();
    let newest = history.newest(&main).unwrap();
    // The serial history: what came with each number.
    let mut numbers: BTreeMap<usize, u64> = BTreeMap::new();
    if newest > 0 && history.last(&main).is_ok() {
        let last = history.last(&main).unwrap();
        let mut twice = None;
        let take = |item: &Item| {
            if numbers.insert(token(item), item.number).is_some() {
                twice = Some(token(item));
            }
        };
        last.data(TOKENS, 0..1, 0..u64::MAX, take).unwrap();
        prop_assert_eq!(twice, None, "a commit is there twice");
    }
    for (token, told) in told.iter().enumerate() {
        let there = numbers.get(&token);
        match told.fate {
            Fate::Acknowledged(number) => prop_assert_eq!(there, Some(&number), "token {}", token),
            Fate::Prepared(number) if number <= newest => {
                let is_void = told.needs > 0
                    && history.decision(&main, told.needs).unwrap().unwrap().commit().is_none();
                if is_void {
                    prop_assert_eq!(there, None, "token {} needs {}", token, told.needs);
                    continue;
                }
                prop_assert_eq!(there, Some(&number), "token {}", token);
            }
            Fate::Prepared(_) => prop_assert_eq!(there, None),
            Fate::Refused => prop_assert_eq!(there, None, "token {} was refused", token),
            Fate::Unknown => {}
        }
    }
    // Nobody overwrote what he had not seen.
    for (token, number) in &numbers {
        let mine = &told[*token];
        for (other, earlier) in &numbers {
            let theirs = &told[*other];
            let unseen = mine.base < *earlier && earlier < number;
            let touch = mine.elements.start < theirs.elements.end
                && theirs.elements.start < mine.elements.end;
            prop_assert!(
                !(unseen && touch && theirs.base != u64::MAX),
                "{token} lies over {other}, unseen"
            );
        }
    }
    // Every version that can be opened has exactly what came with numbers up to its own.
    for number in 1..=newest {
        let version = match history.exact(&main, number) {
            Err(Error::Expired { .. } | Error::Empty(_)) => continue,
            version => version.unwrap(),
        };
        let mut found = Vec::new();
        version.data(TOKENS, 0..1, 0..u64::MAX, |item| found.push(token(item))).unwrap();
        found.sort_unstable();
        let expected: Vec<usize> =
            numbers.iter().filter(|(_, at)| **at <= number).map(|(token, _)| *token).collect();
        prop_assert_eq!(found, expected, "version {}", number);
    }
    for (_, branch, number) in history.tags().unwrap() {
        let tagged = history.version_named(&branch, number);
        prop_assert!(tagged.is_ok(), "a tag keeps its version: {:?}", tagged.err());
    }
    Ok(())
}

trait VersionNamed {
    fn version_named(&self, branch: &Branch, number: u64) -> Result<Version>;
}

impl VersionNamed for History {
    fn version_named(&self, branch: &Branch, number: u64) -> Result<Version> {
        let tag = self.tags()?.into_iter().find(|(_, of, n)| of == branch && *n == number);
        self.resolve(&Name::Word(tag.map(|(name, ..)| name).unwrap_or_else(Branch::main)))
    }
}

fn cases() -> u32 {
    std::env::var("ESKER_HISTORIES").ok().and_then(|n| n.parse().ok()).unwrap_or(400)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), ..ProptestConfig::default() })]

    #[test]
    fn every_acknowledged_commit_is_there_once_and_in_order(
        acts in prop::collection::vec(act(), 1..25),
        troubles in prop::collection::vec((0u64..400, trouble()), 0..25),
        interruptions in prop::collection::vec((0u64..400, act()), 0..15),
        stale in 0usize..3,
    ) {
        let lossy = Lossy::default();
        let ledger = Ledger::default();
        lossy.troubles(troubles);
        lossy.stale(stale);
        for (call, act) in interruptions {
            // Others have no troubles, and do all that they do in the middle of somebody's call.
            let (inner, ledger) = (lossy.inner.clone(), ledger.clone());
            lossy.interrupt(call, Box::new(move || perform(Arc::new(inner), &act, &ledger)));
        }
        for act in &acts {
            perform(Arc::new(lossy.clone()), act, &ledger);
            lossy.revive();
        }
        judge(&lossy, &ledger)?;
    }
}
