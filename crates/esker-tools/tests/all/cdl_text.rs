//! What CDL text means, and what is wrong with text that means nothing.

use esker::Dataset;
use esker_format::{DimLen, ExternalType, Owner, Values, VarId, Version};
use esker_tools::cdl::{
    self, CdlFault, CdlFile, CdlSource, DumpOptions, GenerateError, GenerateOptions, PrintError,
};
use proptest::prelude::*;

use crate::texts;

fn parse(text: &str) -> CdlFile {
    cdl::parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn print(file: &CdlFile) -> Vec<u8> {
    let options =
        DumpOptions { float_digits: Some(9), double_digits: Some(17), ..DumpOptions::default() };
    let mut text = Vec::new();
    cdl::print(file, &options, &mut text).unwrap();
    text
}

/// A file with an int `v(n)` of 3, a char `c(m, n)` of 2 rows, and the rest as given.
fn with(declarations: &str, data: &str) -> String {
    format!(
        "netcdf x {{\ndimensions: n = 3 ; m = 2 ; t = UNLIMITED ;\nvariables: int v(n) ; \
         char c(m, n) ; char r(t, n) ;\n{declarations}\ndata:\n{data}\n}}\n"
    )
}

fn attribute(text: &str) -> Values {
    let file = parse(&with(&format!("v:a = {text} ;"), ""));
    file.schema.attr(Owner::Var(VarId(0)), "a").unwrap().clone()
}

fn fault(text: &str) -> CdlFault {
    *cdl::parse(text).expect_err(text).fault
}

#[test]
fn large_integers_are_exact() {
    let file = parse(
        "netcdf x { variables: int64 a ; uint64 b ; int64 c ; :g = 9223372036854775807 ; \
         data: a = 9223372036854775807 ; b = 18446744073709551615 ; c = -9223372036854775808 ; }",
    );
    assert_eq!(file.given[0], Values::Int64(vec![i64::MAX]));
    assert_eq!(file.given[1], Values::UInt64(vec![u64::MAX]));
    assert_eq!(file.given[2], Values::Int64(vec![i64::MIN]));
    assert_eq!(file.schema.attr(Owner::Global, "g"), Some(&Values::Int64(vec![i64::MAX])));
    assert_eq!(file.schema.version, Version::Cdf5);
}

#[test]
fn attributes_have_the_types_that_ncgen_gives_them() {
    // Seen with ncgen 4.9.0.
    assert_eq!(attribute("1b, 2s"), Values::Short(vec![1, 2]));
    assert_eq!(attribute("1, 2b"), Values::Int(vec![1, 2]));
    assert_eq!(attribute("1, 2.f"), Values::Float(vec![1.0, 2.0]));
    assert_eq!(attribute("1.5, 2"), Values::Double(vec![1.5, 2.0]));
    assert_eq!(attribute("1.f, 2.5D"), Values::Double(vec![1.0, 2.5]));
    assert_eq!(attribute("'a', 'b'"), Values::Byte(vec![97, 98]));
    assert_eq!(attribute("\"x\", \"y\""), Values::Char(b"xy".to_vec()));
    assert_eq!(attribute("010"), Values::Int(vec![8]));
    assert_eq!(attribute("200b"), Values::Byte(vec![-56]));
    assert_eq!(attribute("3000000000"), Values::UInt(vec![3000000000]));
    assert_eq!(attribute("1, -3000000000"), Values::Int64(vec![1, -3000000000]));
    assert_eq!(attribute("1b, 2ub"), Values::UByte(vec![1, 2]));
    assert_eq!(attribute("1u, 2"), Values::Int(vec![1, 2]));
    assert_eq!(attribute("1, 2u"), Values::UInt(vec![1, 2]));
    assert_eq!(attribute("1ll, 2ull"), Values::UInt64(vec![1, 2]));
    assert_eq!(attribute(""), Values::Char(Vec::new()));
}

#[test]
fn escapes_in_strings_mean_what_they_mean_in_c() {
    let text = r#""a\x41\101\q\?\a\b\f\n\r\t\v\\\'\"\0z""#;
    let bytes = b"aAAq\x7f\x07\x08\x0c\n\r\t\x0b\\'\"\0z";
    assert_eq!(attribute(text), Values::Char(bytes.to_vec()));
}

#[test]
fn a_string_attribute_of_one_string_is_text() {
    let file = parse(&with("string v:s = \"abc\" ; string :g = \"d\" ;", ""));
    assert_eq!(file.schema.attr(Owner::Var(VarId(0)), "s"), Some(&Values::from("abc")));
    assert_eq!(file.schema.attr(Owner::Global, "g"), Some(&Values::from("d")));
}

#[test]
fn format_sets_the_version_and_is_not_stored() {
    for (name, version) in [
        ("classic", Version::Cdf1),
        ("64-bit offset", Version::Cdf2),
        ("cdf5", Version::Cdf5),
        ("64-bit data", Version::Cdf5),
    ] {
        let file = parse(&with(&format!(":_Format = \"{name}\" ; :a = 1 ;"), ""));
        assert_eq!((file.schema.version, file.format), (version, Some(version)));
        assert_eq!(file.schema.attrs.len(), 1);
    }
    let file =
        parse(&with("v:_Storage = \"chunked\" ; v:_ChunkSizes = 1 ; :_NCProperties = \"x\" ;", ""));
    assert!(file.schema.vars.at(0).unwrap().attrs.is_empty());
    assert_eq!(file.notes.len(), 2);
}

#[test]
fn what_is_not_given_is_fill() {
    let file = parse(&with("v:_FillValue = 9 ;", "v = 1, _ ;"));
    assert_eq!(file.read(VarId(0), &[0], &[3]).unwrap(), Values::Int(vec![1, 9, 9]));
    let file = parse(&with("", "r = \"ab\" ;"));
    assert_eq!(file.numrecs, 1);
    assert_eq!(file.read(VarId(2), &[0, 0], &[1, 3]).unwrap(), Values::from("ab\0"));
}

#[test]
fn a_fill_value_has_its_variables_type_unless_it_is_text() {
    let fill = |text: &str| {
        let file = parse(&with(&format!("float f ; f:_FillValue = {text} ;"), ""));
        file.schema.attr(Owner::Var(VarId(3)), "_FillValue").unwrap().clone()
    };
    assert_eq!(fill("1"), Values::Float(vec![1.0]));
    assert_eq!(fill("-999."), Values::Float(vec![-999.0]));
    assert_eq!(fill("\"none\""), Values::from("none"));
    assert_eq!(fill("\"\""), Values::Char(Vec::new()));
}

#[test]
fn strings_fill_rows_as_in_ncgen() {
    let rows = |data: &str| match &parse(&with("", data)).given[1] {
        Values::Char(text) => String::from_utf8(text.clone()).unwrap(),
        _ => unreachable!(),
    };
    assert_eq!(rows("c = \"a\", \"bc\" ;"), "a\0\0bc\0");
    assert_eq!(rows("c = \"abcdef\" ;"), "abcdef");
    assert_eq!(rows("c = 'a', 'b', 'c', 'd' ;"), "abcd\0\0");
    assert_eq!(rows("c = \"\", \"x\" ;"), "\0\0\0x\0\0");
    assert_eq!(rows("c = 65b, 66b ;"), "AB\0");
    assert_eq!(rows("c = \"a\n\", \"b\" ;"), "a\n\0b\0\0");
}

#[test]
fn rows_that_ncdump_breaks_at_newlines_are_put_together_again() {
    for (dims, records) in [("c(m, n)", false), ("c(t, n)", true)] {
        let declare = format!(
            "netcdf x {{ dimensions: t = UNLIMITED ; m = 2 ; n = 6 ; variables: char {dims} ; "
        );
        let text = format!("{declare} data: c = \"a\\nb\\n\", \"\\ncd\" ; }}");
        let file = parse(&text);
        let printed = print(&file);
        let again = cdl::parse_bytes(&printed).unwrap();
        assert_eq!(
            again.read(VarId(0), &[0, 0], &[2, 6]).unwrap(),
            Values::from("a\nb\n\0\0\ncd\0\0\0")
        );
        assert_eq!(again.numrecs, if records { 2 } else { 0 });
    }
}

#[test]
fn the_length_after_an_unlimited_dimension_counts_when_no_variable_has_it() {
    let file = parse("netcdf x { dimensions: t = UNLIMITED ; // (5 currently)\n n = 2 ; }");
    assert_eq!(file.numrecs, 5);
    assert_eq!(file.schema.dims.at(0).unwrap().len, DimLen::Unlimited);
    let file = parse(
        "netcdf x { dimensions: t = UNLIMITED ; // (5 currently)\n variables: int v(t) ; data: v = 1, 2 ; }",
    );
    assert_eq!(file.numrecs, 2);
}

#[test]
fn sections_and_names_that_look_alike_are_told_apart() {
    let file = parse(
        "netcdf x { // comment { }\n:early = 1 ; /* another */ dimensions: data = 2, int = 3 ; \
         variables: int data(data), int(int) ; data :a = 1 ; int:a = 2 ; float :g = 3 ; \
         int variables ; variables:a = 4 ; data: data = 1, 2 ; int = 4, 5, 6 ; }",
    );
    assert_eq!(file.schema.vars.len(), 3);
    assert_eq!(file.schema.attr(Owner::Var(VarId(1)), "a"), Some(&Values::Int(vec![2])));
    assert_eq!(file.schema.attr(Owner::Var(VarId(2)), "a"), Some(&Values::Int(vec![4])));
    assert_eq!(file.schema.attr(Owner::Global, "g"), Some(&Values::Float(vec![3.0])));
    assert_eq!(file.given[1], Values::Int(vec![4, 5, 6]));
}

#[test]
fn errors_say_where() {
    let error =
        cdl::parse("netcdf x {\nvariables:\n  int v ;\ndata:\n  v = 1e99 ;\n}\n").unwrap_err();
    assert_eq!((error.line, error.column), (5, 7));
    assert_eq!(error.text, "v = 1e99 ;");
    assert_eq!(
        error.to_string(),
        "line 5, column 7: 1e99 does not fit the type int, at `v = 1e99 ;`"
    );
    let error = cdl::parse("netcdf x { variables: int v(q) ; }").unwrap_err();
    assert_eq!(
        error.to_string(),
        "line 1, column 29: there is no dimension \"q\", at `netcdf x { variables: int v(q) ; }`"
    );
}

#[test]
fn wrong_text_is_refused_for_the_right_reason() {
    use CdlFault::*;
    assert!(matches!(fault(""), Syntax { .. }));
    assert!(matches!(fault("netcdf"), Syntax { .. }));
    assert!(matches!(fault("netcdf x {"), Syntax { .. }));
    assert!(matches!(fault("netcdf x { } y"), Syntax { .. }));
    assert!(matches!(fault("netcdf x { types: }"), NotClassic(_)));
    assert!(matches!(fault("netcdf x { group: g { } }"), NotClassic(_)));
    assert!(matches!(fault(&with("string s ;", "")), NotClassic(_)));
    assert!(matches!(fault(&with("string v:a = \"a\", \"b\" ;", "")), NotClassic(_)));
    assert!(matches!(fault(&with("v:a = {1, 2} ;", "")), NotClassic(_)));
    assert!(matches!(fault(&with("int v ;", "")), Schema(_)));
    assert!(matches!(fault(&with("int w(m, t) ;", "")), Schema(_)));
    assert!(matches!(fault("netcdf x { dimensions: n = 0 ; }"), Schema(_)));
    assert!(matches!(fault("netcdf x { dimensions: a = UNLIMITED ; b = UNLIMITED ; }"), Schema(_)));
    assert!(matches!(fault(&with("int64 w ; :_Format = \"classic\" ;", "")), Schema(_)));
    assert!(matches!(fault(&with(":_Format = \"hdf\" ;", "")), Special { .. }));
    assert!(matches!(fault(&with("w:a = 1 ;", "")), Undeclared { .. }));
    assert!(matches!(fault(&with("", "w = 1 ;")), Undeclared { .. }));
    assert!(matches!(fault(&with("", "v = 1, 2, 3, 4 ;")), TooManyValues { room: 3, .. }));
    assert!(matches!(fault(&with("", "c = \"abc\", \"def\", \"g\" ;")), TooManyValues { .. }));
    assert!(matches!(fault(&with("", "v = 3000000000 ;")), OutOfRange { .. }));
    assert!(matches!(fault(&with("", "v = NaN ;")), OutOfRange { .. }));
    assert!(matches!(fault(&with("float f ;", "f = 1e39 ;")), OutOfRange { .. }));
    assert!(matches!(fault(&with("v:a = 300b ;", "")), OutOfRange { .. }));
    assert!(matches!(fault(&with("", "v = \"abc\" ;")), WrongKind { .. }));
    assert!(matches!(fault(&with("", "c = 65 ;")), WrongKind { .. }));
    assert!(matches!(fault(&with("v:a = 1, \"x\" ;", "")), WrongKind { .. }));
    assert!(matches!(fault(&with("v:a = _ ;", "")), WrongKind { .. }));
    assert!(matches!(fault(&with("v:a = \"x ;", "")), Unclosed(_)));
    assert!(matches!(fault(&with("/* ", "")), Unclosed(_)));
    assert!(matches!(fault(&with("", "v = 1,, 2 ;")), Syntax { .. }));
    assert!(matches!(fault(&with("", "v = 1 2 ;")), Syntax { .. }));
    assert!(matches!(fault(&with("", "v = red ;")), Syntax { .. }));
    assert!(matches!(fault(&with("v:a = 'ab' ;", "")), BadText(_)));
}

#[test]
fn small_text_does_not_cost_large_memory() {
    let file = parse(
        "netcdf x { dimensions: n = 1000000000000 ; variables: double v(n, n) ; data: v = 1 ; }",
    );
    assert_eq!(file.given_len(VarId(0)), 1);
    let start = [999_999_999_999, 999_999_999_998];
    let last = file.read(VarId(0), &start, &[1, 2]).unwrap();
    assert_eq!(last.ty(), ExternalType::Double);
    assert!(file.read(VarId(0), &[0, 0], &[1_000_000_000_000, 1_000_000_000_000]).is_err());
    let text = "netcdf x { dimensions: m = 2 ; n = 1000000000000 ; variables: char c(m, n) ; data: c = \"a\", \"b\" ; }";
    assert!(matches!(fault(text), CdlFault::BadText(_)));
}

#[test]
fn awkward_files_survive_text_and_back() {
    for (name, text) in awkward() {
        let file = parse(text);
        let printed = print(&file);
        let again = cdl::parse_bytes(&printed).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(
            String::from_utf8_lossy(&print(&again)),
            String::from_utf8_lossy(&printed),
            "{name}"
        );
    }
}

#[test]
fn a_truncated_file_prints_what_is_there_and_names_the_variable() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.nc");
    let text = "netcdf x { dimensions: n = 3 ; variables: int a(n) ; int b(n) ; data: a = 1, 2, 3 ; b = 4, 5, 6 ; }";
    cdl::generate(text.as_bytes(), &path, &GenerateOptions::default()).unwrap();
    let whole = std::fs::metadata(&path).unwrap().len();
    std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(whole - 4).unwrap();
    let mut printed = Vec::new();
    let error = cdl::dump(&Dataset::open(&path).unwrap(), &DumpOptions::default(), &mut printed);
    assert!(matches!(error, Err(PrintError::Read { var, .. }) if var == "b"));
    assert!(String::from_utf8(printed).unwrap().contains(" a = 1, 2, 3 ;\n"));
}

#[test]
fn unusable_options_are_refused() {
    let file = parse("netcdf x { variables: int v ; }");
    let try_with = |options: DumpOptions| cdl::print(&file, &options, &mut Vec::new());
    let default = DumpOptions::default;
    assert!(matches!(
        try_with(DumpOptions { line_len: 9, ..default() }),
        Err(PrintError::Option { .. })
    ));
    assert!(matches!(
        try_with(DumpOptions { float_digits: Some(21), ..default() }),
        Err(PrintError::Option { .. })
    ));
    assert!(matches!(
        try_with(DumpOptions { double_digits: Some(0), ..default() }),
        Err(PrintError::Option { .. })
    ));
    let missing = DumpOptions { variables: vec!["w".into()], ..default() };
    assert!(matches!(try_with(missing), Err(PrintError::NoSuchVariable(name)) if name == "w"));
}

#[test]
fn a_version_that_cannot_hold_the_text_is_refused_before_the_file_is_touched() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.nc");
    std::fs::write(&path, b"precious").unwrap();
    let options = GenerateOptions { version: Some(Version::Cdf1), ..GenerateOptions::default() };
    let text = b"netcdf x { variables: int64 v ; }";
    assert!(matches!(cdl::generate(text, &path, &options), Err(GenerateError::Schema(_))));
    assert!(cdl::generate(b"netcdf x {", &path, &options).is_err());
    assert_eq!(std::fs::read(&path).unwrap(), b"precious");
}

#[test]
fn the_oldest_version_with_room_is_chosen() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.nc");
    let made = |text: &str| {
        cdl::generate(text.as_bytes(), &path, &GenerateOptions::default()).unwrap().version
    };
    assert_eq!(made("netcdf x { variables: int v ; }"), Version::Cdf1);
    assert_eq!(made("netcdf x { variables: ubyte v ; }"), Version::Cdf5);
    assert_eq!(made("netcdf x { dimensions: n = 3000000000 ; }"), Version::Cdf5);
    assert_eq!(made("netcdf x { :_Format = \"64-bit offset\" ; }"), Version::Cdf2);
}

/// The awkward texts without the one whose variables have a `C_format`: what that prints need
/// not be CDL.
fn awkward() -> Vec<(&'static str, &'static str)> {
    texts::AWKWARD.iter().copied().filter(|(name, _)| *name != "formats").collect()
}

/// A text that is nearly right: one of the awkward ones with some bytes changed.
fn nearly() -> impl Strategy<Value = Vec<u8>> {
    let pieces: Vec<&[u8]> = vec![
        b"",
        b";",
        b"{",
        b"}",
        b"\"",
        b"'",
        b"\\",
        b",",
        b":",
        b"=",
        b"//",
        b"/*",
        b"_",
        b"-",
        b"9999999999999999999999",
        b"1e",
        b"0x",
        b"UNLIMITED",
        b"\xff",
        b"\0",
        b"NaN",
        b"data:",
        b"char ",
        b"(",
        b"\n",
    ];
    let change = (any::<prop::sample::Index>(), 0usize..20, prop::sample::select(pieces));
    (prop::sample::select(awkward()), prop::collection::vec(change, 1..6)).prop_map(
        |((_, text), changes)| {
            let mut text = text.as_bytes().to_vec();
            for (place, cut, piece) in changes {
                let at = place.index(text.len() + 1);
                let end = (at + cut).min(text.len());
                text.splice(at..end, piece.iter().copied());
            }
            text
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_text_makes_reading_panic(text in nearly()) {
        if let Ok(file) = cdl::parse_bytes(&text) {
            let size: u64 = file.schema.vars.iter()
                .map(|v| file.schema.shape(v, file.numrecs).iter().fold(1u64, |s, n| s.saturating_mul(*n)))
                .fold(0, u64::saturating_add);
            if size < 100_000 {
                let printed = print(&file);
                prop_assert!(cdl::parse_bytes(&printed).is_ok(), "{}", String::from_utf8_lossy(&printed));
            }
        }
    }

    #[test]
    fn numbers_survive_text_and_back(doubles: Vec<f64>, floats: Vec<f32>, longs: Vec<i64>, bytes: Vec<i8>) {
        let mut text = String::from("netcdf x { dimensions: n = 100000 ; variables: double d(n) ; float f(n) ; int64 l(n) ; byte b(n) ; }");
        let mut file = parse(&text);
        file.given = vec![Values::Double(doubles), Values::Float(floats), Values::Int64(longs), Values::Byte(bytes)];
        let most = file.given.iter().map(Values::len).max().unwrap_or(0).max(1);
        text = text.replace("100000", &most.to_string());
        file.schema = parse(&text).schema;
        let again = cdl::parse_bytes(&print(&file)).unwrap();
        for id in 0..4 {
            let ours = again.read(VarId(id), &[0], &[most as u64]).unwrap();
            let theirs = file.read(VarId(id), &[0], &[most as u64]).unwrap();
            // As text, because NaN does not equal itself and -0 does 0.
            prop_assert_eq!(format!("{ours:?}"), format!("{theirs:?}"));
        }
    }
}
