//! Every kernel, small, on Esker and on the peers: the values come back, the files agree.

use esker_bench::kernels::{Kernel, Scale};
use esker_bench::{Layout, Options, Peer, Reading, Report, run, svg};
use esker_testkit::skip;

fn small(peers: &[Peer], ranks: usize) -> (tempfile::TempDir, Options) {
    let dir = tempfile::tempdir().unwrap();
    let mut options = Options::new(dir.path());
    options.ranks = ranks;
    options.repeat = 1;
    options.peers = peers.to_vec();
    options.build_peers = false;
    options.scale = Scale { bytes: Some(1 << 20), records: Some(1), transfer: 512 };
    if esker_bench::maps_folder(None).is_none() {
        skip!("E3SM's maps are not here (ESKER_SHARED_DATA names their folder)");
        options.kernels.retain(|kernel| kernel.case().is_none());
    }
    (dir, options)
}

/// Whether the peers are here; says which are not.
fn has_peers(report: &Report) -> bool {
    let libraries = || report.kernels.iter().flat_map(|kernel| &kernel.libraries);
    for library in libraries() {
        let fault = library.fault.as_deref().unwrap_or_default();
        if fault.contains("cannot be compiled") || fault.contains("not built yet") {
            skip!("{}: {fault}", library.library.name());
            return false;
        }
    }
    true
}

fn assert_all_ran(report: &Report) {
    for kernel in &report.kernels {
        for library in &kernel.libraries {
            let (kernel, name) = (kernel.kernel.name(), library.library.name());
            assert_eq!(library.fault, None, "{kernel} on {} ranks, {name}", report.ranks);
            assert_eq!(library.runs.len(), 1);
            if name.starts_with("pnetcdf") {
                assert_eq!(library.equal, Some(true), "{kernel} on {} ranks", report.ranks);
            }
        }
    }
}

#[test]
fn esker_and_plain_writes_read_back_every_kernel_on_any_number_of_ranks() {
    for ranks in [1, 3, 4, 8, 16] {
        let (_dir, mut options) = small(&[Peer::Posix], ranks);
        // A million plain writes of a few bytes take long, and show nothing.
        options.kernels.retain(|kernel| *kernel != Kernel::E3smF);
        assert_all_ran(&run(&options, &mut |_| ()).unwrap());
    }
}

#[test]
fn pnetcdf_writes_the_same_values() {
    for ranks in [2, 3] {
        let (_dir, mut options) = small(&[Peer::Pnetcdf], ranks);
        options.kernels.retain(|kernel| ranks == 2 || *kernel != Kernel::E3smF);
        let report = run(&options, &mut |_| ()).unwrap();
        if !has_peers(&report) {
            return;
        }
        assert_all_ran(&report);
    }
}

#[test]
fn every_rank_finds_its_blobs_again() {
    let (_dir, mut options) = small(&[Peer::Blobs], 3);
    options.kernels.retain(|kernel| *kernel != Kernel::E3smF);
    let report = run(&options, &mut |_| ()).unwrap();
    if has_peers(&report) {
        assert_all_ran(&report);
    }
}

#[test]
fn pnetcdfs_burst_buffer_writes_the_same_values() {
    let (_dir, mut options) = small(&[Peer::PnetcdfBurstBuffer], 2);
    options.kernels = vec![Kernel::StridedCalls, Kernel::Btio, Kernel::E3smI];
    let report = run(&options, &mut |_| ()).unwrap();
    if has_peers(&report) {
        assert_all_ran(&report);
    }
}

#[test]
fn a_file_for_each_rank_and_mpi_io_read_back_every_kernel() {
    for ranks in [1, 3] {
        let (_dir, mut options) = small(&[Peer::PosixFiles, Peer::MpiIo, Peer::MpiIoRomio], ranks);
        options
            .kernels
            .retain(|kernel| ranks == 3 && *kernel != Kernel::E3smF || *kernel == Kernel::Hacc);
        let report = run(&options, &mut |_| ()).unwrap();
        if !has_peers(&report) {
            return;
        }
        assert_all_ran(&report);
    }
}

#[test]
fn whole_variables_are_read_through_mpi_io_and_not_from_files_of_ranks() {
    let (_dir, mut options) = small(&[Peer::PosixFiles, Peer::MpiIo], 3);
    options.kernels = vec![Kernel::Hacc, Kernel::Btio];
    options.reading = Reading::Whole;
    let report = run(&options, &mut |_| ()).unwrap();
    if !has_peers(&report) {
        return;
    }
    assert_all_ran(&report);
    for kernel in report.to_json()["kernels"].as_array().unwrap() {
        assert!(kernel["peers"]["posix-files"]["read"]["mb_per_s"].is_null());
        assert!(kernel["peers"]["mpi-io"]["ratio_read"].as_f64().unwrap() > 0.0);
    }
}

#[test]
fn every_step_of_hacc_is_a_version_whether_the_disk_is_waited_for_or_not() {
    use esker_bench::worker::{Engine, Job, Part, Ranks};
    for sync in [false, true] {
        let (dir, options) = small(&[], 3);
        let plan = Kernel::Hacc.plan(3, &options.scale, None).unwrap();
        let (file, path) = (dir.path().join("plan"), dir.path().join("hacc.esk"));
        std::fs::write(&file, esker_bench::plan_file::encode(&plan)).unwrap();
        let (engine, ranks, reading) =
            (Engine::Esker(Layout::Log), Ranks::Threads, Reading::Requests);
        let job = |part| Job {
            engine,
            ranks,
            plan: file.clone(),
            file: path.clone(),
            sync,
            reading,
            part,
        };
        assert_eq!(job(Part::Whole).run().unwrap().unwrap().wrong, 0);
        let version = |path: &std::path::Path| {
            esker::Dataset::open(path).unwrap().container_version().unwrap()
        };
        assert_eq!(version(&path), 10);
        // After each transaction exactly its variables have checksums, which are those of the values.
        for number in 1..=10u64 {
            let opened = esker::OpenOptions::new().container_version(number);
            let dataset = esker::Dataset::open_with(&path, opened).unwrap();
            let crc = dataset.var("crc").unwrap();
            let sums: Vec<i64> = dataset.get(crc, &esker::Selection::all()).unwrap();
            let there: Vec<bool> = sums.iter().map(|sum| *sum >= 0).collect();
            let expected: Vec<bool> = (0..27).map(|i| i < 3 * (number - 1)).collect();
            assert_eq!(there, expected, "version {number}");
        }
        let dataset = esker::Dataset::open(&path).unwrap();
        let sums: Vec<i64> =
            dataset.get(dataset.var("crc").unwrap(), &esker::Selection::all()).unwrap();
        let mask: Vec<u16> =
            dataset.get(dataset.var("mask").unwrap(), &esker::Selection::all()).unwrap();
        for rank in 0..3 {
            let part = &mask[mask.len() * rank / 3..mask.len() * (rank + 1) / 3];
            let bytes: Vec<u8> = part.iter().flat_map(|value| value.to_ne_bytes()).collect();
            assert_eq!(sums[8 * 3 + rank], i64::from(crc32c::crc32c(&bytes)), "rank {rank}");
        }
        // Nothing is left to do: no version more, but that by which a sync promises what it found.
        assert_eq!(job(Part::Rest).run().unwrap().unwrap().wrong, 0);
        assert_eq!(version(&path), if sync { 11 } else { 10 });
        assert_eq!(job(Part::Read(5)).run().unwrap().unwrap().wrong, 0);
    }
}

#[test]
fn datasets_are_read_on_other_numbers_of_ranks() {
    let (_dir, mut options) = small(&[Peer::Posix], 3);
    options.kernels = vec![Kernel::Hacc, Kernel::Checkerboard];
    options.layouts = vec![Layout::Log, Layout::Canonical];
    options.read_ranks = vec![1, 5];
    let report = run(&options, &mut |_| ()).unwrap();
    assert_all_ran(&report);
    for kernel in report.to_json()["kernels"].as_array().unwrap() {
        for library in [&kernel["esker"], &kernel["peers"]["esker"]] {
            let others = library["on_other_ranks"].as_array().unwrap();
            let of = |other: &serde_json::Value| (other["ranks"].as_u64(), other["wrong"].as_u64());
            let found: Vec<_> = others.iter().map(of).collect();
            assert_eq!(found, [(Some(1), Some(0)), (Some(5), Some(0))]);
        }
    }
    assert!(report.to_text().contains("read and verified"), "{}", report.to_text());
}

#[test]
#[ignore = "ADIOS2 takes a quarter of an hour to build: ./test adios2"]
fn adios2_reads_back_its_blocks() {
    let (_dir, mut options) = small(&[Peer::Adios2], 2);
    options.build_peers = true;
    options.kernels = vec![Kernel::StridedCalls, Kernel::Flash, Kernel::Btio, Kernel::E3smI];
    assert_all_ran(&run(&options, &mut |_| ()).unwrap());
}

#[test]
fn whole_variables_and_planes_are_read_by_whoever_wrote() {
    for (reading, peers) in [
        (Reading::Whole, &[Peer::Posix, Peer::Pnetcdf, Peer::Blobs][..]),
        (Reading::Planes, &[Peer::Posix, Peer::Pnetcdf, Peer::Blobs]),
    ] {
        let (_dir, mut options) = small(peers, 3);
        options.kernels.retain(|kernel| *kernel != Kernel::E3smF);
        options.reading = reading;
        let report = run(&options, &mut |_| ()).unwrap();
        if !has_peers(&report) {
            return;
        }
        assert_all_ran(&report);
        for kernel in report.to_json()["kernels"].as_array().unwrap() {
            let blobs = &kernel["peers"]["blobs"];
            assert!(blobs["read"]["mb_per_s"].is_null(), "blobs cannot be read otherwise");
            assert!(kernel["peers"]["pnetcdf"]["ratio_read"].as_f64().unwrap() > 0.0);
        }
    }
}

#[test]
fn several_layouts_stand_beside_each_other_and_hold_the_same() {
    for reading in Reading::ALL {
        let (_dir, mut options) = small(&[], 3);
        options.kernels.retain(|kernel| *kernel != Kernel::E3smF);
        options.layouts = Layout::ALL.to_vec();
        options.reading = reading;
        let report = run(&options, &mut |_| ()).unwrap();
        let names: Vec<&str> = report.libraries.iter().map(|l| l.name()).collect();
        let all = [
            "esker",
            "esker-log",
            "esker-bb",
            "esker-decomposed",
            "esker-chunked",
            "esker-subfiles",
        ];
        assert_eq!(names, all);
        for kernel in &report.kernels {
            for library in &kernel.libraries[1..] {
                let what = format!("{} {}", kernel.kernel.name(), library.library.name());
                match &library.fault {
                    None => assert_eq!(library.equal, Some(true), "{what}"),
                    Some(fault) => assert!(fault.contains("not built"), "{what}: {fault}"),
                }
            }
        }
    }
}

#[test]
fn a_report_has_ratios_and_a_picture() {
    let (dir, mut options) = small(&[Peer::Posix], 2);
    options.kernels = vec![Kernel::Contiguous, Kernel::Btio];
    options.repeat = 3;
    let report = run(&options, &mut |_| ()).unwrap();
    let json = report.to_json();
    for kernel in json["kernels"].as_array().unwrap() {
        let peer = &kernel["peers"]["posix"];
        let times = peer["write"]["seconds"]["median"].as_f64().unwrap()
            / kernel["esker"]["write"]["seconds"]["median"].as_f64().unwrap();
        assert!((peer["ratio_write"].as_f64().unwrap() - times).abs() < 1e-6 * times);
        assert!(peer["ratio_read"].as_f64().unwrap() > 0.0);
        assert_eq!(kernel["esker"]["runs"].as_array().unwrap().len(), 3);
    }
    assert!(json["machine"]["cores"].as_u64().unwrap() > 0);
    assert!(report.to_text().contains("contiguous"));
    let picture = svg::draw(&report);
    assert!(picture.starts_with("<svg") && picture.ends_with("</svg>\n"));
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "nothing is left behind");
}

#[test]
fn without_a_map_the_kernel_says_so_and_the_others_run() {
    let (dir, mut options) = small(&[], 2);
    options.kernels = vec![Kernel::E3smF, Kernel::Contiguous];
    options.maps = Some(dir.path().join("nowhere"));
    let report = run(&options, &mut |_| ()).unwrap();
    let faults: Vec<_> = report.kernels.iter().map(|k| k.libraries[0].fault.clone()).collect();
    assert!(faults[0].as_ref().unwrap().contains("pnetcdf_e3sm_map_f_case_16p.nc"));
    assert_eq!(faults[1], None);
}
