//! Makes the exported functions, the C header, Fortran's include file and its module, and the C++
//! classes from the tables.

use std::fmt::Write as _;
use std::path::Path;

#[path = "generate/constants.rs"]
mod constants;
#[path = "generate/cxx.rs"]
mod cxx;
#[path = "generate/module.rs"]
mod module;
#[path = "generate/nfmpi.rs"]
mod nfmpi;
#[path = "src/table.rs"]
mod table;

fn main() {
    println!("cargo::rerun-if-changed=src/table.rs");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=generate");
    println!("cargo::rerun-if-changed=src/header.h");
    println!("cargo::rerun-if-changed=src/esker_header.h");
    println!("cargo::rerun-if-changed=cxx");
    // The name that new programs ask for: Debian 12's, so that they run on either library.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libpnetcdf.so.0d");
    let out = std::env::var_os("OUT_DIR").unwrap_or_default();
    let out = Path::new(&out);
    let (mut exports, mut prototypes, mut added) = (String::new(), String::new(), String::new());
    let named =
        table::functions().into_iter().chain(table::cdl()).map(|function| (function, false));
    for (function, ours) in named.chain(table::esker().into_iter().map(|function| (function, true)))
    {
        let arguments: Vec<String> = function
            .arguments
            .iter()
            .map(|(ty, name)| format!("{name}: {}", rust_type(ty)))
            .collect();
        let returns = if function.returns == "int" { "c_int" } else { "*const c_char" };
        // What an error's sentence can name.
        let named = |(ty, name): &(String, String)| match (rust_type(ty), &name[..]) {
            ("c_int", _) => Some(format!("(\"{name}\", About::Number({name}))")),
            ("*const c_char", "name" | "newname" | "path" | "filename") => {
                Some(format!("(\"{name}\", About::Text({name}))"))
            }
            _ => None,
        };
        let about: Vec<String> = function.arguments.iter().filter_map(named).collect();
        let about = about.join(", ");
        let call = format!("unsafe {{ {} }}", function.body);
        let call = match function.returns {
            "int" => format!(
                "let code = {call};\n    crate::codes::leave(\"{}\", &[{about}], code)",
                function.name
            ),
            _ => call,
        };
        let _ = writeln!(
            exports,
            "/// C's `{name}`.\n///\n/// # Safety\n///\n/// As in C.\n#[unsafe(no_mangle)]\n\
             pub unsafe extern \"C\" fn {name}({}) -> {returns} {{\n    \
             // SAFETY: the caller keeps C's contract of the function of this name.\n    \
             {call}\n}}",
            arguments.join(", "),
            name = function.name,
        );
        let arguments: Vec<String> = function
            .arguments
            .iter()
            .map(|(ty, name)| {
                let space = if ty.ends_with('*') { "" } else { " " };
                format!("{ty}{space}{name}")
            })
            .collect();
        let space = if function.returns == "int" { " " } else { "" };
        let list = if arguments.is_empty() { "void".to_string() } else { arguments.join(", ") };
        let header = if ours { &mut added } else { &mut prototypes };
        let _ = writeln!(header, "extern {}{space}{}({list});", function.returns, function.name);
    }
    let header = std::fs::read_to_string("src/header.h").unwrap_or_default();
    let header = header.replace("@PROTOTYPES@", prototypes.trim_end());
    let esker = std::fs::read_to_string("src/esker_header.h").unwrap_or_default();
    let esker = esker.replace("@PROTOTYPES@", added.trim_end());
    for (name, text) in [
        ("esker_pnetcdf.h", esker),
        ("exports.rs", exports),
        ("prototypes.h", prototypes),
        ("pnetcdf.h", header),
        ("nfmpi.rs", nfmpi::exports()),
        ("module.rs", module::exports()),
        ("pnetcdf.inc", constants::include()),
        ("pnetcdf.f90", module::source()),
        ("pnetcdf.hpp", cxx::header()),
        ("pnetcdf.cpp", cxx::source()),
    ] {
        if let Err(error) = std::fs::write(out.join(name), text) {
            panic!("{}: {error}", out.join(name).display());
        }
    }
}

fn rust_type(c: &str) -> &'static str {
    match c {
        "int" | "nc_type" => "c_int",
        "double" => "f64",
        "MPI_Offset" => "Offset",
        "MPI_Comm" | "MPI_Info" | "MPI_Datatype" => "usize",
        "MPI_Info *" => "*mut c_void",
        "const MPI_Datatype *" => "*const c_void",
        "int *" | "nc_type *" => "*mut c_int",
        "const int *" => "*const c_int",
        "MPI_Offset *" => "*mut Offset",
        "const MPI_Offset *" => "*const Offset",
        "MPI_Offset* const *" => "*const *const Offset",
        "const char *" => "*const c_char",
        "char *" => "*mut c_char",
        "const void *" => "*const c_void",
        "void *" => "*mut c_void",
        other if other.ends_with("* const *") || other.ends_with("**") => "*const *mut c_void",
        other if other.starts_with("const ") => "*const c_void",
        _ => "*mut c_void",
    }
}
