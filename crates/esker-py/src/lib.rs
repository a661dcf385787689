//! Esker for Python, the native part: `esker._esker`.
//!
//! People use the Python sources in `python/esker`; this is what stands behind them. `Handle` is
//! one open dataset. A read goes through these files in this order: `handle` (the methods),
//! `state` (modes and locks), `index` (a key becomes a hyperslab), `memory` (an array that
//! NumPy allocates is lent to the library), `transfer` (pieces, signals, progress). `queue` is
//! the same for requests that wait, `errors` says which exception an error is, `comm` adopts
//! mpi4py's communicators, `tools` has what people do with whole files,
//! `adjoint` carries out adjoint runs of Python models, `models` knows graphs, relations, meshes and AMR hierarchies.
//!
//! Two rules keep threads from waiting for each other for ever: a lock is waited for with the GIL
//! released, and the GIL is never waited for with a lock held.

mod adjoint;
mod attributes;
mod background;
mod comm;
mod draft;
mod dtype;
mod errors;
mod handle;
mod index;
mod memory;
mod models;
mod queue;
mod state;
mod tools;
mod transfer;

use pyo3::prelude::*;

/// The native part of the package `esker`.
#[pymodule]
mod _esker {
    #[pymodule_export]
    use super::adjoint::{Plan, Vault, adjoint_forecast, adjoint_resume, adjoint_run};
    #[pymodule_export]
    use super::background::Token;
    #[pymodule_export]
    use super::draft::{Draft, begin};
    #[pymodule_export]
    use super::handle::{Handle, begin_transaction, create, open};
    #[pymodule_export]
    use super::models::amr::{
        Amr, amr_from_plotfile, amr_open, amr_plotfile, amr_store, amr_to_plotfile,
    };
    #[pymodule_export]
    use super::models::graphs::{
        graph_act, graph_add_edge, graph_attribute, graph_generation, graph_set,
    };
    #[pymodule_export]
    use super::models::meshes::{Part, mesh_convert, mesh_part, mesh_relation, mesh_topologies};
    #[pymodule_export]
    use super::models::relations::{
        Relation, relation_of, relation_of_metis, relation_of_ragged, relation_of_table,
    };
    #[pymodule_export]
    use super::tools::{
        check, command, convert, crc32c, expire, gc, is_dataset, mpi_library, number_of_version,
        number_state, reader_notes, recover, refs, replay, skip, tag, tags, versions,
    };

    use super::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
