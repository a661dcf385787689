//! Decomposition maps as E3SM's I/O library records them: which elements each rank had.

use esker_text::sentence;
use std::path::Path;

use esker::{Dataset, Owner, Selection};
use thiserror::Error;

use super::pattern::Visit;

/// Bytes of an element: the model computes with doubles.
const ELEMENT: u64 = 8;
/// Larger maps are refused, so that a broken file cannot take all memory.
const MOST_ELEMENTS: u64 = 1 << 28;

/// Why a map cannot be used.
#[derive(Debug, Error)]
pub enum MapError {
    /// The file cannot be read.
    #[error(transparent)]
    File(#[from] esker::Error),
    /// It is a netCDF file, but not a map.
    #[error("{file}: it is not a decomposition map: {what}", file = sentence(file), what = sentence(what))]
    Unlike {
        /// The file.
        file: String,
        /// What is missing or impossible.
        what: String,
    },
}

/// The maps of a file, each with the number of variables that are cut by it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Maps {
    ranks: u32,
    maps: Vec<Map>,
}

/// One map, seen along its longest dimension, in which chunks are cut: their other lengths are the
/// dimensions' (seeds/000 §5.5.4).
#[derive(Debug, Clone, PartialEq, Eq)]
struct Map {
    variables: u32,
    /// The longest dimension's length.
    columns: u64,
    /// Bytes of a column.
    column: u64,
    /// Of each rank and column, the bytes that it has before that column.
    before: Vec<Vec<u64>>,
}

impl Maps {
    /// Reads a file with variables `Dk.nreqs`, `Dk.offsets`, `Dk.lengths` and attributes `Dk.dims`.
    pub fn read(path: &Path) -> Result<Maps, MapError> {
        let file = Dataset::open(path)?;
        let unlike = |what: String| MapError::Unlike { file: path.display().to_string(), what };
        let mut found = Vec::new();
        for k in 1.. {
            let shape = file.schema().attr(Owner::Global, &format!("D{k}.dims"));
            let Some(shape) = shape.and_then(|values| values.convert_to::<u64>().ok()) else {
                break;
            };
            let numbers = |name: &str| -> Result<Vec<u64>, MapError> {
                let var = file.var(&format!("D{k}.{name}"))?;
                Ok(file.get::<u64>(var, &Selection::all())?)
            };
            let (counts, runs) = (numbers("nreqs")?, (numbers("offsets")?, numbers("lengths")?));
            found.push(Map::new(k, &shape, &counts, &runs.0, &runs.1).map_err(unlike)?);
        }
        let ranks = found.first().map_or(0, |map| map.before.len());
        if ranks == 0 {
            return Err(unlike("there is no attribute D1.dims with ranks".into()));
        }
        if found.iter().any(|map| map.before.len() != ranks) {
            return Err(unlike("its maps have different numbers of ranks".into()));
        }
        // How many variables the atmosphere and the ocean cut by each of their maps.
        let usual: &[u32] = match found.len() {
            3 => &[1, 323, 63],
            6 => &[6, 2, 25, 2, 2, 4],
            _ => &[],
        };
        for (map, variables) in found.iter_mut().zip(usual) {
            map.variables = *variables;
        }
        Ok(Maps { ranks: u32::try_from(ranks).unwrap_or(u32::MAX), maps: found })
    }

    pub(super) fn visit(&self, ranks: u32, chunk: u64, visit: Visit<'_>) {
        for map in &self.maps {
            (0..map.variables).for_each(|_| map.visit(self.ranks, ranks, chunk, visit));
        }
    }
}

impl Map {
    fn new(
        k: usize,
        shape: &[u64],
        counts: &[u64],
        offsets: &[u64],
        lengths: &[u64],
    ) -> Result<Map, String> {
        let total = shape.iter().try_fold(1u64, |all, len| all.checked_mul(*len));
        let total = total.filter(|all| (1..=MOST_ELEMENTS).contains(all));
        let total = total.ok_or_else(|| format!("D{k} has no elements, or too many"))?;
        let longest = (0..shape.len()).max_by_key(|d| (shape[*d], *d)).unwrap_or(0);
        let columns = shape.get(longest).copied().unwrap_or(1);
        let inside: u64 = shape.iter().skip(longest + 1).product();
        if columns.saturating_mul(counts.len() as u64) > MOST_ELEMENTS {
            return Err(format!("D{k} has too many columns for {} ranks", counts.len()));
        }
        let mut runs = offsets.iter().zip(lengths);
        let mut elements = 0u64;
        let mut before = Vec::with_capacity(counts.len());
        for count in counts {
            let mut of_column = vec![0u64; columns as usize + 1];
            for (first, len) in runs.by_ref().take(usize::try_from(*count).unwrap_or(usize::MAX)) {
                let end = first.checked_add(*len).filter(|end| *end <= total);
                let end = end.ok_or_else(|| {
                    format!("a run of {len} from {first} is beyond D{k}'s {total}")
                })?;
                elements = elements.saturating_add(*len);
                if elements > 2 * total {
                    return Err(format!("the ranks have D{k} more than twice"));
                }
                for element in *first..end {
                    let column = (element / inside) % columns;
                    of_column[column as usize + 1] += ELEMENT;
                }
            }
            for column in 1..of_column.len() {
                of_column[column] += of_column[column - 1];
            }
            before.push(of_column);
        }
        Ok(Map { variables: 1, columns, column: total / columns * ELEMENT, before })
    }

    /// Visits the chunks of one variable. So many copies of the grid lie one behind the other that
    /// every rank has a part; the last copy may have fewer ranks, and each of them more.
    fn visit(&self, recorded: u32, ranks: u32, chunk: u64, visit: Visit<'_>) {
        let copies = ranks.div_ceil(recorded);
        let all = u64::from(copies) * self.columns;
        let wide = (chunk / self.column).clamp(1, all);
        let mut accesses: Vec<(u32, u64)> = Vec::new();
        for begin in (0..all).step_by(usize::try_from(wide).unwrap_or(usize::MAX)) {
            let end = (begin + wide).min(all);
            accesses.clear();
            for copy in begin / self.columns..end.div_ceil(self.columns) {
                let origin = copy * self.columns;
                let from = begin.saturating_sub(origin) as usize;
                let to = (end - origin).min(self.columns) as usize;
                let first = copy as u32 * recorded;
                let here = u64::from(recorded.min(ranks - first));
                for (m, before) in self.before.iter().enumerate() {
                    let bytes = before[to] - before[from];
                    if bytes == 0 {
                        continue;
                    }
                    let rank = first + (m as u64 * here / u64::from(recorded)) as u32;
                    match accesses.last_mut() {
                        Some((last, had)) if *last == rank => *had += bytes,
                        _ => accesses.push((rank, bytes)),
                    }
                }
            }
            if !accesses.is_empty() {
                visit(wide * self.column, &accesses);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two ranks, [2, 3]: the first has the first row and the last element.
    fn small() -> Map {
        Map::new(1, &[2, 3], &[2, 1], &[0, 5, 3], &[3, 1, 2]).unwrap()
    }

    fn chunks(ranks: u32, chunk: u64) -> Vec<(u64, Vec<(u32, u64)>)> {
        let mut found = Vec::new();
        small().visit(2, ranks, chunk, &mut |bytes, parts| found.push((bytes, parts.to_vec())));
        found
    }

    #[test]
    fn chunks_are_cut_in_the_longest_dimension() {
        let expected = [(32, vec![(0, 16), (1, 16)]), (32, vec![(0, 16)])];
        assert_eq!(chunks(2, 32), expected);
    }

    #[test]
    fn fewer_ranks_share_the_recorded_ones_and_more_have_copies() {
        assert_eq!(chunks(1, 1000), [(48, vec![(0, 48)])]);
        assert_eq!(chunks(4, 1000), [(96, vec![(0, 32), (1, 16), (2, 32), (3, 16)])]);
        assert_eq!(chunks(3, 1000), [(96, vec![(0, 32), (1, 16), (2, 48)])]);
    }

    #[test]
    fn impossible_maps_are_refused() {
        assert!(Map::new(1, &[2, 3], &[1], &[5], &[2]).unwrap_err().contains("beyond D1's 6"));
        assert!(Map::new(1, &[0], &[1], &[0], &[0]).is_err());
        assert!(Map::new(1, &[u64::MAX, 2], &[1], &[0], &[1]).is_err());
        assert!(Map::new(1, &[2], &[3], &[0, 0, 0], &[2, 2, 2]).unwrap_err().contains("twice"));
    }
}
