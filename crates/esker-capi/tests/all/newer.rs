//! What PnetCDF has had since 1.12.3, up to 1.15.0.

use std::collections::BTreeMap;
use std::path::Path;

use esker_testkit::skip;

use crate::compilers::mpis;
use crate::place::Place;

/// Compiles a program and runs it on 1 and 3 ranks of each MPI.
fn runs(name: &str) {
    let place = Place::new();
    let compiler = if name.ends_with(".c") { "mpicc" } else { "mpif90" };
    for mpi in mpis(compiler) {
        let program = place.compile(&mpi, name);
        for ranks in [1, 3] {
            place.succeeds(&mpi, ranks, &[], &program, &[]);
        }
    }
}

#[test]
fn a_count_that_is_ignored_is_that_of_the_selection() {
    runs("count_ignore.c");
}

#[test]
fn a_count_that_is_ignored_in_fortran_77_is_that_of_the_selection() {
    runs("count_ignore.f");
}

#[test]
fn a_count_that_is_ignored_in_fortran_90_is_that_of_the_selection() {
    runs("count_ignore.f90");
}

/// What a library says of each number: name and sentence.
fn said(text: &str) -> BTreeMap<i32, (String, String)> {
    let lines = text.lines().filter_map(|line| {
        let mut parts = line.splitn(3, '|');
        let number = parts.next()?.parse().ok()?;
        Some((number, (parts.next()?.to_string(), parts.next()?.to_string())))
    });
    lines.collect()
}

/// Programs compare the sentences, so they are the peer's.
#[test]
fn errors_have_the_names_and_sentences_of_the_peer() {
    let place = Place::new();
    for mpi in mpis("mpicc") {
        let program = place.compile(&mpi, "words.c");
        let text = place.succeeds(&mpi, 1, &[], &program, &[]);
        let ours = said(&text);
        for (number, name) in [
            (-241, "NC_EFSTYPE"),
            (-242, "NC_EDRIVER"),
            (-243, "NC_EFILEVIEW"),
            (-274, "NC_EMULTIDEFINE_HINTS"),
        ] {
            assert_eq!(ours[&number].0, name);
            assert!(!ours[&number].1.starts_with("Unknown"), "{:?}", ours[&number]);
        }
        assert_eq!(ours[&-1].1, "Unknown Error: Unrecognized error code    -1");
        assert!(text.contains("header 1.15.0, library 1.15.0 of Esker "), "{text}");
        let peer = "/usr/lib/x86_64-linux-gnu";
        if mpi.suffix != "openmpi" {
            // Debian's library is for OpenMPI.
            continue;
        }
        if !Path::new(peer).join("libpnetcdf.so.0d").exists() {
            skip!("PnetCDF's own library is not there");
            continue;
        }
        let variables = [&*format!("LD_LIBRARY_PATH={peer}")];
        let theirs = said(&place.succeeds(&mpi, 1, &variables, &program, &[]));
        assert!(theirs.len() > 290);
        for (number, (name, sentence)) in &theirs {
            // 1.12.3 has no names for what is newer in netCDF, and a small letter in one sentence.
            if name.starts_with("Unknown code") || *number == -240 {
                continue;
            }
            assert_eq!(ours.get(number), Some(&(name.clone(), sentence.clone())));
        }
    }
}

/// As in PnetCDF, whose programs change their buffers between a post and its wait.
#[test]
fn a_small_put_is_copied_when_it_is_posted() {
    let place = Place::new();
    for mpi in mpis("mpicc") {
        let program = place.compile(&mpi, "small_iputs.c");
        for arguments in [&[][..], &["auto"], &["enable"], &["disable"]] {
            place.succeeds(&mpi, 2, &[], &program, arguments);
        }
    }
}

#[test]
fn a_list_of_blocks_that_the_program_changed_is_looked_at_again() {
    let place = Place::new();
    for mpi in mpis("mpicc") {
        let program = place.compile(&mpi, "lists.c");
        for hints in
            [&[][..], &["PNETCDF_HINTS=esker_cache=0"], &["PNETCDF_HINTS=esker_cache=5000"]]
        {
            place.succeeds(&mpi, 2, hints, &program, &[]);
        }
    }
}

#[test]
fn data_are_aligned_as_hints_and_arguments_say_in_their_order() {
    let place = Place::new();
    for mpi in mpis("mpicc") {
        let program = place.compile(&mpi, "aligned.c");
        for ranks in [1, 2] {
            place.succeeds(&mpi, ranks, &[], &program, &[]);
        }
        let environment = ["PNETCDF_HINTS=nc_var_align_size=2500"];
        place.succeeds(&mpi, 1, &environment, &program, &["2500"]);
    }
}

#[test]
fn a_dimension_may_be_as_long_as_its_format_can_say() {
    runs("dimensions.c");
}

#[test]
fn hints_are_told_as_they_were_given_and_those_without_effect_in_a_sentence() {
    let place = Place::new();
    for mpi in mpis("mpicc") {
        let program = place.compile(&mpi, "hints.c");
        let quiet = place.succeeds(&mpi, 4, &[], &program, &[]);
        assert!(!quiet.contains("pnetcdf:"), "{quiet}");
        let said = place.succeeds(&mpi, 1, &["ESKER_VERBOSE=1"], &program, &[]);
        let sentence = "pnetcdf: the hint nc_driver=gio is known, and has no effect here";
        assert!(said.contains(sentence), "{said}");
        for used in
            ["file_striping", "cb_buffer_size", "nc_num_aggrs_per_node", "nc_data_move_chunk_size"]
        {
            assert!(!said.contains(used), "{said}");
        }
    }
}
