//! How variables are to be stored, by their names: the values of the hints `esker_chunk` and `esker_filter`.
//!
//! ```text
//! esker_chunk   auto                         all variables, in chunks of a shape that is chosen
//!               lat/90,lon/90                those that have these dimensions
//!               t:lat/90,lon/90,u*:auto      t so; all whose names begin with u in a chosen shape
//!               auto|time*:none              all but those whose names begin with time
//! esker_filter  shuffle+zstd,3               all variables
//!               t:bitround,12+zstd|p?:none   t; none for p1, p2, …
//! ```
//!
//! Names may have `*` and `?`. What stands last and matches a name counts. Entries are separated by `|`; those
//! of `esker_chunk` by commas too, where the next has a name. Filters have `+` or blanks between them.

use esker_codec::Pipeline;
use esker_format::{Schema, Variable};

/// What hints say of variables.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Wishes {
    shapes: Vec<(String, ShapeWish)>,
    /// `None` stands for no filters.
    filters: Vec<(String, Option<String>)>,
    /// As they were given.
    texts: [Option<String>; 2],
}

/// What they say of one.
#[derive(Debug, Default)]
pub(crate) struct Wish {
    pub(crate) shape: Option<ShapeWish>,
    pub(crate) filters: Option<String>,
}

/// A shape that is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ShapeWish {
    /// Chosen by the library.
    Automatic,
    /// No chunks.
    None,
    /// Lengths along dimensions of these names; of a variable that was not `named`, only where it has them all.
    Lengths { along: Vec<(String, u64)>, named: bool },
}

impl ShapeWish {
    /// The wanted length in each dimension of a variable; `None` if it is not to have chunks.
    pub(crate) fn lengths(
        &self,
        schema: &Schema,
        variable: &Variable,
    ) -> Result<Option<Vec<Option<u64>>>, String> {
        let free = vec![None; variable.dims.len()];
        let (along, named) = match self {
            ShapeWish::None => return Ok(None),
            ShapeWish::Automatic if variable.dims.is_empty() => {
                return Err("a scalar has no chunks".to_string());
            }
            ShapeWish::Automatic => return Ok(Some(free)),
            ShapeWish::Lengths { along, named } => (along, named),
        };
        let mut lengths = free;
        for (name, len) in along {
            let has = |d: &esker_format::DimId| {
                schema.dims.at(d.0).is_some_and(|dim| *dim.name == **name)
            };
            match variable.dims.iter().position(has) {
                Some(place) => lengths[place] = Some(*len),
                None if !named => return Ok(None),
                None => return Err(format!("it has no dimension \"{name}\"")),
            }
        }
        Ok(Some(lengths))
    }
}

impl Wishes {
    /// The value of `esker_chunk`; why it is none, if it is not.
    pub(crate) fn set_shapes(&mut self, value: &str) -> Result<(), String> {
        let mut shapes: Vec<(String, ShapeWish)> = Vec::new();
        for entry in value.split('|') {
            let mut begun = false;
            for item in entry.split(',').map(str::trim) {
                let (name, what) = match item.rsplit_once(':') {
                    Some((name, what)) => (Some(name), what),
                    None => (None, item),
                };
                if name.is_some_and(str::is_empty) || what.is_empty() {
                    return Err(format!("{item:?} is not auto, none or dimension/length"));
                }
                let wish = match what {
                    "auto" => ShapeWish::Automatic,
                    "none" => ShapeWish::None,
                    _ => {
                        let along = along(what)?;
                        if let (None, true, Some((_, ShapeWish::Lengths { along: all, .. }))) =
                            (name, begun, shapes.last_mut())
                        {
                            all.push(along);
                            continue;
                        }
                        let named = name.is_some_and(|name| !name.contains(['*', '?']));
                        ShapeWish::Lengths { along: vec![along], named }
                    }
                };
                shapes.push((name.unwrap_or("*").to_string(), wish));
                begun = true;
            }
        }
        self.shapes = shapes;
        self.texts[0] = Some(value.to_string());
        Ok(())
    }

    /// The value of `esker_filter`; why it is none, if it is not.
    pub(crate) fn set_filters(&mut self, value: &str) -> Result<(), String> {
        let mut filters = Vec::new();
        for entry in value.split('|').map(str::trim) {
            let (name, what) = entry.split_once(':').unwrap_or(("*", entry));
            let what = what.replace('+', " ");
            let wish = match what.trim() {
                "none" => None,
                "" => return Err(format!("{entry:?} names no filter")),
                text => {
                    let pipeline: Pipeline = text.parse().map_err(|e| format!("{e}"))?;
                    Some(pipeline.to_string())
                }
            };
            if name.is_empty() {
                return Err(format!("{entry:?} names no variable"));
            }
            filters.push((name.to_string(), wish));
        }
        self.filters = filters;
        self.texts[1] = Some(value.to_string());
        Ok(())
    }

    pub(crate) fn shapes_text(&self) -> Option<String> {
        self.texts[0].clone()
    }

    pub(crate) fn filters_text(&self) -> Option<String> {
        self.texts[1].clone()
    }

    /// What they say of a variable of this name.
    pub(crate) fn of(&self, name: &str) -> Wish {
        let shape = self.shapes.iter().rev().find(|(pattern, _)| is_like(pattern, name));
        let filters = self.filters.iter().rev().find(|(pattern, _)| is_like(pattern, name));
        Wish {
            shape: shape.map(|(_, wish)| wish.clone()),
            filters: filters.and_then(|(_, wish)| wish.clone()),
        }
    }
}

/// `dimension/length`.
fn along(text: &str) -> Result<(String, u64), String> {
    let fault = || format!("{text:?} is not auto, none or dimension/length");
    let (name, len) = text.rsplit_once('/').ok_or_else(fault)?;
    match len.parse() {
        Ok(len) if len > 0 && !name.is_empty() => Ok((name.to_string(), len)),
        _ => Err(fault()),
    }
}

/// Whether a name is as a pattern with `*` (any characters) and `?` (one) says.
fn is_like(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), name.chars().collect());
    let (mut p, mut n) = (0, 0);
    // Where the last star was, and up to where it reaches: it takes one more when the rest does not fit.
    let mut star = None;
    while n < name.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, n));
                p += 1;
            }
            Some(c) if *c == '?' || *c == name[n] => {
                p += 1;
                n += 1;
            }
            _ => match &mut star {
                Some((at, reach)) => {
                    *reach += 1;
                    (p, n) = (*at + 1, *reach);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_like_patterns() {
        for (pattern, name, like) in [
            ("*", "", true),
            ("t", "t", true),
            ("t", "tt", false),
            ("t*", "temp", true),
            ("*p", "temp", true),
            ("t*m*", "temp", true),
            ("t?mp", "temp", true),
            ("t?mp", "tmp", false),
            ("a*b*c", "aXbYbZc", true),
            ("a*b*c", "aXbYbZ", false),
            ("?", "ä", true),
        ] {
            assert_eq!(is_like(pattern, name), like, "{pattern} {name}");
        }
    }

    #[test]
    fn the_last_entry_that_matches_counts() {
        let mut wishes = Wishes::default();
        wishes.set_shapes("auto|t:lat/90,lon/45,u*:auto|u2:none").unwrap();
        assert_eq!(wishes.of("x").shape, Some(ShapeWish::Automatic));
        let along = vec![("lat".to_string(), 90), ("lon".to_string(), 45)];
        assert_eq!(wishes.of("t").shape, Some(ShapeWish::Lengths { along, named: true }));
        assert_eq!(wishes.of("u2").shape, Some(ShapeWish::None));
        wishes.set_filters("shuffle+zstd,3|t:zfp,accuracy=0.5|u?:none").unwrap();
        assert_eq!(wishes.of("x").filters.as_deref(), Some("shuffle zstd,3"));
        assert!(wishes.of("t").filters.unwrap().starts_with("zfp,"));
        assert_eq!(wishes.of("u1").filters, None);
    }

    #[test]
    fn what_says_nothing_is_refused() {
        let mut wishes = Wishes::default();
        for wrong in ["", "t:", ":auto", "lat/0", "lat", "lat/x", "t:lat/9,"] {
            assert!(wishes.set_shapes(wrong).is_err(), "{wrong:?}");
        }
        for wrong in ["", "t:", ":zstd", "t:gzipp"] {
            assert!(wishes.set_filters(wrong).is_err(), "{wrong:?}");
        }
        assert_eq!(wishes, Wishes::default());
    }
}
