//! Fortran's functions `nfmpi_*`, made from the table of C's.
//!
//! Every argument is a reference, texts have their lengths at the end, identifiers count from
//! one, and dimensions are in the opposite order. What that means for an argument follows from
//! its type and name in C.

use std::fmt::Write as _;

use crate::table::{self, Function};

/// Fortran's words for the types of C that it has: in names, in declarations, and ours.
pub(crate) const KINDS: [(&str, &str, &str); 7] = [
    ("text", "text", "character(len=*)"),
    ("schar", "int1", "integer(1)"),
    ("short", "int2", "integer(2)"),
    ("int", "int", "integer(4)"),
    ("float", "real", "real(4)"),
    ("double", "double", "real(8)"),
    ("longlong", "int8", "integer(8)"),
];

/// Types of C that Fortran lacks.
const WITHOUT: [&str; 6] = ["uchar", "ushort", "uint", "long", "ulonglong", "ubyte"];

/// What an argument is to a caller in Fortran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// An integer, as it is.
    Integer,
    /// An integer that counts from one.
    Id,
    /// An MPI_Offset.
    Offset,
    /// The number of a record, from one.
    Record,
    /// MPI's handles.
    Comm,
    Info,
    Datatype,
    /// A text that is read, without its trailing blanks.
    Text,
    /// A text that is written, with trailing blanks.
    TextOut,
    /// Where an MPI_Info goes.
    InfoOut,
    /// Where an integer goes.
    IntegerOut,
    /// Where an integer that counts from one goes; -1 stays.
    IdOut,
    /// Where several of them go, of graphs, vertices, edges or a vertex' variables.
    IdsOut,
    /// A double, and where one goes.
    Double,
    DoubleOut,
    /// Where an MPI_Offset goes.
    OffsetOut,
    /// Where a length for each dimension goes, in reverse.
    LengthsOut,
    /// The dimensions of a variable, in reverse.
    Dimensions,
    DimensionsOut,
    /// Numbers of requests.
    Requests,
    /// Several integers that are written.
    IntegersOut,
    /// A number for each dimension, in reverse; the first counts from one.
    Start,
    Count,
    /// Lists of them.
    Starts,
    Counts,
    /// Values, and whether they are text, one or many.
    Values {
        put: bool,
        kind: Option<usize>,
        many: bool,
    },
}

/// An argument of a function in Fortran.
pub(crate) struct Argument {
    pub(crate) name: String,
    pub(crate) meaning: Meaning,
}

/// A function of Fortran.
pub(crate) struct Nfmpi {
    /// Its name without the underscore at the end.
    pub(crate) name: String,
    /// The function of C behind it.
    pub(crate) c: String,
    pub(crate) arguments: Vec<Argument>,
}

/// Functions that return a text, or are Fortran's alone: written by hand in `src/fortran`.
pub(crate) const BY_HAND: [&str; 7] =
    ["strerror", "strerrno", "inq_libvers", "issyserr", "xstrerror", "xstrerrno", "xinq_libvers"];

/// All functions that have a counterpart in C.
pub(crate) fn functions() -> Vec<Nfmpi> {
    let all = table::functions().into_iter().chain(table::esker());
    all.filter_map(|f| translate(&f)).collect()
}

fn translate(function: &Function) -> Option<Nfmpi> {
    let name = function.name.strip_prefix("ncmpi_")?;
    if function.returns != "int" || name.starts_with("mput") || name.starts_with("mget") {
        return None;
    }
    let mut words: Vec<&str> = name.split('_').collect();
    let mut kind = None;
    let is_data = matches!(words.first(), Some(&("put" | "get" | "iput" | "iget" | "bput")))
        && words
            .get(1)
            .is_some_and(|word| *word == "att" || *word == "decom" || word.starts_with("var"));
    let put = is_data && words.first().is_some_and(|word| word.ends_with("put"));
    let many = words.get(1).is_some_and(|word| *word != "var1");
    if let Some(word) = words.get_mut(2).filter(|_| is_data) {
        if WITHOUT.contains(word) {
            return None;
        }
        if let Some(place) = KINDS.iter().position(|(c, _, _)| c == word) {
            *word = KINDS[place].1;
            kind = Some(place);
        }
    }
    let arguments = function
        .arguments
        .iter()
        .map(|(ty, name)| {
            let values = Meaning::Values { put, kind, many };
            let meaning = if is_data && matches!(name.as_str(), "op" | "ip") {
                values
            } else {
                meaning(ty, name)
            };
            Argument { name: plain(name), meaning }
        })
        .collect();
    Some(Nfmpi { name: format!("nfmpi_{}", words.join("_")), c: function.name.clone(), arguments })
}

/// An argument's name without C's marks.
fn plain(name: &str) -> String {
    match name {
        "op" | "ip" => "buf",
        "imap" => "map",
        "starts" => "start",
        "counts" => "count",
        other => other.strip_suffix('p').unwrap_or(other),
    }
    .to_string()
}

fn meaning(ty: &str, name: &str) -> Meaning {
    match (ty, name) {
        ("int" | "nc_type", "varid" | "varid_in" | "varid_out" | "dimid" | "attnum") => Meaning::Id,
        ("int", "graphid" | "vertexid" | "edgeid" | "adj_vertexid") => Meaning::Id,
        ("int" | "nc_type", _) => Meaning::Integer,
        ("MPI_Offset", "recno") => Meaning::Record,
        ("MPI_Offset", _) => Meaning::Offset,
        ("MPI_Comm", _) => Meaning::Comm,
        ("MPI_Info", _) => Meaning::Info,
        ("MPI_Datatype", _) => Meaning::Datatype,
        ("MPI_Info *", _) => Meaning::InfoOut,
        ("const char *", _) => Meaning::Text,
        ("char *", _) => Meaning::TextOut,
        ("const int *", _) => Meaning::Dimensions,
        ("int *", "dimidsp") => Meaning::DimensionsOut,
        ("int *", "decomids") => Meaning::IntegersOut,
        ("MPI_Offset *", "chunk") => Meaning::LengthsOut,
        ("int *", "idp" | "varidp" | "unlimdimidp") => Meaning::IdOut,
        ("int *", "graphidp" | "vertexidp" | "edgeidp") => Meaning::IdOut,
        ("int *", "graphids" | "vertexids" | "edgeids" | "adj_vertexids" | "varids") => {
            Meaning::IdsOut
        }
        ("double", _) => Meaning::Double,
        ("double *", _) => Meaning::DoubleOut,
        ("int *", "requests" | "reqs") => Meaning::Requests,
        ("int *", "statuses" | "ncids") => Meaning::IntegersOut,
        ("int *" | "nc_type *", _) => Meaning::IntegerOut,
        ("MPI_Offset *", _) => Meaning::OffsetOut,
        ("const MPI_Offset *", "start") => Meaning::Start,
        ("const MPI_Offset *", _) => Meaning::Count,
        ("MPI_Offset* const *", "starts") => Meaning::Starts,
        ("MPI_Offset* const *", _) => Meaning::Counts,
        // The value of a fill: one of the variable's own type.
        (_, _) => Meaning::Values { put: ty.starts_with("const"), kind: None, many: false },
    }
}

impl Meaning {
    /// The type of the argument in Rust.
    fn rust(self) -> &'static str {
        match self {
            Meaning::Integer | Meaning::Id | Meaning::Comm | Meaning::Info | Meaning::Datatype => {
                "*const c_int"
            }
            Meaning::Dimensions | Meaning::Requests => "*const c_int",
            Meaning::IntegerOut | Meaning::IdOut | Meaning::DimensionsOut => "*mut c_int",
            Meaning::InfoOut | Meaning::IntegersOut | Meaning::IdsOut => "*mut c_int",
            Meaning::Double => "*const f64",
            Meaning::DoubleOut => "*mut f64",
            Meaning::Offset | Meaning::Record => "*const Offset",
            Meaning::Start | Meaning::Count | Meaning::Starts | Meaning::Counts => "*const Offset",
            Meaning::OffsetOut | Meaning::LengthsOut => "*mut Offset",
            Meaning::Text => "*const c_char",
            Meaning::TextOut => "*mut c_char",
            Meaning::Values { .. } => "*mut c_void",
        }
    }

    fn is_index(self) -> bool {
        matches!(self, Meaning::Start | Meaning::Count | Meaning::Starts | Meaning::Counts)
    }

    /// Whether it is a text whose length is looked at.
    pub(crate) fn has_length(self) -> bool {
        matches!(self, Meaning::Text | Meaning::TextOut)
    }
}

/// The Rust functions that Fortran calls.
pub(crate) fn exports() -> String {
    let mut out = String::new();
    for function in functions() {
        let _ = write!(out, "{}", export(&function));
    }
    out
}

/// The arguments in Rust, lengths of texts at the end.
pub(crate) fn parameters(function: &Nfmpi) -> Vec<(String, &'static str)> {
    let mut all: Vec<(String, &'static str)> = function
        .arguments
        .iter()
        .map(|argument| (argument.name.clone(), argument.meaning.rust()))
        .collect();
    for argument in function.arguments.iter().filter(|argument| argument.meaning.has_length()) {
        all.push((format!("{}_len", argument.name), "usize"));
    }
    all
}

fn export(function: &Nfmpi) -> String {
    let (mut before, mut passed, mut failing, mut after) =
        (String::new(), Vec::new(), Vec::new(), String::new());
    let has_index = function.arguments.iter().any(|argument| argument.meaning.is_index());
    let has_list = function.arguments.iter().any(|argument| argument.meaning == Meaning::Starts);
    for Argument { name, meaning } in &function.arguments {
        let mut fails = None;
        let pass = match meaning {
            Meaning::Integer | Meaning::Offset => format!("*{name}"),
            Meaning::Id => format!("(*{name}).wrapping_sub(1)"),
            Meaning::Record => format!("(*{name}).wrapping_sub(1)"),
            Meaning::Comm => format!("to_comm(*{name})"),
            Meaning::Info => format!("to_info(*{name})"),
            Meaning::Datatype => format!("to_datatype(*{name})"),
            Meaning::Text => {
                let _ = writeln!(before, "let {name} = to_text({name}, {name}_len);");
                format!("{name}.as_ptr()")
            }
            Meaning::TextOut => {
                let _ = writeln!(before, "let mut {name}_c = TextOut::new({name}, {name}_len);");
                let _ = writeln!(after, "{name}_c.give();");
                format!("{name}_c.place()")
            }
            Meaning::InfoOut => {
                let _ = writeln!(before, "let mut {name}_c = 0usize;");
                let _ = writeln!(after, "give_info({name}, {name}_c);");
                format!("(&raw mut {name}_c).cast()")
            }
            Meaning::IdOut => {
                let _ = writeln!(before, "let mut {name}_c = 0;");
                let _ = writeln!(after, "give_id({name}, {name}_c);");
                format!("&mut {name}_c")
            }
            Meaning::IdsOut => {
                let has = |wanted: &str| function.arguments.iter().any(|a| a.name == wanted);
                let of = match (has("graphid"), has("vertexid")) {
                    (true, _) => "GraphOwner::Graph(*graphid)",
                    (_, true) => "GraphOwner::Vertex(*vertexid)",
                    _ => "GraphOwner::File",
                };
                let _ = writeln!(before, "let mut {name}_c = graph_ids(*ncid, {of});");
                let _ = writeln!(after, "give_ids({name}, &{name}_c);");
                format!("{name}_c.as_mut_ptr()")
            }
            Meaning::Double => format!("{name}.read_unaligned()"),
            Meaning::Dimensions => {
                let _ = writeln!(before, "let {name} = dimensions({name}, *ndims);");
                format!("{name}.as_ptr()")
            }
            Meaning::DimensionsOut => {
                let ids = match function.c.ends_with("inq_decom") {
                    true => "decom_ids(*ncid, *decomid)",
                    false => "rank_ids(*ncid, *varid)",
                };
                let _ = writeln!(before, "let mut {name}_c = {ids};");
                let _ = writeln!(after, "give_dimensions({name}, &{name}_c);");
                format!("{name}_c.as_mut_ptr()")
            }
            Meaning::LengthsOut => {
                let _ = writeln!(before, "let mut {name}_c = rank_offsets(*ncid, *varid);");
                let _ = writeln!(after, "give_lengths({name}, &{name}_c);");
                format!("{name}_c.as_mut_ptr()")
            }
            Meaning::Requests => {
                let count = if function.c.ends_with("cancel") { "num" } else { "count" };
                let _ = writeln!(before, "let mut {name}_c = integers({name}, *{count});");
                format!("{name}_c.as_mut_ptr()")
            }
            Meaning::Start => {
                let _ = writeln!(before, "let {name} = reversed({name}, rank, 1);");
                fails = Some("null()".to_string());
                format!("{name}.as_ptr()")
            }
            Meaning::Count => {
                let _ = writeln!(before, "let {name} = reversed({name}, rank, 0);");
                fails = Some("null()".to_string());
                format!("{name}.as_ptr()")
            }
            Meaning::Starts => {
                let _ = writeln!(before, "let {name} = Lists::new({name}, rank, *num, 1);");
                fails = Some("null()".to_string());
                format!("{name}.as_ptr()")
            }
            Meaning::Counts => {
                let _ = writeln!(before, "let {name} = Lists::new({name}, rank, *num, 0);");
                fails = Some("null()".to_string());
                format!("{name}.as_ptr()")
            }
            Meaning::Values { .. } => format!("{name}.cast()"),
            Meaning::IntegerOut | Meaning::IntegersOut => name.clone(),
            Meaning::OffsetOut => name.clone(),
            Meaning::DoubleOut => format!("{name}.cast()"),
        };
        failing.push(match (fails, name.as_str()) {
            (Some(other), _) => other,
            // Nothing to move, so that only the others' part of a collective call is done.
            (None, "num") if has_list => "0".to_string(),
            _ => pass.clone(),
        });
        passed.push(pass);
    }
    let mut body = String::new();
    if function.c.ends_with("def_decom") {
        // The map's own number of dimensions.
        let _ = writeln!(body, "let rank = usize::try_from(*ndims).unwrap_or(0);");
    } else if has_index {
        let rank = match function.arguments.iter().any(|argument| argument.name == "bufcount")
            && function.c.contains("_decom")
        {
            true => "outer_rank_of",
            false => "rank_of",
        };
        // A rank that names no variable still takes part in a collective call.
        let _ = writeln!(
            body,
            "let rank = match {rank}(*ncid, *varid) {{\n\
             Ok(rank) => rank,\n\
             Err(code) => {{ let _ = {}({}); return code; }}\n}};",
            function.c,
            failing.join(", ")
        );
    }
    let call = format!("{}({})", function.c, passed.join(", "));
    if after.is_empty() {
        let _ = write!(body, "{before}{call}");
    } else {
        let _ = write!(body, "{before}let code = {call};\nif code == 0 {{ {after} }}\ncode");
    }
    let parameters: Vec<String> =
        parameters(function).iter().map(|(name, ty)| format!("{name}: {ty}")).collect();
    format!(
        "/// Fortran's `{name}`.\n///\n/// # Safety\n///\n/// As in Fortran.\n#[unsafe(no_mangle)]\n\
         pub unsafe extern \"C\" fn {name}_({}) -> c_int {{\n\
         // SAFETY: the caller keeps Fortran's contract of the function of this name.\n\
         unsafe {{\n{body}\n}}\n}}\n",
        parameters.join(", "),
        name = function.name,
    )
}
