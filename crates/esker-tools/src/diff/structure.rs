//! Definitions: dimensions, attributes, variables.

use std::collections::HashSet;

use esker::{Attribute, Dataset, DimLen, Dimension, ExternalType, Values, VarId, Variable};
use esker_format::chunked::{FILTERS, SHAPE};
use esker_format::{Named, NamedList, name::normalise};

use super::report::{Aspect, Difference, Report};
use super::{DiffError, DiffOptions, graphs};

/// A variable of both files whose values can be compared.
#[derive(Debug, Clone)]
pub(super) struct Pair {
    pub(super) name: String,
    pub(super) first: VarId,
    pub(super) second: VarId,
    /// The shape that both have; of records, as many as both have.
    pub(super) shape: Vec<u64>,
}

/// Compares the definitions; gives the variables whose values can be compared.
pub(super) fn compare(
    a: &Dataset,
    b: &Dataset,
    options: &DiffOptions,
    report: &mut Report,
) -> Result<Vec<Pair>, DiffError> {
    let (x, y) = (a.schema(), b.schema());
    if x.version != y.version {
        match options.strict_version {
            true => report.differ(Aspect::Version, "", &x.version, &y.version),
            false => report.notes.push(format!("the versions are {} and {}", x.version, y.version)),
        }
    }
    let chosen = chosen(a, b, options)?;
    // Of all variables; one that is chosen is compared as any other.
    let by_meaning = chosen.is_none() && graphs::compare(a, b, report);
    if chosen.is_none() {
        dimensions(a, b, by_meaning, report);
        let ignored = &options.ignore_attributes;
        attributes(&x.attrs, &y.attrs, None, ignored, report);
        order("variables", &x.vars, &y.vars, report);
    }
    let wanted = |var: &Variable| match &chosen {
        Some(chosen) => chosen.contains(&*var.name),
        None => !(by_meaning && graphs::is_of_graphs(var)),
    };
    let mut pairs = Vec::new();
    for (number, var) in x.vars.iter().enumerate().filter(|(_, v)| wanted(v)) {
        match y.vars.position(&var.name) {
            Some(other) => {
                let ids = (VarId(number), VarId(other));
                pairs.extend(variable((a, b), ids, options, report)?);
            }
            None => report.only(Aspect::Variable, &var.name, Some(describe(a, var)), None),
        }
    }
    for var in y.vars.iter().filter(|v| wanted(v) && x.vars.get(&v.name).is_none()) {
        report.only(Aspect::Variable, &var.name, None, Some(describe(b, var)));
    }
    let differs = |pair: &&Pair| {
        let of =
            |ds: &Dataset, var| ds.chunking(var).map(|c| (c.chunk.clone(), c.pipeline.clone()));
        of(a, pair.first) != of(b, pair.second)
    };
    match pairs.iter().filter(differs).count() {
        0 => {}
        1 => report.notes.push("1 variable has other chunks or filters".to_string()),
        n => report.notes.push(format!("{n} variables have other chunks or filters")),
    }
    Ok(pairs)
}

/// The names chosen, which one of the files has; none when all are.
fn chosen(
    a: &Dataset,
    b: &Dataset,
    options: &DiffOptions,
) -> Result<Option<HashSet<String>>, DiffError> {
    if options.variables.is_empty() {
        return Ok(None);
    }
    let mut chosen = HashSet::new();
    for name in &options.variables {
        if a.schema().var(name).or(b.schema().var(name)).is_none() {
            let all = a.schema().vars.iter().chain(&b.schema().vars);
            let all: std::collections::BTreeSet<&str> = all.map(|v| &*v.name).collect();
            let hint = esker::nearest::hint(name, all.into_iter());
            return Err(DiffError::NoSuchVariable { name: name.clone(), hint });
        }
        chosen.insert(normalise(name).into_owned());
    }
    Ok(Some(chosen))
}

fn dimensions(a: &Dataset, b: &Dataset, by_meaning: bool, report: &mut Report) {
    let length = |ds: &Dataset, dim: &Dimension| match dim.len {
        DimLen::Fixed(len) => len.to_string(),
        DimLen::Unlimited => format!("unlimited ({})", ds.numrecs()),
    };
    let (x, y) = (&a.schema().dims, &b.schema().dims);
    let [of_x, of_y] = [a, b].map(|ds| match by_meaning {
        true => graphs::their_dimensions(ds.schema()),
        false => Vec::new(),
    });
    let counts = |of: &[bool], number: usize| !of.get(number).copied().unwrap_or(false);
    for (_, dim) in x.iter().enumerate().filter(|(number, _)| counts(&of_x, *number)) {
        let first = length(a, dim);
        match y.get(&dim.name).map(|other| length(b, other)) {
            Some(second) if second == first => {}
            second => report.only(Aspect::Dimension, &dim.name, Some(first), second),
        }
    }
    let new = y.iter().enumerate().filter(|(_, dim)| x.get(&dim.name).is_none());
    for (_, dim) in new.filter(|(number, _)| counts(&of_y, *number)) {
        report.only(Aspect::Dimension, &dim.name, None, Some(length(b, dim)));
    }
    order("dimensions", x, y, report);
}

/// Notes when the names that both have are in another order.
fn order<T: Named>(what: &str, x: &NamedList<T>, y: &NamedList<T>, report: &mut Report) {
    let both_x = x.iter().map(|i| i.name()).filter(|n| y.position(n).is_some());
    let both_y = y.iter().map(|i| i.name()).filter(|n| x.position(n).is_some());
    if !both_x.eq(both_y) {
        report.notes.push(format!("the {what} are in another order"));
    }
}

/// Compares the attributes of the files, or of a variable.
fn attributes(
    x: &NamedList<Attribute>,
    y: &NamedList<Attribute>,
    var: Option<&str>,
    ignored: &[String],
    report: &mut Report,
) {
    let aspect = match var {
        None => Aspect::GlobalAttribute,
        Some(_) => Aspect::VariableAttribute,
    };
    let name = |attr: &Attribute| match var {
        None => attr.name.to_string(),
        Some(var) => format!("{var}:{}", attr.name),
    };
    // How values are stored is no difference between them.
    let is_storage = |name: &str| var.is_some() && [SHAPE, FILTERS].contains(&name);
    let counts =
        |attr: &&Attribute| !ignored.iter().any(|i| *i == *attr.name) && !is_storage(&attr.name);
    for attr in x.iter().filter(counts) {
        match y.get(&attr.name) {
            Some(other) if equal(&attr.values, &other.values) => {}
            other => {
                let second = other.map(|o| show(&o.values, Some(&attr.values)));
                let first = show(&attr.values, other.map(|o| &o.values));
                report.only(aspect, &name(attr), Some(first), second);
            }
        }
    }
    for attr in y.iter().filter(counts).filter(|attr| x.get(&attr.name).is_none()) {
        report.only(aspect, &name(attr), None, Some(show(&attr.values, None)));
    }
    match var {
        None => order("global attributes", x, y, report),
        Some(_) if storage(x) != storage(y) => {}
        Some(var) => order(&format!("attributes of variable \"{var}\""), x, y, report),
    }
}

/// What an attribute list says of how values are stored.
fn storage(list: &NamedList<Attribute>) -> [Option<&Values>; 2] {
    [SHAPE, FILTERS].map(|name| list.get(name).map(|a| &a.values))
}

/// Attributes are equal in type and value; a NaN is itself.
fn equal(a: &Values, b: &Values) -> bool {
    a == b || (a.ty() == b.ty() && a.native_bytes() == b.native_bytes())
}

/// Values as text, the type with them where it differs from the other's or hides something.
pub(super) fn show(values: &Values, other: Option<&Values>) -> String {
    const MOST: usize = 60;
    let mut text = match values.text() {
        Some(text) => format!("{text:?}"),
        None => {
            let list = (0..values.len().min(MOST)).filter_map(|i| values.get(i));
            list.map(|v| v.to_string()).collect::<Vec<_>>().join(", ")
        }
    };
    if let Some((end, _)) = text.char_indices().nth(MOST) {
        text.truncate(end);
        text.push('…');
    }
    let same_type = other.is_some_and(|o| o.ty() == values.ty());
    if same_type { text } else { format!("{} {text}", values.ty()) }
}

/// Compares one variable that both have.
fn variable(
    (a, b): (&Dataset, &Dataset),
    (first, second): (VarId, VarId),
    options: &DiffOptions,
    report: &mut Report,
) -> Result<Option<Pair>, DiffError> {
    let (x, y) = (a.variable(first)?, b.variable(second)?);
    let name = x.name.to_string();
    if x.ty != y.ty {
        report.differ(Aspect::Type, &name, &x.ty, &y.ty);
    }
    let (shape, other) = (a.shape(first)?, b.shape(second)?);
    let (dims_x, dims_y) = (dims(a, x), dims(b, y));
    // How many records there are is said of the dimension.
    let records = a.schema().is_record(x) && b.schema().is_record(y);
    let apart = usize::from(records).min(shape.len()).min(other.len());
    if dims_x != dims_y || shape.get(apart..) != other.get(apart..) {
        let text = |names: &[String], shape: &[u64]| {
            let list = names.iter().zip(shape).map(|(name, len)| format!("{name}={len}"));
            format!("({})", list.collect::<Vec<_>>().join(", "))
        };
        report.differ(Aspect::Dimensions, &name, &text(&dims_x, &shape), &text(&dims_y, &other));
    }
    attributes(&x.attrs, &y.attrs, Some(&name), &options.ignore_attributes, report);
    let text = |ty: ExternalType| ty == ExternalType::Char;
    let mut common = shape.clone();
    if records && let (Some(n), Some(m)) = (common.first_mut(), other.first()) {
        *n = (*n).min(*m);
    }
    let why = if text(x.ty) != text(y.ty) {
        Some("text and numbers".to_string())
    } else if shape.get(apart..) != other.get(apart..) || shape.len() != other.len() {
        Some(format!("the shapes are {shape:?} and {other:?}"))
    } else {
        None
    };
    if let Some(why) = why {
        report.not_compared.push((name, why));
        return Ok(None);
    }
    if shape != other && options.variables.is_empty() {
        report
            .notes
            .push(format!("variable \"{name}\": the first {} records are compared", common[0]));
    } else if shape != other {
        // With chosen variables nothing else says so.
        report.differ(Aspect::Dimensions, &name, &format!("{shape:?}"), &format!("{other:?}"));
    }
    Ok(Some(Pair { name, first, second, shape: common }))
}

fn dims(ds: &Dataset, var: &Variable) -> Vec<String> {
    let named = var.dims.iter().filter_map(|d| ds.schema().dims.at(d.0));
    named.map(|d| d.name.to_string()).collect()
}

fn describe(ds: &Dataset, var: &Variable) -> String {
    format!("{}({})", var.ty, dims(ds, var).join(", "))
}

impl Report {
    pub(super) fn only(
        &mut self,
        aspect: Aspect,
        name: &str,
        first: Option<String>,
        second: Option<String>,
    ) {
        self.structure.push(Difference { aspect, name: name.to_string(), first, second });
    }

    fn differ(
        &mut self,
        aspect: Aspect,
        name: &str,
        first: &impl ToString,
        second: &impl ToString,
    ) {
        self.only(aspect, name, Some(first.to_string()), Some(second.to_string()));
    }
}
