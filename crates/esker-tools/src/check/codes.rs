//! The codes of findings, in one table: what each means, and why a repair leaves it.

/// One kind of finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Code {
    /// The code, which stays the same between versions.
    pub name: &'static str,
    /// What it means, for documentation.
    pub meaning: &'static str,
    /// Why a repair leaves it as it is, when it does.
    pub stays: &'static str,
}

const UNKNOWN: &str = "what the right bytes were is not known";
const NO_HEADER: &str = "there is no header to mend";
const MOVES: &str =
    "data would have to move, and which of them are right is not known: copy the file";
const NAMES: &str = "another name would have to be invented";
const RECOVER: &str = "a container is mended by `esker recover`";
const RUN: &str = "the folder of an adjoint run is mended by `esker recover`";
const CHUNKS: &str = "which bytes were right is not known: write the chunk anew, or copy the other \
                      variables (`esker copy -x`)";
const EDIT: &str = "damage and an edit by another program look alike: who knows that it was an edit has a \
                    copy made in which it is accepted (`esker check --repair --accept-edits`)";
const BESIDE: &str = "it lies beside the original";

macro_rules! codes {
    ($($name:literal, $stays:expr, $meaning:literal;)*) => {
        /// Every code that a finding can have.
        pub const CODES: &[Code] =
            &[$(Code { name: $name, meaning: $meaning, stays: $stays }),*];
    };
}

codes! {
    "empty", NO_HEADER, "the file has no bytes";
    "zeros", NO_HEADER, "the file begins with zeros";
    "magic", NO_HEADER, "the file does not begin with CDF and a known version";
    "header-cut", UNKNOWN, "the file ends inside the header";
    "tag", UNKNOWN, "a list has a wrong tag";
    "absent-list", UNKNOWN, "an absent list has elements";
    "count", UNKNOWN, "a count or length is larger than the rest of the file";
    "negative", UNKNOWN, "a count, length or offset is negative";
    "type", UNKNOWN, "a data type does not exist in this version";
    "name", NAMES, "a name breaks the rules or is not in normal form C";
    "name-utf8", NAMES, "a name is not UTF-8";
    "duplicate-name", NAMES, "a name occurs twice in a list";
    "padding", UNKNOWN, "padding in the header is not zero";
    "dimension-id", UNKNOWN, "a variable has a dimension that is not defined";
    "second-unlimited", UNKNOWN, "two dimensions are unlimited";
    "unlimited-place", UNKNOWN, "the unlimited dimension of a variable is not its first";
    "size-overflow", UNKNOWN, "a size does not fit 63 bits";
    "header", UNKNOWN, "the header is wrong in another way";
    "vsize", UNKNOWN, "the stored size of a variable disagrees with its shape";
    "begin", MOVES, "data begin inside the header or beyond what can be addressed";
    "unaligned", MOVES, "data begin at an offset that is not a multiple of 4";
    "order", MOVES, "variables do not lie in the order of their definition";
    "overlap", MOVES, "variables share bytes";
    "record-gap", MOVES, "a record reaches into the next";
    "large", "the version cannot hold it: copy the file to CDF-5",
        "a variable is larger than its version allows at its place";
    "gap", UNKNOWN, "bytes between variables are not used";
    "fill-type", "which value was meant is not known",
        "_FillValue is of another type than its variable";
    "fill-length", "which value was meant is not known", "_FillValue is not one value";
    "streaming", "the part of a record at the end would have to go first",
        "the number of records was never written";
    "numrecs-unused", "it does no harm", "records are counted, but no variable has any";
    "records-begun", "nobody knows whether they were whole: who opens the file for writing begins them anew",
        "more records were begun than are counted: a kill, a loss of power, a writer at work, or a damaged number";
    "records-cut", "the values that are missing are nowhere else",
        "the file has fewer whole records than it says";
    "data-cut", "the values that are missing are nowhere else",
        "values of a fixed-size variable are missing";
    "padding-cut", UNKNOWN, "only padding is missing at the end";
    "trailing",
        "they may be records that were never counted, or nothing: say whether to count whole \
         records among them or to cut them off",
        "bytes lie after the data";
    "journal-old", BESIDE, "a redefinition was interrupted: the old header is there";
    "journal-new", BESIDE, "a redefinition was interrupted: the new header is there";
    "journal-torn", BESIDE, "a redefinition was interrupted: the header is a mixture";
    "journal-foreign", "another program changed the file: remove the journal when it is right",
        "a journal does not belong to the header of the file";
    "journal-broken", BESIDE, "a redefinition was interrupted before it began";
    "subfile", "the values that are missing are nowhere else",
        "a sub-file is not there, cut short, without records that are counted, or of another dataset";
    "seal", EDIT, "what the header says of a chunked or decomposed variable is not what was written";
    "map", UNKNOWN, "a map of decomposed variables does not match its checksums";
    "subfile-name", "`esker recover` gives it its name", "a sub-file has not taken its name";
    "chunk-anchor", CHUNKS, "attributes that say how a chunked variable is stored are wrong";
    "chunk-table", CHUNKS, "a block or an entry of a chunk table is damaged";
    "chunk-place", CHUNKS, "a chunk or a block of a table lies where none can";
    "chunk-overlap", CHUNKS, "chunks or blocks of tables share bytes";
    "chunk-data", CHUNKS, "a chunk does not match its checksum, or cannot be decoded";
    "graph", "what was meant is not known: define the graph anew",
        "a graph of variables is damaged, or contradicts another";
    "graph-variable", "it is in another file, or nowhere",
        "a graph has a variable that is not in the file";
    "manifest", RECOVER, "the manifest of a container's version is damaged or not there, or its mark is";
    "promises", RECOVER, "the file that says which versions a container has is damaged or not there";
    "log-missing", RECOVER, "values of a container are not there, or a log is not";
    "log-frame", RECOVER, "a stretch of a metadata log cannot be read";
    "log-entry", RECOVER, "an entry of a metadata log says what cannot be";
    "log-payload", RECOVER, "values of a container do not match their checksums";
    "checkpoint", RUN, "a checkpoint of an adjoint run is damaged or not there; a resumed run computes it again";
    "checkpoint-run", "what was meant is not known: begin the run anew",
        "what the folder of an adjoint run says of its run is damaged, so that it cannot be resumed";
    "checkpoint-left", RUN, "a file in the folder of an adjoint run is of no use to it";
    "leftover", BESIDE, "a new file never took the name of this one";
}

/// Why a finding of this code is left as it is.
pub(super) fn why(code: &str) -> &'static str {
    CODES.iter().find(|c| c.name == code).map_or(UNKNOWN, |c| c.stays)
}
