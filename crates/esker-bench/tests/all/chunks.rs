//! Runs with chunks: shapes as in the paper, values that compress, HDF5 and netCDF-4 beside us.

use esker_bench::kernels::{Kernel, Scale};
use esker_bench::plan::{Data, Element, Plan};
use esker_bench::values::{Buffer, bits};
use esker_bench::{Chunks, Options, Peer, Report, plan_file, run};
use esker_testkit::skip;

const MIB: u64 = 1 << 20;

/// A kernel's plan with chunks; `None`, and a message, if it needs a map that is not here.
fn chunked(kernel: Kernel, ranks: usize, scale: Scale) -> Option<Plan> {
    let recorded = match esker_bench::maps_folder(None) {
        Some(folder) => kernel.recorded(&folder).unwrap(),
        None if kernel.is_recorded() => {
            skip!("E3SM's maps are not here (ESKER_SHARED_DATA names their folder)");
            return None;
        }
        None => None,
    };
    let mut plan = kernel.plan(ranks, &scale, recorded.as_ref()).unwrap();
    kernel.add_chunks(&mut plan, "shuffle deflate,6");
    Some(plan)
}

fn of_size(bytes: u64) -> Scale {
    Scale { bytes: Some(bytes), records: Some(2), transfer: 1024 }
}

#[test]
fn every_chunk_lies_within_its_variable_and_survives_the_plan_file() {
    for kernel in Kernel::ALL {
        for ranks in [1, 2, 3, 8] {
            let Some(plan) = chunked(kernel, ranks, of_size(3 * MIB)) else { continue };
            for var in plan.vars.iter().filter(|var| !var.chunk.is_empty()) {
                let shape = plan.inner_shape(var);
                let (records, inner) = var.chunk.split_at(var.dims.len() - shape.len());
                assert!(records.iter().all(|n| *n == 1), "{} {}", kernel.name(), var.name);
                let fits = inner.iter().zip(&shape).all(|(c, n)| (1..=*n).contains(c));
                assert!(fits, "{} {}: {:?} of {shape:?}", kernel.name(), var.name, var.chunk);
            }
            let bytes = plan_file::encode(&plan);
            assert_eq!(plan_file::decode(&bytes), Ok(plan), "{} {ranks}", kernel.name());
        }
    }
}

#[test]
fn a_rank_of_the_checkerboard_has_a_quarter_of_a_chunk() {
    for kernel in [Kernel::Random100, Kernel::Random50, Kernel::Random10] {
        let plan = chunked(kernel, 16, of_size(4 * MIB)).unwrap();
        let chunk: u64 = plan.vars[0].chunk.iter().product();
        for rank in &plan.ranks {
            assert_eq!(rank.lists[0].elements() * 4, chunk);
        }
        assert_eq!(plan.inner_shape(&plan.vars[0]), [4 * 256, 4 * 256]);
    }
}

#[test]
fn so_many_of_a_hundred_values_are_random_and_every_chunk_is_the_same() {
    for (kernel, percent) in
        [(Kernel::Random100, 100), (Kernel::Random50, 50), (Kernel::Random10, 10)]
    {
        let plan = chunked(kernel, 16, of_size(4 * MIB)).unwrap();
        let block = |rank: usize| {
            let rank = &plan.ranks[rank];
            Buffer::filled(&plan, rank, &rank.steps[0][0])
        };
        // Ranks 0 and 2 have the same corner of two chunks; 0 and 1 two corners of one.
        assert_eq!(block(0), block(2));
        assert_eq!(block(0), block(8));
        let zeros = |block: Buffer| match block {
            Buffer::I32(values) => values.iter().filter(|v| **v == 0).count(),
            _ => panic!("the checkerboard has integers"),
        };
        let all = 256 * 256;
        let expected = all * (100 - percent) / 100;
        assert!(zeros(block(0)).abs_diff(expected) <= all / 100, "{}", kernel.name());
        assert_eq!(block(0) == block(1), percent == 0);
    }
}

#[test]
fn chunks_of_flash_are_the_blocks_of_a_rank_and_those_of_e3sm_a_mebibyte_or_ten() {
    let flash = chunked(Kernel::Flash, 8, Scale::default()).unwrap();
    assert!(flash.vars.iter().all(|var| var.chunk == [80, 16, 16, 16]));
    for (kernel, most) in [(Kernel::E3smF, MIB), (Kernel::E3smG, 10 * MIB), (Kernel::E3smI, MIB)] {
        let Some(plan) = chunked(kernel, 4, of_size(256 * MIB)) else { continue };
        for var in &plan.vars {
            let bytes: u64 = var.chunk.iter().product::<u64>() * var.element.size();
            assert!(bytes <= most, "{} {}", kernel.name(), var.name);
            // Only scalars and short vectors have none.
            assert!(!var.chunk.is_empty() || plan.inner_elements(var) * 8 <= 4096);
        }
    }
}

#[test]
fn pandana_has_108_variables_of_15_very_different_lengths() {
    let plan = chunked(Kernel::Pandana, 8, of_size(256 * MIB)).unwrap();
    assert_eq!((plan.vars.len(), plan.dims.len()), (108, 15));
    let lengths: Vec<u64> = plan.dims.iter().filter_map(|dim| dim.len).collect();
    assert!(lengths[14] > 1000 * lengths[0]);
    for var in &plan.vars {
        let bytes = var.chunk.first().map(|elements| elements * 4);
        assert!(bytes.is_none_or(|bytes| bytes <= MIB), "{}", var.name);
    }
    // Ranks bring different numbers of events.
    let parts: Vec<u64> = plan.ranks.iter().map(|rank| rank.lists[14].elements()).collect();
    assert!(parts.iter().max() > parts.iter().min());
}

#[test]
fn without_chunks_the_values_are_what_they_were() {
    let plan = Kernel::Contiguous.plan(1, &of_size(8 * 1000), None).unwrap();
    let rank = &plan.ranks[0];
    let expected: Vec<f64> = (0..1000).map(|i| (bits(0, i) >> 11) as f64).collect();
    assert_eq!(plan.vars[0].data, Data::Distinct);
    assert_eq!(Buffer::filled(&plan, rank, &rank.steps[0][0]), Buffer::F64(expected));
}

#[test]
fn a_field_is_smooth_but_for_its_noise() {
    let plan = chunked(Kernel::Contiguous, 1, of_size(8 * 4000)).unwrap();
    let rank = &plan.ranks[0];
    let Buffer::F64(values) = Buffer::filled(&plan, rank, &rank.steps[0][0]) else {
        panic!("the field is of {:?}", Element::F64)
    };
    let steps = values.windows(2).map(|pair| (pair[1] - pair[0]).abs() / pair[0].abs());
    assert!(steps.fold(0.0, f64::max) < 0.01);
    let equal = values.windows(2).filter(|pair| pair[0] == pair[1]).count();
    assert!(equal < values.len() / 50, "{equal} neighbours are equal: there is noise everywhere");
}

fn options(peers: &[Peer], ranks: usize) -> (tempfile::TempDir, Options) {
    let dir = tempfile::tempdir().unwrap();
    let mut options = Options::new(dir.path());
    options.ranks = ranks;
    options.repeat = 1;
    options.peers = peers.to_vec();
    options.build_peers = false;
    options.scale = of_size(MIB);
    if esker_bench::maps_folder(None).is_none() {
        options.kernels.retain(|kernel| kernel.case().is_none());
    }
    (dir, options)
}

/// All ran, or are not here, which is said.
fn assert_ran(report: &Report) {
    for kernel in &report.kernels {
        for library in &kernel.libraries {
            let (kernel, name) = (kernel.kernel.name(), library.library.name());
            let fault = library.fault.as_deref().unwrap_or_default();
            if fault.contains("cannot be compiled") {
                skip!("{name}: {fault}");
                continue;
            }
            assert_eq!(fault, "", "{kernel} on {} ranks, {name}", report.ranks);
        }
    }
}

fn compression(report: &Report, kernel: &str, library: &str) -> Option<f64> {
    let mut kernels = report.kernels.iter().filter(|k| k.kernel.name() == kernel);
    let libraries = kernels.next()?.libraries.iter();
    libraries.filter(|l| l.library.name() == library).find_map(|l| l.compression())
}

#[test]
fn values_that_compress_are_the_same_in_the_peers_programs() {
    let (_dir, mut options) = options(&[Peer::Pnetcdf, Peer::Posix], 3);
    options.kernels.retain(|kernel| *kernel != Kernel::E3smF);
    options.chunks = Chunks::Kernel("deflate,1".into());
    assert_ran(&run(&options, &mut |_| ()).unwrap());
}

#[test]
fn hdf5_reads_back_every_kernel_that_it_compressed() {
    for peer in [Peer::Hdf5, Peer::Hdf5OpenMpi] {
        let (_dir, mut options) = options(&[peer], 3);
        // A collective call for each of a thousand transfers, and a chunk written anew in each.
        options.kernels.retain(|kernel| *kernel != Kernel::StridedCalls);
        options.kernels.retain(|kernel| peer == Peer::Hdf5 || *kernel == Kernel::Pandana);
        options.scale.records = Some(1);
        let report = run(&options, &mut |_| ()).unwrap();
        assert_ran(&report);
        for (kernel, at_least) in [("random-10", 4.0), ("checkerboard", 1.05), ("flash", 1.8)] {
            if let Some(ratio) = compression(&report, kernel, "hdf5") {
                assert!(ratio > at_least, "{kernel}: {ratio}");
            }
        }
    }
}

#[test]
fn netcdf4_reads_back_what_it_compressed() {
    let (_dir, mut options) = options(&[Peer::Netcdf4], 3);
    // Kernels without long lists, which are as many collective calls.
    options.kernels = vec![Kernel::Random50, Kernel::Flash, Kernel::Pandana, Kernel::Btio];
    options.chunks = Chunks::Kernel("shuffle deflate,6".into());
    assert_ran(&run(&options, &mut |_| ()).unwrap());
}

#[test]
fn hdf5_and_netcdf4_write_contiguous_variables_too() {
    let (_dir, mut options) = options(&[Peer::Hdf5, Peer::Netcdf4], 2);
    options.kernels = vec![Kernel::Strided, Kernel::Flash, Kernel::Pandana, Kernel::Btio];
    options.chunks = Chunks::Never;
    let report = run(&options, &mut |_| ()).unwrap();
    assert_ran(&report);
    assert_eq!(report.pipeline, None);
    if let Some(ratio) = compression(&report, "flash", "hdf5") {
        assert!(ratio < 1.01, "{ratio}");
    }
}

#[test]
fn a_filter_that_a_peer_lacks_is_said_in_its_row() {
    let (_dir, mut options) = options(&[Peer::Hdf5], 2);
    options.kernels = vec![Kernel::Random50];
    options.chunks = Chunks::Kernel("shuffle zstd,3".into());
    let report = run(&options, &mut |_| ()).unwrap();
    let [esker, hdf5] = &report.kernels[0].libraries[..] else { panic!("two take part") };
    assert_eq!(esker.fault, None);
    let fault = hdf5.fault.as_deref().unwrap();
    if fault.contains("cannot be compiled") {
        return skip!("HDF5: {fault}");
    }
    assert!(fault.contains("deflate"), "{fault}");
}
