//! The numbers of Wan et al., sections 4.3 and 5.2.

use esker_policy::staging::{Merging, Pay, Staging};
use proptest::prelude::*;

fn close(value: f64, expected: f64) {
    assert!((value - expected).abs() <= 1e-9 * expected.abs(), "{value} {expected}");
}

#[test]
fn at_40_seconds_staging_pays_from_26_outputs_on() {
    let run = Staging::of_the_paper(40.0, 1.0);
    assert!(run.keeps_up());
    close(run.post_hoc(), 10647.8);
    close(Staging { outputs: 26.0, ..run }.on_the_fly(), 258.0 * (40.0 * 26.0 + 33.0));
    assert_eq!(run.pays_from(), Pay::From(26));
    let of = |outputs| Staging { outputs, ..run };
    assert!(of(25.0).on_the_fly() > of(25.0).post_hoc());
    assert!(of(26.0).on_the_fly() < of(26.0).post_hoc());
}

#[test]
fn at_20_seconds_staging_never_pays() {
    let run = Staging::of_the_paper(20.0, 50.0);
    assert!(!run.keeps_up());
    close(run.post_hoc(), 5527.8 * 50.0);
    close(run.on_the_fly(), 258.0 * (33.0 * 50.0 + 20.0));
    assert_eq!(run.pays_from(), Pay::Never);
}

#[test]
fn below_33_seconds_only_intervals_above_31_66_pay() {
    let run = Staging::of_the_paper(32.0, 1e6);
    assert_eq!((run.shortest_interval_ever() * 100.0).floor() / 100.0, 31.66);
    let shortest = run.shortest_interval().unwrap();
    assert!(31.66 < shortest && shortest < 33.0, "{shortest}");
    assert!(Staging { compute: shortest + 1e-3, ..run }.pays_from() != Pay::Never);
    assert_eq!(Staging { compute: 31.66, ..run }.pays_from(), Pay::Never);
}

#[test]
fn with_50_outputs_intervals_up_to_118_76_pay_and_not_up_to_150_26() {
    // (407.8 N - 8514) / (2 N); the paper prints 150.26, which does not follow from its own formula.
    let run = Staging::of_the_paper(40.0, 50.0);
    close(run.longest_interval().unwrap(), 118.76);
    let of = |compute| Staging { compute, ..run };
    assert!(of(118.7).on_the_fly() < of(118.7).post_hoc());
    assert!(of(118.8).on_the_fly() > of(118.8).post_hoc());
    assert!(of(150.26).on_the_fly() > of(150.26).post_hoc());
}

#[test]
fn merging_within_ranks_loses_48_9_node_seconds_a_variable() {
    let ranks = Merging { nodes: 256.0, cluster: 0.001, copy: 0.19, gather: 0.0 };
    close(ranks.lost(), 48.896);
    let nodes = Merging { cluster: 0.0003, copy: 1.03, gather: 0.25, ..ranks };
    close(nodes.lost(), 256.0 * 1.2803);
    // Two nodes that read 10 s faster win 20.
    assert_eq!(ranks.pays_after(Merging::won(2.0, 15.0, 5.0)), Some(3));
    assert_eq!(ranks.pays_after(0.0), None);
}

/// Output by output: when it has been computed, staged and written. With two buffers at the servers one is staged while
/// another is written; with one buffer neither begins before the other has ended. What has been computed waits in memory.
fn run(staging: &Staging, buffers: usize) -> f64 {
    let (mut computed, mut staged, mut written) = (0.0f64, 0.0f64, vec![0.0f64; buffers]);
    for output in 0..staging.outputs as usize {
        computed += staging.compute;
        let slot = output % buffers;
        staged = computed.max(staged).max(written[slot]) + staging.stage;
        let before = written[(output + buffers - 1) % buffers];
        written[slot] = staged.max(before) + staging.write;
    }
    written.into_iter().fold(0.0, f64::max)
}

proptest! {
    #[test]
    fn both_ways_take_as_long_as_a_run_output_by_output(
        (compute, stage, write) in (1..100u32, 1..100u32, 1..100u32), outputs in 1..60u32,
    ) {
        let staging = Staging {
            compute: compute.into(), stage: stage.into(), write: write.into(), outputs: outputs.into(),
            ..Staging::of_the_paper(0.0, 0.0)
        };
        prop_assert_eq!(run(&staging, 1), staging.on_the_fly_seconds());
        prop_assert_eq!(run(&staging, 2), staging.pipelined_seconds());
        prop_assert!(staging.pipelined_seconds() <= staging.on_the_fly_seconds());
    }

    #[test]
    fn from_where_it_pays_is_where_it_begins_to(
        (compute, stage, write, read) in (1..100u32, 1..60u32, 1..60u32, 1..60u32), servers in 1..40u32,
    ) {
        let staging = Staging {
            compute: compute.into(), stage: stage.into(), write: write.into(), read: read.into(),
            servers: servers.into(), write_direct: 3.0, ..Staging::of_the_paper(0.0, 1.0)
        };
        for (pay, way) in [
            (staging.pays_from(), Staging::on_the_fly as fn(&Staging) -> f64),
            (staging.pipeline_pays_from(), Staging::pipelined),
        ] {
            let pays = |outputs: u64| {
                let run = Staging { outputs: outputs as f64, ..staging };
                way(&run) < run.post_hoc()
            };
            match pay {
                Pay::From(first) => prop_assert!(pays(first + 1) && (first == 1 || !pays(first - 1))),
                Pay::UpTo(last) => prop_assert!(pays(1) && !pays(last + 2)),
                Pay::Always => prop_assert!(pays(1) && pays(1000)),
                Pay::Never => prop_assert!(!pays(1) && !pays(1_000_000)),
            }
        }
    }
}

#[test]
fn where_staging_and_writing_overlap_they_keep_up_with_shorter_intervals() {
    let run = Staging::of_the_paper(20.0, 50.0);
    close(run.pace(), 20.0);
    close(run.pipelined_seconds(), 50.0 * 20.0 + 33.0);
    assert_eq!(run.pipeline_pays_from(), Staging::of_the_paper(20.0, 1.0).pipeline_pays_from());
    assert!(matches!(run.pipeline_pays_from(), Pay::From(_)), "{:?}", run.pipeline_pays_from());
}
