//! Pipelines: as text, as numbers, and whether they can work.

use std::fmt;
use std::str::FromStr;

use esker_format::ExternalType;

use crate::chunk::Chunk;
use crate::encode::FilterMask;
use crate::error::{CodecError, Result};
use crate::filters::{self, Entry, Place, Site};

/// One filter: its number and its parameters, reals as their bits.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Filter {
    id: u16,
    params: Vec<u64>,
}

impl Filter {
    /// The number in files.
    pub fn id(&self) -> u16 {
        self.id
    }

    /// The parameters in files.
    pub fn params(&self) -> &[u64] {
        &self.params
    }

    /// The name, as on the command line.
    pub fn name(&self) -> &'static str {
        filters::by_id(self.id).map_or("unknown", |entry| entry.place.described().name())
    }

    /// Whether every value comes back as it was, bit by bit.
    pub fn is_lossless(&self) -> bool {
        filters::by_id(self.id).is_some_and(|e| e.place.described().is_lossless(&self.params))
    }

    /// Whether it only adds a crc32c of what came to it.
    pub(crate) fn is_checksum(&self) -> bool {
        self.name() == "crc32c"
    }

    fn settles(&self) -> bool {
        filters::by_id(self.id).is_some_and(|e| e.place.described().settles(&self.params))
    }

    /// The names of all filters.
    pub fn names() -> impl Iterator<Item = &'static str> {
        filters::TABLE.iter().map(|entry| entry.place.described().name())
    }

    fn entry(&self) -> Result<&'static Entry> {
        filters::by_id(self.id)
            .ok_or_else(|| CodecError::Words { why: format!("there is no filter {}", self.id) })
    }
}

impl FromStr for Filter {
    type Err = CodecError;

    /// `zstd,3`: a name and parameters.
    fn from_str(text: &str) -> Result<Filter> {
        let wrong = |why| CodecError::Text { text: text.into(), why };
        let mut words = text.trim().split(',');
        let name = words.next().unwrap_or_default();
        let entry = filters::by_name(name).ok_or_else(|| {
            let names: Vec<&str> = Filter::names().collect();
            wrong(format!("the filters are {}", names.join(", ")))
        })?;
        let words: Vec<&str> = words.collect();
        let params = entry.place.described().parse(&words).map_err(wrong)?;
        Ok(Filter { id: entry.id, params })
    }
}

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match filters::by_id(self.id) {
            Some(entry) => {
                let described = entry.place.described();
                write!(f, "{}{}", described.name(), described.show(&self.params))
            }
            None => write!(f, "filter {}", self.id),
        }
    }
}

/// Filters in the order in which a chunk passes them when it is encoded. The empty pipeline
/// stores elements as a classic file does.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Pipeline {
    filters: Vec<Filter>,
}

/// A filter with its code and what it sees of the chunk.
#[derive(Clone, Copy)]
pub(crate) struct Step<'a> {
    pub(crate) place: Place,
    pub(crate) params: &'a [u64],
    /// The elements before this filter.
    pub(crate) site: Site<'a>,
}

impl Pipeline {
    /// The most filters, because a mask has a bit for each.
    pub const MOST: usize = 16;

    /// A pipeline of these filters.
    pub fn new(filters: Vec<Filter>) -> Pipeline {
        Pipeline { filters }
    }

    /// The filters, in the order of encoding.
    pub fn filters(&self) -> &[Filter] {
        &self.filters
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.filters.is_empty()
    }

    /// Whether every value comes back as it was, bit by bit.
    ///
    /// ```
    /// use esker_codec::Pipeline;
    /// let is_lossless = |text: &str| text.parse::<Pipeline>().unwrap().is_lossless();
    /// assert!(is_lossless("shuffle zstd,3") && is_lossless("zfp,reversible"));
    /// assert!(!is_lossless("bitround,9 zstd,3") && !is_lossless("zfp,accuracy=0.1"));
    /// ```
    pub fn is_lossless(&self) -> bool {
        self.filters.iter().all(Filter::is_lossless)
    }

    /// Whether values that came back once come back the same ever after. Where they do not, whoever
    /// encodes them again adds a second error to the first: see [`Pipeline::encode_exactly`].
    ///
    /// ```
    /// use esker_codec::Pipeline;
    /// let settles = |text: &str| text.parse::<Pipeline>().unwrap().settles();
    /// assert!(settles("shuffle zstd,3") && settles("bitround,9 zstd,3") && settles("f32"));
    /// assert!(!settles("sz,abs=0.1") && !settles("f32 zfp,accuracy=0.1"));
    /// ```
    pub fn settles(&self) -> bool {
        self.unsettled() == FilterMask::default()
    }

    /// Whether a chunk with this mask went through a filter that does not settle.
    pub fn unsettles(&self, mask: FilterMask) -> bool {
        self.unsettled().0 & !mask.0 != 0
    }

    /// The filters that do not settle.
    pub(crate) fn unsettled(&self) -> FilterMask {
        let mut mask = FilterMask::default();
        let all = self.filters.iter().enumerate();
        all.filter(|(_, filter)| !filter.settles()).for_each(|(i, _)| mask.skip(i));
        mask
    }

    /// The numbers that a file keeps: for each filter its id, the number of its parameters, and
    /// the parameters.
    pub fn to_words(&self) -> Vec<u64> {
        let words = |filter: &Filter| {
            let head = [filter.id.into(), filter.params.len() as u64];
            head.into_iter().chain(filter.params.clone())
        };
        self.filters.iter().flat_map(words).collect()
    }

    /// A pipeline from the numbers of a file, which may be anything.
    pub fn from_words(mut words: &[u64]) -> Result<Pipeline> {
        let wrong = |why| CodecError::Words { why };
        let mut filters = Vec::new();
        while let [id, count, rest @ ..] = words {
            let entry = u16::try_from(*id)
                .ok()
                .and_then(filters::by_id)
                .ok_or_else(|| wrong(format!("there is no filter {id}")))?;
            let params = usize::try_from(*count)
                .ok()
                .and_then(|count| rest.get(..count))
                .ok_or_else(|| wrong(format!("filter {id} claims {count} parameters")))?;
            filters.push(Filter { id: entry.id, params: params.to_vec() });
            if filters.len() > Pipeline::MOST {
                return Err(wrong(format!("there are more than {} filters", Pipeline::MOST)));
            }
            words = &rest[params.len()..];
        }
        match words {
            [] => Ok(Pipeline { filters }),
            _ => Err(wrong("they end within a filter".into())),
        }
    }

    /// Whether chunks of this type, shape and fill value can pass: what would fail when the first
    /// chunk is written is an error here, with what to do.
    pub fn check(&self, chunk: &Chunk<'_>) -> Result<()> {
        chunk.bytes()?;
        self.steps(chunk).map(drop)
    }

    /// The type that the bytes filters see.
    pub fn stored_type(&self, ty: ExternalType) -> ExternalType {
        self.filters.iter().fold(ty, |ty, filter| {
            filters::by_id(filter.id).map_or(ty, |entry| entry.place.described().stored_type(ty))
        })
    }

    /// The filters with what each sees of the chunk, checked.
    pub(crate) fn steps<'a>(&'a self, chunk: &Chunk<'a>) -> Result<Vec<Step<'a>>> {
        let mut site = Site { ty: chunk.ty, shape: chunk.shape, fill: chunk.fill };
        let mut steps: Vec<Step<'a>> = Vec::with_capacity(self.filters.len());
        for filter in &self.filters {
            let place = filter.entry()?.place;
            let step = Step { place, params: &filter.params, site };
            let misused =
                |why| CodecError::Misused { filter: filter.to_string(), ty: chunk.ty, why };
            if steps.len() == Pipeline::MOST {
                return Err(misused(format!("a pipeline has at most {} filters", Pipeline::MOST)));
            }
            if let Some(before) = steps.last() {
                in_order(before.place, place).map_err(misused)?;
            }
            if let Some(fill) = site.fill.filter(|fill| fill.len() != site.width()) {
                let bytes = fill.len();
                return Err(misused(format!("the fill value given for it has {bytes} bytes")));
            }
            place.described().check(step.params, &site).map_err(misused)?;
            let stored = place.described().stored_type(site.ty);
            if stored != site.ty {
                // The fill value is one of another type; what follows keeps all values as they are.
                site = Site { ty: stored, fill: None, ..site };
            }
            steps.push(step);
        }
        Ok(steps)
    }
}

/// Whether the second filter may stand after the first.
fn in_order(before: Place, after: Place) -> std::result::Result<(), String> {
    let name = before.described().name();
    match (before, after) {
        (Place::Values(_), _) | (_, Place::Bytes(_)) | (Place::Order(_), Place::Order(_)) => Ok(()),
        (Place::Packing(_), Place::Packing(_)) => {
            Err(format!("{name} has packed the elements already; use one of the two"))
        }
        (Place::Order(_), Place::Packing(_)) => Err(format!(
            "it predicts numbers from their neighbours, and {name} takes their bytes apart; \
             leave {name} out"
        )),
        (Place::Packing(_), Place::Order(_)) => Err(format!(
            "it needs whole elements, and {name} has packed them; leave it out, it would gain nothing"
        )),
        _ => {
            Err(format!("it needs elements, and after {name} there are none; put it before {name}"))
        }
    }
}

impl FromStr for Pipeline {
    type Err = CodecError;

    /// Filters with blanks between them.
    fn from_str(text: &str) -> Result<Pipeline> {
        let filters = text.split_whitespace().map(str::parse).collect::<Result<_>>()?;
        Ok(Pipeline { filters })
    }
}

impl fmt::Display for Pipeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, filter) in self.filters.iter().enumerate() {
            if i > 0 {
                f.write_str(" ")?;
            }
            write!(f, "{filter}")?;
        }
        Ok(())
    }
}
