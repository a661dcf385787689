//! Hints: key/value pairs under the names that users of PnetCDF and ROMIO know.
//!
//! Each is set by its name ([`Hints::set`]). They come from the options of create and open, from the file that `ROMIO_HINTS` names (lines
//! of `key value`), and from `PNETCDF_HINTS` (`key=value;key=value`), each overriding the one
//! before. What is in force is reported by [`Hints::effective`]; a pair that is unknown or wrong
//! changes nothing and becomes a warning.

mod table;

use std::path::Path;

use esker_store::Stripes;

use table::{TABLE, WITHOUT_EFFECT};

use crate::nearest;
use crate::wishes::{Wish, Wishes};

/// A choice that the library can make by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Automatic {
    /// Always.
    Enable,
    /// Never.
    Disable,
    /// As the plan's numbers say.
    #[default]
    Automatic,
}

/// On or off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Switch {
    Enable,
    Disable,
}

impl Switch {
    pub(crate) fn is_on(self) -> bool {
        self == Switch::Enable
    }
}

/// What has checksums. Journals, manifests and whatever else says where values are always has some.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Checksums {
    /// Nothing.
    None,
    /// Messages between ranks.
    Transfer,
    /// Values that are stored, where their layout has room for checksums: they are written and compared.
    Store,
    /// Both.
    #[default]
    All,
}

impl Checksums {
    /// Whether messages between ranks have some.
    pub(crate) fn of_transfers(self) -> bool {
        matches!(self, Checksums::Transfer | Checksums::All)
    }

    /// Whether those of stored values are written and compared.
    pub(crate) fn of_stored(self) -> bool {
        matches!(self, Checksums::Store | Checksums::All)
    }
}

/// What a new dataset is on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Layout {
    /// A classic netCDF file.
    #[default]
    Classic,
    /// A container whose variables are logs: a directory in which every rank appends what it
    /// writes. The fastest way to write; read as any other dataset.
    Log,
}

/// Which ranks share the files of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LogFiles {
    /// None: every process has its own.
    Process,
    /// Those of a node.
    Node,
}

/// What happens where another writer of a container has committed the same elements meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnConflict {
    /// The commit fails.
    Fail,
    /// What is being committed lies over it.
    Ours,
}

/// Who indexes the logs of a container for collective reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WhereIndexed {
    /// Every rank all of them.
    Local,
    /// Each rank a share.
    Distributed,
    /// A share, if all of them are too much.
    Automatic,
}

/// Where chunks go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChunkFiles {
    /// Into the classic file.
    Inside,
    /// Into one file beside it.
    Shared,
    /// Into a file for each node.
    Node,
    /// Into a file for each rank.
    Rank,
}

/// Whose definitions a dataset gets whose ranks define different things.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Definitions {
    /// Rank 0's, from C; in Rust, everyone's.
    Root,
    /// Everyone's, and everyone knows all of them.
    Merge,
    /// Everyone's, and each rank knows its own.
    Shares,
}

/// Where the stripes of a new file come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileStriping {
    /// From the hints, where they say something.
    Auto,
    /// From its folder, whatever the hints say.
    Inherit,
}

/// Which references a dataset with chunked variables gets when it is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChunkRefs {
    /// None.
    None,
    /// One JSON document.
    Json,
    /// A directory of Parquet files.
    Parquet,
}

/// What happens to a chunk that is written again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rewrite {
    /// It goes to another place, and the old one stays whole until the new one is there.
    Safe,
    /// It stays in its place if it fits there.
    InPlace,
    /// As `Safe`, and it is on the disk before anything says that it is the new one.
    Ordered,
}

/// The values in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hints {
    /// `cb_buffer_size`: bytes of a window, the unit that an aggregator owns in a round; by
    /// default 1 MiB or, if that is more, a block of the file.
    pub(crate) cb_buffer_size: Option<u64>,
    /// `cb_nodes`: how many ranks aggregate; by default as many on each node as the next says.
    pub(crate) cb_nodes: Option<u64>,
    /// `nc_num_aggrs_per_node`: aggregators on each node; 0 stands for the number of cores, at
    /// most 4.
    pub(crate) aggregators_per_node: u64,
    /// `esker_node_memory`: bytes of memory that the ranks of a node share for windows, at most; 0 for none.
    pub(crate) node_memory: u64,
    /// `esker_gather_nodes`: whether messages of a node's ranks to another node go as one; by default where ranks are many.
    pub(crate) gather_nodes: Automatic,
    /// `esker_checksums`: what has checksums, and whose are compared.
    pub(crate) checksums: Checksums,
    /// `striping_unit`: windows begin at multiples of this; by default of the file's own block
    /// (a stripe of Lustre, a page of a local disk).
    pub(crate) striping_unit: Option<u64>,
    /// `striping_factor`: on how many servers a new file is, where the file system has stripes.
    pub(crate) striping_factor: Option<u64>,
    /// `file_striping`
    pub(crate) file_striping: FileStriping,
    /// `esker_definitions`
    pub(crate) definitions: Definitions,
    /// `nc_data_move_chunk_size`: bytes that a rank holds at a time while it moves data for a
    /// redefinition.
    pub(crate) move_chunk: u64,
    /// `romio_cb_write`: whether collective writes are exchanged.
    pub(crate) cb_write: Automatic,
    /// `romio_cb_read`: whether collective reads are exchanged.
    pub(crate) cb_read: Automatic,
    /// `romio_ds_write`: whether holes are read and written back to make one write of many.
    pub(crate) ds_write: Automatic,
    /// `romio_ds_read`: whether holes are read along to make one read of many.
    pub(crate) ds_read: Automatic,
    /// `ind_rd_buffer_size`: bytes that a direct read fetches at once; by default 256 KiB or a
    /// block of the file.
    pub(crate) read_buffer: Option<u64>,
    /// `ind_wr_buffer_size`: bytes that a direct write converts at once; by default 512 KiB or a
    /// block.
    pub(crate) write_buffer: Option<u64>,
    /// `esker_direct_run`: collective writes whose runs are this long on average are not
    /// exchanged.
    pub(crate) direct_run: Option<u64>,
    /// `esker_sieve_hole`: holes of at most this many bytes are read along.
    pub(crate) sieve_hole: u64,
    /// `esker_index_memory`: bytes that the index of a decomposition map, or of a log, may take.
    pub(crate) index_memory: u64,
    /// `esker_cache`: bytes of lists of blocks, and of footprints of logs, that are remembered.
    pub(crate) cache: u64,
    /// `esker_read_threads`: threads that share a long read of a dataset with one rank; 0 for as many
    /// as pay.
    pub(crate) read_threads: u64,
    /// `nc_header_align_size`: the older name of `nc_var_align_size`, which wins.
    pub(crate) header_align: Option<u64>,
    /// `nc_var_align_size`: the data section begins at a multiple of this (as in PnetCDF since
    /// 1.13; before, every variable did).
    pub(crate) var_align: Option<u64>,
    /// `nc_record_align_size`: the record section begins at a multiple of this.
    pub(crate) record_align: Option<u64>,
    /// `nc_ibuf_size`: bytes that [`crate::Requests::attach_buffer`] attaches by default.
    pub(crate) ibuf_size: u64,
    /// `esker_layout`: what a new dataset is.
    pub(crate) layout: Layout,
    /// `esker_log_files`: which ranks share the files of a log.
    pub(crate) log_files: LogFiles,
    /// `nc_num_subfiles`: files for the blobs of decomposed variables; -1 for one for each node.
    pub(crate) subfiles: i32,
    /// `esker_on_conflict`: what happens where another writer has committed the same elements meanwhile.
    pub(crate) on_conflict: OnConflict,
    /// `esker_message`: what is said of each version that is committed.
    pub(crate) message: String,
    /// `esker_index`: who indexes the logs.
    pub(crate) index: WhereIndexed,
    /// `nc_burst_buf`: whether what is written to a classic file goes into a log first.
    pub(crate) burst_buf: Switch,
    /// `nc_burst_buf_dirname`: where the logs are.
    pub(crate) burst_dirname: String,
    /// `nc_burst_buf_del_on_close`: whether close removes the logs.
    pub(crate) burst_del_on_close: Switch,
    /// `nc_burst_buf_overwrite`: whether logs that nobody has replayed are given up.
    pub(crate) burst_overwrite: Switch,
    /// `nc_burst_buf_shared_logs`: whether the ranks of a node share the files of their logs.
    pub(crate) burst_shared_logs: Switch,
    /// `nc_burst_buf_flush_buffer_size`: bytes of payload that a rank flushes at a time; 0 lets us choose.
    pub(crate) burst_flush_buffer: u64,
    /// `esker_burst_limit`: a collective call flushes when a rank's log is longer; 0 for no limit.
    pub(crate) burst_limit: u64,
    /// `esker_chunk_buffer`: bytes of chunks that a rank holds at a time when it writes or reads
    /// together with others.
    pub(crate) chunk_buffer: u64,
    /// `esker_chunk_cache`: bytes of decoded chunks that are kept for later reads.
    pub(crate) chunk_cache: u64,
    /// `esker_chunk_max`: bytes of a chunk that are held in memory, at most.
    pub(crate) chunk_max: u64,
    /// `esker_chunk_pending`: bytes of independent puts into chunked variables that a rank keeps for the
    /// next collective call.
    pub(crate) chunk_pending: u64,
    /// `esker_chunk_penalty`: how much what a rank owns already counts against it, in hundredths.
    pub(crate) chunk_penalty: u64,
    /// `esker_chunk_room`: bytes kept for chunks before the records of traditional variables.
    pub(crate) chunk_room: Option<u64>,
    /// `esker_chunk_files`: where the chunks of a new dataset go.
    pub(crate) chunk_files: ChunkFiles,
    /// `esker_chunk_rewrite`: whether a chunk may be written over where it is.
    pub(crate) chunk_rewrite: Rewrite,
    /// `esker_chunk_refs`: which references are written when the dataset is closed. Not by this crate,
    /// which knows nothing of Zarr: by its front ends, through `esker_tools::refs::close`.
    chunk_refs: ChunkRefs,
    /// `esker_chunk` and `esker_filter`: how variables are stored, by their names.
    pub(crate) wishes: Wishes,
    /// What those could not do: the hint, the variable, and why.
    refused: Vec<(&'static str, String, String)>,
    /// `esker_raw`: whether chunked and decomposed variables are seen as they are stored.
    raw: Switch,
    /// The pairs that were set, to send them to other ranks.
    given: Vec<(String, String)>,
    warnings: Vec<String>,
}

impl Default for Hints {
    fn default() -> Self {
        Hints {
            cb_buffer_size: None,
            cb_nodes: None,
            aggregators_per_node: 0,
            node_memory: NODE_MEMORY,
            gather_nodes: Automatic::Automatic,
            checksums: Checksums::All,
            striping_unit: None,
            striping_factor: None,
            file_striping: FileStriping::Auto,
            definitions: Definitions::Root,
            move_chunk: 4 << 20,
            cb_write: Automatic::Automatic,
            cb_read: Automatic::Automatic,
            ds_write: Automatic::Automatic,
            ds_read: Automatic::Automatic,
            read_buffer: None,
            write_buffer: None,
            direct_run: None,
            sieve_hole: 16 << 10,
            header_align: None,
            var_align: None,
            record_align: None,
            ibuf_size: 16 << 20,
            layout: Layout::Classic,
            log_files: LogFiles::Process,
            subfiles: 0,
            on_conflict: OnConflict::Fail,
            message: String::new(),
            index: WhereIndexed::Automatic,
            index_memory: 256 << 20,
            cache: 64 << 20,
            read_threads: 0,
            burst_buf: Switch::Disable,
            burst_dirname: "./".to_string(),
            burst_del_on_close: Switch::Enable,
            burst_overwrite: Switch::Disable,
            burst_shared_logs: Switch::Disable,
            burst_flush_buffer: 0,
            burst_limit: 0,
            chunk_buffer: 64 << 20,
            chunk_cache: 32 << 20,
            chunk_max: 256 << 20,
            chunk_pending: 64 << 20,
            chunk_penalty: 100,
            chunk_room: None,
            chunk_files: ChunkFiles::Inside,
            chunk_rewrite: Rewrite::Safe,
            chunk_refs: ChunkRefs::None,
            wishes: Wishes::default(),
            refused: Vec::new(),
            raw: Switch::Disable,
            given: Vec::new(),
            warnings: Vec::new(),
        }
    }
}

/// Payload that a rank flushes at a time where nobody says otherwise: as many windows as keep all
/// aggregators busy, and so little that its memory is not fresh for long. (With 64 MiB a quarter of
/// a flush of 30 MB went into the first touch of that memory.)
const FLUSH: u64 = 8 << 20;

/// Memory that ranks of a node share, at most, where nobody says how much: four aggregators with two windows of 1 MiB
/// each, and their bits, take 9 MiB.
const NODE_MEMORY: u64 = 64 << 20;

/// The length of a window where nobody says another. Not ROMIO's 16 MiB: windows that stay in
/// the cache are written several times as fast (strided kernel at 2 ranks, MB/s: 16 MiB 630,
/// 4 MiB 2,163, 2 MiB 2,780, 1 MiB 2,954).
const WINDOW: u64 = 1 << 20;

/// What a direct write holds at once, where nobody says otherwise: half of a typical
/// second-level cache.
const DIRECT: u64 = 512 << 10;

/// What a direct read fetches at once: the kernel's copy stays in the cache for ours.
const DIRECT_READ: u64 = 256 << 10;

impl Automatic {
    fn name(self) -> &'static str {
        match self {
            Automatic::Enable => "enable",
            Automatic::Disable => "disable",
            Automatic::Automatic => "automatic",
        }
    }
}

impl Hints {
    /// `esker_chunk_refs`: the references that the dataset is to get when it is closed.
    pub fn chunk_refs(&self) -> ChunkRefs {
        self.chunk_refs
    }

    /// What `esker_chunk` and `esker_filter` could not do for variables, in sentences. They are
    /// stored as if there were no such hint.
    pub fn refused(&self) -> Vec<String> {
        let sentence = |(hint, var, why): &(&str, String, String)| {
            format!("hint {hint} is not used for variable \"{var}\": {why}")
        };
        self.refused.iter().map(sentence).collect()
    }

    pub(crate) fn refuse(&mut self, hint: &'static str, var: &str, why: String) {
        let refused = (hint, var.to_string(), why);
        if !self.refused.contains(&refused) {
            self.refused.push(refused);
        }
    }

    /// What `esker_chunk` and `esker_filter` say of a variable of this name.
    pub(crate) fn wish_for(&self, name: &str) -> Wish {
        self.wishes.of(name)
    }

    /// `esker_raw`: whether chunked and decomposed variables are seen as they are stored, as other tools
    /// see them ([`OpenOptions::raw`](crate::OpenOptions::raw)).
    pub(crate) fn raw(&self) -> bool {
        self.raw.is_on()
    }

    /// Sets one hint by its name. A name or value that cannot be used changes nothing and
    /// becomes a warning.
    ///
    /// ```
    /// use esker::Hints;
    /// let mut hints = Hints::default();
    /// hints.set("cb_buffer_size", "4194304");
    /// hints.set("cb_bufer_size", "1");
    /// assert!(hints.effective().contains(&("cb_buffer_size", "4194304".to_string())));
    /// assert!(hints.warnings()[0].contains("did you mean \"cb_buffer_size\""));
    /// ```
    pub fn set(&mut self, name: &str, value: &str) {
        match TABLE.iter().find(|hint| hint.name == name) {
            Some(hint) => match (hint.set)(self, value) {
                Ok(()) => self.given.push((name.to_string(), value.to_string())),
                Err(fault) => {
                    self.warnings.push(format!("hint {name}={value:?} is not used: {fault}"));
                }
            },
            None if Hints::is_without_effect(name) => {
                self.given.push((name.to_string(), value.to_string()));
            }
            None => {
                let known = TABLE.iter().map(|hint| hint.name);
                let near = nearest::hint(name, known.chain(WITHOUT_EFFECT.iter().copied()));
                self.warnings.push(format!("hint {name:?} is unknown{near}"));
            }
        }
    }

    /// Whether a new classic dataset is a folder, whose chunks are in files of their own.
    pub fn makes_folder(&self) -> bool {
        self.layout == Layout::Classic && self.chunk_files != ChunkFiles::Inside
    }

    /// Whether a new dataset is a directory: a container, or such a folder.
    pub fn makes_directory(&self) -> bool {
        self.layout == Layout::Log || self.makes_folder()
    }

    /// The environment's hints on top of these: the file named by `ROMIO_HINTS`, then
    /// `PNETCDF_HINTS`.
    pub fn with_environment(mut self) -> Hints {
        if let Some(path) = std::env::var_os("ROMIO_HINTS") {
            match std::fs::read_to_string(Path::new(&path)) {
                Ok(text) => self.set_romio(&text),
                Err(error) => {
                    let path = Path::new(&path).display();
                    self.warnings.push(format!("ROMIO_HINTS names {path}: {error}"));
                }
            }
        }
        if let Ok(text) = std::env::var("PNETCDF_HINTS") {
            self.set_pnetcdf(&text);
        }
        self
    }

    /// Sets the hints of a ROMIO file: lines of `key value`, `#` for comments.
    pub fn set_romio(&mut self, text: &str) {
        for line in text.lines().map(str::trim).filter(|l| !l.is_empty() && !l.starts_with('#')) {
            match line.split_once(char::is_whitespace) {
                Some((key, value)) => self.set(key, value.trim()),
                None => self.warnings.push(format!("ROMIO_HINTS: {line:?} has no value")),
            }
        }
    }

    /// The pairs of `PNETCDF_HINTS`, `key=value;key=value`, in their order. One that is ill-formed (no
    /// key or no value, several `=`, blanks inside; the last two are well in values of `esker_` hints) is skipped, and an error says so.
    ///
    /// ```
    /// let pairs: Vec<_> = esker::Hints::pnetcdf_pairs("cb_nodes=3; oops ;").collect();
    /// assert_eq!(pairs[0], Ok(("cb_nodes", "3")));
    /// assert!(pairs[1].as_ref().unwrap_err().contains("\"oops\""));
    /// assert_eq!(pairs.len(), 2);
    /// ```
    pub fn pnetcdf_pairs(text: &str) -> impl Iterator<Item = Result<(&str, &str), String>> {
        let is_word = |word: &str| !word.is_empty() && !word.contains([' ', '\t']);
        text.split(';').map(str::trim).filter(|pair| !pair.is_empty()).map(move |pair| {
            let words = pair.split_once('=').map(|(key, value)| (key.trim(), value.trim()));
            // Of our own hints a value may be text: filters have named parameters, messages have words.
            let is_value = |key: &str, value: &str| match key.starts_with("esker_") {
                true => !value.is_empty(),
                false => is_word(value) && !value.contains('='),
            };
            let well = |(key, value): &(&str, &str)| is_word(key) && is_value(key, value);
            words.filter(well).ok_or_else(|| {
                format!("PNETCDF_HINTS: {pair:?} is ill-formed and skipped: it is not key=value")
            })
        })
    }

    /// Sets the hints of `PNETCDF_HINTS`: [`Hints::pnetcdf_pairs`]. What is ill-formed becomes a
    /// warning.
    pub fn set_pnetcdf(&mut self, text: &str) {
        for pair in Hints::pnetcdf_pairs(text) {
            match pair {
                Ok((key, value)) => self.set(key, value),
                Err(why) => self.warnings.push(why),
            }
        }
    }

    /// Takes the values that another rank has in force, and keeps this rank's warnings.
    pub(crate) fn become_others(&mut self, pairs: &str) {
        let mut theirs = Hints::default();
        for (name, value) in pairs.split('\0').filter_map(|pair| pair.split_once('=')) {
            theirs.set(name, value);
        }
        let mut warnings = std::mem::take(&mut self.warnings);
        warnings.append(&mut theirs.warnings);
        *self = Hints { warnings, ..theirs };
    }

    /// The values in force, by name.
    pub fn effective(&self) -> Vec<(&'static str, String)> {
        let mut all: Vec<_> =
            TABLE.iter().filter_map(|hint| Some((hint.name, (hint.get)(self)?))).collect();
        if !self.refused.is_empty() {
            let mut names: Vec<&str> = self.refused.iter().map(|(_, var, _)| &**var).collect();
            names.dedup();
            all.push(("esker_refused", names.join(",")));
        }
        all
    }

    /// What could not be used, in sentences.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Whether a hint is known, but has no effect in this library.
    pub fn is_without_effect(name: &str) -> bool {
        WITHOUT_EFFECT.contains(&name)
    }

    /// What was set, for [`Hints::become_others`]. Values may hold anything but zero bytes.
    pub(crate) fn given(&self) -> String {
        let pairs = self.given.iter().map(|(k, v)| format!("{k}={}", v.replace('\0', "")));
        pairs.collect::<Vec<String>>().join("\0")
    }

    /// The stripes that a new file is to have, if that is asked for.
    pub(crate) fn stripes(&self) -> Option<Stripes> {
        let (count, size) = (self.striping_factor, self.striping_unit);
        let asked = self.file_striping == FileStriping::Auto && (count.is_some() || size.is_some());
        asked.then(|| Stripes { count: count.unwrap_or(0), size: size.unwrap_or(0) })
    }

    /// Bytes that a direct read holds at once, for a file with blocks of this length.
    pub(crate) fn read_at_once(&self, block: u64) -> u64 {
        self.read_buffer.unwrap_or(DIRECT_READ.max(block)).max(8)
    }

    /// Bytes that a direct write holds at once, for a file with blocks of this length.
    pub(crate) fn write_at_once(&self, block: u64) -> u64 {
        self.write_buffer.unwrap_or(DIRECT.max(block)).max(8)
    }

    /// Bytes of payload that a rank flushes at a time.
    pub(crate) fn flush_at_once(&self) -> u64 {
        match self.burst_flush_buffer {
            0 => FLUSH,
            size => size,
        }
    }

    /// The same for chunked variables: all of the chunks that are held at once.
    pub(crate) fn flush_chunks_at_once(&self) -> u64 {
        match self.burst_flush_buffer {
            0 => self.chunk_buffer.max(FLUSH),
            size => size,
        }
    }

    /// The longest window, for a file with blocks of this length.
    pub(crate) fn window(&self, block: u64) -> u64 {
        self.cb_buffer_size.unwrap_or(WINDOW.max(block)).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_set_and_told() {
        let mut hints = Hints::default();
        hints.set_pnetcdf("cb_nodes=3; romio_cb_write = disable ;;nc_driver=gio;oops;cb_nodes=x");
        hints.set_romio("# comment\ncb_buffer_size 1000\nalone\n");
        assert_eq!(hints.cb_nodes, Some(3));
        assert_eq!(hints.cb_write, Automatic::Disable);
        assert_eq!(hints.cb_buffer_size, Some(1000));
        assert_eq!(hints.warnings().len(), 3, "{:?}", hints.warnings());
        assert!(hints.effective().contains(&("cb_nodes", "3".to_string())));
    }

    #[test]
    fn stripes_are_asked_for_by_hints_unless_the_folder_decides() {
        let stripes = |text: &str| {
            let mut hints = Hints::default();
            hints.set_pnetcdf(text);
            assert_eq!(hints.warnings(), [""; 0]);
            hints.stripes().map(|stripes| (stripes.count, stripes.size))
        };
        assert_eq!(stripes(""), None);
        assert_eq!(stripes("file_striping=auto"), None);
        assert_eq!(stripes("striping_factor=8"), Some((8, 0)));
        assert_eq!(stripes("striping_factor=8;striping_unit=1048576"), Some((8, 1 << 20)));
        assert_eq!(stripes("striping_factor=8;file_striping=inherit"), None);
    }

    #[test]
    fn absurd_values_are_refused() {
        let mut hints = Hints::default();
        hints.set("cb_buffer_size", "0");
        hints.set("cb_buffer_size", "99999999999999999999");
        hints.set("striping_unit", "9999999999999999");
        assert_eq!(hints.warnings().len(), 3);
        assert_eq!(Hints { warnings: Vec::new(), ..hints }, Hints::default());
    }

    #[test]
    fn the_guide_names_every_hint_with_its_default() {
        let guide = include_str!("../../../docs/parallel.md");
        for hint in TABLE {
            assert!(guide.contains(&format!("`{}`", hint.name)), "{} is not told", hint.name);
        }
        for (name, value) in Hints::default().effective() {
            let row = format!("| `{name}` | {value} ");
            assert!(guide.contains(&row), "the guide has no row that begins with {row}");
        }
    }
}
