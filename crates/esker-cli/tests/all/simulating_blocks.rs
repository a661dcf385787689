//! Promises of `esker simulate merge` and `esker simulate stage`.

use crate::common::{good, run};
use serde_json::Value;

fn document(arguments: &[&str]) -> Value {
    serde_json::from_str(&good(&[&["simulate"], arguments, &["--json"]].concat())).unwrap()
}

fn number(value: &Value, name: &str) -> f64 {
    value[name].as_f64().unwrap_or_else(|| panic!("{name} in {value}"))
}

#[test]
fn the_papers_ranks_merge_10_7_blocks_into_at_most_3_5_cuboids() {
    let report = document(&["merge"]);
    let [morton, knapsack] = &report["results"].as_array().unwrap()[..] else { panic!("{report}") };
    let ranks = &morton["ranks"];
    assert_eq!((&ranks["groups"], &ranks["blocks"]), (&1536.into(), &16_384.into()));
    assert!((10.6..10.7).contains(&number(ranks, "blocks_of_one")), "{ranks}");
    assert!(number(ranks, "cuboids_of_one") <= 3.5, "{ranks}");
    // A node has 64 blocks, of which the paper makes 10.
    let nodes = &morton["nodes"];
    assert_eq!((&nodes["groups"], &nodes["blocks_of_one"]), (&256.into(), &64.0.into()));
    assert!(number(nodes, "cuboids_of_one") <= 10.0, "{nodes}");
    // What a knapsack dealt is hardly merged, and the table says so.
    assert!(number(&knapsack["ranks"], "cuboids_of_one") > 10.4, "{knapsack}");
    let table = good(&["simulate", "merge"]);
    assert!(table.contains("a knapsack deals are neighbours by chance only"), "{table}");
    assert_eq!(table.lines().filter(|line| line.contains("  rank  ")).count(), 2, "{table}");
}

#[test]
fn tens_of_thousands_of_ranks_merge_like_a_thousand() {
    let report =
        document(&["merge", "--ranks", "32k", "--dealing", "morton", "--uneven", "0.5", "--whole"]);
    let ranks = &report["results"][0]["ranks"];
    assert_eq!((&ranks["groups"], &report["cut"]), (&32_768.into(), &false.into()));
    assert!(number(ranks, "cuboids_of_one") <= number(ranks, "blocks_of_one") / 2.0, "{ranks}");
    assert_eq!(ranks["parts"], ranks["blocks"], "blocks that are not cut are one part each");
}

#[test]
fn a_plane_of_blocks_and_cuboids_is_drawn() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("merged.svg");
    let drawn = path.display().to_string();
    good(&[
        "simulate",
        "merge",
        "--grid",
        "4,8,8",
        "--ranks",
        "24",
        "--dealing",
        "morton",
        "--svg",
        &drawn,
    ]);
    let svg = std::fs::read_to_string(&path).unwrap();
    assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n"), "{svg}");
    let [before, after] = svg.split("what each rank merges").collect::<Vec<_>>()[..] else {
        panic!("{svg}")
    };
    // The background, and the 64 blocks of the plane.
    assert_eq!(before.matches("<rect").count(), 1 + 64);
    assert!((1..64).contains(&after.matches("<rect").count()), "{after}");
    let nowhere =
        run(&["simulate", "merge", "--grid", "2,2", "--ranks", "2", "--svg", "no/such/file.svg"]);
    assert!(nowhere.code == Some(2) && nowhere.err.contains("no/such/file.svg"), "{}", nowhere.err);
}

#[test]
fn staging_has_the_numbers_of_the_paper() {
    let report = document(&["stage", "--interval", "20,40", "--outputs", "25,26,50"]);
    let results = report["results"].as_array().unwrap();
    let used = |at: usize, way: &str| number(&results[at]["node_seconds"], way);
    let near = |value: f64, expected: f64| (value / expected - 1.0).abs() < 1e-9;
    assert!(results[..3].iter().all(|result| result["on_the_fly_pays"] == "never"), "{report}");
    assert!(results[3..].iter().all(|result| result["on_the_fly_pays"]["from"] == 26), "{report}");
    assert!(near(used(4, "afterwards"), 26.0 * 10647.8), "{report}");
    assert!(near(used(4, "on_the_fly"), 258.0 * (40.0 * 26.0 + 33.0)), "{report}");
    assert!(
        used(3, "on_the_fly") > used(3, "afterwards")
            && used(4, "on_the_fly") < used(4, "afterwards")
    );
    assert!(near(number(&results[5], "longest_interval"), 118.76), "{report}");
    assert!(near(used(0, "overlapped"), 258.0 * (25.0 * 20.0 + 33.0)), "{report}");
    // 64 blocks of 512 x 1024 x 1024 on two servers: each gets half.
    let traffic = &report["traffic"];
    assert_eq!(
        (&traffic["units"], &traffic["bytes"]),
        (&64.into(), &((256u64 << 30) as f64).into())
    );
    assert_eq!(number(traffic, "most_bytes_of_a_server"), (128u64 << 30) as f64);
    let table = good(&["simulate", "stage"]);
    assert!(table.contains("from 26 outputs") && table.contains("never"), "{table}");
    assert!(table.contains("staged in 19.4 s, written by servers in 13.6 s"), "{table}");
}

#[test]
fn more_ranks_talk_to_few_servers_each() {
    let report = document(&["stage", "--ranks", "16k", "--servers", "32", "--interval", "60"]);
    let traffic = &report["traffic"];
    assert!(number(traffic, "most_servers_of_a_rank") <= 8.0, "{traffic}");
    assert!(number(traffic, "most_ranks_of_a_server") < 16_384.0 / 4.0, "{traffic}");
    assert!(number(traffic, "pairs") >= 16_384.0, "{traffic}");
}

#[test]
fn numbers_that_fit_nothing_are_one_sentence() {
    for (arguments, what) in [
        (&["merge", "--grid", "2,2", "--ranks", "5"][..], "4 blocks are too few"),
        (
            &["merge", "--grid", "2,2", "--block", "4", "--ranks", "1"],
            "as many lengths as the grid",
        ),
        (&["merge", "--dealing", "cards"], "blocks are dealt by morton, rows, knapsack"),
        (&["stage", "--grid-out", "4,4"], "has 2 dimensions, the array 3"),
        (&["stage", "--grid-out", "1k,1k,1k"], "more than 16777216"),
        (&["merge", "--ranks", "2M"], "from 1 to 1048576"),
        (
            &["merge", "--grid", "1T,1T,1T", "--ranks", "1"],
            "more blocks or elements than 64 bits can number",
        ),
    ] {
        let wrong = run(&[&["simulate"], arguments].concat());
        assert_eq!((wrong.code, wrong.out.as_str()), (Some(2), ""), "{arguments:?}");
        assert!(wrong.err.contains(what), "{arguments:?}: {}", wrong.err);
    }
}
