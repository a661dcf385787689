//! What was found.

use std::fmt;

use esker::Scalar;

/// What two files differ in.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Report {
    /// Differences of the definitions.
    pub structure: Vec<Difference>,
    /// Variables that have differing values, in the order of the first file.
    pub values: Vec<ValueDifferences>,
    /// What is different but makes no difference: version, order of definition.
    pub notes: Vec<String>,
    /// Variables of both files whose values could not be compared, and why.
    pub not_compared: Vec<(String, String)>,
    /// Variables whose values were compared.
    pub variables_compared: usize,
    /// Values that were compared.
    pub values_compared: u64,
}

impl Report {
    /// Whether the files hold the same.
    pub fn same(&self) -> bool {
        self.structure.is_empty() && self.values.is_empty()
    }

    /// The report as lines of text: differences of definitions, then of values, then notes.
    pub fn lines(&self) -> impl Iterator<Item = String> {
        let structure = self.structure.iter().map(|d| d.to_string());
        let values = self.values.iter().flat_map(|v| {
            let more = v.differing - v.first.len() as u64;
            let first = v.first.iter().map(|pair| format!("  {pair}"));
            let rest = (more > 0 && !v.first.is_empty()).then(|| format!("  and {more} more"));
            std::iter::once(v.to_string()).chain(first).chain(rest)
        });
        let skipped = self.not_compared.iter();
        let skipped =
            skipped.map(|(name, why)| format!("variable \"{name}\": values not compared: {why}"));
        let notes = self.notes.iter().map(|note| format!("note: {note}"));
        structure.chain(values).chain(skipped).chain(notes)
    }
}

/// What a difference of definitions is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Aspect {
    /// The file version.
    Version,
    /// A dimension's existence or length.
    Dimension,
    /// A global attribute.
    GlobalAttribute,
    /// A variable's attribute; the name is `variable:attribute`.
    VariableAttribute,
    /// A variable's existence.
    Variable,
    /// A variable's type.
    Type,
    /// A variable's dimensions.
    Dimensions,
    /// A graph of variables, or a vertex, edge or link in graphs.
    Graph,
}

impl Aspect {
    /// Its name: `dimension`, `global attribute`.
    pub fn name(self) -> &'static str {
        match self {
            Aspect::Version => "version",
            Aspect::Dimension => "dimension",
            Aspect::GlobalAttribute => "global attribute",
            Aspect::VariableAttribute => "attribute",
            Aspect::Variable => "variable",
            Aspect::Type => "type of variable",
            Aspect::Dimensions => "dimensions of variable",
            Aspect::Graph => "graph",
        }
    }
}

/// One difference of the definitions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// What it is about.
    pub aspect: Aspect,
    /// Whose it is; empty for the file.
    pub name: String,
    /// What the first file has; none if nothing.
    pub first: Option<String>,
    /// What the second file has; none if nothing.
    pub second: Option<String>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.aspect.name())?;
        if !self.name.is_empty() {
            write!(f, " \"{}\"", self.name)?;
        }
        match (&self.first, &self.second) {
            (Some(a), Some(b)) => write!(f, ": {a} and {b}"),
            (Some(a), None) => write!(f, ": {a} in the first file only"),
            (None, Some(b)) => write!(f, ": {b} in the second file only"),
            (None, None) => Ok(()),
        }
    }
}

/// How the values of one variable differ.
#[derive(Debug, Clone, PartialEq)]
pub struct ValueDifferences {
    /// The variable.
    pub variable: String,
    /// Values compared.
    pub compared: u64,
    /// Values that differ by more than the tolerance.
    pub differing: u64,
    /// The largest `|a - b|` of these; none without two finite numbers.
    pub max_abs: Option<f64>,
    /// The largest `|a - b| / |b|` of these; none without two finite numbers, b not 0.
    pub max_rel: Option<f64>,
    /// The first of them.
    pub first: Vec<ValuePair>,
}

impl fmt::Display for ValueDifferences {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ValueDifferences { variable, compared, differing, .. } = self;
        write!(f, "variable \"{variable}\": {differing} of {compared} values differ")?;
        if let Some(abs) = self.max_abs {
            write!(f, ", by up to {abs:?}")?;
        }
        match self.max_rel {
            Some(rel) => write!(f, " ({rel:.3e} of the second)"),
            None => Ok(()),
        }
    }
}

/// Two values that differ.
#[derive(Debug, Clone, PartialEq)]
pub struct ValuePair {
    /// The variable.
    pub variable: String,
    /// Where, one number for each dimension.
    pub index: Vec<u64>,
    /// The value in the first file.
    pub first: Scalar,
    /// The value in the second file.
    pub second: Scalar,
}

impl fmt::Display for ValuePair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.variable)?;
        if !self.index.is_empty() {
            write!(f, "{:?}", self.index)?;
        }
        write!(f, ": {} and {}", self.first, self.second)
    }
}
