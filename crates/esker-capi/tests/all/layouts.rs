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
