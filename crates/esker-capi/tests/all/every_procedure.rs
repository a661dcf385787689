//! Every data procedure of Fortran's two interfaces writes and reads back: a program with a call of
//! each is made here, compiled with our module and run on our library.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use esker_testkit::programs::good;

use crate::compilers::{mpis, on_our_library, our_library};

/// A type: in names of the module and of Fortran 77, its declaration, how an integer becomes one,
/// and its numbers for files and MPI.
struct Kind {
    word: &'static str,
    declared: &'static str,
    from: (&'static str, &'static str),
    file: &'static str,
    mpi: &'static str,
}

const TEXT: &str = "text";

const KINDS: [Kind; 7] = [
    Kind {
        word: TEXT,
        declared: "character(len=3)",
        from: ("repeat(char(97 + mod(", ", 26)), 3)"),
        file: "NF90_CHAR",
        mpi: "MPI_CHARACTER",
    },
    Kind {
        word: "int1",
        declared: "integer(1)",
        from: ("int(mod(", ", 100), 1)"),
        file: "NF90_BYTE",
        mpi: "MPI_INTEGER1",
    },
    Kind {
        word: "int2",
        declared: "integer(2)",
        from: ("int(mod(", ", 100), 2)"),
        file: "NF90_SHORT",
        mpi: "MPI_INTEGER2",
    },
    Kind {
        word: "int",
        declared: "integer(4)",
        from: ("int(mod(", ", 100), 4)"),
        file: "NF90_INT",
        mpi: "MPI_INTEGER",
    },
    Kind {
        word: "int8",
        declared: "integer(8)",
        from: ("int(mod(", ", 100), 8)"),
        file: "NF90_INT64",
        mpi: "MPI_INTEGER8",
    },
    Kind {
        word: "real",
        declared: "real(4)",
        from: ("real(mod(", ", 100), 4)"),
        file: "NF90_FLOAT",
        mpi: "MPI_REAL",
    },
    Kind {
        word: "double",
        declared: "real(8)",
        from: ("real(mod(", ", 100), 8)"),
        file: "NF90_DOUBLE",
        mpi: "MPI_DOUBLE_PRECISION",
    },
];

const HEAD: &str = "program every
  use mpi
  use pnetcdf
  implicit none
  integer :: err, me, nprocs, ncid, two, three, y, seed = 0, req(1), st(1), num, ftype, k
  integer(8) :: len8
  call MPI_Init(err)
  call MPI_Comm_rank(MPI_COMM_WORLD, me, err)
  call MPI_Comm_size(MPI_COMM_WORLD, nprocs, err)
  call good('create', nf90mpi_create(MPI_COMM_WORLD, 'every.nc', ior(NF90_CLOBBER, NF90_64BIT_DATA), &
                                     MPI_INFO_NULL, ncid))
  call good('two', nf90mpi_def_dim(ncid, 'two', 2_8, two))
  call good('three', nf90mpi_def_dim(ncid, 'three', 3_8, three))
  call good('y', nf90mpi_def_dim(ncid, 'y', int(nprocs, 8), y))
";

const TAIL: &str = "
  subroutine good(what, code)
    character(len=*), intent(in) :: what
    integer, intent(in) :: code
    if (code /= NF90_NOERR) call wrong(what // ': ' // nf90mpi_strerror(code))
  end subroutine
  subroutine wrong(what)
    character(len=*), intent(in) :: what
    integer :: code
    print *, 'wrong: ', what
    call MPI_Abort(MPI_COMM_WORLD, 3, code)
  end subroutine
  subroutine done()
    call good('wait_all', nf90mpi_wait_all(ncid, 1, req, st))
    call good('status', st(1))
  end subroutine
end program
";

/// The program: a subroutine for each type and rank, and one for each type in Fortran 77's style.
fn program() -> String {
    let (mut main, mut parts, mut definitions) = (String::new(), String::new(), String::new());
    for kind in &KINDS {
        for rank in 0..=7 {
            let name = format!("{}_{rank}", kind.word);
            let mut dims = vec!["two"; rank.max(1)];
            if let Some(last) = dims.last_mut() {
                *last = "y";
            }
            if kind.word == TEXT {
                dims.insert(0, "three");
            }
            let _ = writeln!(
                definitions,
                "  call good('def_var', nf90mpi_def_var(ncid, '{name}', {}, (/ {} /), k))",
                kind.file,
                dims.join(", ")
            );
            let _ = writeln!(
                main,
                "  call good('{name}', nf90mpi_inq_varid(ncid, '{name}', k))\n  call s_{name}(k)"
            );
            parts.push_str(&module_part(kind, rank, &name));
        }
        let name = format!("old_{}", kind.word);
        let first = if kind.word == TEXT { "three" } else { "two" };
        let _ = writeln!(
            definitions,
            "  call good('def_var', nf90mpi_def_var(ncid, '{name}', {}, (/ {first}, y /), k))",
            kind.file
        );
        // What attributes and fill values need is tried while there is nothing else.
        let _ = writeln!(definitions, "  call d_{}(k)", kind.word);
        let _ = writeln!(
            main,
            "  call good('{name}', nf90mpi_inq_varid(ncid, '{name}', k))\n  call f_{}(k)",
            kind.word
        );
        parts.push_str(&define_part(kind));
        parts.push_str(&old_part(kind));
    }
    format!(
        "{HEAD}{definitions}  call good('enddef', nf90mpi_enddef(ncid))\n  \
         call good('attach', nf90mpi_buffer_attach(ncid, 100000_8))\n{main}  \
         call good('detach', nf90mpi_buffer_detach(ncid))\n  \
         call good('close', nf90mpi_close(ncid))\n  call MPI_Finalize(err)\n  \
         if (me == 0) print *, 'every procedure: good'\ncontains\n{parts}{TAIL}"
    )
}

/// `a` gets new values, `b` none of them.
fn fresh(kind: &Kind, elements: usize, shape: &str) -> String {
    let (before, after) = kind.from;
    let nothing = if kind.word == TEXT { "'###'" } else { "-1" };
    let shape =
        if shape.is_empty() { "/)(1:1)".to_string() } else { format!("/), (/ {shape} /))") };
    if shape.ends_with("(1:1)") {
        return format!("    seed = seed + 3\n    a = {before}seed{after}\n    b = {nothing}\n");
    }
    format!(
        "    seed = seed + 3\n    a = reshape((/ ({before}seed + k{after}, k=1, {elements}) {shape}\n    \
         b = {nothing}\n"
    )
}

fn module_part(kind: &Kind, rank: usize, name: &str) -> String {
    let is_text = kind.word == TEXT;
    let width = rank.max(1) + usize::from(is_text);
    let mut shape = vec!["2"; rank];
    if let Some(last) = shape.last_mut() {
        *last = "1";
    }
    let shape = shape.join(", ");
    let elements = 1usize << rank.saturating_sub(1);
    let array = if rank == 0 { String::new() } else { format!("({shape})") };
    let letters = if is_text { 3 } else { 1 };
    let mut out = format!(
        "\n  subroutine s_{name}(v)\n    integer, intent(in) :: v\n    {} :: a{array}, b{array}\n    \
         integer(8) :: start({width}), count({width}), starts({width}, 1), counts({width}, 1)\n    \
         integer :: k, sizes({width}), parts({width}), zeros({width})\n    \
         start = 1\n    start({width}) = me + 1\n    count = 2\n    count({width}) = 1\n",
        kind.declared
    );
    if is_text {
        out.push_str("    count(1) = 3\n");
    }
    let _ = write!(
        out,
        "    starts(:, 1) = start\n    counts(:, 1) = count\n    parts = int(count)\n    \
         sizes = parts\n    sizes({width}) = nprocs\n    zeros = 0\n    zeros({width}) = me\n    \
         call MPI_Type_create_subarray({width}, sizes, parts, zeros, MPI_ORDER_FORTRAN, {}, ftype, err)\n    \
         call MPI_Type_commit(ftype, err)\n",
        kind.mpi
    );
    let test = if rank == 0 { "a /= b".to_string() } else { "any(a /= b)".to_string() };
    // One text with varn is one character.
    let first = if is_text && rank == 0 { "a(1:1) /= b(1:1)".to_string() } else { test.clone() };
    let slab = if rank == 0 && !is_text { "start" } else { "start, count" };
    let list = if rank == 0 { "starts" } else { "1, starts, counts" };
    let bytes = elements * letters;
    let new = fresh(kind, elements, &shape);
    for all in ["_all", ""] {
        if all.is_empty() {
            out.push_str("    call good('begin', nf90mpi_begin_indep_data(ncid))\n");
        }
        for (family, more, test) in
            [("var", slab, &test), ("varn", list, &first), ("vard", "", &test)]
        {
            let (before, after) = match family {
                "vard" => ("ftype, ", format!("{bytes}_8, {}", kind.mpi)),
                _ => ("", more.to_string()),
            };
            let _ = write!(
                out,
                "{new}    call good('put_{family}{all} {name}', &\n         \
                 nf90mpi_put_{family}{all}(ncid, v, {before}a, {after}))\n    \
                 call good('get_{family}{all} {name}', &\n         \
                 nf90mpi_get_{family}{all}(ncid, v, {before}b, {after}))\n    \
                 if ({test}) call wrong('{family}{all} {name}')\n"
            );
        }
    }
    out.push_str("    call good('end', nf90mpi_end_indep_data(ncid))\n");
    for (family, more, test) in [("var", slab, &test), ("varn", list, &first)] {
        for put in ["iput", "bput"] {
            let _ = write!(
                out,
                "{new}    call good('{put}_{family} {name}', &\n         \
                 nf90mpi_{put}_{family}(ncid, v, a, req(1), {more}))\n    call done()\n    \
                 call good('iget_{family} {name}', &\n         \
                 nf90mpi_iget_{family}(ncid, v, b, req(1), {more}))\n    call done()\n    \
                 if ({test}) call wrong('{put}_{family} {name}')\n"
            );
        }
    }
    out.push_str("    call MPI_Type_free(ftype, err)\n  end subroutine\n");
    out
}

/// Attributes and fill values of a type.
fn define_part(kind: &Kind) -> String {
    let (before, after) = kind.from;
    let mut out = format!(
        "\n  subroutine d_{}(v)\n    integer, intent(in) :: v\n    {} :: one, back, many(2), more(2)\n    \
         integer :: mode\n    one = {before}7{after}\n    many = (/ {before}8{after}, {before}9{after} /)\n",
        kind.word, kind.declared
    );
    let same = |out: &mut String, put: &str, get: &str, test: &str| {
        let _ = write!(
            out,
            "    call good('{0}', {put})\n    call good('{0}', {get})\n    if ({test}) call wrong('{0}')\n",
            kind.word
        );
    };
    same(
        &mut out,
        "nf90mpi_put_att(ncid, v, 'one', one)",
        "nf90mpi_get_att(ncid, v, 'one', back)",
        "one /= back",
    );
    if kind.word != TEXT {
        same(
            &mut out,
            "nf90mpi_put_att(ncid, v, 'many', many)",
            "nf90mpi_get_att(ncid, v, 'many', more)",
            "any(many /= more)",
        );
        let put = format!("nfmpi_put_att_{}(ncid, v, 'old', {}, 2_8, many)", kind.word, kind.file);
        let get = format!("nfmpi_get_att_{}(ncid, v, 'old', more)", kind.word);
        same(&mut out, &put, &get, "any(many /= more)");
    } else {
        same(
            &mut out,
            "nfmpi_put_att_text(ncid, v, 'old', 3_8, one)",
            "nfmpi_get_att_text(ncid, v, 'old', back)",
            "one /= back",
        );
    }
    let part = if kind.word == TEXT { "(1:1)" } else { "" };
    same(
        &mut out,
        &format!("nf90mpi_def_var_fill(ncid, v, 0, one{part})"),
        &format!("nf90mpi_inq_var_fill(ncid, v, mode, back{part})"),
        &format!("one{part} /= back{part}"),
    );
    out.push_str("  end subroutine\n");
    out
}

/// The functions of Fortran 77 for a type: a column of a table for each rank, or all of it.
fn old_part(kind: &Kind) -> String {
    let is_text = kind.word == TEXT;
    let rows = if is_text { 3 } else { 2 };
    // A text is a column by itself.
    let (column, whole) = if is_text { ("", "") } else { ("(2)", "(2, nprocs)") };
    let all_declared = if is_text { "character(len=3 * nprocs)" } else { kind.declared };
    let element = if is_text { "(1:1)" } else { "(1)" };
    let word = kind.word;
    let mut out = format!(
        "\n  subroutine f_{word}(v)\n    integer, intent(in) :: v\n    {} :: a{column}, b{column}\n    \
         {all_declared} :: all_a{whole}, all_b{whole}\n    integer(8) :: start(2), count(2), stride(2), map(2)\n    integer :: k\n    \
         start = (/ 1, me + 1 /)\n    count = (/ {rows}, 1 /)\n    stride = 1\n    map = (/ 1, {rows} /)\n    \
         call MPI_Type_create_subarray(2, (/ {rows}, nprocs /), (/ {rows}, 1 /), (/ 0, me /), &\n         \
         MPI_ORDER_FORTRAN, {}, ftype, err)\n    call MPI_Type_commit(ftype, err)\n",
        kind.declared, kind.mpi
    );
    let (before, after) = kind.from;
    let nothing = if is_text { "'###'" } else { "-1" };
    let new = if is_text {
        format!(
            "    seed = seed + 3\n    a = {before}seed{after}\n    b = {nothing}\n    \
             all_a = repeat(a(1:1), 3 * nprocs)\n    all_b = {nothing}\n"
        )
    } else {
        format!(
            "    seed = seed + 3\n    a = (/ ({before}seed + k{after}, k=1, 2) /)\n    b = {nothing}\n    \
             all_a = reshape((/ ({before}seed + k{after}, k=1, 2 * nprocs) /), (/ 2, nprocs /))\n    \
             all_b = {nothing}\n"
        )
    };
    // Family, what stands before the values, which values, how many.
    let families: [(&str, &str, &str, String); 6] = [
        ("var", "", "all_", format!("int({rows} * nprocs, 8)")),
        ("var1", "start, ", "one", "1_8".to_string()),
        ("vara", "start, count, ", "", format!("{rows}_8")),
        ("vars", "start, count, stride, ", "", format!("{rows}_8")),
        ("varm", "start, count, stride, map, ", "", format!("{rows}_8")),
        ("varn", "1, start, count, ", "", format!("{rows}_8")),
    ];
    let names = |which: &str| match which {
        "all_" => ("all_a".to_string(), "all_b".to_string()),
        "one" => (format!("a{element}"), format!("b{element}")),
        _ => ("a".to_string(), "b".to_string()),
    };
    let test = |which: &str| match (which, is_text) {
        ("all_", true) => "all_a /= all_b".to_string(),
        ("all_", false) => "any(all_a /= all_b)".to_string(),
        ("one", _) => format!("a{element} /= b{element}"),
        (_, true) => "a /= b".to_string(),
        (_, false) => "any(a /= b)".to_string(),
    };
    for all in ["_all", ""] {
        if all.is_empty() {
            out.push_str("    call good('begin', nf90mpi_begin_indep_data(ncid))\n");
        }
        for (family, indexes, which, count) in &families {
            let ((a, b), test) = (names(which), test(which));
            for flexible in [false, true] {
                let (middle, after) = if flexible {
                    (String::new(), format!(", {count}, {}", kind.mpi))
                } else {
                    (format!("_{word}"), String::new())
                };
                let what = format!("{family}{middle}{all} of {word}");
                // All ranks write the whole, so nobody reads before all have written.
                let _ = write!(
                    out,
                    "{new}    call good('put {what}', &\n         \
                     nfmpi_put_{family}{middle}{all}(ncid, v, {indexes}{a}{after}))\n    \
                     call MPI_Barrier(MPI_COMM_WORLD, err)\n    call good('get {what}', &\n         \
                     nfmpi_get_{family}{middle}{all}(ncid, v, {indexes}{b}{after}))\n    \
                     if ({test}) call wrong('{what}')\n    call MPI_Barrier(MPI_COMM_WORLD, err)\n"
                );
            }
        }
        let test = test("");
        let _ = write!(
            out,
            "{new}    call good('put_vard{all}', nfmpi_put_vard{all}(ncid, v, ftype, a, {rows}_8, {mpi}))\n    \
             call good('get_vard{all}', nfmpi_get_vard{all}(ncid, v, ftype, b, {rows}_8, {mpi}))\n    \
             if ({test}) call wrong('vard{all} of {word}')\n",
            mpi = kind.mpi
        );
    }
    out.push_str("    call good('end', nf90mpi_end_indep_data(ncid))\n");
    for (family, indexes, which, count) in &families {
        let ((a, b), test) = (names(which), test(which));
        for flexible in [false, true] {
            let (middle, after) = if flexible {
                (String::new(), format!(", {count}, {}", kind.mpi))
            } else {
                (format!("_{word}"), String::new())
            };
            for put in ["iput", "bput"] {
                let what = format!("{put}_{family}{middle} of {word}");
                let _ = write!(
                    out,
                    "{new}    call good('{what}', &\n         \
                     nfmpi_{put}_{family}{middle}(ncid, v, {indexes}{a}{after}, req(1)))\n    call done()\n    \
                     call good('get after {what}', &\n         \
                     nfmpi_iget_{family}{middle}(ncid, v, {indexes}{b}{after}, req(1)))\n    call done()\n    \
                     if ({test}) call wrong('{what}')\n"
                );
            }
        }
    }
    out.push_str("    call MPI_Type_free(ftype, err)\n  end subroutine\n");
    out
}

/// Names that a program asks its libraries for.
fn wanted(program: &Path) -> BTreeSet<String> {
    let out = Command::new("nm").args(["-D", "--undefined-only"]).arg(program).output().unwrap();
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    text.lines().filter_map(|line| line.split_whitespace().nth(1)).map(str::to_string).collect()
}

#[test]
fn every_data_procedure_writes_and_reads() {
    let library = our_library();
    for mpi in mpis("mpif90") {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path();
        std::fs::write(place.join("pnetcdf.f90"), pnetcdf::MODULE).unwrap();
        std::fs::write(place.join("every.f90"), program()).unwrap();
        for name in ["libpnetcdf.so", "libpnetcdf.so.0d"] {
            std::os::unix::fs::symlink(&library, place.join(name)).unwrap();
        }
        let compiler = format!("mpif90.{}", mpi.suffix);
        good(Command::new(&compiler).args(["-fsyntax-only", "pnetcdf.f90"]).current_dir(place));
        // The flexible functions take any type.
        let compile = ["-O0", "-fcheck=all", "-fallow-argument-mismatch", "-w", "every.f90"];
        let link = ["-I.", "-L.", "-o", "program", "-lpnetcdf"];
        good(Command::new(&compiler).args(compile).args(link).current_dir(place));
        // One MPI is enough to see several ranks; MPICH takes long where cores are few.
        let numbers_of_ranks: &[usize] = if mpi.suffix == "mpich" { &[1] } else { &[1, 2] };
        for ranks in numbers_of_ranks {
            let [env, library_path] = on_our_library(place);
            let job = mpi.clone().in_directory(place);
            let ended = job.run(*ranks, &[&env, &library_path, "./program"]);
            let good = ended.succeeded() && ended.output.contains("every procedure: good");
            assert!(good, "{} on {ranks} ranks: {ended:?}", mpi.name);
        }
        let called = wanted(&place.join("program"));
        let data = include_str!("../programs/fortran_names.txt").lines().filter(|name| {
            let name = name.trim_start_matches("__pnetcdf_MOD_nf90mpi_");
            let name = name.trim_start_matches("nfmpi_");
            ["put_", "get_var", "get_att", "iget_", "iput_", "bput_"]
                .iter()
                .any(|start| name.starts_with(start))
        });
        // The untyped functions for attributes need no type to be tried with.
        let missed: Vec<_> =
            data.filter(|name| !called.contains(*name) && !name.ends_with("_att_")).collect();
        assert!(missed.is_empty(), "not called: {missed:?}");
    }
}
