//! Ranks define different things, and get one dataset or one error.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::scenario::Dice;
use esker::{
    Communicator, CreateOptions, Dataset, Define, DimLen, Error, ExternalType, FillMode,
    OpenOptions, Owner, Requests, Selection, Values, VarId, Version,
};
use esker_comm::Counted;
use esker_store::{CountingStore, MemoryStore};
use esker_testkit::ranks::on_ranks;
use tempfile::TempDir;

const RANKS: [usize; 4] = [2, 3, 7, 16];

fn file() -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.nc");
    (dir, path)
}

fn create(path: &Path, comm: &Arc<dyn Communicator>) -> Define {
    Dataset::create(path, CreateOptions::new().comm(comm.clone())).unwrap()
}

fn open(path: &Path, comm: &Arc<dyn Communicator>) -> Dataset {
    Dataset::open_with(path, OpenOptions::new().writable(true).comm(comm.clone())).unwrap()
}

/// Ends define mode on every rank and gives every rank's error.
fn refused(
    ranks: usize,
    define: impl Fn(usize, &mut Define) + Send + Sync + 'static,
) -> Vec<String> {
    let (dir, path) = file();
    let errors = on_ranks(ranks, move |comm| {
        let mut def = create(&path, &comm);
        define(comm.rank(), &mut def);
        let error = def.enddef().map(drop).unwrap_err();
        assert!(error.define.schema().dims.len() < 100);
        assert!(!path.exists(), "nothing comes into being");
        error.to_string()
    });
    drop(dir);
    errors
}

/// Every rank's error has all of these words.
fn all_say(errors: &[String], words: &[&str]) {
    for (rank, error) in errors.iter().enumerate() {
        for word in words {
            assert!(error.contains(word), "rank {rank} of {} says {error:?}", errors.len());
        }
    }
}

#[test]
fn each_rank_defines_its_own_and_sees_all() {
    for ranks in RANKS {
        let (_dir, path) = file();
        on_ranks(ranks, move |comm| {
            let me = comm.rank();
            let mut def = create(&path, &comm);
            // Shared objects in an order of its own, between its own.
            let mine = def.add_dim(&format!("x{me}"), DimLen::Fixed(me as u64 + 1)).unwrap();
            let time = def.add_dim("time", DimLen::Unlimited).unwrap();
            let own = def.add_var(&format!("v{me}"), ExternalType::Int, &[time, mine]).unwrap();
            let shared = def.add_var("shared", ExternalType::Double, &[time]).unwrap();
            let fixed = def.add_var(&format!("f{me}"), ExternalType::Short, &[mine]).unwrap();
            def.put_attr(own, "rank", me as i32).unwrap();
            def.put_attr(Owner::Global, &format!("by{me}"), "me").unwrap();
            def.put_attr(Owner::Global, "title", "everyone's").unwrap();
            def.put_attr(shared, &format!("of{me}"), me as i16).unwrap();
            let mut ds = def.enddef().unwrap();
            // Numbers that this rank was given are still its own.
            assert_eq!(&*ds.variable(own).unwrap().name, format!("v{me}"));
            assert_eq!(&*ds.variable(fixed).unwrap().name, format!("f{me}"));
            assert_eq!(ds.shape(own).unwrap(), [0, me as u64 + 1]);
            assert_eq!(ds.schema().vars.len(), 2 * comm.size() + 1);
            let row = vec![10 * me as i32; me + 1];
            ds.put_all(own, &Selection::all(), &row).unwrap();
            ds.put_all(fixed, &Selection::all(), &vec![me as i16; me + 1]).unwrap();
            let one = Selection::slab(&[me as u64], &[1]);
            ds.put_all(shared, &one, &[me as f64]).unwrap();
            assert_eq!(ds.numrecs(), comm.size() as u64);
            for other in 0..comm.size() {
                let var = ds.var(&format!("v{other}")).unwrap();
                let first = Selection::slab(&[0, 0], &[1, other as u64 + 1]);
                let row: Vec<i32> = ds.get_all(var, &first).unwrap();
                assert_eq!(row, vec![10 * other as i32; other + 1]);
                let var = ds.var(&format!("f{other}")).unwrap();
                let row: Vec<i16> = ds.get(var, &Selection::all()).unwrap();
                assert_eq!(row, vec![other as i16; other + 1]);
                let attrs = &ds.schema().vars.get("shared").unwrap().attrs;
                assert_eq!(attrs.get(&format!("of{other}")).unwrap().values, [other as i16].into());
                assert!(ds.schema().attrs.get(&format!("by{other}")).is_some());
            }
            // The file's order: rank 0's, then what rank 1 added, and so on.
            let names: Vec<_> = ds.header().schema.vars.iter().map(|v| v.name.clone()).collect();
            assert_eq!(&*names[0], "v0");
            assert_eq!(&*names[1], "shared");
            assert_eq!(&*names[2], "f0");
            assert_eq!(&*names[3], "v1");
            ds.close().unwrap();
        });
    }
}

#[test]
fn a_redefinition_merges_and_numbers_stay() {
    for ranks in RANKS {
        let (_dir, path) = file();
        on_ranks(ranks, move |comm| {
            let me = comm.rank();
            let mut def = create(&path, &comm);
            let x = def.add_dim(&format!("x{me}"), DimLen::Fixed(2)).unwrap();
            let a = def.add_var(&format!("a{me}"), ExternalType::Int, &[x]).unwrap();
            let mut ds = def.enddef().unwrap();
            ds.put_all(a, &Selection::all(), &[me as i32, -1]).unwrap();
            // Again, each its own, some over a dimension that another rank has made.
            let mut def = ds.redef().unwrap();
            let next = (me + 1) % comm.size();
            let theirs = def.schema().dim(&format!("x{next}")).unwrap();
            let t = def.add_dim("t", DimLen::Unlimited).unwrap();
            let b = def.add_var(&format!("b{me}"), ExternalType::Float, &[t, theirs]).unwrap();
            def.put_attr(a, "again", me as i32).unwrap();
            let mut ds = def.enddef().unwrap();
            assert_eq!(&*ds.variable(a).unwrap().name, format!("a{me}"));
            assert_eq!(&*ds.variable(b).unwrap().name, format!("b{me}"));
            ds.put_all(b, &Selection::all(), &[0.5, me as f32, 1.5, me as f32]).unwrap();
            // A redefinition without a change, with the ranks' numbers all different.
            let mut ds = ds.redef().unwrap().enddef().unwrap();
            for other in 0..comm.size() {
                let var = ds.var(&format!("a{other}")).unwrap();
                assert_eq!(ds.get_all::<i32>(var, &Selection::all()).unwrap(), [other as i32, -1]);
                let attr = ds.schema().attr(Owner::Var(var), "again");
                assert_eq!(attr, Some(&Values::from(other as i32)));
                let var = ds.var(&format!("b{other}")).unwrap();
                let found: Vec<f32> = ds.get_all(var, &Selection::all()).unwrap();
                assert_eq!(found, [0.5, other as f32, 1.5, other as f32]);
            }
            ds.close().unwrap();
        });
    }
}

#[test]
fn all_ranks_rename_and_change_alike() {
    for ranks in RANKS {
        let (_dir, path) = file();
        on_ranks(ranks, move |comm| {
            let mut def = create(&path, &comm);
            let x = def.add_dim("x", DimLen::Fixed(2)).unwrap();
            let v = def.add_var("v", ExternalType::Int, &[x]).unwrap();
            def.put_attr(v, "units", "K").unwrap();
            let mut ds = def.enddef().unwrap();
            ds.put_all(v, &Selection::slab(&[0], &[0]), &[0i32; 0]).unwrap();
            let mut def = ds.redef().unwrap();
            def.rename_dim("x", "lon").unwrap();
            def.rename_var("v", "t").unwrap();
            def.rename_attr(v, "units", "unit").unwrap();
            def.put_attr(v, "unit", "C").unwrap();
            let ds = def.enddef().unwrap();
            assert_eq!(ds.var("t").unwrap(), v);
            assert_eq!(ds.schema().attr(Owner::Var(v), "unit"), Some(&Values::from("C")));
            ds.close().unwrap();
            let ds = open(&path, &comm);
            assert!(ds.schema().dim("lon").is_some() && ds.schema().dim("x").is_none());
        });
    }
}

/// Found by this test: ranks whose numbers differ could not rename at all, because their
/// definitions were compared in each rank's own order.
#[test]
fn ranks_with_numbers_of_their_own_rename_alike() {
    for ranks in RANKS {
        let (_dir, path) = file();
        on_ranks(ranks, move |comm| {
            let me = comm.rank();
            let mut def = create(&path, &comm);
            let x = def.add_dim(&format!("x{me}"), DimLen::Fixed(2)).unwrap();
            let own = def.add_var(&format!("v{me}"), ExternalType::Int, &[x]).unwrap();
            def.put_attr(Owner::Global, &format!("by{me}"), "me").unwrap();
            let mut ds = def.enddef().unwrap();
            ds.put_all(own, &Selection::all(), &[me as i32, 7]).unwrap();
            let mut def = ds.redef().unwrap();
            def.rename_var("v0", "first").unwrap();
            def.rename_var("v1", "v0").unwrap();
            def.rename_dim("x1", "second").unwrap();
            def.del_attr(Owner::Global, "by0").unwrap();
            let last = def.add_var("last", ExternalType::Byte, &[]).unwrap();
            let ds = def.enddef().unwrap();
            assert_eq!(&*ds.variable(last).unwrap().name, "last");
            let expected = match me {
                0 => "first".to_string(),
                1 => "v0".to_string(),
                _ => format!("v{me}"),
            };
            assert_eq!(&*ds.variable(own).unwrap().name, expected);
            assert_eq!(ds.get::<i32>(own, &Selection::all()).unwrap(), [me as i32, 7]);
            ds.close().unwrap();
            let mut ds = open(&path, &comm);
            let first = ds.var("first").unwrap();
            assert_eq!(ds.get_all::<i32>(first, &Selection::all()).unwrap(), [0, 7]);
            let second = ds.var("v0").unwrap();
            assert_eq!(ds.get_all::<i32>(second, &Selection::all()).unwrap(), [1, 7]);
            assert!(ds.schema().attrs.get("by0").is_none());
        });
    }
}

#[test]
fn a_rename_by_some_ranks_is_an_error_on_all() {
    for ranks in RANKS {
        let (_dir, path) = file();
        on_ranks(ranks, move |comm| {
            let mut def = create(&path, &comm);
            def.add_var("v", ExternalType::Int, &[]).unwrap();
            let mut def = def.enddef().unwrap().redef().unwrap();
            let late = comm.rank() + 1 == comm.size();
            if late {
                def.rename_var("v", "w").unwrap();
            }
            let failed = def.enddef().map(drop).unwrap_err();
            assert!(matches!(*failed.error, Error::NotAlike { .. }), "{failed}");
            // The others can follow, and then it is done.
            let mut def = failed.define;
            if !late {
                def.rename_var("v", "w").unwrap();
            }
            let ds = def.enddef().unwrap();
            assert!(ds.var("w").is_ok() && ds.var("v").is_err());
        });
    }
}

#[test]
fn dimensions_of_two_lengths_are_refused() {
    for ranks in RANKS {
        let last = ranks - 1;
        let errors = refused(ranks, move |rank, def| {
            def.add_dim("x", DimLen::Fixed(if rank == last { 4 } else { 3 })).unwrap();
        });
        let words = format!("rank {last} as length 4");
        all_say(&errors, &["dimension \"x\": rank ", " defines it as length 3", &words]);
        assert!(errors.iter().all(|e| *e == errors[0]));
    }
}

#[test]
fn unlimited_and_fixed_are_two_definitions() {
    for ranks in RANKS {
        let errors = refused(ranks, |rank, def| {
            let len = if rank == 1 { DimLen::Unlimited } else { DimLen::Fixed(3) };
            def.add_dim("t", len).unwrap();
        });
        all_say(&errors, &["dimension \"t\"", "rank 0", "length 3", "rank 1", "unlimited"]);
    }
}

/// Found by this test: only the rank that brought the second one was named.
#[test]
fn a_second_unlimited_dimension_names_both_and_their_ranks() {
    for ranks in RANKS {
        let last = ranks - 1;
        let errors = refused(ranks, move |rank, def| {
            if rank == 0 {
                def.add_dim("time", DimLen::Unlimited).unwrap();
            } else if rank == last {
                def.add_dim("step", DimLen::Unlimited).unwrap();
            }
        });
        let words = format!("rank {last}");
        all_say(&errors, &["\"time\"", "\"step\"", "rank 0", &words, "unlimited"]);
    }
}

#[test]
fn variables_of_two_types_or_shapes_are_refused() {
    for ranks in RANKS {
        let last = ranks - 1;
        let errors = refused(ranks, move |rank, def| {
            let x = def.add_dim("x", DimLen::Fixed(3)).unwrap();
            let ty = if rank == last { ExternalType::Float } else { ExternalType::Int };
            def.add_var("v", ty, &[x]).unwrap();
        });
        let words = format!("rank {last} as float (x)");
        all_say(&errors, &["variable \"v\"", "defines it as int (x), ", &words]);
        let errors = refused(ranks, move |rank, def| {
            let x = def.add_dim("x", DimLen::Fixed(3)).unwrap();
            let y = def.add_dim("y", DimLen::Fixed(3)).unwrap();
            let dims = if rank == last { [y, x] } else { [x, y] };
            def.add_var("v", ExternalType::Int, &dims).unwrap();
        });
        let words = format!("rank {last} as int (y, x)");
        all_say(&errors, &["variable \"v\"", "defines it as int (x, y), ", &words]);
    }
}

/// Found by this test: the variable's rank was named, not the attribute's.
#[test]
fn attributes_of_two_values_name_the_ranks_that_set_them() {
    for ranks in [3, 7, 16] {
        let last = ranks - 1;
        let errors = refused(ranks, move |rank, def| {
            let v = def.add_var("v", ExternalType::Int, &[]).unwrap();
            match rank {
                1 => def.put_attr(v, "units", "K").unwrap(),
                r if r == last => def.put_attr(v, "units", "C").unwrap(),
                _ => {}
            }
        });
        let words = format!("rank {last} as \"C\"");
        let object = "attribute \"units\" of variable \"v\"";
        all_say(&errors, &[object, "rank 1 defines it as \"K\"", &words]);
        let errors = refused(ranks, move |rank, def| match rank {
            1 => def.put_attr(Owner::Global, "n", [1i32, 2]).unwrap(),
            r if r == last => def.put_attr(Owner::Global, "n", [1i16, 2]).unwrap(),
            _ => {}
        });
        all_say(&errors, &["global attribute \"n\"", "rank 1", "int 1, 2", "short 1, 2"]);
    }
}

/// Found by this test: rank 0's file version was taken without a word.
#[test]
fn two_file_versions_are_refused() {
    for ranks in RANKS {
        let (_dir, path) = file();
        on_ranks(ranks, move |comm| {
            let version = if comm.rank() == 1 { Version::Cdf1 } else { Version::Cdf5 };
            let options = CreateOptions::new().version(version).comm(comm.clone());
            let error = match Dataset::create(&path, options) {
                Ok(def) => def.enddef().map(drop).unwrap_err().to_string(),
                Err(error) => error.to_string(),
            };
            assert!(error.contains("version") && error.contains("rank 1"), "{error}");
        });
    }
}

/// Found by this test: the fill mode that only a higher rank chose was lost, and two modes were
/// no conflict.
#[test]
fn fill_modes_are_definitions_too() {
    for ranks in RANKS {
        let (_dir, path) = file();
        let last = ranks - 1;
        let errors = refused(ranks, move |rank, def| {
            let v = def.add_var("v", ExternalType::Int, &[]).unwrap();
            if rank == 0 || rank == last {
                let mode = if rank == 0 { FillMode::Fill } else { FillMode::NoFill };
                def.set_fill(v, mode).unwrap();
            }
        });
        let words = format!("rank {last}");
        all_say(&errors, &["fill mode of variable \"v\"", "rank 0", &words]);
        on_ranks(ranks, move |comm| {
            let mut def = create(&path, &comm);
            let x = def.add_dim("x", DimLen::Fixed(3)).unwrap();
            let v = def.add_var("v", ExternalType::Int, &[x]).unwrap();
            if comm.rank() == last {
                def.set_fill(v, FillMode::NoFill).unwrap();
            }
            let ds = def.enddef().unwrap();
            assert_eq!(ds.get::<i32>(v, &Selection::all()).unwrap(), [0; 3]);
        });
    }
}

/// Found by this test: each rank filled as its own options said, and those that did not fill
/// left the others waiting.
#[test]
fn options_that_differ_between_ranks_do_not_hang() {
    for ranks in RANKS {
        let (_dir, path) = file();
        on_ranks(ranks, move |comm| {
            let fill = if comm.rank() == 0 { FillMode::Fill } else { FillMode::NoFill };
            let options = CreateOptions::new().fill(fill).comm(comm.clone());
            let mut def = Dataset::create(&path, options).unwrap();
            let t = def.add_dim("t", DimLen::Unlimited).unwrap();
            let x = def.add_dim("x", DimLen::Fixed(4)).unwrap();
            let v = def.add_var("v", ExternalType::Int, &[t, x]).unwrap();
            let mut ds = def.enddef().unwrap();
            // Rank 0's mode is everyone's: records come filled.
            let last = comm.size() as u64;
            let part = Selection::slab(&[last, comm.rank() as u64 % 4], &[1, 1]);
            let part = if comm.rank() < 4 { part } else { Selection::none() };
            let data = [1i32];
            ds.put_all(v, &part, &data[..usize::from(comm.rank() < 4)]).unwrap();
            let rows: Vec<i32> = ds.get_all(v, &Selection::slab(&[0, 0], &[last, 4])).unwrap();
            assert!(rows.iter().all(|v| *v == -2_147_483_647), "{rows:?}");
            ds.close().unwrap();
            // Some open it for writing and some do not.
            let writable = comm.rank() == 0;
            let options = OpenOptions::new().writable(writable).comm(comm.clone());
            let error = Dataset::open_with(&path, options).map(drop).unwrap_err();
            assert!(error.to_string().contains("writ"), "{error}");
        });
    }
}

#[test]
fn the_fully_collective_case_compares_once_and_sends_no_definitions() {
    let costs: Vec<Vec<(u64, u64, u64)>> = [1, 500]
        .map(|vars| {
            let (_dir, path) = file();
            on_ranks(8, move |comm| {
                let counted = Counted::new(comm);
                let traffic = counted.traffic();
                let comm: Arc<dyn Communicator> = Arc::new(counted);
                let mut def = create(&path, &comm);
                let x = def.add_dim("x", DimLen::Fixed(3)).unwrap();
                for i in 0..vars {
                    let v = def.add_var(&format!("v{i}"), ExternalType::Int, &[x]).unwrap();
                    def.put_attr(v, "units", "K").unwrap();
                }
                let before = (traffic.messages(), traffic.bytes(), traffic.collectives());
                let ds = def.enddef().unwrap();
                let after = (traffic.messages(), traffic.bytes(), traffic.collectives());
                ds.close().unwrap();
                (after.0 - before.0, after.1 - before.1, after.2 - before.2)
            })
        })
        .into();
    assert_eq!(costs[0], costs[1], "the cost does not depend on how much is defined");
    for (messages, bytes, collectives) in &costs[1] {
        // Rank 0 tells where the file grows.
        assert!(*messages == 0 && *bytes < 300, "{messages} messages, {bytes} bytes");
        // One comparison, and three agreements: created, filled, committed.
        assert!(*collectives <= 4, "{collectives} collectives");
    }
}

#[test]
fn a_merge_sends_each_draft_once_up_the_tree() {
    let (_dir, path) = file();
    let sent = on_ranks(8, move |comm| {
        let me = comm.rank();
        let counted = Counted::new(comm);
        let traffic = counted.traffic();
        let comm: Arc<dyn Communicator> = Arc::new(counted);
        let mut def = create(&path, &comm);
        def.add_var(&format!("v{me}"), ExternalType::Int, &[]).unwrap();
        let before = traffic.messages();
        def.enddef().unwrap();
        traffic.messages() - before
    });
    assert_eq!(sent, [0, 1, 1, 1, 1, 1, 1, 1]);
}

/// Rounds of redefinitions in which every rank defines some of what there is to define, in an
/// order of its own, writes what it defined, and finds what all have written.
#[test]
fn random_parts_of_definitions_become_one_dataset() {
    const POOL: usize = 12;
    for (ranks, seed) in [2, 3, 7, 16].into_iter().flat_map(|r| (0..12u64).map(move |s| (r, s))) {
        let (_dir, path) = file();
        on_ranks(ranks, move |comm| {
            let me = comm.rank();
            let mut shared = Dice::new(seed);
            let mut own = Dice::new(1000 * seed + me as u64 + 1);
            // Variable i has dimension i % 3, and every fourth has records.
            let len = |i: usize| 2 + (i % 3) as u64;
            let value = |i: usize, e: u64| (100 * i as u64 + e) as i32;
            let mut def = create(&path, &comm);
            let mut known: Vec<Option<VarId>> = vec![None; POOL];
            let mut written = [false; POOL];
            for round in 0..3 {
                let mut order: Vec<usize> = (0..POOL).collect();
                own.shuffle(&mut order);
                for i in order.into_iter().filter(|_| own.one_in(4)) {
                    if def.schema().var(&format!("v{i}")).is_some() {
                        continue;
                    }
                    let mut dims = Vec::new();
                    let names = [("t".to_string(), 0), (format!("d{}", i % 3), len(i))];
                    let with_records = i % 4 == 0;
                    for (name, len) in names.iter().skip(usize::from(!with_records)) {
                        let dim = match def.schema().dim(name) {
                            Some(dim) => dim,
                            None if *len == 0 => def.add_dim(name, DimLen::Unlimited).unwrap(),
                            None => def.add_dim(name, DimLen::Fixed(*len)).unwrap(),
                        };
                        dims.push(dim);
                    }
                    let var = def.add_var(&format!("v{i}"), ExternalType::Int, &dims).unwrap();
                    known[i] = Some(var);
                    def.put_attr(var, &format!("of{}", me % 2), "x").unwrap();
                }
                if shared.one_in(2) {
                    def.put_attr(Owner::Global, &format!("round{round}"), "r".repeat(99)).unwrap();
                }
                let mut ds = def.enddef().unwrap();
                // Numbers that were given stay what they are.
                for (i, var) in known.iter().enumerate() {
                    let Some(var) = var else { continue };
                    assert_eq!(&*ds.variable(*var).unwrap().name, format!("v{i}"));
                    assert_eq!(ds.var(&format!("v{i}")).unwrap(), *var);
                }
                let new: Vec<usize> = (0..POOL)
                    .filter(|i| !written[*i] && ds.var(&format!("v{i}")).is_ok())
                    .collect();
                // Each of the new ones is written by one rank, whether it defined it or not.
                let data: Vec<Vec<i32>> =
                    (0..POOL).map(|i| (0..len(i)).map(|e| value(i, e)).collect()).collect();
                let mut queue = Requests::new();
                for i in new {
                    written[i] = true;
                    if i % ranks == me {
                        let var = ds.var(&format!("v{i}")).unwrap();
                        let shape = ds.shape(var).unwrap();
                        let mut count = shape.clone();
                        count[0] = if shape.len() == 2 { 1 } else { shape[0] };
                        let all = Selection::slab(&vec![0; shape.len()], &count);
                        ds.iput(&mut queue, var, &all, &data[i]).unwrap();
                    }
                }
                ds.wait_all(&mut queue).unwrap();
                drop(queue);
                for i in (0..POOL).filter(|i| written[*i]) {
                    let var = ds.var(&format!("v{i}")).unwrap();
                    let found: Vec<i32> = ds.get_all(var, &Selection::all()).unwrap();
                    assert_eq!(found, data[i], "seed {seed}, round {round}, v{i}");
                }
                if shared.one_in(3) {
                    ds.close().unwrap();
                    ds = open(&path, &comm);
                    // Numbers are the file's now, the same for everyone.
                    known = (0..POOL).map(|i| ds.var(&format!("v{i}")).ok()).collect();
                }
                def = ds.redef().unwrap();
            }
            def.enddef().unwrap().close().unwrap();
        });
    }
}

#[test]
fn many_small_variables_that_move_are_written_together() {
    const VARS: i16 = 500;
    let store = CountingStore::new(MemoryStore::default());
    let path = Path::new("/run/small.nc");
    let mut def =
        Dataset::create(path, CreateOptions::new().store(Arc::new(store.clone()))).unwrap();
    let x = def.add_dim("x", DimLen::Fixed(3)).unwrap();
    // Of three shorts, and so with padding behind each.
    for i in 0..VARS {
        def.add_var(&format!("v{i}"), ExternalType::Short, &[x]).unwrap();
    }
    let mut ds = def.enddef().unwrap();
    for i in 0..VARS {
        ds.put(VarId(i as usize), &Selection::all(), &[i, -i, 7]).unwrap();
    }
    let mut def = ds.redef().unwrap();
    def.put_attr(Owner::Global, "title", "a header that takes more room than there was").unwrap();
    def.add_var("more", ExternalType::Int, &[x]).unwrap();
    let before = store.counts().writes.load(Ordering::Relaxed);
    let ds = def.enddef().unwrap();
    let writes = store.counts().writes.load(Ordering::Relaxed) - before;
    assert!(writes <= 8, "{writes} writes");
    for i in 0..VARS {
        assert_eq!(ds.get::<i16>(VarId(i as usize), &Selection::all()).unwrap(), [i, -i, 7]);
    }
}
