//! Which variables of the output are chunked, how, and through which filters.

use std::collections::HashMap;
use std::str::FromStr;

use esker::values::fill_bytes;
use esker::{Attribute, DimLen, ExternalType, Schema, Variable};
use esker_codec::{Chunk, Pipeline};
use esker_format::chunked::{FILTERS, SHAPE, automatic_shape, lengths};
use esker_format::name::normalise;

use super::CopyError;

/// What is asked for where nothing says which filters: fast, good for most numbers, known to Zarr.
pub const DEFAULT_FILTERS: &str = "shuffle zstd,3";

/// A record of fewer bytes is not worth a chunk of its own.
const SMALL_RECORD: u64 = 32 << 10;

/// Bytes of a chunk of several small records.
const RECORDS_TOGETHER: u64 = 1 << 20;

/// What a copy makes of chunks and filters. The default keeps a variable of a classic file as it is
/// there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChunkOptions {
    /// Whether all variables become ordinary ones.
    pub contiguous: bool,
    /// Whether shapes and, without other filters, [`DEFAULT_FILTERS`] are chosen for all variables
    /// that are large enough.
    pub auto: bool,
    /// Lengths of chunks.
    pub shapes: Vec<ShapeWish>,
    /// Filters. All those of a variable are one pipeline.
    pub filters: Vec<FilterWish>,
    /// Variables of fewer bytes are left as they are, unless a wish names them.
    pub smallest: u64,
}

impl Default for ChunkOptions {
    fn default() -> Self {
        let (shapes, filters) = (Vec::new(), Vec::new());
        ChunkOptions { contiguous: false, auto: false, shapes, filters, smallest: 64 << 10 }
    }
}

impl ChunkOptions {
    /// Whether anything becomes chunked or filtered that was not.
    pub fn is_asked(&self) -> bool {
        self.auto || !self.shapes.is_empty() || !self.filters.is_empty()
    }
}

/// Lengths of chunks along some dimensions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShapeWish {
    /// The variable; none for every variable that has one of the dimensions.
    pub var: Option<String>,
    /// Names of dimensions, with the length of a chunk.
    pub lengths: Vec<(String, u64)>,
}

/// Filters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilterWish {
    /// The variable; none for all.
    pub var: Option<String>,
    /// The filters, as in `shuffle zstd,3`; `none` for none.
    pub text: String,
}

impl FromStr for ShapeWish {
    type Err = String;

    /// `lat/90,lon/90`, or `t:lat/90,lon/90` for the variable t.
    fn from_str(text: &str) -> Result<ShapeWish, String> {
        let (var, list) = of_variable(text);
        let length = |part: &str| {
            let usage = || format!("{part:?} is no length of a chunk: write DIMENSION/LENGTH");
            let (dim, len) =
                part.rsplit_once('/').filter(|(d, _)| !d.is_empty()).ok_or_else(usage)?;
            match len.parse::<u64>() {
                Ok(len) if (1..=i32::MAX as u64).contains(&len) => Ok((dim.to_string(), len)),
                _ => Err(usage()),
            }
        };
        let lengths = list.split(',').map(length).collect::<Result<_, _>>()?;
        Ok(ShapeWish { var, lengths })
    }
}

impl FromStr for FilterWish {
    type Err = String;

    /// `shuffle zstd,3`, or `t:zstd,3` for the variable t; `none` for no filters.
    fn from_str(text: &str) -> Result<FilterWish, String> {
        let (var, text) = of_variable(text);
        let text = text.trim();
        if text.is_empty() {
            return Err("name a filter, or none".to_string());
        }
        if text != "none" {
            text.parse::<Pipeline>().map_err(|e| e.to_string())?;
        }
        Ok(FilterWish { var, text: text.to_string() })
    }
}

/// The variable before the last colon, if there is one, and the rest.
fn of_variable(text: &str) -> (Option<String>, &str) {
    match text.rsplit_once(':') {
        Some((var, rest)) if !var.is_empty() => (Some(var.to_string()), rest),
        _ => (None, text),
    }
}

/// Gives each variable of the output the attributes that say how it is stored.
pub(super) fn settle(
    schema: &mut Schema,
    records: u64,
    options: &ChunkOptions,
    to_container: bool,
    from_container: bool,
) -> Result<(), CopyError> {
    let wishes = Wishes::of(schema, options)?;
    let mut chosen: Vec<Option<Choice>> = Vec::with_capacity(schema.vars.len());
    for var in &schema.vars {
        let old = Old::of(var, from_container && !to_container);
        let had = old.shape.clone();
        let mut choice = match options.contiguous {
            true => None,
            false => wishes.choose(schema, var, records, old)?,
        };
        if let Some(choice) =
            choice.as_mut().filter(|_| to_container && !wishes.shapes(schema, var))
        {
            // There filters need no chunks.
            choice.shape = had;
        }
        chosen.push(choice);
    }
    // Records of a traditional variable lie at the end of the file, and chunks would have to find
    // room before them for all records to come.
    let has_records =
        |chosen: &Option<Choice>, var: &Variable| chosen.is_some() && schema.is_record(var);
    let grows = chosen.iter().zip(&schema.vars).any(|(c, var)| has_records(c, var));
    if options.is_asked() && grows && !to_container {
        for (choice, var) in chosen.iter_mut().zip(&schema.vars) {
            if choice.is_none() && schema.is_record(var) {
                let shape = wishes.shape(schema, var, records, None);
                let pipeline = wishes.lossless(var, &shape);
                *choice = Some(Choice { shape: Some(shape), pipeline });
            }
        }
    }
    for (number, choice) in chosen.into_iter().enumerate() {
        if let Some(var) = schema.vars.at_mut(number) {
            note(var, choice);
        }
    }
    Ok(())
}

/// How a variable is to be stored.
struct Choice {
    /// None for what the library chooses.
    shape: Option<Vec<u64>>,
    pipeline: Pipeline,
}

/// How a variable was stored.
struct Old {
    shape: Option<Vec<u64>>,
    pipeline: Option<Pipeline>,
}

impl Old {
    fn of(var: &Variable, forget: bool) -> Old {
        let get = |name| var.attrs.get(name).filter(|_| !forget).map(|a| &a.values);
        let shape = get(SHAPE).and_then(|values| values.convert_to::<u64>().ok());
        let pipeline = get(FILTERS).and_then(|values| values.text()?.parse().ok());
        Old { shape: shape.filter(|shape| shape.len() == var.dims.len()), pipeline }
    }
}

/// Writes a choice down, in place of what was there.
fn note(var: &mut Variable, choice: Option<Choice>) {
    for name in [SHAPE, FILTERS] {
        if let Some(position) = var.attrs.position(name) {
            var.attrs.remove(position);
        }
    }
    let Some(Choice { shape, pipeline }) = choice else { return };
    let mut add = |name: &str, values| {
        // It was removed above, so that the name is free.
        let _ = var.attrs.push(Attribute { name: name.into(), values });
    };
    if let Some(values) = shape.as_deref().and_then(lengths) {
        add(SHAPE, values);
    }
    if !pipeline.is_empty() {
        add(FILTERS, pipeline.to_string().as_str().into());
    }
}

/// What is asked for, by dimensions and variables.
struct Wishes<'o> {
    options: &'o ChunkOptions,
    all: HashMap<usize, u64>,
    of_vars: HashMap<usize, HashMap<usize, u64>>,
    filters: Option<Pipeline>,
    filters_of: HashMap<usize, Pipeline>,
}

impl<'o> Wishes<'o> {
    fn of(schema: &Schema, options: &'o ChunkOptions) -> Result<Wishes<'o>, CopyError> {
        let var = |name: &str| {
            schema.var(name).map(|id| id.0).ok_or_else(|| {
                let hint = esker::nearest::hint(name, schema.vars.iter().map(|v| &*v.name));
                CopyError::NoOutputVariable { name: name.to_string(), hint }
            })
        };
        let dim = |name: &str| {
            schema.dim(name).map(|id| id.0).ok_or_else(|| {
                let hint = esker::nearest::hint(name, schema.dims.iter().map(|d| &*d.name));
                CopyError::NoOutputDimension { name: name.to_string(), hint }
            })
        };
        let mut wishes = Wishes {
            options,
            all: HashMap::new(),
            of_vars: HashMap::new(),
            filters: None,
            filters_of: HashMap::new(),
        };
        for wish in &options.shapes {
            let of = match &wish.var {
                None => &mut wishes.all,
                Some(name) => wishes.of_vars.entry(var(name)?).or_default(),
            };
            for (name, len) in &wish.lengths {
                of.insert(dim(name)?, *len);
            }
        }
        let mut texts: HashMap<Option<usize>, String> = HashMap::new();
        for wish in &options.filters {
            let of = wish.var.as_deref().map(var).transpose()?;
            let text = texts.entry(of).or_default();
            text.push(' ');
            text.push_str(if wish.text == "none" { "" } else { &wish.text });
        }
        for (of, text) in texts {
            let pipeline: Pipeline = text
                .parse()
                .map_err(|e: esker_codec::CodecError| CopyError::Filters { why: e.to_string() })?;
            match of {
                None => wishes.filters = Some(pipeline),
                Some(var) => drop(wishes.filters_of.insert(var, pipeline)),
            }
        }
        Ok(wishes)
    }

    fn number(schema: &Schema, var: &Variable) -> usize {
        schema.vars.position(&var.name).unwrap_or(usize::MAX)
    }

    /// How a variable is stored; `None` for an ordinary one.
    fn choose(
        &self,
        schema: &Schema,
        var: &Variable,
        records: u64,
        old: Old,
    ) -> Result<Option<Choice>, CopyError> {
        let number = Self::number(schema, var);
        let is_named = self.of_vars.contains_key(&number) || self.filters_of.contains_key(&number);
        if !is_named && !self.reaches(schema, var, records) {
            let was = old.shape.is_some() || old.pipeline.is_some();
            let keeps = was && !var.dims.is_empty();
            let pipeline = old.pipeline.unwrap_or_default();
            return Ok(keeps.then_some(Choice { shape: old.shape, pipeline }));
        }
        if var.dims.is_empty() {
            return Err(CopyError::ScalarChunks { name: var.name.to_string() });
        }
        let shape = self.shape(schema, var, records, old.shape);
        let pipeline = match (self.filters_of.get(&number), &self.filters, old.pipeline) {
            (Some(own), _, _) => own.clone(),
            (None, Some(all), _) if self.is_spared(all, schema, var, &shape) => {
                self.lossless(var, &shape)
            }
            (None, Some(all), _) => all.clone(),
            (None, None, Some(old)) => old,
            (None, None, None) if self.options.auto => self.lossless(var, &shape),
            (None, None, None) => Pipeline::default(),
        };
        if let Err(why) = suits(&pipeline, var, &shape) {
            let is_real = matches!(var.ty, ExternalType::Float | ExternalType::Double);
            let remedy = match pipeline.is_lossless() || is_real {
                true => "",
                false => {
                    "; give the filter to other variables by their names (VAR:FILTER), or let the \
                     filters of integers and text be chosen (--auto)"
                }
            };
            return Err(CopyError::Unsuitable { name: var.name.to_string(), why, remedy });
        }
        Ok(Some(Choice { shape: Some(shape), pipeline }))
    }

    /// Whether lengths of chunks are asked for, for this variable.
    fn shapes(&self, schema: &Schema, var: &Variable) -> bool {
        self.of_vars.contains_key(&Self::number(schema, var))
            || var.dims.iter().any(|d| self.all.contains_key(&d.0))
    }

    /// Whether what is asked for all variables is asked for this one.
    fn reaches(&self, schema: &Schema, var: &Variable, records: u64) -> bool {
        let bytes =
            schema.shape(var, records).iter().fold(var.ty.size(), |n, len| n.saturating_mul(*len));
        let by_dims = var.dims.iter().any(|d| self.all.contains_key(&d.0));
        let wanted = match self.all.is_empty() {
            _ if self.options.auto => true,
            true => self.filters.is_some(),
            false => by_dims,
        };
        wanted && !var.dims.is_empty() && bytes >= self.options.smallest
    }

    /// Whether the filters that are asked for all variables are not for this one: lossy ones never
    /// reach a coordinate, and where filters are chosen for the user, they suit.
    fn is_spared(&self, all: &Pipeline, schema: &Schema, var: &Variable, shape: &[u64]) -> bool {
        let dim = var.dims.first().and_then(|d| schema.dims.at(d.0));
        let own = dim.is_some_and(|dim| normalise(&dim.name) == normalise(&var.name));
        let is_coordinate = own && var.dims.len() == 1;
        is_coordinate && !all.is_lossless() || self.options.auto && suits(all, var, shape).is_err()
    }

    /// The filters asked for all, as far as this variable can have them and keeps its values.
    fn lossless(&self, var: &Variable, shape: &[u64]) -> Pipeline {
        let chosen = || DEFAULT_FILTERS.parse().unwrap_or_default();
        let Some(all) = &self.filters else {
            return if self.options.auto { chosen() } else { Pipeline::default() };
        };
        let kept: Vec<_> = all.filters().iter().filter(|f| f.is_lossless()).cloned().collect();
        let kept = Pipeline::new(kept);
        match (!kept.is_empty() || all.is_empty()) && suits(&kept, var, shape).is_ok() {
            true => kept,
            false => chosen(),
        }
    }

    /// The lengths of a variable's chunks: those asked for, those it had, the rest chosen.
    fn shape(
        &self,
        schema: &Schema,
        var: &Variable,
        records: u64,
        old: Option<Vec<u64>>,
    ) -> Vec<u64> {
        let own = self.of_vars.get(&Self::number(schema, var));
        let asked = |dim: usize| own.and_then(|own| own.get(&dim)).or(self.all.get(&dim)).copied();
        let whole: Vec<Option<u64>> = var
            .dims
            .iter()
            .map(|d| match schema.dims.at(d.0).map(|dim| dim.len) {
                Some(DimLen::Fixed(len)) => Some(len),
                _ => None,
            })
            .collect();
        let mut fixed: Vec<Option<u64>> = var.dims.iter().map(|d| asked(d.0)).collect();
        if let Some(old) = old {
            fixed.iter_mut().zip(old).for_each(|(fixed, old)| *fixed = fixed.or(Some(old)));
        }
        shape_of(var.ty, &whole, &fixed, records)
    }
}

/// A chunk shape in which some lengths are given; none of a dimension is the unlimited one.
fn shape_of(
    ty: ExternalType,
    whole: &[Option<u64>],
    fixed: &[Option<u64>],
    records: u64,
) -> Vec<u64> {
    let is_free = fixed.iter().all(Option::is_none);
    // Given lengths are as long as they are, wherever they stand.
    let bounded: Vec<Option<u64>> = whole
        .iter()
        .zip(fixed)
        .map(|(whole, fixed)| match (whole, fixed) {
            (Some(whole), Some(fixed)) => Some((*fixed).min((*whole).max(1))),
            (None, Some(fixed)) => Some(*fixed),
            (whole, None) => *whole,
        })
        .collect();
    let mut shape = automatic_shape(ty, &bounded);
    if !is_free {
        let given: u64 = bounded.iter().zip(fixed).fold(ty.size(), |n, (len, fixed)| {
            if fixed.is_some() { n.saturating_mul(len.unwrap_or(1)) } else { n }
        });
        // What is left of the chunk's bytes is for the others.
        let rest: Vec<Option<u64>> = bounded
            .iter()
            .zip(fixed)
            .map(|(len, fixed)| if fixed.is_some() { Some(1) } else { *len })
            .collect();
        let mut others = automatic_shape(ty, &rest);
        let bytes = |shape: &[u64]| shape.iter().fold(given, |n, len| n.saturating_mul(*len));
        while bytes(&others) > 4 << 20 {
            match (0..others.len()).rev().max_by_key(|d| others[*d]).filter(|d| others[*d] > 1) {
                Some(d) => others[d] = others[d].div_ceil(2),
                None => break,
            }
        }
        for (d, len) in shape.iter_mut().enumerate() {
            *len = match fixed[d] {
                Some(_) => bounded[d].unwrap_or(1),
                None => others[d],
            };
        }
    }
    if whole.first() == Some(&None) && fixed.first() == Some(&None) {
        let record = shape[1..].iter().fold(ty.size(), |n, len| n.saturating_mul(*len));
        if record < SMALL_RECORD && shape[1..].iter().zip(&whole[1..]).all(|(a, b)| Some(*a) == *b)
        {
            shape[0] = (RECORDS_TOGETHER / record.max(1)).clamp(1, records.max(1));
        }
    }
    shape
}

/// Whether the variable's chunks can pass the filters, or why not.
fn suits(pipeline: &Pipeline, var: &Variable, shape: &[u64]) -> Result<(), String> {
    let shape: Vec<usize> = shape.iter().map(|n| *n as usize).collect();
    let fill = fill_bytes(var);
    pipeline.check(&Chunk::new(var.ty, &shape).with_fill(&fill)).map_err(|e| e.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use esker::ExternalType::{Double, Float};

    #[test]
    fn records_are_chunks_of_their_own_unless_they_are_small() {
        let any = [None; 3];
        let big = [None, Some(721), Some(1440)];
        assert_eq!(shape_of(Float, &big, &any, 12), [1, 721, 1440]);
        let small = [None, Some(10), Some(10)];
        assert_eq!(shape_of(Float, &small, &any, 12), [12, 10, 10]);
        assert_eq!(shape_of(Float, &small, &any, 1_000_000), [2621, 10, 10]);
        assert_eq!(shape_of(Double, &[None], &[None], 0), [1]);
    }

    #[test]
    fn wishes_are_for_all_variables_or_one() {
        let lengths = vec![("lat".to_string(), 90), ("lon".to_string(), 45)];
        let wish = |var| Ok(ShapeWish { var, lengths: lengths.clone() });
        assert_eq!("lat/90,lon/45".parse(), wish(None));
        assert_eq!("t:lat/90,lon/45".parse(), wish(Some("t".to_string())));
        for text in ["lat", "lat/0", "lat/x", "/9", "", "t:", "lat/90,"] {
            assert!(text.parse::<ShapeWish>().is_err(), "{text}");
        }
        let filter = FilterWish { var: Some("t".into()), text: "shuffle zstd,3".into() };
        assert_eq!("t:shuffle zstd,3".parse(), Ok(filter));
        assert!("none".parse::<FilterWish>().is_ok());
        assert!("gzip".parse::<FilterWish>().unwrap_err().contains("the filters are"));
    }

    #[test]
    fn given_lengths_stay_and_the_others_fill_up_the_chunk() {
        let whole = [None, Some(50), Some(720), Some(1440)];
        let fixed = [None, None, Some(90), Some(90)];
        assert_eq!(shape_of(Float, &whole, &fixed, 3), [1, 50, 90, 90]);
        let whole = [Some(100_000), Some(720)];
        assert_eq!(shape_of(Double, &whole, &[None, Some(720)], 0), [391, 720]);
        assert_eq!(shape_of(Double, &whole, &[None, Some(9999)], 0), [391, 720]);
    }
}
