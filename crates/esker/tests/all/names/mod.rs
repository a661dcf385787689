//! Versions of containers have messages and names, and what was aborted is gone: compared with plain models, with kills and losses of power at every call.

mod aborted;
mod collected;
mod expired;
mod listed;
mod tagged;

use std::path::Path;
use std::sync::Arc;

use esker::{
    ContainerRecoverOptions, ContainerRecovery, CreateOptions, Dataset, DimLen, ExternalType,
    Layout, OpenOptions, Selection, VarId, VersionFacts,
};
use esker_store::{MemoryStore, Store};

const PATH: &str = "/run/a.esk";
const FILL: i32 = -2_147_483_647;
const X: u64 = 6;
const FIXED: VarId = VarId(0);
const RECORD: VarId = VarId(1);

/// Version 1: `fixed` of six elements, and `record`.
fn define(store: &Arc<dyn Store>) -> Result<Dataset, esker::Error> {
    let options = CreateOptions::new().layout(Layout::Log).store(store.clone());
    let mut def = Dataset::create(PATH, options)?;
    let t = def.add_dim("t", DimLen::Unlimited)?;
    let x = def.add_dim("x", DimLen::Fixed(X))?;
    def.add_var("fixed", ExternalType::Int, &[x])?;
    def.add_var("record", ExternalType::Int, &[t, x])?;
    Ok(def.enddef()?)
}

fn shared(store: &MemoryStore) -> Arc<dyn Store> {
    Arc::new(store.clone())
}

fn to_write(store: &Arc<dyn Store>) -> Result<Dataset, esker::Error> {
    Dataset::open_with(PATH, OpenOptions::new().writable(true).store(store.clone()))
}

fn put(ds: &mut Dataset, at: u64, value: i32) -> Result<(), esker::Error> {
    ds.put(FIXED, &Selection::element(&[at]), &[value])
}

fn open(store: &Arc<dyn Store>, reference: &str) -> Result<Dataset, esker::Error> {
    let path = match reference {
        "" => PATH.to_string(),
        reference => format!("{PATH}@{reference}"),
    };
    Dataset::open_with(path, OpenOptions::new().store(store.clone()))
}

fn fixed(ds: &Dataset) -> Vec<i32> {
    ds.get(FIXED, &Selection::all()).unwrap()
}

fn versions(store: &Arc<dyn Store>) -> Vec<VersionFacts> {
    esker::versions(&**store, Path::new(PATH), None).unwrap()
}

fn tag(store: &Arc<dyn Store>, name: &str, version: Option<u64>) -> Result<u64, esker::Error> {
    esker::tag(&**store, Path::new(PATH), name, version, "").map(|tag| tag.version)
}

fn recover(store: &Arc<dyn Store>, superseded: bool) -> ContainerRecovery {
    let options = ContainerRecoverOptions { superseded, ..Default::default() };
    esker::recover_container(store, Path::new(PATH), options, &mut |_, _| {}).unwrap()
}

fn decision(number: u64) -> std::path::PathBuf {
    Path::new(PATH).join("refs/main").join(format!("{number:08}"))
}

/// Flips a bit in the middle of a file.
fn damage(store: &MemoryStore, path: &Path) {
    let bytes = store.bytes(path).unwrap();
    let middle = bytes.len() / 2;
    let file = store.open(path, esker_store::Access::ReadWrite).unwrap();
    file.write_at(middle as u64, &[bytes[middle] ^ 4]).unwrap();
}
