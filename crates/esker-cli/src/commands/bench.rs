//! `esker bench`: how fast this machine writes and reads, beside other libraries.

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use esker_bench::adjoint::{self, Case};
use esker_bench::kernels::{Kernel, Scale};
use esker_bench::worker::{Ranks, run_from_arguments};
use esker_bench::{Chunks, Layout, Options, Peer, Reading, svg};

use crate::arguments::size;
use crate::failure::{Ended, Failure, Outcome};
use crate::terminal::{Screen, json, say};

/// Measure kernels of parallel I/O on Esker and, in turn, on its peers
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Kernels: contiguous, strided, strided-calls (an independent call for each transfer), checkerboard,
blocks3d, flash, btio, e3sm-f, e3sm-g, e3sm-i, random-100, random-50, random-10 (a checkerboard in
which so many of a hundred are random and the rest zeros), pandana (108 one-dimensional variables),
chombo, chombo-calls (an independent call for each box) and chombo-32 (levels of boxes of an AMR run),
hacc (nine variables of particles, a transaction for each, with a checksum of each rank's part);
all of these without a name. Each is written, read back and verified; files are compared with the
peers' and removed. e3sm-f and e3sm-g need the model's decomposition maps, and chombo's the
boxes of a run (--maps); e3sm-i is synthetic.

adjoint-wave and adjoint-ice are of another kind: adjoint runs of 32 steps (docs/adjoint.md) whose
checkpoints go to disk raw, as floats, by zlib, lossless, zfp, sz and as auto chooses, with room for 1 to 32
states, on a disk slowed to 50 MB/s a rank and on the disk as it is. Of the options they know
--ranks, --size (of a rank's state), --states, --bound, --beside, --repeat, --dir and --json.

Peers: pnetcdf and pnetcdf-romio (PnetCDF on OpenMPI's two MPI-IO layers; compiled when first
needed, from Debian's libpnetcdf-dev and OpenMPI), pnetcdf-queued and pnetcdf-romio-queued (what the
kernel does by blocking calls is queued, with one wait), pnetcdf-bb (with PnetCDF's burst buffer, in the
same directory), blobs (one contiguous blob for each variable and rank through PnetCDF, as E3SM
does), adios2 (BP5), hdf5, hdf5-openmpi and netcdf4 (parallel HDF5 on two MPIs and netCDF-C, from
Debian's libhdf5-mpich-dev, libhdf5-openmpi-dev and libnetcdf-mpi-dev), mpi-io and mpi-io-romio (one file
through MPI-IO alone, on OpenMPI's two layers), posix and posix-files (plain pwrite and pread of one file, and of
a file for each rank). Libraries that Debian has not are built in
the cache from their source when first asked for: minutes for pnetcdf-bb, more for adios2.

A ratio is Esker's bandwidth, in the first layout, over the other's, of medians: \"ratio\" from the
first request to the closed file, \"open-close\" from before the file is opened or created, for
writing / reading. Beside peers that are MPI programs Esker's ranks are MPI processes too, and
thread-ranks have a row of their own. Without --sync nobody waits for the disk.

With --filter, or beside hdf5 or netcdf4, variables have chunks, and values are like those of real
programs. Bandwidths are of the values before compression.

Examples:
  esker bench                                 everything, on two ranks, beside PnetCDF
  esker bench strided btio --ranks 4          two kernels on four ranks
  esker bench contiguous --peer posix --size 1G
  esker bench e3sm-f --layout log,canonical --peer pnetcdf,blobs --read planes
  esker bench random-50 pandana --peer hdf5 --filter deflate,6 --ranks 4
  esker bench --peer pnetcdf,pnetcdf-romio    and the ratio over the better of the two
  esker bench hacc --layout log --peer posix-files,mpi-io --read-ranks 1,3
  esker bench --comm threads --json           thread-ranks alone, for a program
  esker bench --capi /opt/esker/lib           PnetCDF's program on our libpnetcdf.so
  esker bench --svg speed.svg                 with a picture
  esker bench adjoint-wave adjoint-ice        checkpoints of adjoint runs")]
pub(super) struct Arguments {
    /// Kernels to run (all, if none is named)
    #[arg(value_name = "KERNEL", value_parser = kernel)]
    kernels: Vec<Named>,
    /// Number of ranks
    #[arg(long, value_name = "N", default_value = "2", value_parser = clap::value_parser!(u16).range(1..))]
    ranks: u16,
    /// Bytes in a file, about, as 64M or 1G (64M, or what is natural for the kernel; 256M for e3sm-i)
    #[arg(long, value_name = "BYTES", value_parser = size)]
    size: Option<u64>,
    /// Records of the E3SM kernels (1, 8 and 240)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    records: Option<u64>,
    /// Bytes of one transfer of the strided kernels
    #[arg(long, value_name = "BYTES", default_value = "4k", value_parser = size)]
    transfer: u64,
    /// Esker's layouts: canonical, log, bb (burst buffer), decomposed
    #[arg(long, value_name = "LAYOUT,…", default_value = "canonical", value_delimiter = ',')]
    #[arg(value_parser = layout)]
    layout: Vec<Layout>,
    /// What is read back: requests (what each rank wrote), whole variables, or planes of them
    #[arg(long, value_name = "WHAT", default_value = "requests", value_parser = reading)]
    read: Reading,
    /// Numbers of ranks that read Esker's datasets once more, whole variables, each value verified
    #[arg(long, value_name = "N,…", value_delimiter = ',', value_parser = clap::value_parser!(u16).range(1..))]
    read_ranks: Vec<u16>,
    /// Filters of chunks, as deflate,1 or "shuffle zstd,3", or none (deflate,1 beside hdf5 or netcdf4)
    #[arg(long, value_name = "FILTER", num_args = 1, conflicts_with = "contiguous")]
    filter: Vec<String>,
    /// No chunks, also in HDF5 and netCDF-4
    #[arg(long)]
    contiguous: bool,
    /// The longest that one run may take, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "600", value_parser = clap::value_parser!(u64).range(1..))]
    limit: u64,
    /// Libraries to compare with: pnetcdf, pnetcdf-romio, pnetcdf-queued, pnetcdf-romio-queued, pnetcdf-bb, blobs, adios2, hdf5, hdf5-openmpi, netcdf4, mpi-io, mpi-io-romio, posix, posix-files, or none
    #[arg(long, value_name = "PEER,…", default_value = "pnetcdf", value_delimiter = ',')]
    peer: Vec<String>,
    /// What ranks are: threads or mpi (with both, the first is what peers are compared with); beside MPI peers mpi,threads,
    /// otherwise threads
    #[arg(long, value_name = "KIND,…", value_delimiter = ',')]
    #[arg(value_parser = ranks)]
    comm: Vec<Ranks>,
    /// Folder of Esker's libpnetcdf.so: run the peer's program on it, in place of --comm
    #[arg(long, value_name = "DIR", conflicts_with = "comm")]
    capi: Option<PathBuf>,
    /// How often each is run
    #[arg(long, value_name = "N", default_value = "5", value_parser = clap::value_parser!(u16).range(1..))]
    repeat: u16,
    /// Directory of the files, which should be on the disk to be measured
    #[arg(long, value_name = "DIR", default_value = ".")]
    dir: PathBuf,
    /// Wait for the disk, and count that time
    #[arg(long)]
    sync: bool,
    /// Directory of E3SM's decomposition maps; the boxes of AMR runs are there or in amr beside it
    #[arg(long, value_name = "DIR")]
    maps: Option<PathBuf>,
    /// Raw states that the adjoint kernels have room for
    #[arg(long, value_name = "N,…", default_value = "1,2,4,8,16,32", value_delimiter = ',')]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    states: Vec<u64>,
    /// The bound of lossy filters of the adjoint kernels, of the range of an array
    #[arg(long, value_name = "SHARE", default_value = "1e-4", value_parser = bound)]
    bound: f64,
    /// Encode, write and read checkpoints of the adjoint kernels beside the model, not while it waits
    #[arg(long)]
    beside: bool,
    /// Draw the bandwidths into this file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Print JSON, with every run
    #[arg(long)]
    json: bool,
}

/// What can be measured.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Named {
    /// A kernel of parallel I/O, beside peers.
    Io(Kernel),
    /// An adjoint run.
    Adjoint(Case),
}

fn kernel(name: &str) -> Result<Named, String> {
    let of_io = Kernel::from_name(name).map(Named::Io);
    of_io.or_else(|| Case::from_name(name).map(Named::Adjoint)).ok_or_else(|| {
        let names = Kernel::ALL.iter().map(|kernel| kernel.name());
        let names: Vec<&str> = names.chain(Case::ALL.map(Case::name)).collect();
        format!("the kernels are {}", names.join(", "))
    })
}

fn bound(text: &str) -> Result<f64, String> {
    let bound = text.parse::<f64>().ok().filter(|bound| *bound > 0.0 && *bound < 1.0);
    bound.ok_or_else(|| "it is a share of the range, between 0 and 1".into())
}

fn layout(name: &str) -> Result<Layout, String> {
    let names: Vec<&str> = Layout::ALL.iter().map(|layout| layout.name()).collect();
    Layout::from_name(name).ok_or_else(|| format!("the layouts are {}", names.join(", ")))
}

fn reading(name: &str) -> Result<Reading, String> {
    let names: Vec<&str> = Reading::ALL.iter().map(|reading| reading.name()).collect();
    Reading::from_name(name).ok_or_else(|| format!("use {}", names.join(", ")))
}

fn ranks(name: &str) -> Result<Ranks, String> {
    let all = [Ranks::Threads, Ranks::Mpi];
    all.into_iter().find(|r| r.name() == name).ok_or_else(|| "use threads or mpi".into())
}

fn peers(names: &[String]) -> Result<Vec<Peer>, Failure> {
    let named = names.iter().filter(|name| *name != "none" && !name.is_empty());
    let peer = |name: &String| {
        Peer::from_name(name).ok_or_else(|| {
            let known: Vec<&str> = Peer::ALL.iter().map(|peer| peer.name()).collect();
            let known = known.join(", ");
            Failure::sentence(format_args!("there is no peer \"{name}\": there are {known}, none"))
        })
    };
    named.map(peer).collect()
}

pub(super) fn run(
    arguments: &Arguments,
    again: &[std::ffi::OsString],
    screen: &mut Screen,
) -> Ended {
    let fail = |error: &dyn std::fmt::Display| Failure::sentence(format_args!("{error}"));
    let adjoint = |named: &Named| matches!(named, Named::Adjoint(_));
    if arguments.kernels.iter().any(adjoint) {
        if !arguments.kernels.iter().all(adjoint) {
            let why = "adjoint runs and kernels of I/O have different tables: ask for them apart";
            return Err(Failure::sentence(format_args!("{why}")));
        }
        return run_adjoint(arguments, screen);
    }
    let mut options = Options::new(&arguments.dir);
    if !arguments.kernels.is_empty() {
        let io = |named: &Named| match named {
            Named::Io(kernel) => Some(*kernel),
            Named::Adjoint(_) => None,
        };
        options.kernels = arguments.kernels.iter().filter_map(io).collect();
    }
    options.ranks = usize::from(arguments.ranks);
    options.scale =
        Scale { bytes: arguments.size, records: arguments.records, transfer: arguments.transfer };
    options.layouts = arguments.layout.clone();
    options.reading = arguments.read;
    options.peers = peers(&arguments.peer)?;
    options.limit = Duration::from_secs(arguments.limit);
    options.chunks = match (&arguments.filter[..], arguments.contiguous) {
        (_, true) => Chunks::Never,
        ([], false) => Chunks::WhereNatural,
        ([none], false) if none == "none" => Chunks::Kernel(String::new()),
        (filters, false) => Chunks::Kernel(filters.join(" ")),
    };
    options.comm = match &arguments.comm[..] {
        [] => esker_bench::usual_ranks(&options.peers),
        told => told.to_vec(),
    };
    if let Some(folder) = &arguments.capi {
        options.comm.clear();
        options.capi = Some(folder.clone());
    }
    options.read_ranks = arguments.read_ranks.iter().copied().map(usize::from).collect();
    options.repeat = usize::from(arguments.repeat);
    options.sync = arguments.sync;
    options.maps = arguments.maps.clone();
    options.worker = again.to_vec();
    if again.is_empty() {
        options.worker.push(std::env::current_exe().map_err(|error| fail(&error))?.into());
    }
    options.worker.push("bench-worker".into());
    let mut progress = |next: &str| say(format_args!("{next}"));
    let report = esker_bench::run(&options, &mut progress).map_err(|error| fail(&error))?;
    if let Some(file) = &arguments.svg {
        fs::write(file, svg::draw(&report)).map_err(|error| Failure::file(file, error))?;
    }
    if arguments.json {
        json::write(screen, &report.to_json())?;
    } else {
        write!(screen, "{}", report.to_text())?;
    }
    // A peer that is not here is no failure; Esker's own is.
    Ok(if report.esker_failed() { Outcome::Bad } else { Outcome::Good })
}

fn run_adjoint(arguments: &Arguments, screen: &mut Screen) -> Ended {
    let mut options = adjoint::Options::new(&arguments.dir);
    let case = |named: &Named| match named {
        Named::Adjoint(case) => Some(*case),
        Named::Io(_) => None,
    };
    options.cases = arguments.kernels.iter().filter_map(case).collect();
    options.ranks = usize::from(arguments.ranks);
    options.state = arguments.size;
    options.bound = arguments.bound;
    options.budgets = arguments.states.clone();
    options.repeat = usize::from(arguments.repeat);
    options.beside = arguments.beside;
    let mut progress = |next: &str| say(format_args!("{next}"));
    let report = adjoint::run(&options, &mut progress);
    let report = report.map_err(|error| Failure::sentence(format_args!("{error}")))?;
    match arguments.json {
        true => json::write(screen, &report.to_json())?,
        false => write!(screen, "{}", report.to_text())?,
    }
    Ok(Outcome::Good)
}

/// One run of a plan, in a process of its own, for `esker bench`
#[derive(Debug, clap::Args)]
#[command(hide = true, after_help = "Examples:\n  esker bench    starts this by itself")]
pub(super) struct WorkerArguments {
    #[arg(hide = true, trailing_var_arg = true, allow_hyphen_values = true)]
    job: Vec<String>,
}

pub(super) fn work(arguments: &WorkerArguments, screen: &mut Screen) -> Ended {
    let printed = run_from_arguments(&arguments.job);
    let printed = printed.map_err(|sentence| Failure::sentence(format_args!("{sentence}")))?;
    write!(screen, "{printed}")?;
    Ok(Outcome::Good)
}
