//! Datasets are removed, whatever they are, and nothing else is.

use std::path::Path;

use esker::{CreateOptions, Dataset, DimLen, ExternalType, Hints, Layout, Selection};
use esker_store::LocalStore;
use esker_testkit::ranks::on_ranks;

fn write(path: &Path, options: CreateOptions) {
    let mut def = Dataset::create(path, options).unwrap();
    let x = def.add_dim("x", DimLen::Fixed(10)).unwrap();
    let t = def.add_var("t", ExternalType::Int, &[x]).unwrap();
    let mut ds = def.enddef().unwrap();
    ds.put(t, &Selection::all(), &[1i32; 10]).unwrap();
    ds.sync().unwrap();
    ds.close().unwrap();
}

fn folder() -> Hints {
    let mut hints = Hints::default();
    hints.set("esker_chunk_files", "shared");
    hints.set("esker_chunk", "auto");
    hints
}

#[test]
fn every_kind_of_dataset_is_removed_whole() {
    let dir = tempfile::tempdir().unwrap();
    for options in [
        CreateOptions::new(),
        CreateOptions::new().layout(Layout::Log),
        CreateOptions::new().hints(folder()),
    ] {
        let path = dir.path().join("run");
        write(&path, options.clone());
        // A dataset that was opened again has more files.
        if path.is_dir() {
            write(&path, options);
        }
        esker::remove_dataset(&LocalStore, &path).unwrap();
        let left: Vec<_> = std::fs::read_dir(dir.path()).unwrap().collect();
        assert!(left.is_empty(), "{left:?}");
        assert!(esker::remove_dataset(&LocalStore, &path).is_err());
    }
}

#[test]
fn sub_files_go_with_their_dataset() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.nc");
    std::fs::write(dir.path().join("run.7.nc"), "of somebody else").unwrap();
    let made = path.clone();
    on_ranks(4, move |comm| {
        let rank = comm.rank() as u64;
        let mut hints = Hints::default();
        hints.set("nc_num_subfiles", "2");
        let mut def = Dataset::create(&made, CreateOptions::new().comm(comm).hints(hints)).unwrap();
        let x = def.add_dim("x", DimLen::Fixed(8)).unwrap();
        let mine = Selection::slab(&[2 * rank], &[2]);
        let map = def.add_decomposition(&[x], &mine).unwrap();
        let v = def.add_decomposed_var("v", ExternalType::Int, &[], map).unwrap();
        let mut ds = def.enddef().unwrap();
        ds.put_all(v, &Selection::blob(&[], &[]), &[1i32, 2]).unwrap();
        ds.close().unwrap();
    });
    assert!(dir.path().join("run.0.nc").exists() && dir.path().join("run.1.nc").exists());
    esker::remove_dataset(&LocalStore, &path).unwrap();
    let left: Vec<_> =
        std::fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left, ["run.7.nc"]);
}

#[test]
fn a_folder_with_something_else_in_it_stays_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    for options in [CreateOptions::new().layout(Layout::Log), CreateOptions::new().hints(folder())]
    {
        let path = dir.path().join("run");
        write(&path, options);
        let notes = path.join("notes.txt");
        std::fs::write(&notes, "mine").unwrap();
        let error = esker::remove_dataset(&LocalStore, &path).unwrap_err().to_string();
        assert!(error.contains("notes.txt"), "{error}");
        let ds = Dataset::open(&path).unwrap();
        assert_eq!(ds.get::<i32>(ds.var("t").unwrap(), &Selection::all()).unwrap(), [1; 10]);
        drop(ds);
        std::fs::remove_file(&notes).unwrap();
        esker::remove_dataset(&LocalStore, &path).unwrap();
    }
}

#[test]
fn a_folder_that_is_given_up_before_it_is_a_dataset_is_gone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run");
    let def = Dataset::create(&path, CreateOptions::new().hints(folder())).unwrap();
    def.abort().unwrap();
    assert!(!path.exists());
}

#[test]
fn a_map_follows_the_new_name_of_its_dimension() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.nc");
    let mut def = Dataset::create(&path, CreateOptions::new()).unwrap();
    let y = def.add_dim("y", DimLen::Fixed(3)).unwrap();
    let x = def.add_dim("x", DimLen::Fixed(2)).unwrap();
    let map = def.add_decomposition(&[y, x], &Selection::slab(&[0, 0], &[3, 2])).unwrap();
    let v = def.add_decomposed_var("v", ExternalType::Int, &[], map).unwrap();
    def.rename_dim("y", "rows").unwrap();
    let mut ds = def.enddef().unwrap();
    assert_eq!(ds.decomposition(v).unwrap().unwrap().dims, ["rows", "x"]);
    ds.amend(|schema| schema.rename_dim("rows", "r")).unwrap();
    assert_eq!(ds.decomposition(v).unwrap().unwrap().dims, ["r", "x"]);
    let plain = ds.plain_schema().unwrap().unwrap();
    assert_eq!(plain.variable(v).unwrap().dims, [y, x]);
    ds.close().unwrap();
    let ds = Dataset::open(&path).unwrap();
    assert_eq!(ds.decomposition(v).unwrap().unwrap().dims, ["r", "x"]);
}
