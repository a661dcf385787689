//! What the environment says about the program's start and about how MPI is to be used.

use std::env;
use std::fmt;

/// Which family of MPI started this process, as far as the environment tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Launcher {
    /// Hydra or another launcher that speaks PMI: MPICH, Intel MPI, Cray.
    Pmi,
    /// OpenMPI's mpiexec.
    OpenMpi,
    /// PMIx, as by Slurm: the library may be of any family.
    Pmix,
}

impl fmt::Display for Launcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Launcher::Pmi => "PMI (MPICH, Intel MPI, Cray)",
            Launcher::OpenMpi => "OpenMPI",
            Launcher::Pmix => "PMIx",
        })
    }
}

/// How this process was started, if by an MPI launcher: what its environment says, before any
/// MPI is loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Launched {
    /// The launcher's family.
    pub by: Launcher,
    /// This process's number, where the launcher says so.
    pub rank: Option<usize>,
    /// How many ranks the launcher started, where it says so.
    pub ranks: Option<usize>,
}

/// Variables by which launchers tell a process its number, and how many there are.
const RANKS: [(Launcher, &str, &str); 5] = [
    // OpenMPI's first: its mpiexec sets those of PMIx too.
    (Launcher::OpenMpi, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    (Launcher::Pmi, "PMI_RANK", "PMI_SIZE"),
    (Launcher::Pmi, "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"),
    (Launcher::Pmi, "PALS_RANKID", "PMI_SIZE"),
    (Launcher::Pmix, "PMIX_RANK", "SLURM_STEP_NUM_TASKS"),
];

/// Every variable of the environment that has a say in which MPI is used and how.
pub const VARIABLES: [&str; 14] = [
    "OMPI_COMM_WORLD_RANK",
    "OMPI_COMM_WORLD_SIZE",
    "PMI_RANK",
    "PMI_SIZE",
    "MV2_COMM_WORLD_RANK",
    "MV2_COMM_WORLD_SIZE",
    "PALS_RANKID",
    "PMIX_RANK",
    "SLURM_STEP_NUM_TASKS",
    super::find::OVERRIDE,
    SERIALIZED,
    CONSENSUS_FROM,
    PIECE,
    BLOCK,
];

const SERIALIZED: &str = "ESKER_MPI_SERIALIZED";
const CONSENSUS_FROM: &str = "ESKER_MPI_CONSENSUS_FROM";
const PIECE: &str = "ESKER_MPI_PIECE";
const BLOCK: &str = "ESKER_MPI_BLOCK";

/// How this process was started; `None` if not by a launcher of MPI programs (`mpiexec`,
/// `srun`), as far as its environment tells. Loads nothing.
pub fn launched() -> Option<Launched> {
    from_variables(|name| env::var(name).ok())
}

fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Option<Launched> {
    let number = |name: &str| variable(name)?.parse().ok();
    let (by, rank, ranks) = RANKS.into_iter().find(|(_, rank, _)| variable(rank).is_some())?;
    Some(Launched { by, rank: number(rank), ranks: number(ranks) })
}

/// Settings for experiments and tests; the defaults are right for use. With up to 16 ranks the
/// consensus was never faster; its advantage is that nothing in it grows with the ranks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Settings {
    /// The longest piece that MPI is asked to move at once. Counts are C ints, so it must stay
    /// below 2 GiB. The same on every rank.
    pub(super) piece: usize,
    /// The number of ranks from which sparse exchanges use a consensus (NBX) instead of
    /// telling everyone how many messages to expect. The same on every rank.
    pub(super) consensus_from: usize,
    /// Asks MPI for one thread at a time instead of any number, for libraries that are slow or
    /// wrong with many.
    pub(super) serialized: bool,
    /// Waits inside MPI_Wait instead of testing and yielding; to measure what that costs.
    pub(super) block: bool,
}

impl Settings {
    pub(super) fn from_environment() -> Self {
        let number = |name| env::var(name).ok().and_then(|text| text.parse::<usize>().ok());
        Settings {
            piece: number(PIECE).unwrap_or(1 << 30).clamp(1, 1 << 30),
            consensus_from: number(CONSENSUS_FROM).unwrap_or(64),
            serialized: env::var_os(SERIALIZED).is_some(),
            block: env::var_os(BLOCK).is_some(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(variables: &[(&str, &str)]) -> Option<Launched> {
        let find = |name: &str| variables.iter().find(|(n, _)| *n == name);
        from_variables(|name| find(name).map(|(_, value)| value.to_string()))
    }

    #[test]
    fn every_variable_that_is_read_is_told() {
        for (_, rank, ranks) in RANKS {
            assert!(VARIABLES.contains(&rank) && VARIABLES.contains(&ranks), "{rank}, {ranks}");
        }
    }

    #[test]
    fn the_launchers_are_told_apart() {
        assert_eq!(with(&[]), None);
        let hydra = [("PMI_RANK", "1"), ("PMI_SIZE", "4")];
        assert_eq!(
            with(&hydra),
            Some(Launched { by: Launcher::Pmi, rank: Some(1), ranks: Some(4) })
        );
        let open_mpi =
            [("PMIX_RANK", "0"), ("OMPI_COMM_WORLD_RANK", "0"), ("OMPI_COMM_WORLD_SIZE", "2")];
        assert_eq!(
            with(&open_mpi),
            Some(Launched { by: Launcher::OpenMpi, rank: Some(0), ranks: Some(2) })
        );
        let slurm = [("PMIX_RANK", "0"), ("SLURM_STEP_NUM_TASKS", "8")];
        assert_eq!(
            with(&slurm),
            Some(Launched { by: Launcher::Pmix, rank: Some(0), ranks: Some(8) })
        );
    }
}
