//! Which filters each array of a state goes through.

use esker_codec::{Chunk, CodecError, Pipeline, Scratch};

use crate::error::{AdjointError, Result};
use crate::lossless;
use crate::model::{ArrayMut, Layout};
use crate::segment::SMALL;
use crate::spread::{self, HALF_OF_FLOATS, Spread};

/// Filters by the name of the array; arrays that are not named have the default.
///
/// `lossless` stands for the one of two lossless pipelines that makes an array smaller, by a part of its values. `auto` stands for several pipelines, the levels: nothing, lossless, and with a bound (`auto,rel=1e-4`) those that lose within
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
    /// In place of that, where it cannot be used: for integers, or where floats would err by more than the bound.
    instead: Pipeline,
    /// The bound of `auto`, or nothing where it must not lose.
    auto: Option<String>,
    /// Whether the values of an array decide which lossless filters it has, where it has the usual ones of [`lossless`].
    picks: bool,
}

/// What users call the lossless filters that the values decide on.
const LOSSLESS: &str = "lossless";
/// The level of `auto` that is as precise as its values, not as a bound, so that the values are looked at.
pub(crate) const FLOATS: usize = 2;

impl Choice {
    fn parse(text: &str) -> std::result::Result<Choice, CodecError> {
        let named = |text: &str| Ok(Choice { pipeline: text.parse()?, ..Choice::default() });
        if text.trim() == LOSSLESS {
            return Ok(Choice { pipeline: lossless::usual(), picks: true, ..Choice::default() });
        }
        let Some(bound) = text.trim().strip_prefix("auto") else { return named(text) };
        if !bound.is_empty() && !bound.starts_with(',') {
            return named(text);
        }
        let choice = Choice { auto: Some(bound.to_string()), ..Choice::default() };
        // A bound that means nothing is an error now, not when it is tried.
        (0..choice.levels()).try_for_each(|level| choice.at(level).map(|_| ()))?;
        Ok(choice)
    }

    fn text(&self) -> String {
        match &self.auto {
            Some(bound) => format!("auto{bound}"),
            None if self.picks => LOSSLESS.into(),
            None => self.pipeline.to_string(),
        }
    }

    fn levels(&self) -> usize {
        self.auto.as_ref().map_or(1, |bound| if bound.is_empty() { 2 } else { 5 })
    }

    /// With the pipeline of a level of `auto`, or of its last.
    fn at(&self, level: usize) -> std::result::Result<Choice, CodecError> {
        let Some(bound) = &self.auto else { return Ok(self.clone()) };
        let level = level.min(self.levels() - 1);
        let pipeline = match level {
            0 => Pipeline::default(),
            1 => lossless::usual(),
            FLOATS => "f32".parse()?,
            // The same bound under another name.
            3 => format!("zfp{}", bound.replace("abs=", "accuracy=")).parse()?,
            _ => format!("sz{bound}").parse()?,
        };
        let instead = if level > 1 { lossless::usual() } else { Pipeline::default() };
        Ok(Choice { pipeline, instead, auto: self.auto.clone(), picks: true })
    }

    fn is_lossless(&self) -> bool {
        self.pipeline.is_lossless() && self.levels() < 3
    }

    fn lossless(&self) -> Choice {
        let exact = self.pipeline.is_lossless();
        let pipeline = if exact { self.pipeline.clone() } else { self.instead.clone() };
        let auto = self.auto.as_ref().map(|_| String::new());
        Choice { pipeline, instead: Pipeline::default(), auto, picks: self.picks }
    }

    fn divided(&self, depth: u32) -> Choice {
        let auto = self.auto.as_ref().map(|bound| divided_text(bound, depth));
        Choice { pipeline: divided(&self.pipeline, depth), auto, ..self.clone() }
    }

    /// Whether it depends on the values if the bound is kept.
    fn looks_at_values(&self) -> bool {
        self.auto.is_some() && self.pipeline.to_string() == "f32"
    }

    /// The largest error that `auto` may make, in an array with this spread.
    fn allowed(&self, spread: Spread) -> f64 {
        let words = self.auto.as_deref().unwrap_or("").split(',');
        let bound = words.filter_map(|word| {
            let (key, value) = word.split_once('=')?;
            let value: f64 = value.parse().ok()?;
            Some(if key == "rel" { value * spread.range() } else { value })
        });
        bound.fold(f64::INFINITY, f64::min)
    }

    /// What can be used for an array of this layout.
    fn for_layout(&self, layout: &Layout) -> Option<&Pipeline> {
        let chunk = Chunk::new(layout.ty, &layout.shape).native();
        let able = |pipeline: &&Pipeline| pipeline.check(&chunk).is_ok();
        [&self.pipeline, &self.instead].into_iter().find(able)
    }

    /// Whether floats keep the bound in an array with this spread.
    fn keeps(&self, spread: Spread) -> bool {
        spread.largest() * HALF_OF_FLOATS <= self.allowed(spread)
    }

    /// The same for its values, if it depends on them: `look` gives the pipeline back where it may be used.
    fn for_values<'p>(
        &'p self,
        layout: &Layout,
        look: impl FnOnce(&'p Pipeline) -> Option<&'p Pipeline>,
    ) -> Option<&'p Pipeline> {
        let found = self.for_layout(layout)?;
        match *found == self.pipeline && self.looks_at_values() {
            true => Some(look(found).unwrap_or(&self.instead)),
            false => Some(found),
        }
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

    /// What states go through, for people: the filters of each array that has some.
    pub(crate) fn describe(&self) -> String {
        let all = [("*", &self.default)].into_iter();
        let all = all.chain(self.named.iter().map(|(name, choice)| (name.as_str(), choice)));
        let named = all.filter(|(_, choice)| !choice.pipeline.is_empty());
        let named: Vec<String> =
            named.map(|(name, choice)| format!("{name}: {}", choice.pipeline)).collect();
        named.join("; ")
    }

    fn choice(&self, name: &str) -> &Choice {
        let found = self.named.iter().find(|(known, _)| known == name);
        found.map_or(&self.default, |(_, choice)| choice)
    }

    /// The filters of an array.
    pub fn of(&self, name: &str) -> &Pipeline {
        &self.choice(name).pipeline
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

    /// The filters of an array of this layout, if some can be used.
    pub(crate) fn for_layout(&self, layout: &Layout) -> Option<&Pipeline> {
        let long = layout.bytes().is_some_and(|bytes| bytes >= SMALL);
        if long { self.choice(&layout.name).for_layout(layout) } else { None }
    }

    /// The filters of each array of a state, for those that can have some.
    pub(crate) fn for_state<'a>(
        &self,
        arrays: impl Iterator<Item = (&'a Layout, &'a [u8])>,
        scratch: &mut Scratch,
    ) -> Vec<Option<&Pipeline>> {
        arrays.map(|(layout, bytes)| self.for_array(layout, bytes, scratch)).collect()
    }

    /// The filters of an array with these values, if some can be used.
    fn for_array(&self, layout: &Layout, bytes: &[u8], scratch: &mut Scratch) -> Option<&Pipeline> {
        let choice = self.choice(&layout.name);
        if bytes.len() < SMALL {
            return None;
        }
        let found = Filters::within_bounds(choice, layout, bytes)?;
        match choice.picks && *found == lossless::usual() {
            true => Some(lossless::smallest(layout, bytes, scratch)),
            false => Some(found),
        }
    }

    fn within_bounds<'p>(
        choice: &'p Choice,
        layout: &Layout,
        bytes: &[u8],
    ) -> Option<&'p Pipeline> {
        // Some values tell a part of the range, which is enough if all values are small beside it.
        choice.for_values(layout, |found| {
            let allowed = choice.allowed(Spread::of_some(layout.ty, bytes));
            match spread::are_below(layout.ty, bytes, allowed / HALF_OF_FLOATS) {
                true => Some(found),
                false => {
                    // The whole range allows more. What is not finite is told by whoever checks for it.
                    let spread = Spread::of(layout.ty, bytes);
                    let is_finite = spread::are_below(layout.ty, bytes, f64::MAX);
                    (is_finite && choice.keeps(spread)).then_some(found)
                }
            }
        })
    }

    /// Whether an array that got this from [`Filters::for_state`] has finite values only: they were looked at.
    pub(crate) fn prove_finite(&self, name: &str, found: Option<&Pipeline>) -> bool {
        let choice = self.choice(name);
        choice.looks_at_values() && found == Some(&choice.pipeline)
    }

    /// The filters of a part of an array, with the bounds that they have in the whole of it.
    pub(crate) fn for_part(&self, layout: &Layout, spread: Spread) -> Option<Pipeline> {
        let choice = self.choice(&layout.name);
        let pipeline = choice.for_values(layout, |found| choice.keeps(spread).then_some(found))?;
        let absolute = |filter: &str| {
            let name = if filter.starts_with("zfp") { "accuracy" } else { "abs" };
            let word = |word: &str| match word.strip_prefix("rel=").map(str::parse::<f64>) {
                Some(Ok(bound)) => format!("{name}={:e}", bound * spread.range()),
                _ => word.to_string(),
            };
            filter.split(',').map(word).collect::<Vec<_>>().join(",")
        };
        let text = pipeline.to_string();
        let text: Vec<String> = text.split_whitespace().map(absolute).collect();
        // Where all values are the same there is no such bound.
        Some(text.join(" ").parse().unwrap_or_else(|_| pipeline.clone()))
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
    use esker_format::ExternalType;

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
        assert_eq!((bounded.levels(), bounded.is_lossless()), (5, false));
        let at = |filters: &Filters, level| filters.at_level(level).of("u").to_string();
        let exact = [at(&bounded, 0), at(&bounded, 1), at(&bounded, 2)];
        assert_eq!(exact, ["", "shuffle zstd,1", "f32"]);
        let same = |text: &str| text.parse::<Pipeline>().unwrap().to_string();
        assert_eq!(at(&bounded.divided(2), 4), same("sz,rel=5e-4"));
        assert_eq!(at(&bounded.divided(2), 3), same("zfp,rel=5e-4"));
        let absolute = Filters::new(&text("auto,abs=0.25")).unwrap();
        assert_eq!(at(&absolute, 3), same("zfp,accuracy=0.25"));
        assert_eq!(at(&absolute, 4), same("sz,abs=0.25"));
        assert_eq!(bounded.at_level(4).to_text(), text("auto,rel=1e-3"));
        assert!(bounded.at_level(4).lossless().is_lossless());
        let free = Filters::new(&text("auto")).unwrap();
        assert_eq!((free.levels(), free.is_lossless()), (2, true));
        assert_eq!(at(&free, 7), "shuffle zstd,1");
        assert!(Filters::new(&text("auto,rel=much")).is_err());
        assert!(Filters::new(&text("automatic")).is_err());
    }

    fn layout(ty: ExternalType, cells: usize) -> Layout {
        Layout { name: "u".into(), ty, shape: vec![cells] }
    }

    #[test]
    fn auto_takes_floats_only_where_they_keep_the_bound() {
        let text = [("*".to_string(), "auto,rel=1e-4".to_string())];
        let floats = Filters::new(&text).unwrap().at_level(2);
        let of = |offset: f64| {
            let bytes: Vec<u8> =
                (0..1000).flat_map(|i| (offset + f64::from(i) * 1e-5).to_ne_bytes()).collect();
            let found =
                floats.for_array(&layout(ExternalType::Double, 1000), &bytes, &mut Scratch::new());
            found.unwrap().to_string()
        };
        let usual = lossless::usual().to_string();
        // A range of 1e-2: 1e-6 is allowed. Floats of 1 err by 6e-8, floats of 300 by 1.8e-5.
        assert_eq!(of(1.0), "f32");
        assert_eq!(of(300.0), usual);
        // Integers and floats lose nothing.
        let scratch = &mut Scratch::new();
        let integers = floats.for_array(&layout(ExternalType::Int, 1000), &[1; 4000], scratch);
        assert_eq!(integers.unwrap().to_string(), usual);
        // Somebody who asks for floats gets them.
        let asked = Filters::new(&[("*".to_string(), "f32".to_string())]).unwrap();
        let bytes: Vec<u8> = (0..1000).flat_map(|_| 300.1f64.to_ne_bytes()).collect();
        let found = asked.for_array(&layout(ExternalType::Double, 1000), &bytes, scratch);
        assert_eq!(found.unwrap().to_string(), "f32");
    }

    #[test]
    fn lossless_is_a_word_and_what_it_takes_is_in_the_values() {
        let text = |text: &str| vec![("*".to_string(), text.to_string())];
        let filters = Filters::new(&text("lossless")).unwrap();
        assert!(filters.is_lossless() && filters.levels() == 1);
        assert_eq!(filters.to_text(), text("lossless"));
        assert_eq!(filters.lossless().divided(3).to_text(), text("lossless"));
        // A pulse in the middle of a plane: its two halves are the same, which is not seen once bytes are taken apart.
        let pulse = |i: usize| {
            let at = |i: usize| i as f64 / 32.0 - 1.0;
            (-(at(i / 64 % 64).powi(2) + at(i % 64).powi(2) + (i / 4096) as f64 / 10.0) / 0.05)
                .exp()
        };
        let twice: Vec<u8> = (0..8192).flat_map(|i| pulse(i).to_ne_bytes()).collect();
        let of = |filters: &Filters| {
            let layout = layout(ExternalType::Double, 8192);
            let found = filters.for_array(&layout, &twice, &mut Scratch::new());
            found.map(Pipeline::to_string)
        };
        assert_eq!(of(&filters).as_deref(), Some("zstd,1"));
        // Whoever names filters gets them.
        let named = Filters::new(&text("shuffle zstd,1")).unwrap();
        assert_eq!(of(&named).as_deref(), Some("shuffle zstd,1"));
        let auto = Filters::new(&text("auto")).unwrap();
        assert_eq!(of(&auto.at_level(1)).as_deref(), Some("zstd,1"));
        assert!(Filters::new(&text("lossless,1")).is_err());
    }

    #[test]
    fn a_part_has_the_bounds_of_the_whole() {
        let text = [("*".to_string(), "zfp,rel=1e-2".to_string())];
        let filters = Filters::new(&text).unwrap();
        let spread = Spread { least: -1.0, most: 3.0 };
        let found = filters.for_part(&layout(ExternalType::Double, 1000), spread).unwrap();
        let expected: Pipeline = "zfp,accuracy=4e-2".parse().unwrap();
        assert_eq!(found, expected);
        let same = Spread { least: 2.0, most: 2.0 };
        let found = filters.for_part(&layout(ExternalType::Double, 1000), same).unwrap();
        assert_eq!(found, *filters.of("u"));
    }
}
