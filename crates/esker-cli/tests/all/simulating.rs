//! Promises of `esker simulate`.

use crate::common::{good, run, shared_data};
use serde_json::Value;

fn owners(more: &[&str]) -> Vec<Value> {
    let text = good(&[&["simulate", "owners", "--json"], more].concat());
    let document: Value = serde_json::from_str(&text).unwrap();
    document["results"].as_array().unwrap().clone()
}

fn number(result: &Value, name: &str) -> f64 {
    result[name].as_f64().unwrap_or_else(|| panic!("{name} in {result}"))
}

#[test]
fn our_rule_stands_beside_hdf5s_for_every_pattern_rank_count_and_weight() {
    let table = good(&["simulate", "owners", "--ranks", "4,64", "--weight", "0.5,1"]);
    let lines: Vec<&str> = table.lines().filter(|line| !line.is_empty()).collect();
    assert!(lines[0].contains("chunks most / mean") && lines[0].contains("moved"), "{table}");
    // A heading; seven patterns, two numbers of ranks, three rules.
    assert_eq!(lines.len(), 1 + 7 * 2 * 3, "{table}");
    for pattern in
        ["checkerboard", "blocks", "misaligned", "uneven", "one-writer", "pandana", "random"]
    {
        for rule in ["HDF5", "weight 0.5", "weight 1"] {
            let named = |line: &&&str| line.contains(pattern) && line.contains(rule);
            assert_eq!(lines.iter().filter(named).count(), 2, "{pattern} {rule}: {table}");
        }
    }
    assert!(!table.contains('\x1b'));
}

#[test]
fn one_writer_keeps_two_shares_where_hdf5_leaves_it_everything() {
    let results = owners(&["one-writer", "--ranks", "4k", "--homes", "1"]);
    assert_eq!(number(&results[0], "bytes_most_over_mean"), 4096.0);
    assert_eq!((&results[0]["rule"], &results[1]["rule"]), (&"hdf5".into(), &"preference".into()));
    assert!(number(&results[1], "bytes_most_over_mean") <= 2.125);
    assert_eq!(results[1]["owners"], 4096);
}

#[test]
fn tens_of_thousands_of_ranks_take_seconds_and_one_home() {
    // 256 by 256 ranks have 128 by 128 chunks in each of 8 variables.
    let results = owners(&["checkerboard", "--ranks", "64k", "--per-rank", "2"]);
    assert_eq!((&results[1]["ranks"], &results[1]["chunks"]), (&65_536.into(), &131_072.into()));
    assert_eq!((&results[1]["accesses"], &results[1]["homes"]), (&524_288.into(), &1.into()));
}

#[test]
fn the_same_seed_gives_the_same_owners() {
    let moved = |seed: &str| {
        let results = owners(&["random", "--ranks", "100", "--seed", seed]);
        (results[0]["moved_bytes"].clone(), results[1]["moved_bytes"].clone())
    };
    assert_eq!(moved("7"), moved("7"));
    assert_ne!(moved("7"), moved("8"));
}

#[test]
fn maps_of_a_model_are_patterns_too() {
    let Some(data) = shared_data() else { return };
    for (case, bytes) in [("f", 34_000_000.0), ("g", 9_000_000.0)] {
        let map = data.join(format!("netcdf_classic/pnetcdf_e3sm_map_{case}_case_16p.nc"));
        let map = map.display().to_string();
        let results = owners(&["--map", &map, "--ranks", "4,16,40", "--chunk", "64k"]);
        assert_eq!(results.len(), 6);
        // The size of one record, from the model's own output.
        let accessed = number(&results[0], "accessed_bytes");
        assert!((accessed / bytes - 1.0f64).abs() < 0.05, "{case}: {accessed}");
        assert_eq!(results[2]["accessed_bytes"], results[0]["accessed_bytes"]);
        for pair in results.chunks(2) {
            let over = |result| number(result, "bytes_most_over_mean");
            assert!(over(&pair[1]) <= over(&pair[0]).max(2.1), "{}", pair[1]);
        }
    }
}

#[test]
fn what_is_no_map_or_pattern_is_one_sentence() {
    let wrong = run(&["simulate", "owners", "striped"]);
    assert_eq!(wrong.code, Some(2));
    assert!(wrong.err.contains("the patterns are checkerboard"), "{}", wrong.err);
    assert!(wrong.err.contains("`esker simulate owners --help`"), "{}", wrong.err);
    let directory = tempfile::tempdir().unwrap();
    let cdl = directory.path().join("x.cdl");
    std::fs::write(&cdl, "netcdf x { dimensions: n = 3 ; variables: short v(n) ; }").unwrap();
    let file = directory.path().join("x.nc").display().to_string();
    good(&["gen", cdl.to_str().unwrap(), "-o", &file]);
    for (file, what) in [(file.as_str(), "not a decomposition map"), ("no/such.nc", "")] {
        let wrong = run(&["simulate", "owners", "--map", file]);
        assert_eq!((wrong.code, wrong.out.as_str()), (Some(2), ""));
        assert!(wrong.err.starts_with(&format!("esker: {file}: ")), "{}", wrong.err);
        assert!(wrong.err.contains(what) && wrong.err.lines().count() == 1, "{}", wrong.err);
    }
}

#[test]
fn the_manual_has_a_page_of_it() {
    let page = good(&["man", "simulate-owners"]);
    assert!(page.contains(".SH EXAMPLES") && page.contains("checkerboard"), "{page}");
    assert!(good(&["completions", "bash"]).contains("per-rank"));
}

#[test]
fn messages_of_a_million_ranks_are_counted_by_each_road() {
    let large = ["--ranks", "1M", "--nodes", "8k", "--bytes", "1M"];
    let text = good(&[&["simulate", "exchange", "--json"], &large[..]].concat());
    let report: Value = serde_json::from_str(&text).unwrap();
    let (ranks, nodes, rounds) = (1u64 << 20, 1 << 13, 16);
    // All ranks in turn, 4 KiB each, are one in 512 of a window of 2 MiB.
    let strided = &report["results"][1];
    assert_eq!(
        (&strided["aggregators"], &strided["rounds"]),
        (&(4 * nodes).into(), &rounds.into())
    );
    let of = |road: usize, what: &str| strided["roads"][road][what].as_u64().unwrap();
    let all = of(0, "messages_between_nodes") + of(0, "messages_within_nodes");
    // Each window has 512 ranks, of which its owner may be one.
    let windows = rounds * 4 * nodes;
    assert!((511 * windows..=512 * windows).contains(&all), "{all}");
    assert_eq!(of(1, "messages_within_nodes"), 0);
    assert!(of(2, "messages_between_nodes") * 16 < of(0, "messages_between_nodes"));
    assert!(of(2, "bytes_between_nodes") <= ranks << 20);
    // Each rank's stretch is half a window: nobody else's is far.
    let contiguous = &report["results"][0]["roads"][0];
    assert_eq!(contiguous["most_of_a_rank_in_a_round"], 1);

    let wrong = run(&["simulate", "exchange", "--ranks", "4", "--nodes", "8"]);
    assert_eq!(wrong.code, Some(2));
    assert!(wrong.err.contains("nodes are no more than ranks"), "{}", wrong.err);
}

#[test]
fn merging_by_shares_is_beside_the_tree_for_65536_ranks() {
    let text = good(&["simulate", "definitions", "--json", "--ranks", "64k", "--per-rank", "4"]);
    let document: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(document["ranks"], 65_536);
    let results = document["results"].as_array().unwrap();
    let roads = |at: usize| results[at]["roads"].as_array().unwrap().clone();
    // Every rank has objects of its own: the root of a tree holds them all, an owner a few times its own.
    assert_eq!(results[0]["objects"], 4 * 65_536);
    let [tree, straight, halving] = &roads(0)[..] else { panic!("{text}") };
    assert_eq!(number(tree, "most_held"), f64::from(4 * 65_536));
    assert!(number(straight, "most_held") < 64.0 && number(halving, "most_held") < 64.0, "{text}");
    assert_eq!(number(halving, "rounds"), 16.0);
    // All have the same ones: straight to their owners they come from everybody.
    assert_eq!(results[2]["objects"], 4);
    assert!(number(&roads(2)[1], "most_held") > 65_536.0, "{text}");
    assert!(number(&roads(2)[2], "most_held") <= 12.0, "{text}");
    let table = good(&["simulate", "definitions", "--ranks", "100"]);
    assert_eq!(table.lines().filter(|line| line.contains("halving")).count(), 3, "{table}");
    assert_eq!(run(&["simulate", "definitions", "--ranks", "2M"]).code, Some(2));
}

#[test]
fn a_commit_of_many_ranks_is_told_in_messages_bytes_and_memory() {
    let directory = tempfile::tempdir().unwrap();
    let dir = directory.path().display().to_string();
    let text = good(&["simulate", "commit", "--json", "--ranks", "4,64k", "--dir", &dir]);
    let document: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(document["limit"], 64 << 20);
    let results = document["results"].as_array().unwrap();
    assert_eq!((&results[0]["ranks"], &results[1]["ranks"]), (&4.into(), &65_536.into()));
    let names = ["create", "first write", "first commit", "second commit"];
    for result in results {
        let stages = result["stages"].as_array().unwrap();
        let told: Vec<&str> = stages.iter().map(|stage| stage["stage"].as_str().unwrap()).collect();
        assert_eq!(told, names);
    }
    // As many calls, whatever the ranks are; more bytes, and what the system says of memory.
    let second = |result: &Value, what: &str| number(&result["stages"][3], what);
    assert_eq!(second(&results[0], "calls"), second(&results[1], "calls"));
    assert!(second(&results[0], "bytes_got") <= second(&results[1], "bytes_got"));
    if results[1]["most_memory"].is_u64() {
        // It is of each rank's logs, and a kibibyte or two for each at most.
        assert!(number(&results[1], "most_memory") < 65_536.0 * 2048.0, "{text}");
    }
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0, "nothing is left");
    let table = good(&["simulate", "commit", "--ranks", "100", "--dir", &dir]);
    assert_eq!(table.lines().filter(|line| line.contains("commit")).count(), 2, "{table}");
    assert_eq!(run(&["simulate", "commit", "--ranks", "2M"]).code, Some(2));
    let nowhere = run(&["simulate", "commit", "--ranks", "3", "--dir", "no/such/folder"]);
    assert!(nowhere.code == Some(2) && nowhere.err.contains("no/such/folder"), "{}", nowhere.err);
}

/// The results of a command by their rule.
fn by_rule(what: &str, more: &[&str]) -> impl Fn(&str) -> Value + use<> {
    let text = good(&[&["simulate", what, "--json"], more].concat());
    let document: Value = serde_json::from_str(&text).unwrap();
    let results = document["results"].as_array().unwrap().clone();
    move |rule| results.iter().find(|result| result["rule"] == rule).unwrap().clone()
}

#[test]
fn the_papers_patches_move_less_by_our_rule_and_are_as_even() {
    let rule = by_rule("patches", &[]);
    let (greedy, paper, ours) = (rule("greedy"), rule("paper"), rule("ours"));
    assert_eq!((&ours["patches"], &ours["ranks"]), (&15_625.into(), &4096.into()));
    assert_eq!(greedy["most_patches"], 8);
    assert_eq!((&paper["least_patches"], &paper["most_patches"]), (&3.into(), &4.into()));
    assert_eq!((&ours["least_patches"], &ours["most_patches"]), (&3.into(), &4.into()));
    assert!((number(&greedy, "moved_share") - 0.407).abs() < 0.001);
    assert!(number(&ours, "moved_share") < 0.8 * number(&paper, "moved_share"));
}

#[test]
fn our_files_are_as_like_as_can_be_and_none_is_idle() {
    for sizes in ["even", "flame", "random"] {
        let rule = by_rule("files", &[sizes, "--patches", "64k", "--files", "512"]);
        let (paper, ours, best) = (rule("paper"), rule("ours"), rule("optimal"));
        let over = |result: &Value| number(result, "largest_over_mean");
        assert!(over(&ours) <= 1.02 * over(&best) && over(&ours) <= over(&paper), "{ours}");
        assert_eq!(ours["idle_files"], 0);
        assert!(number(&ours, "memory_bytes") * 10.0 < number(&paper, "memory_bytes"), "{ours}");
    }
}

#[test]
fn what_cannot_be_simulated_is_refused_with_its_number() {
    let wrong = run(&["simulate", "patches", "--ranks", "1M", "--block", "1000"]);
    assert_eq!(wrong.code, Some(2));
    assert!(wrong.err.contains("patches; up to 16777216"), "{}", wrong.err);
    assert_eq!(run(&["simulate", "files", "--files", "0"]).code, Some(2));
}
