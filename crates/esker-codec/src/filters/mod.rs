//! The filters: what one is, and the table of all.
//!
//! A filter is a file here that implements [`Described`] and the trait of its place in the
//! pipeline, and a line of [`TABLE`].

mod bitround;
mod bitshuffle;
mod crc;
mod deflate;
mod f32;
mod lz4;
mod pco;
mod shuffle;
mod sz;
mod zfp;
mod zstd;

use esker_format::ExternalType;

use crate::chunk::Chunk;
use crate::elements::Elements;
use crate::error::Result;
use crate::scratch::Tools;

pub(crate) use pco::{pack as pco_pack, unpack as pco_unpack};
pub(crate) use zstd::{compress as zstd_compress, decompress as zstd_decompress};

/// A line of the table.
pub(crate) struct Entry {
    /// The number in files. Never given anew.
    pub(crate) id: u16,
    pub(crate) place: Place,
}

/// All filters. The numbers of deflate and shuffle are HDF5's.
pub(crate) static TABLE: &[Entry] = &[
    Entry { id: 1, place: Place::Bytes(&deflate::Deflate) },
    Entry { id: 2, place: Place::Order(&shuffle::Shuffle) },
    Entry { id: 4, place: Place::Bytes(&zstd::Zstd) },
    Entry { id: 5, place: Place::Bytes(&lz4::Lz4) },
    Entry { id: 6, place: Place::Order(&bitshuffle::BitShuffle) },
    Entry { id: 7, place: Place::Bytes(&crc::Crc32c) },
    Entry { id: 16, place: Place::Values(&bitround::BitRound) },
    Entry { id: 17, place: Place::Values(&f32::F32) },
    Entry { id: 32, place: Place::Packing(&pco::Pco) },
    Entry { id: 33, place: Place::Packing(&zfp::Zfp) },
    Entry { id: 34, place: Place::Packing(&sz::Sz) },
];

/// Where a filter stands in a pipeline, in this order.
#[derive(Clone, Copy)]
pub(crate) enum Place {
    /// Elements to elements.
    Values(&'static dyn ValuesFilter),
    /// Elements to bytes.
    Packing(&'static dyn PackingFilter),
    /// Bytes of elements in another order.
    Order(&'static dyn BytesFilter),
    /// Bytes to bytes.
    Bytes(&'static dyn BytesFilter),
}

impl Place {
    pub(crate) fn described(self) -> &'static dyn Described {
        match self {
            Place::Values(filter) => filter,
            Place::Packing(filter) => filter,
            Place::Order(filter) | Place::Bytes(filter) => filter,
        }
    }

    /// The filter, if it works on bytes.
    pub(crate) fn bytes(self) -> Option<&'static dyn BytesFilter> {
        match self {
            Place::Order(filter) | Place::Bytes(filter) => Some(filter),
            _ => None,
        }
    }
}

/// The line with this number.
pub(crate) fn by_id(id: u16) -> Option<&'static Entry> {
    TABLE.iter().find(|entry| entry.id == id)
}

/// The line with this name.
pub(crate) fn by_name(name: &str) -> Option<&'static Entry> {
    TABLE.iter().find(|entry| entry.place.described().name() == name)
}

/// What a filter sees of the chunk: the elements as they are where it stands.
#[derive(Clone, Copy)]
pub(crate) struct Site<'a> {
    /// The stored type here: an earlier filter may have changed it.
    pub(crate) ty: ExternalType,
    pub(crate) shape: &'a [usize],
    /// One element of the type here, big-endian.
    pub(crate) fill: Option<&'a [u8]>,
}

impl Site<'_> {
    pub(crate) fn width(&self) -> usize {
        self.ty.size() as usize
    }
}

/// What every filter has: a name, parameters as text and numbers (none, unless it says so), and a
/// judgement on chunks.
pub(crate) trait Described: Sync {
    fn name(&self) -> &'static str;

    /// Parameters from the words after the name; the error says what would be right.
    fn parse(&self, words: &[&str]) -> std::result::Result<Vec<u64>, String> {
        no_words(words)
    }

    /// The words after the name, each with its comma.
    fn show(&self, _params: &[u64]) -> String {
        String::new()
    }

    /// Whether the parameters (which may come from a file) and the chunk suit the filter.
    fn check(&self, params: &[u64], _site: &Site<'_>) -> std::result::Result<(), String> {
        no_params(params)
    }

    /// The type that is stored.
    fn stored_type(&self, ty: ExternalType) -> ExternalType {
        ty
    }

    /// Whether every value comes back as it was.
    fn is_lossless(&self, _params: &[u64]) -> bool {
        true
    }

    /// Whether values that came back once come back the same ever after, however often they are
    /// encoded again and whatever their neighbours have become.
    fn settles(&self, params: &[u64]) -> bool {
        self.is_lossless(params)
    }

    /// numcodecs' JSON, when Zarr knows the filter without plug-ins.
    fn zarr(&self, _params: &[u64], _site: &Site<'_>) -> Option<String> {
        None
    }

    /// Whether Zarr knows it.
    fn in_zarr(&self) -> bool {
        false
    }
}

/// A filter from elements to elements.
pub(crate) trait ValuesFilter: Described {
    /// Changes the elements; `false`, and nothing is changed, when they hold something that the
    /// filter cannot store. It is then left out for this chunk.
    fn encode(
        &self,
        params: &[u64],
        site: &Site<'_>,
        elements: &mut Elements,
        tools: &mut Tools,
    ) -> Result<bool>;

    /// Brings back elements of `ty`.
    fn decode(&self, ty: ExternalType, elements: &mut Elements, tools: &mut Tools) -> Result<()>;

    /// From the caller's memory straight to stored bytes, for a pipeline that has no other filter: the same bytes as by
    /// [`encode`](ValuesFilter::encode) in one pass. `false`, and nothing is appended, where that cannot be.
    fn encode_straight(&self, _chunk: &Chunk<'_>, _elements: &[u8], _out: &mut Vec<u8>) -> bool {
        false
    }

    /// The way back, in one pass; both lengths have been checked. `false`, and nothing is changed, where that cannot be.
    fn decode_straight(&self, _chunk: &Chunk<'_>, _stored: &[u8], _out: &mut [u8]) -> bool {
        false
    }
}

/// A filter from elements to bytes.
pub(crate) trait PackingFilter: Described {
    /// Appends the packed elements; `false` when they cannot be packed to fewer bytes than they
    /// have. What was appended is then dropped, and the filter left out for this chunk.
    fn encode(
        &self,
        params: &[u64],
        site: &Site<'_>,
        elements: &Elements,
        out: &mut Vec<u8>,
        tools: &mut Tools,
    ) -> Result<bool>;

    /// Brings the elements back; type and number have been set.
    fn decode(
        &self,
        params: &[u64],
        site: &Site<'_>,
        input: &[u8],
        elements: &mut Elements,
        tools: &mut Tools,
    ) -> Result<()>;
}

/// A filter from bytes to bytes.
pub(crate) trait BytesFilter: Described {
    /// The most bytes that `len` bytes can become.
    fn bound(&self, len: usize) -> usize;

    /// Appends the encoded bytes. `width` is the size of an element.
    fn encode(
        &self,
        params: &[u64],
        width: usize,
        input: &[u8],
        out: &mut Vec<u8>,
        tools: &mut Tools,
    ) -> Result<()>;

    /// Decodes to the beginning of `out`, which is as long as the result can be; gives its length.
    fn decode(
        &self,
        width: usize,
        input: &[u8],
        out: &mut [u8],
        tools: &mut Tools,
    ) -> Result<usize>;
}

/// Reads the only parameter, an integer.
pub(crate) fn one_integer(
    words: &[&str],
    default: Option<i64>,
    range: std::ops::RangeInclusive<i64>,
    what: &str,
) -> std::result::Result<Vec<u64>, String> {
    let (low, high) = (range.start(), range.end());
    let value = match (words, default) {
        ([], Some(value)) => Some(value),
        ([word], _) => word.parse().ok().filter(|value| range.contains(value)),
        _ => None,
    };
    value
        .map(|value| vec![value as u64])
        .ok_or_else(|| format!("it takes {what}, an integer from {low} to {high}"))
}

/// Whether the parameters are one integer of the range.
pub(crate) fn is_one_integer(
    params: &[u64],
    range: std::ops::RangeInclusive<i64>,
    what: &str,
) -> std::result::Result<(), String> {
    match params {
        [value] if range.contains(&(*value as i64)) => Ok(()),
        _ => Err(format!("it takes {what}, an integer from {} to {}", range.start(), range.end())),
    }
}

/// For filters without parameters.
fn no_words(words: &[&str]) -> std::result::Result<Vec<u64>, String> {
    if words.is_empty() { Ok(Vec::new()) } else { Err("it takes no parameters".into()) }
}

/// For filters without parameters.
pub(crate) fn no_params(params: &[u64]) -> std::result::Result<(), String> {
    if params.is_empty() { Ok(()) } else { Err("it takes no parameters".into()) }
}
