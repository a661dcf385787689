//! AMR: plotfiles come back bit for bit, and covering grids are what a plain search of all boxes says.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use esker::{CreateOptions, launch};
use esker_models::amr::{Amr, BoxIndex, Cells, Hierarchy, Level, Plotfile, store, write_plotfile};
use esker_testkit::data;
use esker_testkit::random::Random;

/// The real box lists, and the number of dimensions of each.
fn box_lists() -> Vec<(String, usize, Vec<Vec<Cells>>)> {
    let mut found = Vec::new();
    for path in data::files("amr") {
        let text = std::fs::read_to_string(&path).unwrap();
        let json: serde_json::Value = serde_json::from_str(&text).unwrap();
        let mut dims = 0;
        let corner = |value: &serde_json::Value| {
            let list = value.as_array().unwrap();
            let mut corner = [0i64; 3];
            list.iter().zip(&mut corner).for_each(|(n, slot)| *slot = n.as_i64().unwrap());
            (corner, list.len())
        };
        let mut levels = Vec::new();
        for level in json["levels"].as_array().unwrap() {
            let mut boxes = Vec::new();
            for pair in level.as_array().unwrap() {
                let ((lo, n), (hi, _)) = (corner(&pair[0]), corner(&pair[1]));
                dims = n;
                boxes.push(Cells::new(lo, hi).unwrap());
            }
            levels.push(boxes);
        }
        let name = path.file_stem().unwrap().to_str().unwrap().to_string();
        found.push((name, dims, levels));
    }
    found
}

fn hierarchy(dims: usize, names: &[&str], levels: Vec<Vec<Cells>>) -> Hierarchy {
    let hi = |boxes: &[Cells]| [0, 1, 2].map(|d| boxes.iter().map(|b| b.hi[d]).max().unwrap_or(0));
    let mut domain = Cells { lo: [0; 3], hi: hi(&levels[0]) };
    let mut made = Vec::new();
    for (number, boxes) in levels.into_iter().enumerate() {
        let ratio = [0, 1, 2].map(|d| if number > 0 && d < dims { 2 } else { 1 });
        if number > 0 {
            domain = domain.refined(ratio).unwrap();
        }
        // Numbers that decimals cannot say exactly.
        let cell_size =
            (0..dims).map(|d| (0.1 + d as f64) / f64::from(1 << number) / 3.0).collect();
        let (step, time) = (17, 0.1 + 0.2);
        made.push(Level { domain, ratio, cell_size, step, time, boxes });
    }
    Hierarchy {
        dims,
        names: names.iter().map(|n| n.to_string()).collect(),
        time: 0.1 + 0.2,
        lo: vec![-1.0 / 3.0; dims],
        hi: vec![std::f64::consts::PI; dims],
        coordinates: 0,
        levels: made,
    }
}

/// What a cell of a level has: known by its place, with odd bits.
fn value(level: usize, component: usize, cell: [i64; 3]) -> f64 {
    let mut seed = Random(level as u64 * 7919 + component as u64 * 104_729);
    for at in cell {
        seed.0 = seed.0.wrapping_mul(31).wrapping_add(at as u64);
    }
    (seed.next() >> 11) as f64 / 3.0
}

fn values(h: &Hierarchy, level: usize, cells: &Cells) -> Vec<f64> {
    let mut out = Vec::new();
    for component in 0..h.names.len() {
        for z in cells.lo[2]..=cells.hi[2] {
            for y in cells.lo[1]..=cells.hi[1] {
                for x in cells.lo[0]..=cells.hi[0] {
                    out.push(value(level, component, [x, y, z]));
                }
            }
        }
    }
    out
}

fn tuple(corner: &[i64; 3], dims: usize) -> String {
    let numbers: Vec<String> = corner[..dims].iter().map(|n| n.to_string()).collect();
    format!("({})", numbers.join(","))
}

fn cells_text(c: &Cells, dims: usize) -> String {
    format!("({} {} {})", tuple(&c.lo, dims), tuple(&c.hi, dims), tuple(&[0; 3], dims))
}

/// A plotfile as AMReX's WriteMultiLevelPlotfile writes it, by its own rules and not by ours: several files of FABs, some big-endian.
fn plotfile(path: &Path, h: &Hierarchy, files: usize, single: bool) {
    std::fs::create_dir(path).unwrap();
    let dims = h.dims;
    let mut text = format!("HyperCLaw-V1.1\n{}\n", h.names.len());
    h.names.iter().for_each(|name| writeln!(text, "{name}").unwrap());
    let list = |v: &[f64]| v.iter().map(|x| format!("{x:.17e} ")).collect::<String>();
    writeln!(text, "{dims}\n{:.17e}\n{}", h.time, h.levels.len() - 1).unwrap();
    writeln!(text, "{}\n{}", list(&h.lo), list(&h.hi)).unwrap();
    writeln!(text, "{}", "2 ".repeat(h.levels.len() - 1)).unwrap();
    let domains: Vec<String> = h.levels.iter().map(|l| cells_text(&l.domain, dims)).collect();
    writeln!(text, "{}\n{}", domains.join(" "), "17 ".repeat(h.levels.len())).unwrap();
    h.levels.iter().for_each(|l| writeln!(text, "{}", list(&l.cell_size)).unwrap());
    writeln!(text, "{}\n0", h.coordinates).unwrap();
    for (number, level) in h.levels.iter().enumerate() {
        let folder = path.join(format!("Level_{number}"));
        std::fs::create_dir(&folder).unwrap();
        writeln!(text, "{number} {} {:.17e}\n17", level.boxes.len(), level.time).unwrap();
        level.boxes.iter().for_each(|_| text.push_str(&"0.0 1.0\n".repeat(dims)));
        writeln!(text, "Level_{number}/Cell").unwrap();
        let mut head = format!("1\n1\n{}\n0\n({} 0\n", h.names.len(), level.boxes.len());
        level.boxes.iter().for_each(|b| writeln!(head, "{}", cells_text(b, dims)).unwrap());
        writeln!(head, ")\n{}", level.boxes.len()).unwrap();
        let mut contents = vec![Vec::new(); files];
        for (at, cells) in level.boxes.iter().enumerate() {
            // Boxes go to files in turn, as ranks have them.
            let file = at % files;
            writeln!(head, "FabOnDisk: Cell_D_{file:05} {}", contents[file].len()).unwrap();
            let big = at % 3 == 1 && !single;
            let (format, order) = match (single, big) {
                (true, _) => ("(8, (32 8 23 0 1 9 0 127))", "(4, (4 3 2 1))"),
                (false, false) => ("(8, (64 11 52 0 1 12 0 1023))", "(8, (8 7 6 5 4 3 2 1))"),
                (false, true) => ("(8, (64 11 52 0 1 12 0 1023))", "(8, (1 2 3 4 5 6 7 8))"),
            };
            let line =
                format!("FAB ({format},{order}){} {}\n", cells_text(cells, dims), h.names.len());
            contents[file].extend(line.as_bytes());
            for v in values(h, number, cells) {
                match (single, big) {
                    (true, _) => contents[file].extend((v as f32).to_le_bytes()),
                    (false, false) => contents[file].extend(v.to_le_bytes()),
                    (false, true) => contents[file].extend(v.to_be_bytes()),
                }
            }
        }
        writeln!(head, "\n{},{}\n", level.boxes.len(), h.names.len()).unwrap();
        std::fs::write(folder.join("Cell_H"), head).unwrap();
        for (file, bytes) in contents.iter().enumerate() {
            std::fs::write(folder.join(format!("Cell_D_{file:05}")), bytes).unwrap();
        }
    }
    std::fs::write(path.join("Header"), text).unwrap();
}

fn stored(dir: &Path, source: &Path, ranks: usize) -> PathBuf {
    let path = dir.join(format!("on_{ranks}.nc"));
    launch(ranks, |comm| {
        let plotfile = Plotfile::open(source).unwrap();
        store(comm, &plotfile, &path, CreateOptions::new()).unwrap();
    });
    path
}

#[test]
fn plotfiles_come_back_bit_for_bit_on_any_number_of_ranks() {
    let dir = tempfile::tempdir().unwrap();
    for (case, (name, dims, levels)) in box_lists().into_iter().enumerate() {
        // The largest lists have millions of cells: the first boxes of each level are enough here.
        let cells: u64 = levels.iter().flatten().map(Cells::volume).sum();
        let short = cells > 2_000_000;
        let levels = if short { levels[..1].to_vec() } else { levels };
        let names = ["density", "x velocity"];
        let h = hierarchy(dims, &names[..if short { 1 } else { 2 }], levels);
        let single = case % 3 == 2;
        let source = dir.path().join(format!("plt{case}"));
        plotfile(&source, &h, 3, single);
        assert_eq!(Plotfile::open(&source).unwrap().hierarchy, h, "{name}");
        let first = stored(dir.path(), &source, 1);
        let second = stored(dir.path(), &source, 4);
        let same = std::fs::read(&first).unwrap() == std::fs::read(&second).unwrap();
        assert!(same, "{name}: the file depends on the ranks");
        let back = dir.path().join(format!("back{case}"));
        launch(3, |comm| {
            let amr = Amr::open(comm, &second).unwrap();
            assert_eq!(amr.hierarchy, h);
            write_plotfile(&amr, &back).unwrap();
        });
        let [old, new] = [&source, &back].map(|path| Plotfile::open(path).unwrap());
        assert_eq!(old.hierarchy, new.hierarchy, "{name}");
        assert_eq!((old.single, new.single), (single, single));
        for (level, of) in h.levels.iter().enumerate() {
            for at in 0..of.boxes.len() {
                let bits = |p: &Plotfile| -> Vec<u64> {
                    p.read_box(level, at).unwrap().iter().map(|v| v.to_bits()).collect()
                };
                assert_eq!(bits(&old), bits(&new), "{name}: level {level}, box {at}");
            }
        }
    }
}

/// The value of a cell by a search of all boxes, finest first.
fn searched(h: &Hierarchy, component: usize, level: usize, cell: [i64; 3]) -> f64 {
    for coarse in (0..=level).rev() {
        let ratio = h.ratio(coarse, level);
        let at = [0, 1, 2].map(|d| cell[d].div_euclid(ratio[d]));
        let point = Cells { lo: at, hi: at };
        if h.levels[coarse].boxes.iter().any(|b| b.contains(&point)) {
            return value(coarse, component, at);
        }
    }
    f64::NAN
}

#[test]
fn a_covering_grid_is_what_a_search_of_all_boxes_says() {
    let dir = tempfile::tempdir().unwrap();
    let cells =
        |lo: [i64; 2], hi: [i64; 2]| Cells::new([lo[0], lo[1], 0], [hi[0], hi[1], 0]).unwrap();
    let levels = vec![
        vec![cells([0, 0], [7, 7]), cells([8, 0], [15, 7]), cells([0, 8], [15, 15])],
        vec![cells([4, 4], [11, 19]), cells([12, 4], [23, 11])],
        vec![cells([12, 12], [19, 15]), cells([30, 10], [41, 19])],
        Vec::new(),
    ];
    let h = hierarchy(2, &["a", "b"], levels);
    let source = dir.path().join("plt");
    plotfile(&source, &h, 2, false);
    let path = stored(dir.path(), &source, 2);
    for ranks in [1, 3] {
        launch(ranks, |comm| {
            let rank = comm.rank();
            let mut amr = Amr::open(comm, &path).unwrap();
            let mut random = Random(rank as u64);
            for round in 0..60 {
                // Every rank has another region, and now and then none.
                let level = round % h.levels.len();
                let side = 16i64 << level;
                let mut ends = [0; 4].map(|_: i64| random.below(side as usize) as i64);
                ends[..2].sort_unstable();
                ends[2..].sort_unstable();
                let region = cells([ends[0], ends[2]], [ends[1], ends[3]]);
                let wanted = (random.below(5) > 0).then_some(region);
                let read = amr.read("b", level, wanted).unwrap();
                let Some(region) = wanted else {
                    assert!(read.is_empty());
                    continue;
                };
                let mut at = 0;
                for y in region.lo[1]..=region.hi[1] {
                    for x in region.lo[0]..=region.hi[0] {
                        assert_eq!(
                            read[at],
                            searched(&h, 1, level, [x, y, 0]),
                            "level {level} {x} {y}"
                        );
                        at += 1;
                    }
                }
            }
            let wrong = amr.read("c", 0, None).unwrap_err().to_string();
            assert!(wrong.contains("no component \"c\": a, b"), "{wrong}");
            let outside = amr.read("a", 1, Some(cells([0, 0], [32, 3]))).unwrap_err().to_string();
            assert!(
                outside.contains("(0,0) to (32,3) is not inside level 1's domain"),
                "{outside}"
            );
        });
    }
}

#[test]
fn the_index_finds_what_a_search_of_all_boxes_finds() {
    for (name, _, levels) in box_lists() {
        for boxes in levels {
            let index = BoxIndex::new(&boxes);
            assert_eq!(index.overlap(), None, "{name}");
            let mut random = Random(5);
            for _ in 0..200 {
                let at = boxes[random.below(boxes.len())];
                let shift = [0; 3].map(|_: i64| random.below(41) as i64 - 20);
                let lo = [0, 1, 2].map(|d| at.lo[d] + shift[d]);
                let size = [0; 3].map(|_: i64| random.below(60) as i64);
                let region = Cells::new(lo, [0, 1, 2].map(|d| lo[d] + size[d])).unwrap();
                let all = (0..boxes.len()).filter(|n| boxes[*n].intersection(&region).is_some());
                assert_eq!(index.find(&region), all.collect::<Vec<_>>(), "{name} {region:?}");
            }
        }
    }
}

#[test]
fn headers_that_lie_are_errors_with_the_line_and_the_number() {
    let dir = tempfile::tempdir().unwrap();
    let cells = |lo: i64, hi: i64| Cells::new([lo, 0, 0], [hi, 3, 0]).unwrap();
    let h = hierarchy(2, &["a"], vec![vec![cells(0, 3), cells(4, 7)], vec![cells(4, 7)]]);
    let source = dir.path().join("plt");
    let told = |file: &str, from: &str, to: &str| {
        let _ = std::fs::remove_dir_all(&source);
        plotfile(&source, &h, 1, false);
        let path = source.join(file);
        let bytes = std::fs::read(&path).unwrap();
        let at = bytes.windows(from.len()).position(|w| w == from.as_bytes()).unwrap();
        let changed = [&bytes[..at], to.as_bytes(), &bytes[at + from.len()..]].concat();
        std::fs::write(&path, changed).unwrap();
        let read = Plotfile::open(&source)
            .and_then(|p| (0..2).try_for_each(|at| p.read_box(0, at).map(drop)));
        read.unwrap_err().to_string()
    };
    let cell_h = "Level_0/Cell_H";
    for (file, from, to, what) in [
        ("Header", "HyperCLaw", "HyperClaw", "is not the first line of a plotfile"),
        ("Header", "\n1\na\n", "\n99999999\na\n", "the number of components is 99999999"),
        ("Header", "0 2 3", "0 4 3", "\"Level_0/Cell\" is not such a number"),
        ("Header", "Level_0/Cell", "../x/Cell", "is not a path inside the plotfile"),
        (
            cell_h,
            "((4,0) (7,3)",
            "((3,0) (7,3)",
            "box 0, (0,0) to (3,3): it overlaps box 1, (3,0) to (7,3)",
        ),
        (
            cell_h,
            "((4,0) (7,3)",
            "((4,0) (9,3)",
            "box 1, (4,0) to (9,3): it is not inside the domain",
        ),
        (cell_h, "((4,0) (7,3)", "((4,0) (2,3)", "has no cells"),
        (cell_h, "((4,0) (7,3)", "((4,0) (7,99999999999999)", "has no cells"),
        (cell_h, "(2 0", "(88888888 0", "the number of boxes is 88888888"),
        (cell_h, "FabOnDisk: Cell_D_00000 0", "FabOnDisk: ../../etc 0", "is not a file beside it"),
        (cell_h, "FabOnDisk: Cell_D_00000 0", "FabOnDisk: Cell_D_00000 7", "(level 0, box 0)"),
        ("Level_0/Cell_D_00000", "1023)),(8", "1023)),(9", "is not IEEE's"),
        ("Level_0/Cell_D_00000", "(3,3) (0,0)) 1", "(3,3) (0,0)) 9", "9 components of"),
    ] {
        let told = told(file, from, to);
        assert!(told.contains(what), "{file}: {from} as {to}: {told}");
    }
}

#[test]
fn a_level_that_is_not_inside_the_coarser_one_is_refused() {
    let cells = |lo: i64, hi: i64| Cells::new([lo, 0, 0], [hi, 3, 0]).unwrap();
    let h = hierarchy(2, &["a"], vec![vec![cells(0, 3), cells(6, 7)], vec![cells(8, 13)]]);
    let told = h.check(Path::new("plt")).unwrap_err().to_string();
    assert!(
        told.contains("level 1, box 0, (8,0) to (13,3): it is not inside the boxes of level 0"),
        "{told}"
    );
}
