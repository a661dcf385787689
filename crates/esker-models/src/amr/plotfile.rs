//! AMReX plotfiles: a directory with text headers and files of FABs.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use super::cells::Cells;
use super::hierarchy::{Hierarchy, Level};
use super::text::Words;
use crate::error::{ModelError, Result};

/// An open plotfile.
#[derive(Debug, Clone)]
pub struct Plotfile {
    /// The directory.
    pub path: PathBuf,
    /// What it has.
    pub hierarchy: Hierarchy,
    /// Whether its numbers have 4 bytes.
    pub single: bool,
    /// For each level and box: the file and where its FAB begins.
    places: Vec<Vec<(PathBuf, u64)>>,
}

/// How the numbers of a FAB are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Real {
    size: usize,
    big: bool,
}

fn read_text(path: &Path) -> Result<String> {
    std::fs::read_to_string(path)
        .map_err(|source| ModelError::File { path: path.to_path_buf(), source })
}

impl Plotfile {
    /// Reads the headers. What they say is checked: counts, boxes inside their domains, not overlapping, nested.
    pub fn open(path: &Path) -> Result<Plotfile> {
        let header = path.join("Header");
        let text = read_text(&header)?;
        let (hierarchy, names) = parse_header(&header, &text)?;
        let mut hierarchy = hierarchy;
        let mut places = Vec::new();
        for (number, name) in names.iter().enumerate() {
            let said = hierarchy.levels[number].boxes.len();
            let (boxes, files) = parse_level(path, name, &hierarchy)?;
            let cell_h = path.join(format!("{name}_H"));
            if boxes.len() != said {
                let what = format!("{} boxes, but the Header says {said}", boxes.len());
                return Err(ModelError::stored(cell_h, format!("level {number}"), what));
            }
            hierarchy.levels[number].boxes = boxes;
            places.push(files);
        }
        hierarchy.check(path)?;
        let mut plotfile = Plotfile { path: path.to_path_buf(), hierarchy, single: false, places };
        // All FABs of a plotfile are of one kind.
        if let Some(level) = plotfile.places.iter().position(|places| !places.is_empty()) {
            plotfile.single = plotfile.fab(level, 0)?.1.size == 4;
        }
        Ok(plotfile)
    }

    /// The file of a FAB behind its header, how it is stored, its box and components, and how many bytes are left in the file.
    fn fab(
        &self,
        level: usize,
        number: usize,
    ) -> Result<(BufReader<File>, Real, Cells, usize, u64)> {
        let place = self.places.get(level).and_then(|places| places.get(number));
        let Some((path, offset)) = place else {
            return Err(ModelError::Asked(format!("level {level} has no box {number}")));
        };
        let failed = |source| ModelError::File { path: path.clone(), source };
        let file = File::open(path).map_err(failed)?;
        let len = file.metadata().map_err(failed)?.len();
        let mut file = BufReader::new(file);
        file.seek(SeekFrom::Start(*offset)).map_err(failed)?;
        // A header is one line of less than this.
        let mut line = Vec::new();
        (&mut file).take(4096).read_until(b'\n', &mut line).map_err(failed)?;
        let left = len.saturating_sub(offset.saturating_add(line.len() as u64));
        let line = String::from_utf8_lossy(&line).into_owned();
        let (real, stored, components) = parse_fab(path, &line, self.hierarchy.dims)
            .map_err(|error| self.wrong_fab(level, number, error.to_string()))?;
        Ok((file, real, stored, components, left))
    }

    fn wrong_fab(&self, level: usize, number: usize, what: String) -> ModelError {
        let (path, offset) = &self.places[level][number];
        let object = format!("the FAB at byte {offset} (level {level}, box {number})");
        ModelError::stored(path, object, what)
    }

    /// The values of a box: all components, x fastest, the component slowest. Ghost cells are left out.
    pub fn read_box(&self, level: usize, number: usize) -> Result<Vec<f64>> {
        let (mut file, real, stored, components, left) = self.fab(level, number)?;
        let wrong = |what: String| self.wrong_fab(level, number, what);
        let path = &self.places[level][number].0;
        let failed = |source| ModelError::File { path: path.clone(), source };
        let wanted = self.hierarchy.levels[level].boxes[number];
        let expected = self.hierarchy.names.len();
        if components != expected || !stored.contains(&wanted) {
            let dims = self.hierarchy.dims;
            let (has, wants) = (stored.words(dims), wanted.words(dims));
            let what = format!("{components} components of {has}, expected {expected} of {wants}");
            return Err(wrong(what));
        }
        let cells = stored.volume();
        let bytes = cells
            .checked_mul(components as u64)
            .and_then(|n| n.checked_mul(real.size as u64))
            .filter(|n| *n <= left);
        let Some(bytes) = bytes else {
            let what =
                format!("{components} components of {cells} cells, but {left} bytes are left");
            return Err(wrong(what));
        };
        let mut raw = vec![0u8; bytes as usize];
        file.read_exact(&mut raw).map_err(failed)?;
        let values = decode(&raw, real);
        if stored == wanted {
            return Ok(values);
        }
        let mut out = Vec::with_capacity((wanted.volume() * components as u64) as usize);
        for component in 0..components as u64 {
            for z in wanted.lo[2]..=wanted.hi[2] {
                for y in wanted.lo[1]..=wanted.hi[1] {
                    let from = component * cells + stored.place([wanted.lo[0], y, z]);
                    let from = from as usize;
                    out.extend(&values[from..from + wanted.shape()[0] as usize]);
                }
            }
        }
        Ok(out)
    }
}

fn decode(raw: &[u8], real: Real) -> Vec<f64> {
    match real.size {
        4 => raw
            .as_chunks::<4>()
            .0
            .iter()
            .map(|b| {
                f64::from(if real.big { f32::from_be_bytes(*b) } else { f32::from_le_bytes(*b) })
            })
            .collect(),
        _ => raw
            .as_chunks::<8>()
            .0
            .iter()
            .map(|b| if real.big { f64::from_be_bytes(*b) } else { f64::from_le_bytes(*b) })
            .collect(),
    }
}

/// `FAB ((8, (64 11 52 0 1 12 0 1023)),(8, (8 7 6 5 4 3 2 1)))((0,0,0) (15,15,15) (0,0,0)) 5`
fn parse_fab(path: &Path, line: &str, dims: usize) -> Result<(Real, Cells, usize)> {
    let mut words = Words::new(path, line);
    if words.word()? != "FAB" {
        return Err(words.wrong("it does not begin with FAB"));
    }
    let count: usize = words.number("the numbers of the format")?;
    if count != 8 {
        return Err(words.wrong(format!("a format of {count} numbers; 8 are known")));
    }
    let mut format = [0i64; 8];
    for slot in &mut format {
        *slot = words.number("the format")?;
    }
    let size: usize = words.number("the bytes of a number")?;
    let known = [([64, 11, 52, 0, 1, 12, 0, 1023], 8), ([32, 8, 23, 0, 1, 9, 0, 127], 4)];
    if !known.contains(&(format, size)) {
        return Err(words.wrong(format!("the format {format:?} of {size} bytes is not IEEE's")));
    }
    let mut order = Vec::new();
    for _ in 0..size {
        order.push(words.number::<usize>("the order of bytes")?);
    }
    let rising: Vec<usize> = (1..=size).collect();
    let falling: Vec<usize> = rising.iter().rev().copied().collect();
    let big = order == rising;
    if !big && order != falling {
        return Err(words.wrong(format!("the order of bytes is {order:?}")));
    }
    let cells = words.cells(dims)?;
    let components: usize = words.number("the number of components")?;
    Ok((Real { size, big }, cells, components))
}

/// The hierarchy, with as many empty places for boxes as the header says, and each level's path.
fn parse_header(path: &Path, text: &str) -> Result<(Hierarchy, Vec<String>)> {
    let mut words = Words::new(path, text);
    let magic = words.line()?;
    if !magic.starts_with("HyperCLaw") && !magic.starts_with("NavierStokes") {
        return Err(words.wrong(format!("{magic:?} is not the first line of a plotfile")));
    }
    let components = words.count("the number of components")?;
    words.line()?;
    let mut names = Vec::new();
    for _ in 0..components {
        names.push(words.line()?.trim().to_string());
    }
    let dims: usize = words.number("the number of dimensions")?;
    if !(1..=3).contains(&dims) {
        return Err(words.wrong(format!("{dims} dimensions: 1 to 3 are known")));
    }
    let time = words.number("the time")?;
    let finest = words.count("the number of the finest level")?;
    let reals = |words: &mut Words<'_>, what: &str| -> Result<Vec<f64>> {
        (0..dims).map(|_| words.number(what)).collect()
    };
    let lo = reals(&mut words, "a corner of the problem")?;
    let hi = reals(&mut words, "a corner of the problem")?;
    let mut ratios = vec![1i64];
    for _ in 0..finest {
        let ratio: i64 = words.number("a refinement ratio")?;
        if !(1..=1024).contains(&ratio) {
            return Err(words.wrong(format!("a refinement ratio of {ratio}")));
        }
        ratios.push(ratio);
    }
    let mut levels = Vec::new();
    for ratio in ratios {
        let domain = words.cells(dims)?;
        let ratio = [0, 1, 2].map(|d| if d < dims { ratio } else { 1 });
        let (cell_size, step, time, boxes) = (Vec::new(), 0, time, Vec::new());
        levels.push(Level { domain, ratio, cell_size, step, time, boxes });
    }
    for level in &mut levels {
        level.step = words.number("the step of a level")?;
    }
    for level in &mut levels {
        level.cell_size = reals(&mut words, "the size of a cell")?;
    }
    let coordinates = words.number("the coordinate system")?;
    let _: i64 = words.number("the width of the boundary")?;
    let mut paths = Vec::new();
    for (number, level) in levels.iter_mut().enumerate() {
        let said: usize = words.number("the number of a level")?;
        if said != number {
            return Err(words.wrong(format!("level {said} where {number} was expected")));
        }
        let grids = words.count("the number of boxes")?;
        level.time = words.number("the time of a level")?;
        level.step = words.number("the step of a level")?;
        for _ in 0..2 * dims * grids {
            let _: f64 = words.number("a corner of a box")?;
        }
        // The cells are in the level's own header.
        level.boxes = vec![Cells::default(); grids];
        let name = words.word()?.to_string();
        if Path::new(&name).components().any(|c| !matches!(c, std::path::Component::Normal(_))) {
            return Err(words.wrong(format!("{name:?} is not a path inside the plotfile")));
        }
        paths.push(name);
    }
    Ok((Hierarchy { dims, names, time, lo, hi, coordinates, levels }, paths))
}

type Places = Vec<(PathBuf, u64)>;

/// The boxes of a level, and where each FAB is.
fn parse_level(root: &Path, name: &str, hierarchy: &Hierarchy) -> Result<(Vec<Cells>, Places)> {
    let path = root.join(format!("{name}_H"));
    let folder = path.parent().unwrap_or(root).to_path_buf();
    let text = read_text(&path)?;
    let mut words = Words::new(&path, &text);
    let version: i64 = words.number("the version")?;
    let how: i64 = words.number("how it is stored")?;
    if !(1..=4).contains(&version) || !(0..=1).contains(&how) {
        return Err(words.wrong(format!("version {version}, stored as {how}: not known here")));
    }
    let components: usize = words.number("the number of components")?;
    if components != hierarchy.names.len() {
        let expected = hierarchy.names.len();
        return Err(words.wrong(format!("{components} components, but the Header has {expected}")));
    }
    // One number, or one for each dimension in brackets.
    words.line()?;
    words.line()?;
    let count = words.count("the number of boxes")?;
    let _: i64 = words.number("a hash")?;
    let mut boxes = Vec::new();
    for _ in 0..count {
        boxes.push(words.cells(hierarchy.dims)?);
    }
    let files = words.count("the number of FABs")?;
    if files != count {
        return Err(words.wrong(format!("{files} FABs for {count} boxes")));
    }
    let mut places = Vec::new();
    for _ in 0..count {
        let word = words.word()?;
        if word != "FabOnDisk:" {
            return Err(words.wrong(format!("{word:?} where FabOnDisk: was expected")));
        }
        let file = words.word()?;
        if file.contains('/') || file == ".." {
            return Err(words.wrong(format!("{file:?} is not a file beside it")));
        }
        places.push((folder.join(file), words.number("an offset")?));
    }
    Ok((boxes, places))
}
