//! Decomposed variables are the arrays they stand for.

mod scenario;

/// How many seeds for each number of ranks; more with ESKER_SEEDS.
fn seeds() -> u64 {
    std::env::var("ESKER_SEEDS").ok().and_then(|n| n.parse().ok()).unwrap_or(60)
}

fn on_threads(ranks: usize, seeds: std::ops::Range<u64>) {
    let dir = tempfile::tempdir().unwrap();
    for seed in seeds {
        let path = dir.path().join("run.nc");
        esker::launch(ranks, |comm| scenario::run_decomposed(seed, comm, &path));
    }
}

#[test]
fn decomposed_variables_of_one_rank_agree_with_the_model() {
    on_threads(1, 0..seeds());
}

#[test]
fn decomposed_variables_of_two_ranks_agree_with_the_model() {
    on_threads(2, 1000..1000 + seeds());
}

#[test]
fn decomposed_variables_of_four_ranks_agree_with_the_model() {
    on_threads(4, 2000..2000 + seeds());
}

#[test]
fn decomposed_variables_of_seven_ranks_agree_with_the_model() {
    on_threads(7, 3000..3000 + seeds() / 2);
}

#[test]
fn decomposed_variables_of_sixteen_ranks_agree_with_the_model() {
    on_threads(16, 4000..4000 + seeds() / 4);
}
