//! One promise, one test.

use std::sync::Arc;

use esker_format::log::Records;
use esker_history::*;
use esker_store::{CreateMode, FolderSegments, MemorySegments, MemoryStore, Segments, Store};

fn main() -> Branch {
    Branch::main()
}

fn history(segments: &MemorySegments, writer: u64) -> History {
    History::new(Arc::new(segments.clone()), writer)
}

fn fact(name: &str, value: &str) -> Item {
    Item::fact(16, name.as_bytes(), Some(value.as_bytes().to_vec()))
}

fn data(record: u64, elements: std::ops::Range<u64>, value: &str) -> Item {
    let (first, end) = (elements.start, elements.end);
    let data = Data { object: 5, records: Records::one(record), first, end };
    Item::data(data, value.as_bytes().to_vec())
}

fn commit(history: &History, base: u64, items: Vec<Item>) -> Result<u64> {
    history.commit(Attempt::new(main(), base).items(items), &mut Strict::default())
}

fn text(version: &Version, name: &str) -> Option<String> {
    let value = version.fact(16, name.as_bytes()).unwrap();
    value.map(|value| String::from_utf8(value).unwrap())
}

fn values(version: &Version, record: u64, elements: std::ops::Range<u64>) -> Vec<String> {
    let mut all = Vec::new();
    let take = |item: &Item| all.push(String::from_utf8(item.value.clone().unwrap()).unwrap());
    version.data(5, record..record + 1, elements, take).unwrap();
    all
}

#[test]
fn a_version_is_the_same_for_ever() {
    let segments = MemorySegments::default();
    let history = history(&segments, 1);
    for i in 1..=200u64 {
        let items = vec![
            fact("step", &i.to_string()),
            data(i, 0..10, &format!("v{i}")),
            data(0, 0..1, &format!("z{i}")),
        ];
        assert_eq!(commit(&history, i - 1, items).unwrap(), i);
    }
    for i in (1..=200).step_by(7) {
        let version = history.exact(&main(), i).unwrap();
        assert_eq!(text(&version, "step"), Some(i.to_string()));
        assert_eq!(values(&version, i, 0..4), [format!("v{i}")]);
        assert_eq!(values(&version, i + 1, 0..4), Vec::<String>::new());
        let all: Vec<String> = (1..=i).map(|i| format!("z{i}")).collect();
        assert_eq!(values(&version, 0, 0..1), all, "those that lie under others first");
    }
    assert!(matches!(history.exact(&main(), 201), Err(Error::NoVersion { newest: 200, .. })));
}

#[test]
fn a_version_has_a_logarithm_of_runs_and_a_commit_costs_what_is_new() {
    let segments = MemorySegments::default();
    let history = history(&segments, 1);
    let (mut decisions, mut most) = (0, 0);
    for i in 1..=2000u64 {
        commit(&history, i - 1, vec![data(i, 0..1000, "twenty bytes of place")]).unwrap();
        let decision = history.decision(&main(), i).unwrap().unwrap();
        let commit = decision.commit().unwrap();
        most = most.max(commit.levels.len() + commit.tail.len());
        decisions += decision.encode().len();
    }
    // Seven of each of three lengths, and eight in the tail.
    assert!(most <= 29, "{most} objects are a version");
    assert!(decisions / 2000 < 700, "{} bytes a commit", decisions / 2000);
    let runs: u64 = segments
        .list("runs")
        .unwrap()
        .iter()
        .map(|name| segments.len(&format!("runs/{name}")).unwrap().unwrap())
        .sum();
    assert!(runs < 2000 * 1000, "{runs} bytes of runs, those of old versions included");
}

#[test]
fn many_items_are_a_run_and_are_found() {
    let segments = MemorySegments::default();
    let history = history(&segments, 1);
    let items = (0..5000u64).map(|i| data(i % 50, i..i + 3, &format!("e{i}"))).collect();
    commit(&history, 0, items).unwrap();
    commit(&history, 1, vec![data(7, 100..200, "later")]).unwrap();
    let version = history.last(&main()).unwrap();
    assert_eq!(values(&version, 7, 107..108), ["e107", "later"]);
    assert_eq!(values(&version, 8, 107..108), Vec::<String>::new());
    assert_eq!(values(&version, 49, 4999..5000), ["e4999"]);
    let decision = history.decision(&main(), 1).unwrap().unwrap();
    assert!(decision.encode().len() < 300, "what is long is in a run");
}

#[test]
fn the_loser_of_a_race_goes_behind_the_winner_unless_they_touch_the_same() {
    let segments = MemorySegments::default();
    let [a, b] = [1, 2].map(|writer| history(&segments, writer));
    assert_eq!(commit(&a, 0, vec![data(0, 0..10, "a")]).unwrap(), 1);
    assert_eq!(commit(&b, 0, vec![data(0, 10..20, "b")]).unwrap(), 2);
    let error = commit(&b, 1, vec![data(0, 19..25, "c")]).unwrap_err();
    assert!(
        error.to_string().contains("elements 19 to 24") && error.to_string().contains("version 2"),
        "{error}"
    );
    let version = a.last(&main()).unwrap();
    assert_eq!(
        (version.number(), values(&version, 0, 0..20)),
        (2, vec!["a".to_string(), "b".to_string()])
    );
    for (on_conflict, expected) in
        [(OnConflict::Ours, ["b", "ours"]), (OnConflict::Theirs, ["theirs", "b"])]
    {
        let mut rebase = Strict { on_conflict, ..Strict::default() };
        let word = if on_conflict == OnConflict::Ours { "ours" } else { "theirs" };
        let attempt = Attempt::new(main(), 1).items(vec![data(0, 12..13, word)]);
        let number = a.commit(attempt, &mut rebase).unwrap();
        let found = values(&a.exact(&main(), number).unwrap(), 0, 12..13);
        let found: Vec<&str> =
            found.iter().map(String::as_str).filter(|v| expected.contains(v)).collect();
        assert_eq!(found, expected);
    }
}

#[test]
fn facts_that_differ_are_a_conflict_and_equal_ones_are_one() {
    let segments = MemorySegments::default();
    let [a, b] = [1, 2].map(|writer| history(&segments, writer));
    commit(&a, 0, vec![fact("units", "K")]).unwrap();
    commit(&b, 0, vec![fact("units", "K")]).unwrap();
    let error = commit(&b, 1, vec![fact("units", "m")]);
    // Version 2 says the same as version 1, but it says it after version 1.
    assert!(matches!(error, Err(Error::Conflict { base: 1, .. })));
    commit(&b, 2, vec![Item::fact(16, b"units", None)]).unwrap();
    let last = a.last(&main()).unwrap();
    assert_eq!(text(&last, "units"), None);
    assert!(last.facts(16).unwrap().is_empty());
    assert_eq!(text(&a.exact(&main(), 2).unwrap(), "units"), Some("K".to_string()));
}

#[test]
fn numbers_that_a_program_chose_finish_in_any_order_and_take_effect_in_theirs() {
    let segments = MemorySegments::default();
    let [a, b] = [1, 2].map(|writer| history(&segments, writer));
    let attempt =
        |value: &str| Attempt::new(main(), 0).items(vec![fact("who", value), data(0, 0..5, value)]);
    let large = |value: &str| {
        let items = (0..2000).map(|i| data(i, 0..5, value)).collect();
        Attempt::new(main(), 0).items(items)
    };
    a.commit_as(attempt("three"), 3).unwrap();
    b.commit_as(large("four"), 4).unwrap();
    assert_eq!(a.newest(&main()).unwrap(), 0, "their turn has not come");
    a.give_up(Attempt::new(main(), 0), 2, GivenUp::Skipped).unwrap();
    assert_eq!(a.newest(&main()).unwrap(), 0);
    b.commit_as(attempt("one"), 1).unwrap();
    assert_eq!(a.newest(&main()).unwrap(), 4);
    let who = |number| text(&a.exact(&main(), number).unwrap(), "who").unwrap();
    assert_eq!([1, 2, 3, 4].map(who), ["one", "one", "three", "three"]);
    assert_eq!(values(&a.last(&main()).unwrap(), 0, 0..1), ["one", "three", "four"]);
    assert!(matches!(a.commit_as(attempt("late"), 2), Err(Error::Decided { number: 2, .. })));
    assert_eq!(
        commit(&a, 4, vec![fact("who", "five")]).unwrap(),
        5,
        "automatic numbers go behind them"
    );
}

#[test]
fn what_was_prepared_is_promoted_by_the_next_writer_after_a_crash() {
    let segments = MemorySegments::default();
    let [a, b] = [1, 2].map(|writer| history(&segments, writer));
    let attempt = |value: &str| Attempt::new(main(), 0).items(vec![fact(value, "yes")]);
    a.commit_as(attempt("two"), 2).unwrap();
    // Number 1 comes from somebody who dies before promoting number 2.
    let other = MemorySegments::default();
    history(&other, 3).commit_as(attempt("one"), 1).unwrap();
    let bytes = other.read("refs/main/00000001", 0..1 << 20).unwrap().unwrap();
    segments.publish("refs/main/00000001", &bytes, true).unwrap();
    assert_eq!(b.newest(&main()).unwrap(), 1);
    assert_eq!(commit(&b, 1, vec![fact("three", "yes")]).unwrap(), 3);
    let last = b.last(&main()).unwrap();
    assert!(["one", "two", "three"].iter().all(|name| text(&last, name).is_some()));
}

#[test]
fn what_only_grows_is_the_larger_one_and_what_is_needed_is_there_or_all_is_given_up() {
    let segments = MemorySegments::default();
    let [a, b] = [1, 2].map(|writer| history(&segments, writer).growing(17));
    let records = |number: u8| Item::fact(17, b"", Some(vec![number]));
    let small = |number| Attempt::new(main(), 0).items(vec![records(number)]);
    let large = |number| {
        let mut items: Vec<Item> = (0..2000).map(|i| data(i, 0..5, "large")).collect();
        items.push(records(number));
        Attempt::new(main(), 0).items(items)
    };
    assert_eq!(a.commit_as(large(3), 3).unwrap(), Turn::Prepared);
    assert_eq!(a.commit_as(small(9).needs(&[3]), 4).unwrap(), Turn::Prepared);
    // 5 needs a number that is given up, and 6 needs that.
    assert_eq!(a.commit_as(large(99).needs(&[2]), 5).unwrap(), Turn::Prepared);
    assert_eq!(a.commit_as(small(99).needs(&[4, 5]), 6).unwrap(), Turn::Prepared);
    assert_eq!(a.commit_as(small(1), 7).unwrap(), Turn::Prepared);
    b.give_up(Attempt::new(main(), 0), 2, GivenUp::Aborted).unwrap();
    assert_eq!(b.commit_as(small(7), 1).unwrap(), Turn::Decided);
    assert_eq!(a.newest(&main()).unwrap(), 7);
    let number = |version: u64| a.exact(&main(), version).unwrap().fact(17, b"").unwrap().unwrap();
    assert_eq!([1, 2, 3, 4, 5, 6, 7].map(|v| number(v)[0]), [7, 7, 7, 9, 9, 9, 9]);
    for (version, is_commit) in [(3, true), (4, true), (5, false), (6, false), (7, true)] {
        let decision = a.decision(&main(), version).unwrap().unwrap();
        assert_eq!(decision.commit().is_some(), is_commit, "{version}");
    }
    assert!(
        a.last(&main()).unwrap().facts(7).unwrap().is_empty(),
        "needs stay with what is prepared"
    );
    assert!(segments.list("prepared/main").unwrap().is_empty(), "what was promoted is gone");
    let needed = a.commit_as(small(1).needs(&[5]), 8);
    assert!(matches!(needed, Err(Error::Needed { number: 5, .. })));
    assert!(a.decision(&main(), 8).unwrap().unwrap().commit().is_none());
    let waiting = Attempt::new(main(), 8).needs(&[11]);
    let waiting = a.commit(waiting, &mut Strict::default());
    assert!(matches!(waiting, Err(Error::Waiting { number: 11, .. })));
    assert!(matches!(a.commit_as(small(1).needs(&[12]), 12), Err(Error::Wrong(_))));
    // Facts beside a run are in the versions behind it, too, however they are merged.
    for i in 0..30u64 {
        commit(&a, 8 + i, vec![fact("step", &i.to_string())]).unwrap();
    }
    assert_eq!(a.last(&main()).unwrap().fact(17, b"").unwrap(), Some(vec![9]));
}

#[test]
fn a_tag_is_a_name_for_ever_and_a_branch_a_writable_one() {
    let segments = MemorySegments::default();
    let history = history(&segments, 1);
    let name = |text: &str| Branch::new(text).unwrap();
    for i in 1..=5u64 {
        commit(&history, i - 1, vec![fact("step", &i.to_string())]).unwrap();
    }
    let third = history.exact(&main(), 3).unwrap();
    history.tag(&name("v3"), &third, "the third", 0).unwrap();
    history.branch(&name("dev"), &third, "try", 0).unwrap();
    history.tag(&name("v3"), &third, "again", 0).expect_err("a tag is for ever");
    history.branch(&name("v3"), &third, "again", 0).expect_err("a name is one thing");
    let resolve = |text: &str| history.resolve(&Name::parse(text).unwrap());
    let step = |version: &Version| text(version, "step").unwrap();
    assert_eq!(step(&resolve("v3").unwrap()), "3");
    assert_eq!(step(&resolve("dev").unwrap()), "3");
    let on = |base, value: &str| {
        let attempt = Attempt::new(name("dev"), base).items(vec![fact("step", value)]);
        history.commit(attempt, &mut Strict::default()).unwrap()
    };
    assert_eq!((on(3, "dev4"), on(4, "dev5")), (4, 5));
    for i in 0..20 {
        on(5 + i, "more");
    }
    assert_eq!(step(&resolve("dev:4").unwrap()), "dev4");
    assert_eq!(step(&resolve("dev:2").unwrap()), "2", "before it began it is the other");
    assert_eq!(step(&resolve("main").unwrap()), "5");
    assert_eq!(step(&resolve("4").unwrap()), "4");
    for wrong in ["nothing", "99", "dev:99", "0"] {
        resolve(wrong).expect_err(wrong);
    }
    assert_eq!(Name::parse("../x"), None);
}

#[test]
fn an_expired_version_goes_and_what_others_need_stays() {
    let segments = MemorySegments::default();
    let history = history(&segments, 1);
    let name = |text: &str| Branch::new(text).unwrap();
    for i in 1..=300u64 {
        commit(&history, i - 1, vec![fact("step", &i.to_string()), data(i, 0..4, &"x".repeat(50))])
            .unwrap();
    }
    let tagged = history.exact(&main(), 77).unwrap();
    history.tag(&name("keep"), &tagged, "", 0).unwrap();
    let before = segments.list("runs").unwrap().len();
    let keep = Keep { last: 3, every: Some(100), since: None };
    let planned = history.to_expire(&main(), keep).unwrap();
    assert_eq!(history.expire(&main(), keep, "", 0).unwrap(), planned);
    assert_eq!(planned, [1..=76, 78..=99, 101..=199, 201..=297]);
    let dry = history.collect(&mut |_| false, true, 0).unwrap();
    assert_eq!(segments.list("runs").unwrap().len(), before);
    let collected = history.collect(&mut |_| false, false, 0).unwrap();
    assert_eq!(collected, dry);
    assert!(collected.runs.len() > 20, "{collected:?}");
    assert_eq!(segments.list("runs").unwrap().len(), before - collected.runs.len());
    let whole = |version: Version, upto: u64| {
        assert_eq!(text(&version, "step"), Some(upto.to_string()));
        assert!((1..=upto).all(|i| values(&version, i, 0..4).len() == 1));
    };
    whole(history.resolve(&Name::parse("keep").unwrap()).unwrap(), 77);
    whole(history.exact(&main(), 200).unwrap(), 200);
    whole(history.exact(&main(), 300).unwrap(), 300);
    whole(history.last(&main()).unwrap(), 300);
    assert!(matches!(history.exact(&main(), 150), Err(Error::Expired { .. })));
    commit(&history, 302, vec![fact("step", "303")]).unwrap();
}

#[test]
fn an_attempt_whose_answer_was_lost_is_one_commit_however_often_it_is_made() {
    let segments = MemorySegments::default();
    let [a, b] = [1, 2].map(|writer| history(&segments, writer));
    let items = (0..300).map(|i| data(i, 0..1, "once")).collect();
    let attempt = Attempt::new(main(), 0).items(items);
    assert_eq!(a.commit(attempt.clone(), &mut Strict::default()).unwrap(), 1);
    commit(&b, 1, vec![data(0, 0..1, "later")]).unwrap();
    assert_eq!(a.commit(attempt.clone(), &mut Strict::default()).unwrap(), 1);
    let chosen = Attempt::new(main(), 2).items(vec![data(7, 0..1, "chosen")]);
    for _ in 0..2 {
        a.commit_as(chosen.clone(), 4).unwrap();
    }
    b.commit_as(Attempt::new(main(), 2), 3).unwrap();
    a.commit_as(chosen, 4).unwrap();
    let last = a.last(&main()).unwrap();
    assert_eq!(last.number(), 4);
    assert_eq!(values(&last, 0, 0..1), ["once", "later"]);
    assert_eq!(values(&last, 7, 0..1), ["once", "chosen"]);
}

#[test]
fn an_attempt_that_is_there_is_acknowledged_whatever_would_be_said_of_it_now() {
    let segments = MemorySegments::default();
    let history = history(&segments, 1);
    let attempt = Attempt::new(main(), 0).items(vec![data(0, 0..1, "first")]);
    commit(&history, 0, vec![data(9, 0..1, "x")]).unwrap();
    assert_eq!(history.commit(attempt.clone(), &mut Strict::default()).unwrap(), 2);
    for i in 3..=9u64 {
        commit(&history, i - 1, vec![data(0, 0..1, "over it")]).unwrap();
    }
    history.expire(&main(), Keep { last: 2, ..Keep::default() }, "", 0).unwrap();
    assert_eq!(history.commit(attempt, &mut Strict::default()).unwrap(), 2);
}

#[test]
fn a_tag_keeps_a_version_that_expired_while_it_was_made() {
    let segments = MemorySegments::default();
    let history = history(&segments, 1);
    for i in 1..=100u64 {
        let items = (0..60).map(|n| data(n, 0..4, &format!("{i} {}", "y".repeat(60)))).collect();
        commit(&history, i - 1, items).unwrap();
    }
    let old = history.exact(&main(), 50).unwrap();
    history.expire(&main(), Keep { last: 1, ..Keep::default() }, "", 0).unwrap();
    history.tag(&Branch::new("old").unwrap(), &old, "", 0).unwrap();
    let collected = history.collect(&mut |_| false, false, 0).unwrap();
    assert!(!collected.runs.is_empty());
    let tagged = history.resolve(&Name::parse("old").unwrap()).unwrap();
    assert_eq!(values(&tagged, 59, 0..1).len(), 50);
    let error = history.tag(
        &Branch::new("older").unwrap(),
        &history.resolve(&Name::parse("old").unwrap()).unwrap(),
        "",
        0,
    );
    error.unwrap();
}

#[test]
fn a_commit_is_not_put_behind_versions_that_have_expired() {
    let segments = MemorySegments::default();
    let history = history(&segments, 1);
    for i in 1..=9u64 {
        commit(&history, i - 1, vec![data(i, 0..1, "x")]).unwrap();
    }
    history.expire(&main(), Keep { last: 2, ..Keep::default() }, "", 0).unwrap();
    let error = commit(&history, 3, vec![data(100, 0..1, "y")]).unwrap_err();
    assert!(matches!(error, Error::Expired { number: 4, .. }), "{error}");
    commit(&history, 8, vec![data(100, 0..1, "y")]).unwrap();
}

#[test]
fn a_writer_that_was_given_up_cannot_commit() {
    let segments = MemorySegments::default();
    let [dead, other] = [1, 2].map(|writer| history(&segments, writer));
    commit(&other, 0, vec![fact("a", "1")]).unwrap();
    // Its run is there, and its decision is not.
    let garbage = "runs/00000002-00000000000000010000000000000009";
    segments.create(garbage).unwrap().append(b"half of something").unwrap();
    let kept = other.collect(&mut |_| false, false, 0).unwrap();
    assert_eq!(kept, Collected::default(), "it may still be committed");
    let collected = other.collect(&mut |writer| writer == 1, false, 0).unwrap();
    assert_eq!((collected.runs, collected.fenced), (vec![garbage.to_string()], vec![1]));
    assert_eq!(segments.len(garbage).unwrap(), None);
    let error = commit(&dead, 1, vec![fact("b", "1")]).unwrap_err();
    assert!(matches!(error, Error::Fenced { .. }), "{error}");
    commit(&other, 1, vec![fact("b", "2")]).unwrap();
}

#[test]
fn a_durable_version_survives_a_loss_of_power_with_all_that_it_consists_of() {
    for durable_one in [1, 5, 9, 40] {
        let store = MemoryStore::default();
        let root = std::path::Path::new("run.esk");
        store.create_dir(root).unwrap();
        let mark = store.create(&root.join("mark"), CreateMode::New).unwrap();
        mark.sync().unwrap();
        store.sync_names(&root.join("mark")).unwrap();
        let folder = || -> Arc<dyn Segments> {
            let store = store.enclosed(root).unwrap();
            Arc::new(FolderSegments::new(store, root, &root.join("mark")))
        };
        let history = History::new(folder(), 1);
        for i in 1..=durable_one + 3 {
            // Some are long, and some become runs later.
            let many = if i % 3 == 0 { 200 } else { 1 };
            let items =
                (0..many).map(|n| data(n, 0..4, &format!("{i} {}", "y".repeat(60)))).collect();
            let attempt = Attempt::new(main(), i - 1).items(items).durable(i == durable_one);
            assert_eq!(history.commit(attempt, &mut Strict::default()).unwrap(), i);
        }
        store.lose_power();
        let history = History::new(folder(), 2);
        // What came after it was promised to nobody.
        assert!(history.newest(&main()).unwrap() >= durable_one);
        let version = history.exact(&main(), durable_one).unwrap();
        assert_eq!(values(&version, 0, 0..4).len() as u64, durable_one);
        assert_eq!(values(&version, 199, 0..4).len() as u64, durable_one / 3);
    }
}

#[test]
fn a_damaged_version_is_an_error_and_never_the_one_before() {
    let segments = MemorySegments::default();
    let history = history(&segments, 1);
    for i in 1..=20u64 {
        let items = (0..100).map(|n| data(n, 0..4, &format!("{i} {}", "y".repeat(60)))).collect();
        commit(&history, i - 1, items).unwrap();
    }
    let mut names: Vec<String> = segments
        .list("refs/main")
        .unwrap()
        .iter()
        .rev()
        .take(1)
        .map(|n| format!("refs/main/{n}"))
        .collect();
    let last = history.decision(&main(), 20).unwrap().unwrap();
    names.extend(
        last.commit()
            .unwrap()
            .levels
            .iter()
            .map(|level| format!("runs/{:08}-{}", level.made, level.id)),
    );
    for name in names {
        let whole = segments.read(&name, 0..u64::MAX).unwrap().unwrap();
        for at in (0..whole.len()).step_by(whole.len() / 40 + 1) {
            let mut damaged = whole.clone();
            damaged[at] ^= 4;
            segments.remove(&name).unwrap();
            segments.publish(&name, &damaged, true).unwrap();
            let read = history.last(&main()).and_then(|version| {
                (0..100).try_for_each(|n| version.data(5, n..n + 1, 0..4, |_| {}))?;
                Ok(version.number())
            });
            // The head of a run has nothing that a reader uses.
            assert!(
                read.is_err() || at < 24 && name.starts_with("runs"),
                "{name} byte {at}: {read:?}"
            );
        }
        segments.remove(&name).unwrap();
        segments.publish(&name, &whole, true).unwrap();
        history.last(&main()).unwrap();
    }
}

#[test]
fn a_run_stays_if_the_decision_that_it_was_made_for_cannot_be_read() {
    let segments = MemorySegments::default();
    let history = history(&segments, 1);
    for i in 0..40u64 {
        commit(&history, i, vec![data(i, 0..10, &"x".repeat(600))]).unwrap();
    }
    let last = history.decision(&main(), 40).unwrap().unwrap();
    let level = last.commit().unwrap().levels[0].clone();
    assert!(level.made < 40);
    history.expire(&main(), Keep { last: 1, ..Keep::default() }, "", 0).unwrap();
    let key = format!("refs/main/{:08}", level.made);
    let bytes = segments.read(&key, 0..u64::MAX).unwrap().unwrap();
    segments.remove(&key).unwrap();
    segments.publish(&key, &bytes[..bytes.len() - 1], true).unwrap();
    history.collect(&mut |_| true, false, 0).unwrap();
    let version = history.last(&main()).unwrap();
    for i in 0..40 {
        assert_eq!(values(&version, i, 0..10).len(), 1, "record {i}");
    }
}

#[test]
fn a_writer_that_was_given_up_prepares_nothing() {
    let segments = MemorySegments::default();
    let [mine, other] = [1, 2].map(|writer| history(&segments, writer));
    commit(&mine, 0, vec![fact("a", "1")]).unwrap();
    let attempt = || Attempt::new(main(), 1).items(vec![fact("b", "2")]);
    mine.commit_as(attempt(), 5).unwrap();
    other.fence(&main(), &[1].into(), 0).unwrap();
    assert!(matches!(mine.commit_as(attempt(), 6), Err(Error::Fenced { number: 2, .. })));
    other.commit_as(attempt(), 6).unwrap();
    assert_eq!(other.waiting(&main()).unwrap(), [5, 6], "what was prepared before stays");
}

#[test]
fn a_version_that_only_names_others_is_kept_with_the_one_before_it() {
    let segments = MemorySegments::default();
    let history = history(&segments, 1);
    for i in 0..5u64 {
        commit(&history, i, vec![data(i, 0..10, "value")]).unwrap();
    }
    let third = history.exact(&main(), 3).unwrap();
    for name in ["a", "b"] {
        history.tag(&Branch::new(name).unwrap(), &third, "", 0).unwrap();
    }
    let keep = Keep { last: 2, ..Keep::default() };
    assert_eq!(history.to_expire(&main(), keep).unwrap(), [1..=2], "4 and 5 changed something");
    assert_eq!(history.expire(&main(), keep, "", 0).unwrap(), [1..=2]);
    assert_eq!(history.to_expire(&main(), keep).unwrap(), []);
    commit(&history, 8, vec![data(9, 0..10, "value")]).unwrap();
    assert_eq!(history.to_expire(&main(), keep).unwrap(), [4..=4]);
    commit(&history, 9, vec![data(9, 0..10, "value")]).unwrap();
    assert_eq!(history.to_expire(&main(), keep).unwrap(), [4..=8], "with the names behind 5");
}
