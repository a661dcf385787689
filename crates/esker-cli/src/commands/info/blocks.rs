//! The blocks of variables, as they were written.

use std::io;

use esker::Block;
use serde_json::{Value, json};

use super::text::section;
use crate::terminal::Screen;
use crate::terminal::quantity::{bytes, plural};
use crate::terminal::table::{Side, Table, printable};

/// The blocks of one variable as JSON.
pub(super) fn to_json(blocks: &[Block]) -> Value {
    let one = |block: &Block| {
        let Block { start, count, dense, elements, bytes, rank, version } = block;
        json!({
            "start": start,
            "count": count,
            "dense": dense,
            "elements": elements,
            "bytes": bytes,
            "rank": rank,
            "version": version,
        })
    };
    blocks.iter().map(one).collect()
}

/// The blocks of one variable for a person.
pub(super) fn table(screen: &mut Screen, name: &str, blocks: &[Block]) -> io::Result<()> {
    let mut table = Table::new([
        ("start", Side::Left),
        ("count", Side::Left),
        ("elements", Side::Left),
        ("bytes", Side::Right),
        ("rank", Side::Right),
        ("version", Side::Right),
    ]);
    let list = |numbers: &[u64]| {
        let all: Vec<String> = numbers.iter().map(u64::to_string).collect();
        all.join(", ")
    };
    for block in blocks {
        let number = |n: Option<u64>| n.map_or("-".to_string(), |n| n.to_string());
        table.row([
            list(&block.start),
            list(&block.count),
            if block.dense { "all".to_string() } else { format!("{} of it", block.elements) },
            bytes(block.bytes),
            number(block.rank.map(u64::from)),
            number(block.version),
        ]);
    }
    let title = format!("{} of {}", plural(blocks.len(), "block"), printable(name));
    section(screen, &title, &table)
}
