//! The Fortran 90 module `pnetcdf`: its procedures as data.
//!
//! From it come the Rust functions that a compiled program calls by gfortran's names
//! (`__pnetcdf_MOD_…`), and the source of the module, which only declares them.

use std::fmt::Write as _;

use crate::constants;
use crate::nfmpi::{self, Meaning};

/// Procedures that do what a function `nfmpi_*` of the same name does, with the same arguments.
/// `int` where no type is given; `?` marks what may be left out.
const SAME: &[&str] = &[
    "create(mpi_comm, path: text, cmode, mpi_info, ncid: int out)",
    "open(mpi_comm, path: text, omode, mpi_info, ncid: int out)",
    "set_fill(ncid, fillmode, old_mode: int out)",
    "redef(ncid)",
    "sync(ncid)",
    "flush(ncid)",
    "sync_numrecs(ncid)",
    "abort(ncid)",
    "close(ncid)",
    "delete(name: text, mpi_info)",
    "inq_striping(ncid, striping_size: int out, striping_count: int out)",
    "begin_indep_data(ncid)",
    "end_indep_data(ncid)",
    "inq_put_size(ncid, put_size: offset out)",
    "inq_get_size(ncid, get_size: offset out)",
    "inq_header_size(ncid, h_size: offset out)",
    "inq_header_extent(ncid, h_extent: offset out)",
    "inq_varoffset(ncid, varid, offset: offset out)",
    "inq_nreqs(ncid, nreqs: int out)",
    "inq_file_info(ncid, mpi_info: int out)",
    "get_file_info(ncid, mpi_info: int out)",
    "inq_malloc_size(size: offset out)",
    "inq_malloc_max_size(size: offset out)",
    "inq_malloc_list()",
    "inq_num_rec_vars(ncid, nvars: int out)",
    "inq_num_fix_vars(ncid, nvars: int out)",
    "inq_recsize(ncid, recsize: offset out)",
    "set_default_format(new_format, old_format: int out)",
    "inq_default_format(default_format: int out)",
    "inq_path(ncid, pathlen: int out, path: text out)",
    "inq_file_format(path: text, format: int out)",
    "def_dim(ncid, name: text, len: offset, dimid: int out)",
    "inq_dimid(ncid, name: text, dimid: int out)",
    "rename_dim(ncid, dimid, name: text)",
    "copy_att(ncid_in, varid_in, name: text, ncid_out, varid_out)",
    "rename_att(ncid, varid, curname: text, newname: text)",
    "del_att(ncid, varid, name: text)",
    "inq_attname(ncid, varid, attnum, name: text out)",
    "inq_varid(ncid, name: text, varid: int out)",
    "rename_var(ncid, varid, newname: text)",
    "fill_var_rec(ncid, varid, recno: offset)",
    "buffer_attach(ncid, bufsize: offset)",
    "inq_buffer_usage(ncid, usage: offset out)",
    "inq_buffer_size(ncid, buf_size: offset out)",
    "buffer_detach(ncid)",
    "var_set_filter(ncid, varid, filters: text)",
    "var_get_filter(ncid, varid, len: int out, filters: text out)",
    "var_set_layout(ncid, varid, layout)",
    "var_get_layout(ncid, varid, layout: int out)",
    "inq_var_decom(ncid, varid, decomid: int out)",
    "inq_var_decom_size(ncid, varid, nelems: offset out)",
    "flush_start(ncid, token: int out)",
    "sync_start(ncid, token: int out)",
    "token_test(ncid, token, done: int out)",
    "token_wait(ncid, token)",
    "begin_transaction(mpi_comm, path: text, mpi_info, number: offset, base: offset, message: text, ncid: int out)",
    "transaction_needs(ncid, number: offset)",
    "commit_transaction(ncid, number: offset out, visible: int out)",
    "skip_number(path: text, number: offset, message: text)",
    "inq_container_version(ncid, number: offset out)",
    "open_next(mpi_comm, path: text, mpi_info, after: offset, seconds: double, ncid: int out)",
    "def_graph(ncid, name: text, graphid: int out)",
    "def_vertex(ncid, name: text, vertexid: int out)",
    "def_edge(ncid, name: text, weight: double, direction, edgeid: int out)",
    "add_vertex(ncid, graphid, vertexid)",
    "add_edge(ncid, vertexid, edgeid, adj_vertexid)",
    "add_var(ncid, vertexid, varid)",
    "del_graph(ncid, graphid)",
    "del_vertex(ncid, vertexid)",
    "del_edge(ncid, edgeid)",
    "del_vertex_in_graph(ncid, graphid, vertexid)",
    "del_edge_in_vertex(ncid, vertexid, edgeid, adj_vertexid)",
    "del_var_in_vertex(ncid, vertexid, varid)",
    "rename_graph(ncid, graphid, name: text)",
    "rename_vertex(ncid, vertexid, name: text)",
    "rename_edge(ncid, edgeid, name: text)",
    "inq_graphs(ncid, ngraphs: int out, nvertices: int out, nedges: int out)",
    "inq_graph_att(ncid, graphid, name: text, xtype: int out, len: offset out)",
    "inq_vertex_att(ncid, vertexid, name: text, xtype: int out, len: offset out)",
    "inq_graph_natts(ncid, graphid, natts: int out)",
    "inq_vertex_natts(ncid, vertexid, natts: int out)",
    "inq_graph_attname(ncid, graphid, attnum, name: text out)",
    "inq_vertex_attname(ncid, vertexid, attnum, name: text out)",
    "del_graph_att(ncid, graphid, name: text)",
    "del_vertex_att(ncid, vertexid, name: text)",
    "inq_graphid(ncid, name: text, graphid: int out)",
    "inq_vertexid(ncid, name: text, vertexid: int out)",
    "inq_edgeid(ncid, name: text, edgeid: int out)",
    "inq_edge(ncid, edgeid, name: text out, weight: double out, direction: int out)",
];

/// Procedures with a function of their own in `src/fortran/module.rs`.
const OWN: &[&str] = &[
    "enddef(ncid, h_minfree: offset?, v_align: offset?, v_minfree: offset?, r_align: offset?)",
    "inquire(ncid, nDimensions: int out?, nVariables: int out?, nAttributes: int out?, \
     unlimitedDimId: int out?, formatNum: int out?)",
    "inquire_dimension(ncid, dimid, name: text out?, len: offset out?)",
    "inquire_variable(ncid, varid, name: text out?, xtype: int out?, ndims: int out?, \
     dimids: int[] out?, nAtts: int out?)",
    "inquire_attribute(ncid, varid, name: text, xtype: int out?, len: offset out?, \
     attnum: int out?)",
    "def_var_Scalar(ncid, name: text, xtype, varid: int out)",
    "def_var_oneDim(ncid, name: text, xtype, dimids, varid: int out)",
    "def_var_ManyDims(ncid, name: text, xtype, dimids: int[], varid: int out)",
    "inq_files_opened(nfiles: int out, ncids: int[] out)",
    "wait(ncid, num, req: int[] inout, st: int[] out)",
    "wait_all(ncid, num, req: int[] inout, st: int[] out)",
    "cancel(ncid, num, req: int[] inout, st: int[] out)",
    "var_set_chunk(ncid, varid, chunk: offset[])",
    "var_get_chunk(ncid, varid, chunk: offset[] out)",
    "def_decom(ncid, dimids: int[], start: offset[][], count: offset[][], decomid: int out)",
    "def_decom_var(ncid, name: text, xtype, dimids: int[], decomid, varid: int out)",
    "inq_decoms(ncid, ndecoms: int out, decomids: int[] out)",
    "inq_graphids(ncid, graphids: int[] out)",
    "inq_vertexids(ncid, vertexids: int[] out)",
    "inq_edgeids(ncid, edgeids: int[] out)",
    "inq_graph(ncid, graphid, name: text out?, nvertices: int out?, vertexids: int[] out?)",
    "inq_vertex(ncid, vertexid, name: text out?, nvars: int out?, varids: int[] out?, \
     nedges: int out?, edgeids: int[] out?, adj_vertexids: int[] out?)",
    "inq_decom(ncid, decomid, ndims: int out, dimids: int[] out, nprocs: int out, \
     nblocks: offset out, nelems: offset out)",
];

/// A type of values: in names, in Fortran, in Rust, its bytes and its number in files.
struct Kind {
    name: &'static str,
    fortran: &'static str,
    memory: &'static str,
    size: usize,
    xtype: u32,
}

const TEXT: Kind =
    Kind { name: "text", fortran: "character(len=*)", memory: "Text", size: 1, xtype: 2 };

const KINDS: [Kind; 6] = [
    Kind { name: "OneByteInt", fortran: "integer(1)", memory: "I8", size: 1, xtype: 1 },
    Kind { name: "TwoByteInt", fortran: "integer(2)", memory: "I16", size: 2, xtype: 3 },
    Kind { name: "FourByteInt", fortran: "integer(4)", memory: "I32", size: 4, xtype: 4 },
    Kind { name: "EightByteInt", fortran: "integer(8)", memory: "I64", size: 8, xtype: 10 },
    Kind { name: "FourByteReal", fortran: "real(4)", memory: "F32", size: 4, xtype: 5 },
    Kind { name: "EightByteReal", fortran: "real(8)", memory: "F64", size: 8, xtype: 6 },
];

/// The data operations, ours, and whether they have a collective form (and block).
const OPERATIONS: [(&str, &str, bool); 5] = [
    ("put", "Put", true),
    ("get", "Get", true),
    ("iput", "IPut", false),
    ("iget", "IGet", false),
    ("bput", "BPut", false),
];

/// An argument of a procedure.
#[derive(Clone)]
struct Argument {
    name: String,
    /// Fortran's type.
    ty: String,
    intent: &'static str,
    rank: usize,
    optional: bool,
}

impl Argument {
    fn new(name: &str, ty: &str, intent: &'static str) -> Argument {
        let (name, ty) = (name.to_string(), ty.to_string());
        Argument { name, ty, intent, rank: 0, optional: false }
    }

    fn ranked(self, rank: usize) -> Argument {
        Argument { rank, ..self }
    }

    fn optional(self) -> Argument {
        Argument { optional: true, ..self }
    }

    fn is_text(&self) -> bool {
        self.ty == TEXT.fortran
    }

    /// From a text of the tables above.
    fn parse(text: &str) -> Argument {
        let (name, rest) = text.split_once(':').unwrap_or((text, "int"));
        let optional = rest.ends_with('?');
        let mut words = rest.trim_end_matches('?').split_whitespace();
        let ty = words.next().unwrap_or("int");
        let intent = match words.next() {
            Some("out") => "out",
            Some("inout") => "inout",
            _ => "in",
        };
        let rank = ty.matches("[]").count();
        let ty = match ty.trim_end_matches("[]") {
            "offset" => "integer(8)",
            "double" => "real(8)",
            "text" => TEXT.fortran,
            _ => "integer",
        };
        Argument { optional, rank, ..Argument::new(name.trim(), ty, intent) }
    }

    /// The type of the argument in Rust.
    fn rust(&self) -> &'static str {
        match self.ty.as_str() {
            _ if self.rank > 0 => "*const Descriptor",
            "integer" => "*mut c_int",
            "character(len=*)" => "*mut c_char",
            "integer(8)" if !self.is_values() => "*mut Offset",
            "real(8)" if !self.is_values() => "*mut f64",
            _ => "*mut c_void",
        }
    }

    fn is_values(&self) -> bool {
        matches!(self.name.as_str(), "values" | "value" | "buf" | "fill_value")
    }

    /// Its declaration in Fortran.
    fn declaration(&self) -> String {
        let optional = if self.optional { ", optional" } else { "" };
        let shape = match self.rank {
            0 => String::new(),
            rank => format!("({})", vec![":"; rank].join(",")),
        };
        format!("{}, intent({}){optional} :: {}{shape}", self.ty, self.intent, self.name)
    }
}

/// A procedure of the module.
struct Procedure {
    /// Without the prefix.
    name: String,
    /// The name that programs call it by, if it is one of several.
    generic: Option<String>,
    arguments: Vec<Argument>,
    /// The Rust expression that does it.
    body: String,
}

fn single(text: &str) -> (String, Vec<Argument>) {
    let (name, rest) = text.split_once('(').unwrap_or((text, ")"));
    let inside = rest.trim_end_matches(')').split(',').map(str::trim);
    (name.to_string(), inside.filter(|part| !part.is_empty()).map(Argument::parse).collect())
}

/// The arguments as Rust passes them on, with the lengths of texts.
fn passed(arguments: &[Argument]) -> String {
    let names = arguments.iter().map(|argument| argument.name.to_lowercase());
    let texts = arguments.iter().filter(|argument| argument.is_text());
    let lengths = texts.map(|argument| format!("{}_len", argument.name.to_lowercase()));
    names.chain(lengths).collect::<Vec<_>>().join(", ")
}

fn procedures() -> Vec<Procedure> {
    let mut all = Vec::new();
    for text in SAME {
        let (name, arguments) = single(text);
        let body = format!("nfmpi_{name}_({})", passed(&arguments));
        all.push(Procedure { name, generic: None, arguments, body });
    }
    for text in OWN {
        let (name, arguments) = single(text);
        let generic = name.starts_with("def_var").then(|| "def_var".to_string());
        let body = format!("{}({})", name.to_lowercase(), passed(&arguments));
        all.push(Procedure { name, generic, arguments, body });
    }
    fills(&mut all);
    attributes(&mut all);
    for (operation, ours, blocks) in OPERATIONS {
        for collective in [false, true] {
            if collective && !blocks {
                continue;
            }
            for kind in std::iter::once(&TEXT).chain(&KINDS) {
                for rank in 0..=7 {
                    let access = Access { operation, ours, collective, blocks, kind, rank };
                    all.push(access.var());
                    all.push(access.varn());
                    if blocks {
                        all.push(access.vard());
                    }
                    if rank > 0 && kind.name != "text" {
                        all.push(access.decom());
                        if operation == "get" && !collective {
                            all.push(access.var_start());
                        }
                    }
                }
            }
        }
    }
    all
}

fn ids() -> Vec<Argument> {
    vec![Argument::new("ncid", "integer", "in"), Argument::new("varid", "integer", "in")]
}

fn fills(all: &mut Vec<Procedure>) {
    for (name, intent) in [("def_var_fill", "in"), ("inq_var_fill", "out")] {
        for kind in std::iter::once(&TEXT).chain(&KINDS) {
            // One character: its length is not looked at.
            let ty = if kind.name == "text" { "character(len=1)" } else { kind.fortran };
            let mut arguments = ids();
            arguments.push(Argument::new("no_fill", "integer", intent));
            arguments.push(Argument::new("fill_value", ty, intent));
            all.push(Procedure {
                name: format!("{name}_{}", kind.name),
                generic: Some(name.to_string()),
                body: format!("nfmpi_{name}_({})", passed(&arguments)),
                arguments,
            });
        }
    }
}

fn attributes(all: &mut Vec<Procedure>) {
    let owners = ["varid", "graphid", "vertexid"];
    let puts = [("put_att", "in", 0), ("put_graph_att", "in", 1), ("put_vertex_att", "in", 2)];
    let gets = [("get_att", "out", 0), ("get_graph_att", "out", 1), ("get_vertex_att", "out", 2)];
    for (name, intent, owner) in puts.into_iter().chain(gets) {
        for kind in std::iter::once(&TEXT).chain(&KINDS) {
            for one in [false, true] {
                let is_text = kind.name == "text";
                if is_text && one {
                    continue;
                }
                let id = owners[owner];
                let mut arguments = vec![
                    Argument::new("ncid", "integer", "in"),
                    Argument::new(id, "integer", "in"),
                ];
                arguments.push(Argument::new("name", TEXT.fortran, "in"));
                let rank = usize::from(!is_text && !one);
                arguments.push(Argument::new("values", kind.fortran, intent).ranked(rank));
                let values = values_of("values", kind, rank);
                let xtype =
                    if intent == "in" { format!("{}, ", kind.xtype) } else { String::new() };
                let body = format!(
                    "{name}(MemoryType::{}, {xtype}ncid, {id}, (name, name_len), {values})",
                    kind.memory
                );
                let one = if one { "one_" } else { "" };
                let generic = Some(name.to_string());
                let name = format!("{name}_{one}{}", kind.name);
                all.push(Procedure { name, generic, arguments, body });
            }
        }
    }
}

/// The Rust expression for values in memory.
fn values_of(name: &str, kind: &Kind, rank: usize) -> String {
    match (kind.name, rank) {
        ("text", 0) => format!("Values::text({name}.cast(), {name}_len)"),
        ("text", _) => format!("Values::texts({name}, {rank}, {name}_len)"),
        (_, 0) => format!("Values::one({name}.cast(), {})", kind.size),
        (_, _) => format!("Values::array({name}, {rank}, {})", kind.size),
    }
}

/// A put or get of a type and rank.
struct Access {
    operation: &'static str,
    ours: &'static str,
    collective: bool,
    blocks: bool,
    kind: &'static Kind,
    rank: usize,
}

impl Access {
    fn name(&self, family: &str) -> (String, Option<String>) {
        let all = if self.collective { "_all" } else { "" };
        let rank = if self.rank == 0 { String::new() } else { format!("{}D_", self.rank) };
        let Access { operation, kind, .. } = self;
        (
            format!("{operation}_{family}_{rank}{}{all}", kind.name),
            Some(format!("{operation}_{family}{all}")),
        )
    }

    fn call(&self) -> String {
        format!("Call::new(Operation::{}, {})", self.ours, self.collective)
    }

    /// The values, and the number of the request if it is posted.
    fn values(&self, name: &str, arguments: &mut Vec<Argument>) -> &'static str {
        let intent = if self.operation.ends_with("put") { "in" } else { "out" };
        let values = Argument::new(name, self.kind.fortran, intent).ranked(self.rank);
        arguments.push(values);
        if self.blocks {
            return "null_mut()";
        }
        arguments.push(Argument::new("req", "integer", "out"));
        "req"
    }

    fn var(&self) -> Procedure {
        let is_text = self.kind.name == "text";
        let buffer = if self.rank == 0 && !is_text { "buf" } else { "values" };
        let mut arguments = ids();
        let req = self.values(buffer, &mut arguments);
        let indexes: &[&str] =
            if buffer == "buf" { &["start"] } else { &["start", "count", "stride", "map"] };
        for index in indexes {
            arguments.push(Argument::new(index, "integer(8)", "in").ranked(1).optional());
        }
        let mut flexible = "(null(), null())";
        if !is_text {
            arguments.push(Argument::new("bufcount", "integer(8)", "in").optional());
            arguments.push(Argument::new("buftype", "integer", "in").optional());
            flexible = "(bufcount, buftype)";
        }
        let mut places = indexes.to_vec();
        places.resize(4, "null()");
        let body = format!(
            "var({}, MemoryType::{}, ncid, varid, {}, [{}], {flexible}, {req})",
            self.call(),
            self.kind.memory,
            values_of(buffer, self.kind, self.rank),
            places.join(", ")
        );
        let (name, generic) = self.name("var");
        Procedure { name, generic, arguments, body }
    }

    fn varn(&self) -> Procedure {
        let buffer = if self.rank == 0 { "value" } else { "values" };
        let mut arguments = ids();
        let req = self.values(buffer, &mut arguments);
        let (call, memory) = (self.call(), self.kind.memory);
        let start = Argument::new("start", "integer(8)", "in").ranked(2);
        let body = if self.rank == 0 {
            arguments.push(start);
            format!(
                "varn_one({call}, MemoryType::{memory}, ncid, varid, value.cast(), start, {req})"
            )
        } else {
            arguments.push(Argument::new("num", "integer", "in"));
            arguments.push(start);
            arguments.push(Argument::new("count", "integer(8)", "in").ranked(2).optional());
            format!(
                "varn({call}, MemoryType::{memory}, ncid, varid, {}, num, (start, count), {req})",
                values_of(buffer, self.kind, self.rank)
            )
        };
        let (name, generic) = self.name("varn");
        Procedure { name, generic, arguments, body }
    }

    /// A rank's own part of a decomposed variable.
    fn decom(&self) -> Procedure {
        let mut arguments = ids();
        let req = self.values("values", &mut arguments);
        for index in ["start", "count"] {
            arguments.push(Argument::new(index, "integer(8)", "in").ranked(1).optional());
        }
        let body = format!(
            "decom({}, MemoryType::{}, ncid, varid, {}, [start, count], {req})",
            self.call(),
            self.kind.memory,
            values_of("values", self.kind, self.rank)
        );
        let (name, generic) = self.name("decom");
        Procedure { name, generic, arguments, body }
    }

    /// A read in the background.
    fn var_start(&self) -> Procedure {
        let mut arguments = ids();
        arguments.push(Argument::new("values", self.kind.fortran, "out").ranked(self.rank));
        arguments.push(Argument::new("token", "integer", "out"));
        for index in ["start", "count"] {
            arguments.push(Argument::new(index, "integer(8)", "in").ranked(1).optional());
        }
        let body = format!(
            "var_start(MemoryType::{}, ncid, varid, {}, token, [start, count])",
            self.kind.memory,
            values_of("values", self.kind, self.rank)
        );
        let name = format!("get_var_start_{}D_{}", self.rank, self.kind.name);
        Procedure { name, generic: Some("get_var_start".to_string()), arguments, body }
    }

    fn vard(&self) -> Procedure {
        let mut arguments = ids();
        arguments.push(Argument::new("filetype", "integer", "in"));
        self.values("buf", &mut arguments);
        arguments.push(Argument::new("bufcount", "integer(8)", "in"));
        arguments.push(Argument::new("buftype", "integer", "in"));
        let body = format!(
            "vard({}, ncid, varid, filetype, {}, bufcount, buftype)",
            self.call(),
            values_of("buf", self.kind, self.rank)
        );
        let (name, generic) = self.name("vard");
        Procedure { name, generic, arguments, body }
    }
}

/// The functions of the module that return a text or a truth: Rust's body, and the declaration.
const SPECIAL: [(&str, &str, &str); 4] = [
    ("inq_libvers", "", "give_text(text, text_len, &version());"),
    ("strerror", "ncerr", "give_text(text, text_len, &error_words(*ncerr));"),
    ("strerrno", "ncerr", "give_text(text, text_len, &error_name_with(*ncerr, \"NF90\"));"),
    ("issyserr", "ncerr", "c_int::from(*ncerr > 0)"),
];

/// The Rust functions that programs compiled with the module call.
pub(crate) fn exports() -> String {
    let mut out = String::new();
    let mut function = |name: &str, parameters: &str, returns: &str, body: &str| {
        let _ = write!(
            out,
            "/// Fortran's `nf90mpi_{name}`.\n///\n/// # Safety\n///\n/// As in Fortran.\n\
             #[unsafe(no_mangle)]\npub unsafe extern \"C\" fn __pnetcdf_MOD_nf90mpi_{}({parameters}) \
             {returns} {{\n// SAFETY: the caller keeps Fortran's contract of the function.\n\
             unsafe {{ {body} }}\n}}\n",
            name.to_lowercase(),
        );
    };
    for procedure in procedures() {
        let mut parameters: Vec<String> = procedure
            .arguments
            .iter()
            .map(|argument| format!("{}: {}", argument.name.to_lowercase(), argument.rust()))
            .collect();
        for argument in procedure.arguments.iter().filter(|argument| argument.is_text()) {
            let is_read = procedure.body.contains(&format!("{}_len", argument.name.to_lowercase()));
            let mark = if is_read { "" } else { "_" };
            parameters.push(format!("{mark}{}_len: usize", argument.name.to_lowercase()));
        }
        function(&procedure.name, &parameters.join(", "), "-> c_int", &procedure.body);
    }
    for (name, argument, body) in SPECIAL {
        let argument = if argument.is_empty() { "" } else { "ncerr: *mut c_int" };
        if name == "issyserr" {
            function(name, argument, "-> c_int", body);
        } else {
            let all = format!("text: *mut c_char, text_len: usize, {argument}");
            function(name, &all, "", body);
        }
    }
    out
}

/// One statement of Fortran over as many lines as it needs.
fn wrapped(indent: &str, statement: &str) -> String {
    let mut out = String::new();
    let mut line = indent.to_string();
    for word in statement.split_inclusive(' ') {
        if line.len() + word.len() > 96 {
            let _ = writeln!(out, "{}&", line);
            line = format!("{indent}    ");
        }
        line.push_str(word);
    }
    let _ = writeln!(out, "{}", line.trim_end());
    out
}

/// The source of the module.
pub(crate) fn source() -> String {
    let mut out = String::from(
        "! pnetcdf.f90: PnetCDF's Fortran 90 module, as Esker's libpnetcdf.so has it.\n\
         !\n\
         ! Made from the tables in crates/esker-capi/generate; do not edit it by hand. The module\n\
         ! declares its procedures; they are in the library, by gfortran's names (GCC 8 and newer).\n\
         ! So compiling this file makes pnetcdf.mod, and its object need not be linked.\n\
         module pnetcdf\n  implicit none\n\n",
    );
    out.push_str(&constants::module());
    out.push_str("\n  interface\n");
    for (name, argument, _) in SPECIAL {
        let ty = if name == "issyserr" { "logical" } else { "character(len=80)" };
        for (prefix, module) in [("nf90mpi", "module "), ("nfmpi", "")] {
            let _ =
                writeln!(out, "    {module}function {prefix}_{name}({argument}) result(answer)");
            if !argument.is_empty() {
                let _ = writeln!(out, "      integer, intent(in) :: {argument}");
            }
            let _ = writeln!(out, "      {ty} :: answer\n    end function");
        }
    }
    let all = procedures();
    for procedure in &all {
        let names: Vec<&str> = procedure.arguments.iter().map(|one| one.name.as_str()).collect();
        let head = format!(
            "module function nf90mpi_{}({}) result(status)",
            procedure.name,
            names.join(", ")
        );
        out.push_str(&wrapped("    ", &head));
        for argument in &procedure.arguments {
            let _ = writeln!(out, "      {}", argument.declaration());
        }
        out.push_str("      integer :: status\n    end function\n");
    }
    out.push_str(&nfmpi_interfaces());
    out.push_str("  end interface\n");
    let mut generics: Vec<&String> = all.iter().filter_map(|one| one.generic.as_ref()).collect();
    generics.sort();
    generics.dedup();
    for generic in generics {
        let _ = writeln!(out, "\n  interface nf90mpi_{generic}");
        for procedure in all.iter().filter(|one| one.generic.as_ref() == Some(generic)) {
            let _ = writeln!(out, "    procedure nf90mpi_{}", procedure.name);
        }
        out.push_str("  end interface\n");
    }
    out.push_str(&nfmpi_externals());
    out.push_str("end module pnetcdf\n");
    out
}

/// Whether a function takes values of any type, which no interface can say.
fn takes_anything(function: &nfmpi::Nfmpi) -> bool {
    function
        .arguments
        .iter()
        .any(|argument| matches!(argument.meaning, Meaning::Values { kind: None, .. }))
}

fn nfmpi_interfaces() -> String {
    let mut out = String::new();
    for function in nfmpi::functions().iter().filter(|function| !takes_anything(function)) {
        let names: Vec<&str> = function.arguments.iter().map(|one| one.name.as_str()).collect();
        let head = format!("function {}({}) result(status)", function.name, names.join(", "));
        out.push_str(&wrapped("    ", &head));
        for argument in &function.arguments {
            let _ = writeln!(out, "      {}", nfmpi_declaration(argument));
        }
        out.push_str("      integer :: status\n    end function\n");
    }
    out
}

fn nfmpi_declaration(argument: &nfmpi::Argument) -> String {
    let name = &argument.name;
    let (ty, intent, shape) = match argument.meaning {
        Meaning::Integer | Meaning::Id | Meaning::Comm | Meaning::Info | Meaning::Datatype => {
            ("integer", "in", "")
        }
        Meaning::Offset | Meaning::Record => ("integer(8)", "in", ""),
        Meaning::Text => (TEXT.fortran, "in", ""),
        Meaning::TextOut => (TEXT.fortran, "out", ""),
        Meaning::InfoOut | Meaning::IntegerOut | Meaning::IdOut => ("integer", "out", ""),
        Meaning::OffsetOut => ("integer(8)", "out", ""),
        Meaning::LengthsOut => ("integer(8)", "out", "(*)"),
        Meaning::Dimensions => ("integer", "in", "(*)"),
        Meaning::Requests => ("integer", "inout", "(*)"),
        Meaning::DimensionsOut | Meaning::IntegersOut => ("integer", "out", "(*)"),
        Meaning::IdsOut => ("integer", "out", "(*)"),
        Meaning::Double => ("real(8)", "in", ""),
        Meaning::DoubleOut => ("real(8)", "out", ""),
        Meaning::Start | Meaning::Count => ("integer(8)", "in", "(*)"),
        Meaning::Starts | Meaning::Counts => ("integer(8)", "in", "(*)"),
        Meaning::Values { put, kind, many } => {
            let ty = kind.map_or("integer", |kind| nfmpi::KINDS[kind].2);
            let shape = if many && ty != TEXT.fortran { "(*)" } else { "" };
            (ty, if put { "in" } else { "out" }, shape)
        }
    };
    format!("{ty}, intent({intent}) :: {name}{shape}")
}

fn nfmpi_externals() -> String {
    let mut out = String::from("\n  ! Values of any type: no interface.\n");
    for function in nfmpi::functions().iter().filter(|function| takes_anything(function)) {
        let _ = writeln!(out, "  integer, external :: {}", function.name);
    }
    out
}
