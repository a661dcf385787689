//! The facts of a file for a person.

use std::io::{self, Write};

use esker::{Attribute, DimLen, NumRecs, Scalar, Values, Variable, Version};
use esker_tools::stats::Statistics;

use super::facts::{Facts, VariableFacts};
use super::{blocks, chunks};
use crate::terminal::Screen;
use crate::terminal::quantity::{bytes, general, grouped, plural, share};
use crate::terminal::table::{Side, Table, cut, printable};

/// How long an attribute may be when it is not shown in full and there is no terminal.
const LINE: usize = 100;

/// Writes everything; `verbose` adds every attribute of every variable, in full.
pub(in crate::commands) fn write(
    screen: &mut Screen,
    facts: &Facts<'_>,
    verbose: bool,
) -> io::Result<()> {
    title(screen, facts)?;
    container(screen, facts)?;
    dimensions(screen, facts)?;
    variables(screen, facts, verbose)?;
    let is_chunked = |fact: &&VariableFacts<'_>| fact.stored.is_some();
    let chunked = facts.variables.iter().filter(is_chunked);
    chunks::table(screen, chunked.map(|fact| (&*fact.var.name, fact.stored.as_ref())))?;
    maps(screen, facts)?;
    graphs(screen, facts)?;
    statistics(screen, facts)?;
    for fact in &facts.variables {
        if let Some(found) = &fact.blocks {
            blocks::table(screen, &fact.var.name, found)?;
        }
    }
    if verbose {
        for fact in facts.variables.iter().filter(|fact| !fact.var.attrs.is_empty()) {
            let of = format!("attributes of {}", printable(&fact.var.name));
            attributes(screen, &of, fact.var.attrs.as_slice(), verbose)?;
        }
    }
    attributes(screen, "attributes", facts.schema.attrs.as_slice(), verbose)
}

fn title(screen: &mut Screen, facts: &Facts<'_>) -> io::Result<()> {
    let schema = facts.schema;
    let depth = screen.depth;
    writeln!(
        screen,
        "{}  {} ({}), {}, {}, {}",
        depth.bold(printable(&facts.path)),
        schema.version,
        kind(schema.version),
        bytes(facts.file_len),
        plural(schema.dims.len(), "dimension"),
        plural(schema.vars.len(), "variable"),
    )?;
    let missing = facts.offsets.data_end.saturating_sub(facts.file_len);
    if missing > 0 {
        let end = bytes(facts.offsets.data_end);
        let warning = format!("the data reach to {end}: the last {} are missing", bytes(missing));
        writeln!(screen, "{}", depth.bad(warning))?;
    }
    for note in &facts.notes {
        writeln!(screen, "{}", depth.bad(printable(note)))?;
    }
    Ok(())
}

/// What a container is made of.
fn container(screen: &mut Screen, facts: &Facts<'_>) -> io::Result<()> {
    let Some(container) = &facts.container else { return Ok(()) };
    let others = container.versions.iter().filter(|v| **v != container.version).count();
    let others = match others {
        0 => String::new(),
        n => format!(", beside {}", plural(n, "other")),
    };
    writeln!(
        screen,
        "a container of logs, version {}{others}: {} of data, {} of metadata ({:.2} %)",
        container.version,
        bytes(container.data()),
        bytes(container.metadata()),
        100.0 * container.metadata() as f64 / container.data().max(1) as f64,
    )?;
    let mut table = Table::new([("tag", Side::Left), ("version", Side::Right)]);
    for tag in &container.tags {
        table.row([tag.name.clone(), tag.version.to_string()]);
    }
    section(screen, "tags", &table)?;
    let mut table = Table::new([
        ("session", Side::Left),
        ("ranks", Side::Right),
        ("files", Side::Right),
        ("data", Side::Right),
        ("metadata", Side::Right),
    ]);
    for session in &container.sessions {
        table.row([
            session.stem.clone(),
            grouped(session.ranks as u64),
            grouped(session.files as u64),
            bytes(session.data),
            bytes(session.metadata),
        ]);
    }
    section(screen, "sessions", &table)
}

/// What people call the version.
fn kind(version: Version) -> &'static str {
    match version {
        Version::Cdf1 => "classic",
        Version::Cdf2 => "64-bit offset",
        Version::Cdf5 => "64-bit data",
    }
}

fn dimensions(screen: &mut Screen, facts: &Facts<'_>) -> io::Result<()> {
    let mut table = Table::new([("name", Side::Left), ("length", Side::Right), ("", Side::Left)]);
    for dim in &facts.schema.dims {
        let (len, note) = match (dim.len, facts.numrecs) {
            (DimLen::Fixed(len), _) => (len, ""),
            (DimLen::Unlimited, NumRecs::Count(_)) => (facts.records, "unlimited"),
            (DimLen::Unlimited, NumRecs::Streaming) => {
                (facts.records, "unlimited, counted from the file's length")
            }
        };
        table.row([dim.name.to_string(), grouped(len), note.to_string()]);
    }
    section(screen, "dimensions", &table)
}

fn variables(screen: &mut Screen, facts: &Facts<'_>, verbose: bool) -> io::Result<()> {
    let mut table = Table::new([
        ("name", Side::Left),
        ("type", Side::Left),
        ("shape", Side::Left),
        ("layout", Side::Left),
        ("bytes", Side::Right),
        ("share", Side::Right),
        ("units", Side::Left),
        ("description", Side::Left),
    ]);
    for fact in &facts.variables {
        table.row([
            fact.var.name.to_string(),
            fact.var.ty.to_string(),
            shape(fact),
            layout(fact),
            bytes(fact.bytes),
            share(fact.file_bytes(), facts.whole_len()),
            text_of(fact.var, &["units"]),
            text_of(fact.var, &["long_name", "standard_name", "description"]),
        ]);
    }
    section(screen, "variables", &table)?;
    if verbose {
        let offsets = &facts.offsets;
        let rest = format!(
            "header {}, padding {}, unused {}",
            bytes(offsets.header_len),
            bytes(offsets.padding()),
            bytes(offsets.unused())
        );
        writeln!(screen, "  {}", screen.depth.faint(rest))?;
    }
    Ok(())
}

/// `record`, `fixed`, whether it is chunked, or with the map that it is decomposed by.
fn layout(fact: &VariableFacts<'_>) -> String {
    let layout = if fact.record { "record" } else { "fixed" };
    match &fact.map {
        None if fact.stored.is_some() => format!("{layout}, chunked"),
        Some(map) => format!("{layout}, by {map}"),
        None => layout.to_string(),
    }
}

/// The decomposition maps, what they are of and how much of it they have.
fn graphs(screen: &mut Screen, facts: &Facts<'_>) -> io::Result<()> {
    let graphs = match &facts.graphs {
        Ok(graphs) => graphs,
        Err(error) => {
            let error = screen.depth.bad(printable(error)).to_string();
            return writeln!(screen, "{error}");
        }
    };
    let mut table = Table::new([
        ("graph", Side::Left),
        ("vertices", Side::Right),
        ("edges", Side::Right),
        ("links", Side::Right),
        ("variables", Side::Right),
    ]);
    for graph in graphs {
        let counts = [graph.vertices, graph.edges, graph.links, graph.variables];
        let [vertices, edges, links, variables] = counts.map(|n| grouped(n as u64));
        table.row([graph.name.clone(), vertices, edges, links, variables]);
    }
    section(screen, "graphs", &table)?;
    for missing in &facts.missing {
        let (vertex, var) = (printable(&missing.vertex), printable(&missing.var));
        writeln!(screen, "vertex {vertex} had variable {var}, which is not in this file")?;
    }
    Ok(())
}

fn maps(screen: &mut Screen, facts: &Facts<'_>) -> io::Result<()> {
    let mut table = Table::new([
        ("map", Side::Left),
        ("of", Side::Left),
        ("ranks", Side::Right),
        ("blocks", Side::Right),
        ("elements", Side::Right),
        ("covered", Side::Right),
        ("repeated", Side::Right),
        ("variables", Side::Right),
    ]);
    for (map, variables) in &facts.maps {
        let dims = map.dims.iter().zip(&map.shape).map(|(name, len)| format!("{name} {len}"));
        let whole = map.shape.iter().product();
        let covered = map.covered.map_or("?".to_string(), |n| share(n, whole));
        let repeated =
            map.covered.map_or("?".to_string(), |n| grouped(map.stored.saturating_sub(n)));
        table.row([
            map.name.clone(),
            dims.collect::<Vec<_>>().join(" × "),
            grouped(map.ranks),
            grouped(map.blocks),
            grouped(map.stored),
            covered,
            repeated,
            grouped(*variables as u64),
        ]);
    }
    section(screen, "decompositions", &table)?;
    if facts.subfiles.is_empty() {
        return Ok(());
    }
    let mut table = Table::new([("sub-file", Side::Left), ("ranks", Side::Right)]);
    for (name, ranks) in &facts.subfiles {
        let ranks = match ranks.end.saturating_sub(1) {
            last if last > ranks.start => format!("{}–{last}", ranks.start),
            _ => ranks.start.to_string(),
        };
        table.row([name.clone(), ranks]);
    }
    section(screen, "sub-files", &table)
}

/// `time 12 × lat 72 × lon 144`
fn shape(fact: &VariableFacts<'_>) -> String {
    let dims: Vec<String> = fact.shape.iter().map(|(name, len)| format!("{name} {len}")).collect();
    if dims.is_empty() { "scalar".to_string() } else { dims.join(" × ") }
}

/// The text of the first of these attributes that there is.
fn text_of(var: &Variable, names: &[&str]) -> String {
    let text = names.iter().find_map(|name| var.attrs.get(name)?.values.text());
    text.map(|text| text.trim_end_matches('\0').trim().to_string()).unwrap_or_default()
}

fn statistics(screen: &mut Screen, facts: &Facts<'_>) -> io::Result<()> {
    let mut table = Table::new([
        ("name", Side::Left),
        ("min", Side::Right),
        ("max", Side::Right),
        ("mean", Side::Right),
        ("values", Side::Right),
        ("missing", Side::Right),
        ("NaN", Side::Right),
    ]);
    for fact in &facts.variables {
        let name = fact.var.name.to_string();
        let Some(found) = &fact.statistics else { continue };
        let Statistics { count, missing, nan, min, max, mean } = found;
        let exact = |n: &Option<Scalar>| n.map_or("-".into(), |n| n.to_string());
        table.row([
            name,
            exact(min),
            exact(max),
            mean.map_or("-".into(), |n| general(n, 8)),
            grouped(*count),
            grouped(*missing),
            grouped(*nan),
        ]);
    }
    section(screen, "values", &table)
}

fn attributes(
    screen: &mut Screen,
    title: &str,
    attrs: &[Attribute],
    verbose: bool,
) -> io::Result<()> {
    if attrs.is_empty() {
        return Ok(());
    }
    writeln!(screen, "\n{}", screen.depth.bold(title))?;
    for attr in attrs {
        let line = format!("  {} = {}", printable(&attr.name), value(&attr.values));
        let line = if verbose { line } else { cut(&line, screen.width.unwrap_or(LINE)) };
        writeln!(screen, "{line}")?;
    }
    Ok(())
}

/// Text in quotes; numbers with their type, unless it is one of the usual ones.
fn value(values: &Values) -> String {
    if let Some(text) = values.text() {
        return format!("\"{}\"", printable(text.trim_end_matches('\0')));
    }
    let list: Vec<String> =
        (0..values.len()).filter_map(|i| values.get(i)).map(|v| v.to_string()).collect();
    format!("{} ({})", list.join(", "), values.ty())
}

pub(super) fn section(screen: &mut Screen, title: &str, table: &Table) -> io::Result<()> {
    if table.is_empty() {
        return Ok(());
    }
    let (depth, width) = (screen.depth, screen.width);
    writeln!(screen, "\n{}", depth.bold(title))?;
    table.write(screen, depth, width)
}
