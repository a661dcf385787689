//! A hierarchy as an AMReX plotfile.

use std::fmt::Write as _;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use esker_comm::{Communicator, Message};

use super::cells::Cells;
use super::dataset::{Amr, shares_of_boxes};
use super::hierarchy::Hierarchy;
use crate::error::{ModelError, Result, agree};

/// Writes a hierarchy as a plotfile: each rank a file of each level, rank 0 the headers. Values, boxes, times and names come back as they
/// were, bit for bit. The directory must not exist, or be empty. Collective.
pub fn write_plotfile(amr: &Amr, path: &Path) -> Result<()> {
    let comm = amr.comm().clone();
    let failed = |path: &Path| {
        let path = path.to_path_buf();
        move |source| ModelError::File { path, source }
    };
    let made = match comm.rank() {
        0 => new_folder(path).map_err(failed(path)).and_then(|()| {
            (0..amr.hierarchy.levels.len()).try_for_each(|level| {
                let folder = path.join(format!("Level_{level}"));
                std::fs::create_dir(&folder).map_err(failed(&folder))
            })
        }),
        _ => Ok(()),
    };
    agree(&*comm, made)?;
    for level in 0..amr.hierarchy.levels.len() {
        let wrote = write_level(&*comm, amr, path, level);
        let mine = agree(&*comm, wrote)?;
        let all = comm.gather(0, Message::from_u64s(&mine))?;
        let wrote = match all {
            Some(all) => write_cell_h(amr, path, level, &all),
            None => Ok(()),
        };
        agree(&*comm, wrote)?;
    }
    let wrote = match comm.rank() {
        0 => {
            let header = path.join("Header");
            std::fs::write(&header, header_text(&amr.hierarchy)).map_err(failed(&header))
        }
        _ => Ok(()),
    };
    agree(&*comm, wrote)
}

/// Makes a directory, unless an empty one is there.
fn new_folder(path: &Path) -> std::io::Result<()> {
    match std::fs::create_dir(path) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            // A link, or a file, is not a directory that was made for this.
            let is_folder = std::fs::symlink_metadata(path)?.is_dir();
            match is_folder && std::fs::read_dir(path)?.next().is_none() {
                true => Ok(()),
                false => Err(error),
            }
        }
        made => made,
    }
}

/// `((0,0,0) (15,15,15) (0,0,0))`
fn cells_text(cells: &Cells, dims: usize) -> String {
    let corner = |c: &[i64; 3]| {
        let numbers: Vec<String> = c.iter().take(dims).map(i64::to_string).collect();
        format!("({})", numbers.join(","))
    };
    format!("({} {} {})", corner(&cells.lo), corner(&cells.hi), corner(&[0; 3]))
}

/// Writes this rank's boxes of a level. Gives for each its offset, and the smallest and largest value of each component.
fn write_level(comm: &dyn Communicator, amr: &Amr, path: &Path, level: usize) -> Result<Vec<u64>> {
    let boxes = &amr.hierarchy.levels[level].boxes;
    let mine = shares_of_boxes(boxes, comm.size())[comm.rank()].clone();
    if mine.is_empty() {
        return Ok(Vec::new());
    }
    let file_path = path.join(format!("Level_{level}")).join(data_name(comm.rank()));
    let failed = |source| ModelError::File { path: file_path.clone(), source };
    let file = std::fs::File::create_new(&file_path).map_err(failed)?;
    let mut file = BufWriter::new(file);
    let components = amr.hierarchy.names.len();
    let (mut told, mut offset) = (Vec::new(), 0u64);
    for number in mine {
        let values = amr.read_box(level, number)?;
        let real = match amr.single {
            true => "((8, (32 8 23 0 1 9 0 127)),(4, (4 3 2 1)))",
            false => "((8, (64 11 52 0 1 12 0 1023)),(8, (8 7 6 5 4 3 2 1)))",
        };
        let cells = cells_text(&boxes[number], amr.hierarchy.dims);
        let head = format!("FAB {real}{cells} {components}\n");
        file.write_all(head.as_bytes()).map_err(failed)?;
        told.push(offset);
        offset += head.len() as u64;
        for value in &values {
            let wrote = match amr.single {
                true => file.write_all(&(*value as f32).to_le_bytes()),
                false => file.write_all(&value.to_le_bytes()),
            };
            wrote.map_err(failed)?;
        }
        offset += (values.len() * if amr.single { 4 } else { 8 }) as u64;
        let each = values.len().checked_div(components).unwrap_or(0).max(1);
        for part in values.chunks(each) {
            told.push(part.iter().copied().fold(f64::INFINITY, f64::min).to_bits());
            told.push(part.iter().copied().fold(f64::NEG_INFINITY, f64::max).to_bits());
        }
    }
    file.flush().map_err(failed)?;
    Ok(told)
}

fn data_name(rank: usize) -> String {
    format!("Cell_D_{rank:05}")
}

/// The header of a level, from what every rank told.
fn write_cell_h(amr: &Amr, path: &Path, level: usize, told: &[Message]) -> Result<()> {
    let h = &amr.hierarchy;
    let (boxes, components) = (&h.levels[level].boxes, h.names.len());
    let mut text = format!("1\n1\n{components}\n0\n({} 0\n", boxes.len());
    for cells in boxes {
        let _ = writeln!(text, "{}", cells_text(cells, h.dims));
    }
    let _ = writeln!(text, ")\n{}", boxes.len());
    let mut ends: [Vec<String>; 2] = [Vec::new(), Vec::new()];
    for (rank, message) in told.iter().enumerate() {
        for one in message.to_u64s().chunks(1 + 2 * components) {
            let _ = writeln!(text, "FabOnDisk: {} {}", data_name(rank), one[0]);
            for (side, lines) in ends.iter_mut().enumerate() {
                let values = one[1..].iter().skip(side).step_by(2);
                let values: Vec<String> =
                    values.map(|bits| format!("{:?},", f64::from_bits(*bits))).collect();
                lines.push(values.concat());
            }
        }
    }
    for lines in ends {
        let _ = writeln!(text, "\n{},{components}", boxes.len());
        for line in lines {
            let _ = writeln!(text, "{line}");
        }
    }
    let file: PathBuf = path.join(format!("Level_{level}")).join("Cell_H");
    std::fs::write(&file, text).map_err(|source| ModelError::File { path: file, source })
}

fn header_text(h: &Hierarchy) -> String {
    let mut text = format!("HyperCLaw-V1.1\n{}\n", h.names.len());
    for name in &h.names {
        let _ = writeln!(text, "{name}");
    }
    let reals = |list: &[f64]| list.iter().map(|v| format!("{v:?} ")).collect::<String>();
    let _ = writeln!(text, "{}\n{:?}\n{}", h.dims, h.time, h.levels.len().saturating_sub(1));
    let _ = writeln!(text, "{}\n{}", reals(&h.lo), reals(&h.hi));
    let ratios: String = h.levels.iter().skip(1).map(|l| format!("{} ", l.ratio[0])).collect();
    let domains: String =
        h.levels.iter().map(|l| format!("{} ", cells_text(&l.domain, h.dims))).collect();
    let steps: String = h.levels.iter().map(|l| format!("{} ", l.step)).collect();
    let _ = writeln!(text, "{ratios}\n{domains}\n{steps}");
    for level in &h.levels {
        let _ = writeln!(text, "{}", reals(&level.cell_size));
    }
    let _ = writeln!(text, "{}\n0", h.coordinates);
    for (number, level) in h.levels.iter().enumerate() {
        let _ = writeln!(text, "{number} {} {:?}\n{}", level.boxes.len(), level.time, level.step);
        for cells in &level.boxes {
            for d in 0..h.dims {
                let size = level.cell_size.get(d).copied().unwrap_or(1.0);
                let origin = h.lo.get(d).copied().unwrap_or(0.0);
                let at = |cell: i64| origin + (cell - level.domain.lo[d]) as f64 * size;
                let _ = writeln!(text, "{:?} {:?}", at(cells.lo[d]), at(cells.hi[d] + 1));
            }
        }
        let _ = writeln!(text, "Level_{number}/Cell");
    }
    text
}
