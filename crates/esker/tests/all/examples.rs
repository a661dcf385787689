//! Every example runs, and makes a file that is what it says.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use esker::{Dataset, Selection};
use esker_testkit::mpi::Mpi;

/// An example as cargo has built it: beside the tests, in `examples`.
fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let path = test.ancestors().nth(2).unwrap().join("examples").join(name);
    if !path.exists() {
        // `cargo test --test examples` builds the test alone.
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "-q", "-p", "esker", "--examples"]);
        assert!(cargo.status().unwrap().success());
    }
    path
}

fn run(command: &mut Command) -> String {
    let Output { status, stdout, stderr } = command.output().unwrap();
    assert!(status.success(), "{command:?}: {}", String::from_utf8_lossy(&stderr));
    String::from_utf8(stdout).unwrap()
}

/// Runs an example in a directory that goes away, and looks at what it made.
fn made_by(name: &str, look: impl FnOnce(&Dataset, &str)) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("out.nc");
    let said = run(Command::new(example(name)).arg(&file));
    look(&Dataset::open(&file).unwrap(), &said);
}

fn values(dataset: &Dataset, var: &str) -> Vec<f64> {
    dataset.get(dataset.var(var).unwrap(), &Selection::all()).unwrap()
}

#[test]
fn log_makes_a_container_whose_versions_can_be_read() {
    made_by("log", |dataset, said| {
        assert!(dataset.container_version().is_some());
        assert!(said.contains("has 1 record, version"), "{said}");
        let t = values(dataset, "t");
        assert!((0..300).all(|i| t[i] == (100 * (i / 100) + i % 100 / 4) as f64), "{t:?}");
    });
}

#[test]
fn transactions_appear_in_the_order_of_their_numbers() {
    made_by("transactions", |dataset, said| {
        assert_eq!(said, "a reader saw [1, 2, 4, 5, 6] records\n");
        let expected = (0..24).map(|i| i / 4).map(|step| match step {
            2 => f64::from(9.969_21e36_f32),
            step => f64::from(step),
        });
        assert_eq!(values(dataset, "t"), expected.collect::<Vec<f64>>());
    });
}

#[test]
fn expiry_keeps_what_has_a_name_and_the_last_and_the_rest_goes() {
    made_by("expiry", |dataset, said| {
        assert!(said.starts_with("2 ranges of versions have expired: "), "{said}");
        assert!(said.contains("version 7 has expired, and cannot be opened any more"), "{said}");
        assert_eq!(
            dataset.container_version(),
            Some(203),
            "a tag and an expiry are behind the last"
        );
        assert!(values(dataset, "state").iter().all(|value| *value == 200.0));
    });
}

#[test]
fn blocks_are_listed_and_a_plane_goes_through_them() {
    made_by("blocks", |dataset, said| {
        assert_eq!(said, "216 blocks, 54 of rank 1\nfrom 20 to 110564\n");
        let expected: Vec<f64> = (0..48 * 48 * 48).map(f64::from).collect();
        assert_eq!(values(dataset, "density"), expected);
    });
}

#[test]
fn background_flushes_and_reads_while_it_computes() {
    made_by("background", |dataset, said| {
        assert_eq!(said, "the mean is 499.5\n");
        let expected: Vec<f64> = (0..1000).map(f64::from).collect();
        assert_eq!(values(dataset, "t"), expected);
    });
}

#[test]
fn chunks_are_small_and_have_what_was_written() {
    made_by("chunks", |dataset, said| {
        assert!(said.starts_with("24 chunks, "), "{said}");
        assert!(said.ends_with("from 252 to 296.75\n"), "{said}");
        let t = values(dataset, "t");
        let expected = |i: usize| 250.0 + (i / 360 % 180) as f64 / 4.0 + (i / 64_800) as f64;
        assert!(t.iter().enumerate().all(|(i, value)| *value == expected(i)));
    });
}

#[test]
fn decomposed_variables_are_read_as_arrays() {
    made_by("decomposed", |dataset, said| {
        let expected: Vec<f64> = (0..3000).map(f64::from).collect();
        assert_eq!(values(dataset, "heat"), expected);
        assert_eq!(said.lines().count(), 4);
        assert!(said.lines().all(|line| line.contains("3 runs in 3 steps")), "{said}");
    });
}

#[test]
fn a_distributed_array_is_one_array_in_the_file() {
    made_by("distributed_array", |dataset, _| {
        let t = values(dataset, "temperature");
        assert_eq!(t.len(), 400 * 250);
        assert_eq!((t[0], t[300 * 250]), (273.0, 3273.0));
    });
}

#[test]
fn a_second_run_goes_on_after_the_first_ones_records() {
    made_by("time_steps", |dataset, _| {
        assert_eq!(dataset.numrecs(), 8);
        assert_eq!(values(dataset, "time"), [0.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0]);
        let height = values(dataset, "height");
        assert_eq!(&height[7 * 120 + 118..], [818.0, 819.0]);
    });
}

#[test]
fn scattered_cells_are_in_order_in_the_file() {
    made_by("irregular", |dataset, said| {
        assert_eq!(values(dataset, "salt"), (0..5000).map(f64::from).collect::<Vec<_>>());
        assert_eq!(said.lines().count(), 4, "{said}");
    });
}

#[test]
fn planes_of_a_volume_are_read() {
    made_by("planes", |_, said| assert!(said.contains("reads of"), "{said}"));
}

#[test]
fn many_small_requests_become_few_writes() {
    made_by("queue", |dataset, said| {
        assert_eq!(values(dataset, "v29")[4 * 20 * 63 + 1], 6301.0);
        assert_eq!(said.matches(": 1920 requests").count(), 4, "{said}");
    });
}

#[test]
fn the_mpi_example_runs_alone_and_on_every_mpi_that_is_here() {
    made_by("mpi", |dataset, said| {
        assert_eq!(values(dataset, "v").len(), 1000);
        assert!(said.starts_with("1 ranks wrote 1000 values"), "{said}");
    });
    for mpi in Mpi::here() {
        let directory = tempfile::tempdir().unwrap();
        let file: &Path = &directory.path().join("out.nc");
        let words = [example("mpi"), file.into()].map(|word| word.to_str().unwrap().to_string());
        let ended = mpi.run(4, &[&words[0], &words[1]]);
        assert!(ended.succeeded(), "{ended:?}");
        let said = ended.output;
        assert_eq!(said.matches("4 ranks wrote 4000 values").count(), 1, "{said}");
        let v = values(&Dataset::open(file).unwrap(), "v");
        assert!(v.iter().enumerate().all(|(i, value)| *value == (i % 4) as f64));
    }
}
