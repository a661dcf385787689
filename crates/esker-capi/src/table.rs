//! Every function of the interface, as data.
//!
//! `build.rs` makes the exported functions and the prototypes of `pnetcdf.h` from it.

/// Functions that stand alone, without their prefix `ncmpi_`. Each is a function of the same
/// name in [`crate::calls`].
const SINGLES: &[&str] = &[
    "const char *strerror(int err)",
    "const char *strerrno(int err)",
    "int create(MPI_Comm comm, const char *path, int cmode, MPI_Info info, int *ncidp)",
    "int open(MPI_Comm comm, const char *path, int omode, MPI_Info info, int *ncidp)",
    "int inq_file_info(int ncid, MPI_Info *info_used)",
    "int get_file_info(int ncid, MPI_Info *info_used)",
    "int delete(const char *filename, MPI_Info info)",
    "int enddef(int ncid)",
    "int _enddef(int ncid, MPI_Offset h_minfree, MPI_Offset v_align, MPI_Offset v_minfree, MPI_Offset r_align)",
    "int redef(int ncid)",
    "int set_default_format(int format, int *old_formatp)",
    "int inq_default_format(int *formatp)",
    "int sync(int ncid)",
    "int flush(int ncid)",
    "int sync_numrecs(int ncid)",
    "int abort(int ncid)",
    "int begin_indep_data(int ncid)",
    "int end_indep_data(int ncid)",
    "int close(int ncid)",
    "int set_fill(int ncid, int fillmode, int *old_modep)",
    "int def_var_fill(int ncid, int varid, int no_fill, const void *fill_value)",
    "int fill_var_rec(int ncid, int varid, MPI_Offset recno)",
    "int def_dim(int ncid, const char *name, MPI_Offset len, int *idp)",
    "int def_var(int ncid, const char *name, nc_type xtype, int ndims, const int *dimidsp, int *varidp)",
    "int rename_dim(int ncid, int dimid, const char *name)",
    "int rename_var(int ncid, int varid, const char *name)",
    "const char *inq_libvers(void)",
    "int inq(int ncid, int *ndimsp, int *nvarsp, int *ngattsp, int *unlimdimidp)",
    "int inq_format(int ncid, int *formatp)",
    "int inq_file_format(const char *filename, int *formatp)",
    "int inq_version(int ncid, int *mode)",
    "int inq_striping(int ncid, int *striping_size, int *striping_count)",
    "int inq_ndims(int ncid, int *ndimsp)",
    "int inq_nvars(int ncid, int *nvarsp)",
    "int inq_num_rec_vars(int ncid, int *nvarsp)",
    "int inq_num_fix_vars(int ncid, int *nvarsp)",
    "int inq_natts(int ncid, int *ngattsp)",
    "int inq_unlimdim(int ncid, int *unlimdimidp)",
    "int inq_dimid(int ncid, const char *name, int *idp)",
    "int inq_dim(int ncid, int dimid, char *name, MPI_Offset *lenp)",
    "int inq_dimname(int ncid, int dimid, char *name)",
    "int inq_dimlen(int ncid, int dimid, MPI_Offset *lenp)",
    "int inq_var(int ncid, int varid, char *name, nc_type *xtypep, int *ndimsp, int *dimidsp, int *nattsp)",
    "int inq_varid(int ncid, const char *name, int *varidp)",
    "int inq_varname(int ncid, int varid, char *name)",
    "int inq_vartype(int ncid, int varid, nc_type *xtypep)",
    "int inq_varndims(int ncid, int varid, int *ndimsp)",
    "int inq_vardimid(int ncid, int varid, int *dimidsp)",
    "int inq_varnatts(int ncid, int varid, int *nattsp)",
    "int inq_varoffset(int ncid, int varid, MPI_Offset *offset)",
    "int inq_put_size(int ncid, MPI_Offset *size)",
    "int inq_get_size(int ncid, MPI_Offset *size)",
    "int inq_header_size(int ncid, MPI_Offset *size)",
    "int inq_header_extent(int ncid, MPI_Offset *extent)",
    "int inq_malloc_size(MPI_Offset *size)",
    "int inq_malloc_max_size(MPI_Offset *size)",
    "int inq_malloc_list(void)",
    "int inq_files_opened(int *num, int *ncids)",
    "int inq_recsize(int ncid, MPI_Offset *recsize)",
    "int inq_var_fill(int ncid, int varid, int *no_fill, void *fill_value)",
    "int inq_path(int ncid, int *pathlen, char *path)",
    "int inq_att(int ncid, int varid, const char *name, nc_type *xtypep, MPI_Offset *lenp)",
    "int inq_attid(int ncid, int varid, const char *name, int *idp)",
    "int inq_atttype(int ncid, int varid, const char *name, nc_type *xtypep)",
    "int inq_attlen(int ncid, int varid, const char *name, MPI_Offset *lenp)",
    "int inq_attname(int ncid, int varid, int attnum, char *name)",
    "int copy_att(int ncid_in, int varid_in, const char *name, int ncid_out, int varid_out)",
    "int rename_att(int ncid, int varid, const char *name, const char *newname)",
    "int del_att(int ncid, int varid, const char *name)",
    "int wait(int ncid, int count, int *requests, int *statuses)",
    "int wait_all(int ncid, int count, int *requests, int *statuses)",
    "int cancel(int ncid, int num, int *reqs, int *statuses)",
    "int buffer_attach(int ncid, MPI_Offset bufsize)",
    "int buffer_detach(int ncid)",
    "int inq_buffer_usage(int ncid, MPI_Offset *usage)",
    "int inq_buffer_size(int ncid, MPI_Offset *buf_size)",
    "int inq_nreqs(int ncid, int *nreqs)",
];

/// Functions for graphs of variables (Figure 3 of the paper, and their counterparts). In `esker_pnetcdf.h`.
const GRAPHS: &[&str] = &[
    "int def_graph(int ncid, const char *name, int *graphidp)",
    "int def_vertex(int ncid, const char *name, int *vertexidp)",
    "int def_edge(int ncid, const char *name, double weight, int direction, int *edgeidp)",
    "int add_vertex(int ncid, int graphid, int vertexid)",
    "int add_edge(int ncid, int vertexid, int edgeid, int adj_vertexid)",
    "int add_var(int ncid, int vertexid, int varid)",
    "int del_graph(int ncid, int graphid)",
    "int del_vertex(int ncid, int vertexid)",
    "int del_edge(int ncid, int edgeid)",
    "int del_vertex_in_graph(int ncid, int graphid, int vertexid)",
    "int del_edge_in_vertex(int ncid, int vertexid, int edgeid, int adj_vertexid)",
    "int del_var_in_vertex(int ncid, int vertexid, int varid)",
    "int rename_graph(int ncid, int graphid, const char *name)",
    "int rename_vertex(int ncid, int vertexid, const char *name)",
    "int rename_edge(int ncid, int edgeid, const char *name)",
    "int inq_graphs(int ncid, int *ngraphsp, int *nverticesp, int *nedgesp)",
    "int inq_graphids(int ncid, int *graphids)",
    "int inq_vertexids(int ncid, int *vertexids)",
    "int inq_edgeids(int ncid, int *edgeids)",
    "int inq_graphid(int ncid, const char *name, int *graphidp)",
    "int inq_vertexid(int ncid, const char *name, int *vertexidp)",
    "int inq_edgeid(int ncid, const char *name, int *edgeidp)",
    "int inq_graph(int ncid, int graphid, char *name, int *nverticesp, int *vertexids)",
    "int inq_vertex(int ncid, int vertexid, char *name, int *nvarsp, int *varids, int *nedgesp, int *edgeids, int *adj_vertexids)",
    "int inq_edge(int ncid, int edgeid, char *name, double *weightp, int *directionp)",
    "int put_graph_att(int ncid, int graphid, const char *name, nc_type xtype, MPI_Offset len, const void *op)",
    "int put_vertex_att(int ncid, int vertexid, const char *name, nc_type xtype, MPI_Offset len, const void *op)",
    "int get_graph_att(int ncid, int graphid, const char *name, void *ip)",
    "int get_vertex_att(int ncid, int vertexid, const char *name, void *ip)",
    "int inq_graph_att(int ncid, int graphid, const char *name, nc_type *xtypep, MPI_Offset *lenp)",
    "int inq_vertex_att(int ncid, int vertexid, const char *name, nc_type *xtypep, MPI_Offset *lenp)",
    "int inq_graph_natts(int ncid, int graphid, int *nattsp)",
    "int inq_vertex_natts(int ncid, int vertexid, int *nattsp)",
    "int inq_graph_attname(int ncid, int graphid, int attnum, char *name)",
    "int inq_vertex_attname(int ncid, int vertexid, int attnum, char *name)",
    "int del_graph_att(int ncid, int graphid, const char *name)",
    "int del_vertex_att(int ncid, int vertexid, const char *name)",
];

/// Functions for what Esker adds: chunks, filters, decomposition maps, tokens. In `esker_pnetcdf.h`.
const ESKER: &[&str] = &[
    "int var_set_chunk(int ncid, int varid, const MPI_Offset *chunk)",
    "int var_get_chunk(int ncid, int varid, MPI_Offset *chunk)",
    "int var_set_filter(int ncid, int varid, const char *filters)",
    "int var_get_filter(int ncid, int varid, int *lenp, char *filters)",
    "int var_set_layout(int ncid, int varid, int layout)",
    "int var_get_layout(int ncid, int varid, int *layoutp)",
    "int def_decom(int ncid, int ndims, const int *dimids, int num, MPI_Offset* const *starts, MPI_Offset* const *counts, int *decomidp)",
    "int def_decom_var(int ncid, const char *name, nc_type xtype, int ndims, const int *dimids, int decomid, int *varidp)",
    "int inq_decoms(int ncid, int *ndecomsp, int *decomids)",
    "int inq_decom(int ncid, int decomid, int *ndimsp, int *dimidsp, int *nprocsp, MPI_Offset *nblocksp, MPI_Offset *nelemsp)",
    "int inq_var_decom(int ncid, int varid, int *decomidp)",
    "int inq_var_decom_size(int ncid, int varid, MPI_Offset *nelemsp)",
    "int flush_start(int ncid, int *tokenp)",
    "int sync_start(int ncid, int *tokenp)",
    "int get_vara_start(int ncid, int varid, const MPI_Offset *start, const MPI_Offset *count, void *ip, MPI_Offset bufcount, MPI_Datatype buftype, int *tokenp)",
    "int token_test(int ncid, int token, int *donep)",
    "int token_wait(int ncid, int token)",
    "int begin_transaction(MPI_Comm comm, const char *path, MPI_Info info, MPI_Offset number, MPI_Offset base, const char *message, int *ncidp)",
    "int transaction_needs(int ncid, MPI_Offset number)",
    "int commit_transaction(int ncid, MPI_Offset *numberp, int *visiblep)",
    "int skip_number(const char *path, MPI_Offset number, const char *message)",
    "int inq_container_version(int ncid, MPI_Offset *numberp)",
    "int open_next(MPI_Comm comm, const char *path, MPI_Info info, MPI_Offset after, double seconds, int *ncidp)",
];

/// Functions of `esker_pnetcdf.h`, in its order.
pub(crate) fn esker() -> Vec<Function> {
    let named = ESKER.iter().chain(GRAPHS);
    let mut all: Vec<Function> = named.map(|text| single(text, "ncmpi_")).collect();
    for (operation, ours) in OPERATIONS {
        for collective in [false, true] {
            if collective && operation.len() > 3 {
                continue;
            }
            let mut arguments = vec![
                argument("int", "ncid"),
                argument("int", "varid"),
                argument("const MPI_Offset *", "start"),
                argument("const MPI_Offset *", "count"),
            ];
            let memory = buffer(operation, None, &mut arguments);
            let req = request(operation, &mut arguments);
            let body = format!(
                "crate::decom::blob(ncid, varid, Call::new(Operation::{ours}, {collective}), \
                 [start, count], {memory}, {req})"
            );
            let name = format!("ncmpi_{operation}_decom{}", ending(None, collective));
            all.push(Function { name, returns: "int", arguments, body });
        }
    }
    all
}

/// Functions about the header of a CDL text, with their whole names.
const CDL: &[&str] = &[
    "int cdl_hdr_open(const char *filename, int *hid)",
    "int cdl_hdr_close(int hid)",
    "int cdl_hdr_inq_format(int hid, int *format)",
    "int cdl_hdr_inq_ndims(int hid, int *ndims)",
    "int cdl_hdr_inq_dim(int hid, int dimid, char **name, MPI_Offset *size)",
    "int cdl_hdr_inq_nvars(int hid, int *nvars)",
    "int cdl_hdr_inq_var(int hid, int varid, char **name, nc_type *xtype, int *ndims, int **dimids)",
    "int cdl_hdr_inq_nattrs(int hid, int varid, int *nattrs)",
    "int cdl_hdr_inq_attr(int hid, int varid, int attrid, char **name, nc_type *xtype, MPI_Offset *nelems, void **value)",
];

/// A type of values in memory: its name in function names, C's name, and ours.
struct Kind {
    name: &'static str,
    c: &'static str,
    memory: &'static str,
}

const KINDS: [Kind; 12] = [
    Kind { name: "text", c: "char", memory: "Text" },
    Kind { name: "schar", c: "signed char", memory: "I8" },
    Kind { name: "uchar", c: "unsigned char", memory: "U8" },
    Kind { name: "short", c: "short", memory: "I16" },
    Kind { name: "ushort", c: "unsigned short", memory: "U16" },
    Kind { name: "int", c: "int", memory: "I32" },
    Kind { name: "uint", c: "unsigned int", memory: "U32" },
    Kind { name: "long", c: "long", memory: "I64" },
    Kind { name: "float", c: "float", memory: "F32" },
    Kind { name: "double", c: "double", memory: "F64" },
    Kind { name: "longlong", c: "long long", memory: "I64" },
    Kind { name: "ulonglong", c: "unsigned long long", memory: "U64" },
];

/// Which elements: the letter of the function's name, ours, and the arguments it has of start,
/// count, stride and imap.
const SLABS: [(&str, &str, usize); 5] =
    [("", "Var", 0), ("1", "Var1", 1), ("a", "Vara", 2), ("s", "Vars", 3), ("m", "Varm", 4)];

const INDEXES: [&str; 4] = ["start", "count", "stride", "imap"];

/// Puts and gets, blocking and not.
const OPERATIONS: [(&str, &str); 5] =
    [("put", "Put"), ("get", "Get"), ("iput", "IPut"), ("iget", "IGet"), ("bput", "BPut")];

/// One function.
pub(crate) struct Function {
    /// What C calls it.
    pub(crate) name: String,
    /// What it returns, in C.
    pub(crate) returns: &'static str,
    /// Its arguments: C's type and the name.
    pub(crate) arguments: Vec<(String, String)>,
    /// The Rust expression that does it.
    pub(crate) body: String,
}

/// Functions about CDL, which C alone has.
pub(crate) fn cdl() -> Vec<Function> {
    CDL.iter().map(|text| single(text, "")).collect()
}

/// All functions that begin with `ncmpi_`, in the order of the header.
pub(crate) fn functions() -> Vec<Function> {
    let mut all: Vec<Function> = SINGLES.iter().map(|text| single(text, "ncmpi_")).collect();
    attributes(&mut all);
    for (operation, ours) in OPERATIONS {
        for collective in [false, true] {
            if collective && operation.len() > 3 {
                continue;
            }
            for (letter, slab, indexes) in SLABS {
                for kind in kinds() {
                    all.push(one(operation, ours, collective, (letter, slab, indexes), kind));
                }
            }
            for kind in kinds() {
                all.push(list(operation, ours, collective, kind));
            }
            if operation.len() == 3 {
                all.push(by_filetype(operation, ours, collective));
            }
        }
    }
    for (operation, ours) in &OPERATIONS[..2] {
        for collective in [false, true] {
            for slab in SLABS {
                for kind in kinds() {
                    all.push(many(operation, ours, collective, slab, kind));
                }
            }
        }
    }
    all
}

/// Flexible, then the twelve types.
fn kinds() -> impl Iterator<Item = Option<&'static Kind>> {
    std::iter::once(None).chain(KINDS.iter().map(Some))
}

fn argument(ty: &str, name: &str) -> (String, String) {
    (ty.to_string(), name.to_string())
}

/// Takes a prototype apart, whose name lacks this prefix.
fn single(text: &'static str, prefix: &str) -> Function {
    let (head, rest) = text.split_once('(').unwrap_or((text, ")"));
    let inside = rest.trim_end_matches(')');
    let name = head.rsplit([' ', '*']).next().unwrap_or(head);
    let returns = if head.starts_with("const char") { "const char *" } else { "int" };
    let mut arguments = Vec::new();
    for part in inside.split(',').map(str::trim).filter(|part| *part != "void") {
        let at = part.rfind([' ', '*']).map_or(0, |at| at + 1);
        arguments.push(argument(part[..at].trim(), &part[at..]));
    }
    let names: Vec<&str> = arguments.iter().map(|(_, name)| name.as_str()).collect();
    let body = format!("crate::calls::{name}({})", names.join(", "));
    Function { name: format!("{prefix}{name}"), returns, arguments, body }
}

fn attributes(all: &mut Vec<Function>) {
    let ubyte = &Kind { name: "ubyte", c: "unsigned char", memory: "U8" };
    for kind in kinds().chain(std::iter::once(Some(ubyte))) {
        let ending = kind.map_or(String::new(), |kind| format!("_{}", kind.name));
        let c = kind.map_or("void", |kind| kind.c);
        let memory =
            kind.map_or("None".to_string(), |kind| format!("Some(MemoryType::{})", kind.memory));
        let text = kind.is_some_and(|kind| kind.name == "text");
        let mut arguments = vec![
            argument("int", "ncid"),
            argument("int", "varid"),
            argument("const char *", "name"),
        ];
        let mut put = arguments.clone();
        if !text {
            put.push(argument("nc_type", "xtype"));
        }
        put.push(argument("MPI_Offset", "len"));
        put.push(argument(&format!("const {c} *"), "op"));
        let xtype = if text { "2" } else { "xtype" };
        all.push(Function {
            name: format!("ncmpi_put_att{ending}"),
            returns: "int",
            arguments: put,
            body: format!(
                "crate::attribute::put(ncid, varid, name, {xtype}, len, op.cast(), {memory})"
            ),
        });
        arguments.push(argument(&format!("{c} *"), "ip"));
        all.push(Function {
            name: format!("ncmpi_get_att{ending}"),
            returns: "int",
            arguments,
            body: format!("crate::attribute::get(ncid, varid, name, ip.cast(), {memory})"),
        });
    }
}

/// The ending of a name: the type, and `_all`.
fn ending(kind: Option<&Kind>, collective: bool) -> String {
    let kind = kind.map_or(String::new(), |kind| format!("_{}", kind.name));
    format!("{kind}{}", if collective { "_all" } else { "" })
}

/// The buffer's arguments and how the body passes them.
fn buffer(operation: &str, kind: Option<&Kind>, arguments: &mut Vec<(String, String)>) -> String {
    let put = operation.ends_with("put");
    let constant = if put { "const " } else { "" };
    let name = if put { "op" } else { "ip" };
    let c = kind.map_or("void", |kind| kind.c);
    arguments.push(argument(&format!("{constant}{c} *"), name));
    let memory = match kind {
        None => {
            arguments.push(argument("MPI_Offset", "bufcount"));
            arguments.push(argument("MPI_Datatype", "buftype"));
            "Buffer::Flexible(bufcount, buftype)".to_string()
        }
        Some(kind) => format!("Buffer::Typed(MemoryType::{})", kind.memory),
    };
    let address = if put { format!("{name}.cast_mut().cast()") } else { format!("{name}.cast()") };
    format!("{address}, {memory}")
}

/// Where the number of a request goes.
fn request(operation: &str, arguments: &mut Vec<(String, String)>) -> &'static str {
    if operation.len() == 3 {
        return "null_mut()";
    }
    arguments.push(argument("int *", "req"));
    "req"
}

fn one(
    operation: &str,
    ours: &str,
    collective: bool,
    (letter, slab, indexes): (&str, &str, usize),
    kind: Option<&Kind>,
) -> Function {
    let mut arguments = vec![argument("int", "ncid"), argument("int", "varid")];
    for index in &INDEXES[..indexes] {
        arguments.push(argument("const MPI_Offset *", index));
    }
    let mut places = INDEXES[..indexes].to_vec();
    places.resize(4, "null()");
    let memory = buffer(operation, kind, &mut arguments);
    let req = request(operation, &mut arguments);
    let body = format!(
        "crate::transfer::one(ncid, varid, Call::new(Operation::{ours}, {collective}), \
         Slab::{slab}, [{}], {memory}, {req})",
        places.join(", ")
    );
    let name = format!("ncmpi_{operation}_var{letter}{}", ending(kind, collective));
    Function { name, returns: "int", arguments, body }
}

fn list(operation: &str, ours: &str, collective: bool, kind: Option<&Kind>) -> Function {
    let mut arguments = vec![
        argument("int", "ncid"),
        argument("int", "varid"),
        argument("int", "num"),
        argument("MPI_Offset* const *", "starts"),
        argument("MPI_Offset* const *", "counts"),
    ];
    let memory = buffer(operation, kind, &mut arguments);
    let req = request(operation, &mut arguments);
    let body = format!(
        "crate::transfer::list(ncid, varid, Call::new(Operation::{ours}, {collective}), \
         num, starts, counts, {memory}, {req})"
    );
    let name = format!("ncmpi_{operation}_varn{}", ending(kind, collective));
    Function { name, returns: "int", arguments, body }
}

fn by_filetype(operation: &str, ours: &str, collective: bool) -> Function {
    let mut arguments = vec![
        argument("int", "ncid"),
        argument("int", "varid"),
        argument("MPI_Datatype", "filetype"),
    ];
    let memory = buffer(operation, None, &mut arguments);
    let body = format!(
        "crate::filetype::call(ncid, varid, Call::new(Operation::{ours}, {collective}), \
         filetype, {memory})"
    );
    let name = format!("ncmpi_{operation}_vard{}", ending(None, collective));
    Function { name, returns: "int", arguments, body }
}

fn many(
    operation: &str,
    ours: &str,
    collective: bool,
    (letter, slab, indexes): (&str, &str, usize),
    kind: Option<&Kind>,
) -> Function {
    let mut arguments =
        vec![argument("int", "ncid"), argument("int", "num"), argument("int *", "varids")];
    let lists: Vec<String> = INDEXES[..indexes].iter().map(|index| format!("{index}s")).collect();
    for list in &lists {
        arguments.push(argument("MPI_Offset* const *", list));
    }
    let mut places: Vec<&str> = lists.iter().map(String::as_str).collect();
    places.resize(4, "null()");
    let c = kind.map_or("void", |kind| kind.c);
    let list = if operation == "put" { format!("{c}* const *") } else { format!("{c} **") };
    arguments.push(argument(&list, "bufs"));
    let memory = match kind {
        None => {
            arguments.push(argument("const MPI_Offset *", "bufcounts"));
            arguments.push(argument("const MPI_Datatype *", "datatypes"));
            "Buffers::Flexible(bufcounts, datatypes)".to_string()
        }
        Some(kind) => format!("Buffers::Typed(MemoryType::{})", kind.memory),
    };
    let body = format!(
        "crate::many::call(ncid, num, varids, Call::new(Operation::{ours}, {collective}), \
         Slab::{slab}, [{}], bufs.cast(), {memory})",
        places.join(", ")
    );
    let name = format!("ncmpi_m{operation}_var{letter}{}", ending(kind, collective));
    Function { name, returns: "int", arguments, body }
}
