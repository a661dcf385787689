//! Each hint: its name, and how its value is set and told.

use super::{
    Automatic, Checksums, ChunkFiles, ChunkRefs, DIRECT, DIRECT_READ, Definitions, FileStriping,
    Hints, Layout, LogFiles, NODE_MEMORY, OnConflict, Rewrite, Switch, WINDOW, WhereIndexed,
};
use crate::message::refusal;

/// One hint: how its value is set and told.
pub(super) struct Hint {
    pub(super) name: &'static str,
    pub(super) set: fn(&mut Hints, &str) -> Result<(), String>,
    pub(super) get: fn(&Hints) -> Option<String>,
}

macro_rules! size_hint {
    ($name:literal, $field:ident) => {
        Hint {
            name: $name,
            set: |h, v| {
                h.$field = positive(v)?;
                Ok(())
            },
            get: |h| Some(h.$field.to_string()),
        }
    };
}

macro_rules! optional_hint {
    ($name:literal, $field:ident) => {
        Hint {
            name: $name,
            set: |h, v| {
                h.$field = Some(positive(v)?);
                Ok(())
            },
            get: |h| h.$field.map(|v| v.to_string()),
        }
    };
}

/// A size that may grow with the file's block where nobody sets it.
macro_rules! default_hint {
    ($name:literal, $field:ident, $default:ident) => {
        Hint {
            name: $name,
            set: |h, v| {
                h.$field = Some(positive(v)?);
                Ok(())
            },
            get: |h| Some(h.$field.unwrap_or($default).to_string()),
        }
    };
}

macro_rules! switch_hint {
    ($name:literal, $field:ident) => {
        Hint {
            name: $name,
            set: |h, v| {
                h.$field = switch(v)?;
                Ok(())
            },
            get: |h| Some(h.$field.name().to_string()),
        }
    };
}

/// One of a few words.
macro_rules! choice_hint {
    ($name:literal, $field:ident, [$(($word:literal, $value:path)),+]) => {
        Hint {
            name: $name,
            set: |h, v| {
                h.$field = match v.trim() {
                    $($word => $value,)+
                    _ => return Err(format!("it is none of {}", [$($word),+].join(", "))),
                };
                Ok(())
            },
            get: |h| {
                let words = [$(($word, $value)),+];
                words.iter().find(|(_, v)| *v == h.$field).map(|(word, _)| word.to_string())
            },
        }
    };
}

/// On or off.
macro_rules! burst_switch {
    ($name:literal, $field:ident) => {
        choice_hint!($name, $field, [("enable", Switch::Enable), ("disable", Switch::Disable)])
    };
}

/// A size that may be 0.
macro_rules! number_hint {
    ($name:literal, $field:ident) => {
        Hint {
            name: $name,
            set: |h, v| {
                h.$field = number(v)?;
                Ok(())
            },
            get: |h| Some(h.$field.to_string()),
        }
    };
}

/// Hints that other libraries act on and this one has no use for.
pub(super) const WITHOUT_EFFECT: &[&str] = &[
    "cb_config_list",
    "romio_no_indep_rw",
    "overstriping_ratio",
    "nc_driver",
    "nc_header_read_chunk_size",
    "nc_in_place_swap",
    "pnetcdf_subfiling",
    "nc_hash_size_dim",
    "nc_hash_size_var",
    "nc_hash_size_gattr",
    "nc_hash_size_vattr",
];

/// All hints.
pub(super) const TABLE: &[Hint] = &[
    default_hint!("cb_buffer_size", cb_buffer_size, WINDOW),
    optional_hint!("cb_nodes", cb_nodes),
    number_hint!("nc_num_aggrs_per_node", aggregators_per_node),
    Hint {
        name: "esker_node_memory",
        set: |h, v| {
            h.node_memory = match v.trim() {
                "disable" => 0,
                "enable" => NODE_MEMORY,
                other => positive(other)?,
            };
            Ok(())
        },
        get: |h| match h.node_memory {
            0 => Some("disable".to_string()),
            bytes => Some(bytes.to_string()),
        },
    },
    switch_hint!("esker_gather_nodes", gather_nodes),
    choice_hint!(
        "esker_checksums",
        checksums,
        [
            ("none", Checksums::None),
            ("transfer", Checksums::Transfer),
            ("store", Checksums::Store),
            ("all", Checksums::All)
        ]
    ),
    optional_hint!("striping_unit", striping_unit),
    optional_hint!("striping_factor", striping_factor),
    choice_hint!(
        "file_striping",
        file_striping,
        [("auto", FileStriping::Auto), ("inherit", FileStriping::Inherit)]
    ),
    size_hint!("nc_data_move_chunk_size", move_chunk),
    switch_hint!("romio_cb_write", cb_write),
    switch_hint!("romio_cb_read", cb_read),
    switch_hint!("romio_ds_write", ds_write),
    switch_hint!("romio_ds_read", ds_read),
    default_hint!("ind_rd_buffer_size", read_buffer, DIRECT_READ),
    default_hint!("ind_wr_buffer_size", write_buffer, DIRECT),
    optional_hint!("esker_direct_run", direct_run),
    size_hint!("esker_sieve_hole", sieve_hole),
    optional_hint!("nc_header_align_size", header_align),
    optional_hint!("nc_var_align_size", var_align),
    optional_hint!("nc_record_align_size", record_align),
    size_hint!("nc_ibuf_size", ibuf_size),
    choice_hint!(
        "esker_definitions",
        definitions,
        [
            ("root", Definitions::Root),
            ("merge", Definitions::Merge),
            ("shares", Definitions::Shares)
        ]
    ),
    choice_hint!("esker_layout", layout, [("classic", Layout::Classic), ("log", Layout::Log)]),
    choice_hint!(
        "esker_log_files",
        log_files,
        [("process", LogFiles::Process), ("node", LogFiles::Node)]
    ),
    choice_hint!(
        "esker_index",
        index,
        [
            ("local", WhereIndexed::Local),
            ("distributed", WhereIndexed::Distributed),
            ("automatic", WhereIndexed::Automatic)
        ]
    ),
    choice_hint!(
        "esker_on_conflict",
        on_conflict,
        [("fail", OnConflict::Fail), ("ours", OnConflict::Ours)]
    ),
    Hint {
        name: "esker_message",
        set: |h, v| {
            let message = v.trim();
            match refusal(message) {
                Some(why) => Err(why),
                None => {
                    h.message = message.to_string();
                    Ok(())
                }
            }
        },
        get: |h| Some(h.message.clone()).filter(|message| !message.is_empty()),
    },
    size_hint!("esker_index_memory", index_memory),
    number_hint!("esker_cache", cache),
    number_hint!("esker_read_threads", read_threads),
    burst_switch!("nc_burst_buf", burst_buf),
    Hint {
        name: "nc_burst_buf_dirname",
        set: |h, v| match v.trim() {
            "" => Err("it is empty".to_string()),
            name => {
                h.burst_dirname = name.to_string();
                Ok(())
            }
        },
        get: |h| Some(h.burst_dirname.clone()),
    },
    burst_switch!("nc_burst_buf_del_on_close", burst_del_on_close),
    burst_switch!("nc_burst_buf_overwrite", burst_overwrite),
    burst_switch!("nc_burst_buf_shared_logs", burst_shared_logs),
    number_hint!("nc_burst_buf_flush_buffer_size", burst_flush_buffer),
    number_hint!("esker_burst_limit", burst_limit),
    size_hint!("esker_chunk_buffer", chunk_buffer),
    number_hint!("esker_chunk_cache", chunk_cache),
    size_hint!("esker_chunk_max", chunk_max),
    number_hint!("esker_chunk_pending", chunk_pending),
    number_hint!("esker_chunk_penalty", chunk_penalty),
    optional_hint!("esker_chunk_room", chunk_room),
    choice_hint!(
        "esker_chunk_files",
        chunk_files,
        [
            ("inside", ChunkFiles::Inside),
            ("shared", ChunkFiles::Shared),
            ("node", ChunkFiles::Node),
            ("rank", ChunkFiles::Rank)
        ]
    ),
    choice_hint!(
        "esker_chunk_rewrite",
        chunk_rewrite,
        [("safe", Rewrite::Safe), ("in_place", Rewrite::InPlace), ("ordered", Rewrite::Ordered)]
    ),
    choice_hint!(
        "esker_chunk_refs",
        chunk_refs,
        [("none", ChunkRefs::None), ("json", ChunkRefs::Json), ("parquet", ChunkRefs::Parquet)]
    ),
    Hint {
        name: "esker_chunk",
        set: |h, v| h.wishes.set_shapes(v),
        get: |h| h.wishes.shapes_text(),
    },
    Hint {
        name: "esker_filter",
        set: |h, v| h.wishes.set_filters(v),
        get: |h| h.wishes.filters_text(),
    },
    choice_hint!("esker_raw", raw, [("0", Switch::Disable), ("1", Switch::Enable)]),
    Hint {
        name: "nc_num_subfiles",
        set: |h, v| match v.trim().parse() {
            Ok(count @ -1..=i32::MAX) => {
                h.subfiles = count;
                Ok(())
            }
            _ => Err("it is neither a number nor -1".to_string()),
        },
        get: |h| Some(h.subfiles.to_string()),
    },
];

fn number(value: &str) -> Result<u64, String> {
    value.trim().parse().map_err(|_| "it is not a whole number".to_string())
}

fn positive(value: &str) -> Result<u64, String> {
    match number(value)? {
        0 => Err("it must not be 0".to_string()),
        n if n > 1 << 40 => Err("it is more than a terabyte".to_string()),
        n => Ok(n),
    }
}

fn switch(value: &str) -> Result<Automatic, String> {
    match value.trim() {
        "enable" | "true" => Ok(Automatic::Enable),
        "disable" | "false" => Ok(Automatic::Disable),
        "automatic" => Ok(Automatic::Automatic),
        _ => Err("it is none of enable, disable and automatic".to_string()),
    }
}
