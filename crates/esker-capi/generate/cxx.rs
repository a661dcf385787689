//! The C++ classes: what repeats in their header and source, as data.

use std::fmt::Write as _;

/// Types of C++ and the word for each in C's functions.
const TYPES: [(&str, &str); 12] = [
    ("char", "text"),
    ("unsigned char", "uchar"),
    ("signed char", "schar"),
    ("short", "short"),
    ("int", "int"),
    ("long", "long"),
    ("float", "float"),
    ("double", "double"),
    ("unsigned short", "ushort"),
    ("unsigned int", "uint"),
    ("unsigned long long", "ulonglong"),
    ("long long", "longlong"),
];

/// The classes of types of values, without their prefix, and C's numbers.
const CLASSES: [(&str, &str); 11] = [
    ("Byte", "NC_BYTE"),
    ("Ubyte", "NC_UBYTE"),
    ("Char", "NC_CHAR"),
    ("Short", "NC_SHORT"),
    ("Ushort", "NC_USHORT"),
    ("Int", "NC_INT"),
    ("Uint", "NC_UINT"),
    ("Int64", "NC_INT64"),
    ("Uint64", "NC_UINT64"),
    ("Float", "NC_FLOAT"),
    ("Double", "NC_DOUBLE"),
];

/// Exceptions and the codes that they stand for; the last have none.
const EXCEPTIONS: &[(&str, &str)] = &[
    ("NcBadId", "NC_EBADID"),
    ("NcNFile", "NC_ENFILE"),
    ("NcExist", "NC_EEXIST"),
    ("NcInvalidArg", "NC_EINVAL"),
    ("NcInvalidWrite", "NC_EPERM"),
    ("NcNotInDefineMode", "NC_ENOTINDEFINE"),
    ("NcInDefineMode", "NC_EINDEFINE"),
    ("NcInvalidCoords", "NC_EINVALCOORDS"),
    ("NcMaxDims", "NC_EMAXDIMS"),
    ("NcNameInUse", "NC_ENAMEINUSE"),
    ("NcNotAtt", "NC_ENOTATT"),
    ("NcMaxAtts", "NC_EMAXATTS"),
    ("NcBadType", "NC_EBADTYPE"),
    ("NcBadDim", "NC_EBADDIM"),
    ("NcUnlimPos", "NC_EUNLIMPOS"),
    ("NcMaxVars", "NC_EMAXVARS"),
    ("NcNotVar", "NC_ENOTVAR"),
    ("NcGlobal", "NC_EGLOBAL"),
    ("NcNotNCF", "NC_ENOTNC"),
    ("NcSts", "NC_ESTS"),
    ("NcMaxName", "NC_EMAXNAME"),
    ("NcUnlimit", "NC_EUNLIMIT"),
    ("NcNoRecVars", "NC_ENORECVARS"),
    ("NcmpiChar", "NC_ECHAR"),
    ("NcEdge", "NC_EEDGE"),
    ("NcStride", "NC_ESTRIDE"),
    ("NcBadName", "NC_EBADNAME"),
    ("NcRange", "NC_ERANGE"),
    ("NcNoMem", "NC_ENOMEM"),
    ("NcmpiVarSize", "NC_EVARSIZE"),
    ("NcmpiDimSize", "NC_EDIMSIZE"),
    ("NcTrunc", "NC_ETRUNC"),
    ("NcHdfErr", "NC_EHDFERR"),
    ("NcCantRead", "NC_ECANTREAD"),
    ("NcCantWrite", "NC_ECANTWRITE"),
    ("NcCantCreate", "NC_ECANTCREATE"),
    ("NcmpiFileMeta", "NC_EFILEMETA"),
    ("NcmpiDimMeta", "NC_EDIMMETA"),
    ("NcmpiAttMeta", "NC_EATTMETA"),
    ("NcmpiVarMeta", "NC_EVARMETA"),
    ("NcNoCompound", "NC_ENOCOMPOUND"),
    ("NcmpiAttExists", "NC_EATTEXISTS"),
    ("NcNotNc4", "NC_ENOTNC4"),
    ("NcStrictNc3", "NC_ESTRICTNC3"),
    ("NcBadGroupId", "NC_EBADGRPID"),
    ("NcBadTypeId", "NC_EBADTYPID"),
    ("NcBadFieldId", "NC_EBADFIELD"),
    ("NcEnoGrp", "NC_ENOGRP"),
    ("NcElateDef", "NC_ELATEDEF"),
    ("NcUnknownName", ""),
    ("NcNullGrp", ""),
    ("NcNullType", ""),
    ("NcNullDim", ""),
];

/// Names of methods for data: the beginning, C's word, and whether there is a form `_all`.
const OPERATIONS: [(&str, &str, bool); 5] = [
    ("getVar", "get", true),
    ("putVar", "put", true),
    ("igetVar", "iget", false),
    ("iputVar", "iput", false),
    ("bputVar", "bput", false),
];

/// The letter of C's functions, and how many vectors of numbers there are.
const SLABS: [(&str, usize); 5] = [("", 0), ("1", 1), ("a", 2), ("s", 3), ("m", 4)];

const INDEXES: [&str; 4] = ["start", "count", "stride", "imap"];

/// A method: what is declared, and what it does.
struct Method {
    /// What it gives back.
    returns: &'static str,
    name: String,
    arguments: Vec<String>,
    constant: bool,
    body: String,
}

impl Method {
    fn declaration(&self) -> String {
        let end = if self.constant { " const" } else { "" };
        format!("    {} {}({}){end};\n", self.returns, self.name, self.arguments.join(", "))
    }

    fn definition(&self, class: &str) -> String {
        let end = if self.constant { " const" } else { "" };
        format!(
            "{} {class}::{}({}){end} {{\n    {}\n}}\n",
            self.returns,
            self.name,
            self.arguments.join(", "),
            self.body
        )
    }
}

/// A value's type in a call: none for a flexible one.
type Value = Option<(&'static str, &'static str)>;

fn values() -> impl Iterator<Item = Value> {
    TYPES.into_iter().map(Some).chain([None])
}

/// The argument with the values, what C is given for it, and the word in C's name.
fn memory(value: Value, puts: bool, single: bool) -> (Vec<String>, String, String) {
    let constant = if puts { "const " } else { "" };
    let Some((ty, word)) = value else {
        let arguments = [
            format!("{constant}void *values"),
            "MPI_Offset bufcount".to_string(),
            "MPI_Datatype buftype".to_string(),
        ];
        return (arguments.to_vec(), "values, bufcount, buftype".to_string(), String::new());
    };
    let (argument, given) = match ty {
        // One value is given itself, but for bytes, and a text as one.
        "char" if puts && single => ("const std::string &values".to_string(), "values.c_str()"),
        "unsigned char" | "signed char" if puts && single => {
            (format!("const {ty} *values"), "values")
        }
        ty if puts && single => (format!("const {ty} values"), "&values"),
        ty => (format!("{constant}{ty} *values"), "values"),
    };
    (vec![argument], given.to_string(), format!("_{word}"))
}

/// All methods that move data.
fn data() -> Vec<Method> {
    let mut all = Vec::new();
    for (name, operation, has_all) in OPERATIONS {
        let (puts, posted) = (operation.ends_with("put"), operation.len() > 3);
        let endings: &[&str] = if has_all { &["", "_all"] } else { &[""] };
        for ending in endings {
            let mut add = |kind: &str,
                           before: Vec<String>,
                           places: Vec<String>,
                           value: Value,
                           single| {
                let (mut own, mut given, word) = memory(value, puts, single);
                if posted {
                    own.push("int *req".to_string());
                    given.push_str(", req");
                }
                let letter = kind.to_lowercase();
                let mut passed = vec!["groupId".to_string(), "myId".to_string()];
                passed.extend(places);
                passed.push(given);
                let passed = passed.join(", ");
                let name = format!("{name}{}{ending}", if kind == "n" { "n" } else { "" });
                let body = format!(
                    "in_data_mode(groupId);\n    check(ncmpi_{operation}_var{letter}{word}{ending}({passed}));"
                );
                let arguments = before.into_iter().chain(own).collect();
                all.push(Method { returns: "void", name, arguments, constant: true, body });
            };
            for (letter, count) in SLABS {
                for value in values() {
                    let vectors = INDEXES[..count].iter();
                    let before =
                        vectors.clone().map(|i| format!("const std::vector<MPI_Offset> &{i}"));
                    let places = vectors.map(|i| format!("{i}.data()"));
                    add(letter, before.collect(), places.collect(), value, letter == "1");
                }
            }
            if operation == "bput" {
                continue;
            }
            for value in values() {
                let before =
                    ["const int num", "MPI_Offset *const starts[]", "MPI_Offset *const counts[]"];
                let places = ["num", "starts", "counts"];
                add(
                    "n",
                    before.map(String::from).to_vec(),
                    places.map(String::from).to_vec(),
                    value,
                    false,
                );
            }
            if !posted {
                let constant = if puts { "const " } else { "" };
                let arguments = [
                    "MPI_Datatype filetype".to_string(),
                    format!("{constant}void *values"),
                    "MPI_Offset bufcount".to_string(),
                    "MPI_Datatype buftype".to_string(),
                ];
                let body = format!(
                    "in_data_mode(groupId);\n    check(ncmpi_{operation}_vard{ending}(groupId, myId, filetype, values, bufcount, buftype));"
                );
                let name = format!("{name}d{ending}");
                let arguments = arguments.to_vec();
                all.push(Method { returns: "void", name, arguments, constant: true, body });
            }
        }
    }
    all
}

/// `putAtt` of a class whose attributes have this class, and belong to this number.
fn put_att(returns: &'static str, varid: &str) -> Vec<Method> {
    let name = || "const std::string &name".to_string();
    let ty = || "const NcmpiType &type".to_string();
    let put = |arguments: Vec<String>, call: String| Method {
        returns,
        name: "putAtt".to_string(),
        arguments,
        constant: true,
        body: format!("{call}\n    return getAtt(name);"),
    };
    let define = |call: String| format!("in_define_mode(id());\n    check({call});");
    let mut all = vec![put(
        vec![name(), "const std::string &values".to_string()],
        define(format!(
            "ncmpi_put_att_text(id(), {varid}, name.c_str(), values.size(), values.c_str())"
        )),
    )];
    for (c, word) in TYPES.iter().skip(3) {
        all.push(put(
            vec![name(), ty(), format!("{c} value")],
            define(format!(
                "ncmpi_put_att_{word}(id(), {varid}, name.c_str(), type.getId(), 1, &value)"
            )),
        ));
    }
    for (c, word) in TYPES.iter().skip(1) {
        all.push(put(
            vec![name(), ty(), "MPI_Offset len".to_string(), format!("const {c} *values")],
            define(format!(
                "ncmpi_put_att_{word}(id(), {varid}, name.c_str(), type.getId(), len, values)"
            )),
        ));
    }
    all.push(put(
        vec![name(), ty(), "MPI_Offset len".to_string(), "const void *values".to_string()],
        define(format!("ncmpi_put_att(id(), {varid}, name.c_str(), type.getId(), len, values)")),
    ));
    all
}

/// `getValues` of attributes.
fn att_values() -> Vec<Method> {
    let one = |(c, word): (&str, &str)| Method {
        returns: "void",
        name: "getValues".to_string(),
        arguments: vec![format!("{c} *dataValues")],
        constant: true,
        body: format!("check(ncmpi_get_att_{word}(groupId, varId, myName.c_str(), dataValues));"),
    };
    TYPES.into_iter().map(one).collect()
}

fn declarations(methods: &[Method]) -> String {
    methods.iter().map(Method::declaration).collect::<String>().trim_end().to_string()
}

fn definitions(class: &str, methods: &[Method]) -> String {
    // An attribute of a class has its file's number under another name.
    let id = if class == "NcmpiGroup" { "myId" } else { "groupId" };
    methods.iter().map(|m| m.definition(class).replace("id()", id)).collect()
}

/// The header `pnetcdf`.
pub(crate) fn header() -> String {
    let (mut exceptions, mut types) = (String::new(), String::new());
    for (name, _) in EXCEPTIONS {
        let _ = writeln!(
            exceptions,
            "class {name} : public NcmpiException {{\npublic:\n    {name}(const char *complaint, const char *file, int line);\n}};"
        );
    }
    for (name, _) in CLASSES {
        let more = if name == "Byte" { "    int sizeoff();\n" } else { "" };
        let _ = writeln!(
            types,
            "class Ncmpi{name} : public NcmpiType {{\npublic:\n    bool operator==(const Ncmpi{name} &rhs);\n{more}    ~Ncmpi{name}();\n    Ncmpi{name}();\n}};\nextern Ncmpi{name} ncmpi{name};"
        );
    }
    let text = std::fs::read_to_string("cxx/classes.hpp").unwrap_or_default();
    text.replace("@EXCEPTIONS@\n", &exceptions)
        .replace("@TYPES@\n", &types)
        .replace("@ATT_VALUES@", &declarations(&att_values()))
        .replace("@GROUP_PUT_ATT@", &declarations(&put_att("NcmpiGroupAtt", "NC_GLOBAL")))
        .replace("@VAR_PUT_ATT@", &declarations(&put_att("NcmpiVarAtt", "myId")))
        .replace("@DATA@", &declarations(&data()))
}

/// The source of the classes.
pub(crate) fn source() -> String {
    let (mut exceptions, mut cases, mut types) = (String::new(), String::new(), String::new());
    for (name, code) in EXCEPTIONS {
        let number = if code.is_empty() { "0" } else { code };
        let _ = writeln!(
            exceptions,
            "{name}::{name}(const char *complaint, const char *file, int line)\n    : NcmpiException({number}, complaint, file, line) {{}}"
        );
        if !code.is_empty() {
            let _ =
                writeln!(cases, "    case {code}: throw exceptions::{name}(words, file, line);");
        }
    }
    for (name, number) in CLASSES {
        let _ = writeln!(
            types,
            "Ncmpi{name} ncmpi{name};\nNcmpi{name}::Ncmpi{name}() : NcmpiType({number}) {{}}\nNcmpi{name}::~Ncmpi{name}() {{}}\n\
             bool Ncmpi{name}::operator==(const Ncmpi{name} &) {{ return true; }}"
        );
    }
    let text = std::fs::read_to_string("cxx/classes.cpp").unwrap_or_default();
    text.replace("@EXCEPTIONS@\n", &exceptions)
        .replace("@CASES@\n", &cases)
        .replace("@TYPES@\n", &types)
        .replace("@ATT_VALUES@\n", &definitions("NcmpiAtt", &att_values()))
        .replace(
            "@GROUP_PUT_ATT@\n",
            &definitions("NcmpiGroup", &put_att("NcmpiGroupAtt", "NC_GLOBAL")),
        )
        .replace("@VAR_PUT_ATT@\n", &definitions("NcmpiVar", &put_att("NcmpiVarAtt", "myId")))
        .replace("@DATA@\n", &definitions("NcmpiVar", &data()))
}
