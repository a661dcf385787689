//! Which filters each array of a state goes through.

use esker_codec::{Chunk, CodecError, Pipeline};

use crate::error::{AdjointError, Result};
use crate::model::{ArrayMut, Layout};
use crate::segment::SMALL;

/// Filters by the name of the array; arrays that are not named have the default.
///
/// `auto` stands for several pipelines, the levels: nothing, lossless, and with a bound (`auto,rel=1e-4`) one that loses within
/// it. A run tries them on its states and takes the one with which it is shortest.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Filters {
    default: Choice,
    named: Vec<(String, Choice)>,
}

/// The filters of an array, and what is left to choose.
#[derive(Debug, Clone, Default, PartialEq)]
struct Choice {
    pipeline: Pipeline,
    /// The bound of `auto`, or nothing where it must not lose.
    auto: Option<String>,
}

/// Filters that lose nothing and are fast.
const LOSSLESS: &str = "shuffle zstd,1";

impl Choice {
    fn parse(text: &str) -> std::result::Result<Choice, CodecError> {
        let Some(bound) = text.trim().strip_prefix("auto") else {
            return Ok(Choice { pipeline: text.parse()?, auto: None });
        };
        let choice = Choice { pipeline: Pipeline::default(), auto: Some(bound.to_string()) };
        // A bound that means nothing is an error now, not when it is tried.
        match bound.is_empty() || bound.starts_with(',') {
            true => choice.at(2).map(|_| choice),
            false => Ok(Choice { pipeline: text.parse()?, auto: None }),
        }
    }

    fn text(&self) -> String {
        match &self.auto {
            Some(bound) => format!("auto{bound}"),
            None => self.pipeline.to_string(),
        }
    }

    fn levels(&self) -> usize {
        self.auto.as_ref().map_or(1, |bound| if bound.is_empty() { 2 } else { 3 })
    }

    /// With the pipeline of a level of `auto`, or of its last.
    fn at(&self, level: usize) -> std::result::Result<Choice, CodecError> {
        let Some(bound) = &self.auto else { return Ok(self.clone()) };
        let pipeline = match level.min(self.levels() - 1) {
            0 => Pipeline::default(),
            1 => LOSSLESS.parse()?,
            _ => format!("sz{bound}").parse()?,
        };
        Ok(Choice { pipeline, auto: self.auto.clone() })
    }

    fn is_lossless(&self) -> bool {
        self.pipeline.is_lossless() && self.levels() < 3
    }

    fn lossless(&self) -> Choice {
        let exact = self.pipeline.is_lossless();
        let pipeline = if exact { self.pipeline.clone() } else { Pipeline::default() };
        Choice { pipeline, auto: self.auto.as_ref().map(|_| String::new()) }
    }

    fn divided(&self, depth: u32) -> Choice {
        let auto = self.auto.as_ref().map(|bound| divided_text(bound, depth));
        Choice { pipeline: divided(&self.pipeline, depth), auto }
    }
}

/// The parameters that bound an error.
const BOUNDS: [&str; 3] = ["abs=", "rel=", "accuracy="];

impl Filters {
    /// Filters from text: (name, filters). The name `*` is every array that is not named.
    pub fn new(named: &[(String, String)]) -> Result<Filters> {
        let mut filters = Filters::default();
        for (name, text) in named {
            let choice = Choice::parse(text).map_err(|source| AdjointError::Codec {
                array: name.clone(),
                step: 0,
                source,
            })?;
            match name.as_str() {
                "*" => filters.default = choice,
                _ => filters.named.push((name.clone(), choice)),
            }
        }
        Ok(filters)
    }

    /// As text.
    pub fn to_text(&self) -> Vec<(String, String)> {
        let mut all = Vec::new();
        if self.default != Choice::default() {
            all.push(("*".to_string(), self.default.text()));
        }
        all.extend(self.named.iter().map(|(name, choice)| (name.clone(), choice.text())));
        all
    }

    fn map(&self, of: impl Fn(&Choice) -> Choice) -> Filters {
        let named = self.named.iter().map(|(name, choice)| (name.clone(), of(choice))).collect();
        Filters { default: of(&self.default), named }
    }

    /// How many levels there are to choose from; one where nothing is `auto`.
    pub(crate) fn levels(&self) -> usize {
        let named = self.named.iter().map(|(_, choice)| choice.levels());
        named.chain([self.default.levels()]).max().unwrap_or(1)
    }

    /// With this level in place of each `auto`.
    pub(crate) fn at_level(&self, level: usize) -> Filters {
        // Every level was parsed when the text was.
        self.map(|choice| choice.at(level).unwrap_or_else(|_| choice.clone()))
    }

    /// The filters of an array.
    pub fn of(&self, name: &str) -> &Pipeline {
        let found = self.named.iter().find(|(known, _)| known == name);
        &found.map_or(&self.default, |(_, choice)| choice).pipeline
    }

    /// Whether nothing is lost, in any array.
    pub fn is_lossless(&self) -> bool {
        self.default.is_lossless() && self.named.iter().all(|(_, choice)| choice.is_lossless())
    }

    /// The same without what loses, for states that must not lose again.
    pub fn lossless(&self) -> Filters {
        self.map(Choice::lossless)
    }

    /// The same with bounds of error divided by `depth`: a state that goes through so many checkpoints stays within
    /// the bound that was asked for.
    pub fn divided(&self, depth: u32) -> Filters {
        self.map(|choice| choice.divided(depth.max(1)))
    }

    /// Whether the filters can be used for these arrays; those that are not named keep to reals where the default
    /// needs them.
    pub(crate) fn check(&self, arrays: &[ArrayMut<'_>]) -> Result<()> {
        for (name, choice) in &self.named {
            let pipeline = &choice.pipeline;
            let Some(array) = arrays.iter().find(|array| array.name == *name) else {
                let names: Vec<&str> = arrays.iter().map(|array| array.name.as_str()).collect();
                let text = choice.text();
                let why = format!("there is no such array: the state has {}", names.join(", "));
                let source = esker_codec::CodecError::Text { text, why };
                return Err(AdjointError::Codec { array: name.clone(), step: 0, source });
            };
            let chunk = Chunk::new(array.ty, &array.shape).native();
            pipeline.check(&chunk).map_err(|source| AdjointError::Codec {
                array: name.clone(),
                step: 0,
                source,
            })?;
        }
        Ok(())
    }

    /// Whether none of these arrays goes through a filter.
    pub(crate) fn leave_alone(&self, arrays: &[ArrayMut<'_>]) -> bool {
        let filtered = |array: &ArrayMut<'_>| {
            self.for_layout(&array.layout()).is_some_and(|pipeline| !pipeline.is_empty())
        };
        !arrays.iter().any(filtered)
    }

    /// The filters of an array of this layout, if they can be used.
    pub(crate) fn for_layout(&self, layout: &Layout) -> Option<&Pipeline> {
        let bytes = layout.bytes()?;
        let pipeline = self.of(&layout.name);
        let chunk = Chunk::new(layout.ty, &layout.shape).native();
        (bytes >= SMALL && pipeline.check(&chunk).is_ok()).then_some(pipeline)
    }
}

fn divided(pipeline: &Pipeline, depth: u32) -> Pipeline {
    let text = pipeline.to_string();
    let filters: Vec<String> =
        text.split_whitespace().map(|filter| divided_text(filter, depth)).collect();
    filters.join(" ").parse().unwrap_or_else(|_| pipeline.clone())
}

/// One filter with its bound divided.
fn divided_text(filter: &str, depth: u32) -> String {
    let word = |word: &str| {
        let key = BOUNDS.iter().find(|key| word.starts_with(**key));
        let value = key.and_then(|key| word[key.len()..].parse::<f64>().ok());
        match (key, value) {
            (Some(key), Some(value)) => format!("{key}{:e}", value / f64::from(depth)),
            _ => word.to_string(),
        }
    };
    filter.split(',').map(word).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_divided_and_nothing_else() {
        let named = [
            ("u".to_string(), "sz,rel=1e-3 crc32c".to_string()),
            ("v".to_string(), "zfp,accuracy=0.4".to_string()),
            ("w".to_string(), "bitround,9 shuffle zstd,3".to_string()),
        ];
        let filters = Filters::new(&named).unwrap().divided(4);
        let bound = |name: &str| filters.of(name).to_string();
        assert_eq!(bound("u"), "sz,rel=2.5e-4 crc32c".parse::<Pipeline>().unwrap().to_string());
        assert_eq!(bound("v"), "zfp,accuracy=0.1".parse::<Pipeline>().unwrap().to_string());
        assert_eq!(bound("w"), "bitround,9 shuffle zstd,3");
        assert!(!filters.is_lossless() && filters.lossless().is_lossless());
    }

    #[test]
    fn auto_has_levels_and_keeps_its_bound() {
        let text = |text: &str| vec![("*".to_string(), text.to_string())];
        let bounded = Filters::new(&text("auto,rel=1e-3")).unwrap();
        assert_eq!((bounded.levels(), bounded.is_lossless()), (3, false));
        let at = |filters: &Filters, level| filters.at_level(level).of("u").to_string();
        assert_eq!([at(&bounded, 0), at(&bounded, 1)], ["", "shuffle zstd,1"]);
        let expected: Pipeline = "sz,rel=5e-4".parse().unwrap();
        assert_eq!(at(&bounded.divided(2), 2), expected.to_string());
        assert_eq!(bounded.at_level(2).to_text(), text("auto,rel=1e-3"));
        assert!(bounded.at_level(2).lossless().is_lossless());
        let free = Filters::new(&text("auto")).unwrap();
        assert_eq!((free.levels(), free.is_lossless()), (2, true));
        assert_eq!(at(&free, 7), "shuffle zstd,1");
        assert!(Filters::new(&text("auto,rel=much")).is_err());
        assert!(Filters::new(&text("automatic")).is_err());
    }
}
