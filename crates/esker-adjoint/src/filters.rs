//! Which filters each array of a state goes through.

use esker_codec::{Chunk, Pipeline};

use crate::error::{AdjointError, Result};
use crate::model::{ArrayMut, Layout};
use crate::segment::SMALL;

/// Filters by the name of the array; arrays that are not named have the default.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Filters {
    default: Pipeline,
    named: Vec<(String, Pipeline)>,
}

/// The parameters that bound an error.
const BOUNDS: [&str; 3] = ["abs=", "rel=", "accuracy="];

impl Filters {
    /// Filters from text: (name, filters). The name `*` is every array that is not named.
    pub fn new(named: &[(String, String)]) -> Result<Filters> {
        let mut filters = Filters::default();
        for (name, text) in named {
            let pipeline: Pipeline = text.parse().map_err(|source| AdjointError::Codec {
                array: name.clone(),
                step: 0,
                source,
            })?;
            match name.as_str() {
                "*" => filters.default = pipeline,
                _ => filters.named.push((name.clone(), pipeline)),
            }
        }
        Ok(filters)
    }

    /// As text.
    pub fn to_text(&self) -> Vec<(String, String)> {
        let mut all = Vec::new();
        if !self.default.is_empty() {
            all.push(("*".to_string(), self.default.to_string()));
        }
        all.extend(self.named.iter().map(|(name, p)| (name.clone(), p.to_string())));
        all
    }

    /// The filters of an array.
    pub fn of(&self, name: &str) -> &Pipeline {
        let found = self.named.iter().find(|(known, _)| known == name);
        found.map_or(&self.default, |(_, pipeline)| pipeline)
    }

    /// Whether nothing is lost, in any array.
    pub fn is_lossless(&self) -> bool {
        self.default.is_lossless() && self.named.iter().all(|(_, p)| p.is_lossless())
    }

    /// The same without what loses, for states that must not lose again.
    pub fn lossless(&self) -> Filters {
        let exact = |p: &Pipeline| if p.is_lossless() { p.clone() } else { Pipeline::default() };
        let named = self.named.iter().map(|(name, p)| (name.clone(), exact(p))).collect();
        Filters { default: exact(&self.default), named }
    }

    /// The same with bounds of error divided by `depth`: a state that goes through so many checkpoints stays within
    /// the bound that was asked for.
    pub fn divided(&self, depth: u32) -> Filters {
        let divide = |p: &Pipeline| divided(p, depth.max(1));
        let named = self.named.iter().map(|(name, p)| (name.clone(), divide(p))).collect();
        Filters { default: divide(&self.default), named }
    }

    /// Whether the filters can be used for these arrays; those that are not named keep to reals where the default
    /// needs them.
    pub(crate) fn check(&self, arrays: &[ArrayMut<'_>]) -> Result<()> {
        for (name, pipeline) in &self.named {
            let Some(array) = arrays.iter().find(|array| array.name == *name) else {
                let names: Vec<&str> = arrays.iter().map(|array| array.name.as_str()).collect();
                let text = pipeline.to_string();
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

    /// The filters of an array of this layout, if they can be used.
    pub(crate) fn for_layout(&self, layout: &Layout) -> Option<&Pipeline> {
        let bytes = layout.bytes()?;
        let pipeline = self.of(&layout.name);
        let chunk = Chunk::new(layout.ty, &layout.shape).native();
        (bytes >= SMALL && pipeline.check(&chunk).is_ok()).then_some(pipeline)
    }
}

fn divided(pipeline: &Pipeline, depth: u32) -> Pipeline {
    let word = |word: &str| {
        let key = BOUNDS.iter().find(|key| word.starts_with(**key));
        let value = key.and_then(|key| word[key.len()..].parse::<f64>().ok());
        match (key, value) {
            (Some(key), Some(value)) => format!("{key}{:e}", value / f64::from(depth)),
            _ => word.to_string(),
        }
    };
    let filter = |text: &str| text.split(',').map(word).collect::<Vec<_>>().join(",");
    let text = pipeline.to_string();
    let divided: Vec<String> = text.split_whitespace().map(filter).collect();
    divided.join(" ").parse().unwrap_or_else(|_| pipeline.clone())
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
}
