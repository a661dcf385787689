//! Programs that know nothing of layouts use files in every one of them, as hints say.

use crate::compilers::mpis;
use crate::place::Place;

/// The hints of each layout that a program gets without a change.
const LAYOUTS: [(&str, &str); 8] = [
    ("canonical", ""),
    ("log", "esker_layout=log"),
    ("burst", "nc_burst_buf=enable;nc_burst_buf_dirname=."),
    ("chunked", "esker_chunk=auto"),
    ("compressed", "esker_chunk=y/5,x/4|text:auto;esker_filter=shuffle+zstd,3"),
    ("folder", "esker_chunk=auto;esker_filter=deflate,1;esker_chunk_files=rank"),
    ("both", "esker_chunk=y/3;esker_filter=lz4;nc_burst_buf=enable;nc_burst_buf_dirname=."),
    ("filtered-log", "esker_layout=log;esker_filter=zstd"),
];

#[test]
fn a_program_uses_again_whatever_it_wrote_in_every_layout() {
    let place = Place::new();

    for mpi in mpis("mpicc") {
        let program = place.compile(&mpi, "reopen.c");
        for (name, hints) in LAYOUTS {
            for ranks in [1, 4, 7] {
                let file = format!("{name}-{ranks}.nc");
                let hints = format!("PNETCDF_HINTS={hints}");
                place.succeeds(&mpi, ranks, &[&hints], &program, &[&file]);
            }
        }
    }
}

#[test]
fn an_abort_gives_up_what_was_not_committed_to_a_container_and_hints_say_something_of_versions() {
    let place = Place::new();
    for (number, mpi) in mpis("mpicc").into_iter().enumerate() {
        let program = place.compile(&mpi, "aborted.c");
        for ranks in [1, 4] {
            for files in ["process", "node"] {
                let file = format!("aborted-{number}-{ranks}-{files}.esk");
                let hints = format!(
                    "PNETCDF_HINTS=esker_layout=log;esker_log_files={files};esker_message=of C"
                );
                place.succeeds(&mpi, ranks, &[&hints], &program, &[&file]);
                let path = place.path().join(&file);
                let store: std::sync::Arc<dyn esker_store::Store> =
                    std::sync::Arc::new(esker_store::LocalStore);
                let recovery =
                    esker::recover_container(&store, &path, Default::default(), &mut |_, _| {});
                assert!(recovery.unwrap().is_clean(), "{file}: nothing came back");
                let all = esker::versions(&*store, &path, None).unwrap();
                let said: Vec<&str> = all.iter().map(|one| &*one.message).collect();
                assert_eq!(said, ["of C", "of C"], "{file}");
                // A name that C reads by.
                esker::tag(&*store, &path, "v1", Some(2), "").unwrap();
                place.succeeds(&mpi, ranks, &[], &program, &[&file, "v1"]);
            }
        }
    }
}

/// Compiles a program and runs it on 1, 4 and 7 ranks of each MPI.
fn runs(name: &str) {
    let place = Place::new();
    let compiler = if name.ends_with(".c") { "mpicc" } else { "mpif90" };
    for mpi in mpis(compiler) {
        let program = place.compile(&mpi, name);
        for ranks in [1, 4, 7] {
            place.succeeds(&mpi, ranks, &[], &program, &[]);
        }
    }
}

#[test]
fn chunks_filters_maps_tokens_and_merged_definitions_from_c() {
    runs("storage.c");
}

#[test]
fn chunks_filters_maps_and_tokens_from_fortran_77() {
    runs("storage.f");
}

#[test]
fn chunks_filters_maps_and_tokens_from_fortran_90() {
    runs("storage.f90");
}

#[test]
fn a_program_opens_old_versions_by_name() {
    let place = Place::new();
    for mpi in mpis("mpicc") {
        let program = place.compile(&mpi, "versions.c");
        for ranks in [1, 3] {
            let file = format!("{}-{ranks}.esk", mpi.name);
            place.succeeds(&mpi, ranks, &[], &program, &[&file]);
        }
    }
}

#[test]
fn transactions_with_numbers_aborts_and_readers_that_wait_from_c_and_fortran() {
    let place = Place::new();
    for (program, compiler, all) in
        [("transactions.c", "mpicc", &[1, 2, 4][..]), ("transactions.f90", "mpif90", &[1][..])]
    {
        for mpi in mpis(compiler) {
            let name = program.replace('.', "-");
            let program = place.compile(&mpi, program);
            for ranks in all {
                let file = format!("{name}-{}-{ranks}.esk", mpi.name);
                let hints = ["PNETCDF_HINTS=esker_layout=log"];
                place.succeeds(&mpi, *ranks, &hints, &program, &[&file]);
            }
        }
    }
}

/// What a hint cannot do is no error, and is told.
#[test]
fn what_a_storage_hint_cannot_do_is_told() {
    let place = Place::new();
    for mpi in mpis("mpicc") {
        let program = place.compile(&mpi, "reopen.c");
        let hints = "PNETCDF_HINTS=esker_chunk=auto;esker_filter=zfp,reversible";
        let said = place.succeeds(&mpi, 1, &["ESKER_VERBOSE=1", hints], &program, &["told.nc"]);
        assert!(said.contains("hint esker_chunk is not used for variable \"scalar\""), "{said}");
        assert!(said.contains("hint esker_filter is not used for variable \"text\""), "{said}");
        assert!(!said.contains("is not used for variable \"record\""), "{said}");
    }
}

/// What is open belongs to the process that opened it, where there is one writer at a time.
#[test]
fn a_forked_process_does_not_write_what_its_parent_has_open() {
    let place = Place::new();
    for mpi in mpis("mpicc") {
        let program = place.compile(&mpi, "forked.c");
        for (name, hints) in LAYOUTS {
            let file = format!("forked-{name}.nc");
            let hints = format!("PNETCDF_HINTS={hints}");
            let one_writer = if name == "canonical" { "0" } else { "1" };
            place.succeeds(&mpi, 1, &[&hints], &program, &[&file, one_writer]);
        }
    }
}
