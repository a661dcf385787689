//! What is refused when a variable is defined, and what it says.

use crate::common::pipeline;
use esker_codec::{Chunk, Filter, Pipeline};
use esker_format::ExternalType::{self, *};

fn refusal(text: &str, ty: ExternalType) -> String {
    let shape = [10, 10];
    match pipeline(text).check(&Chunk::new(ty, &shape)) {
        Ok(()) => panic!("'{text}' was accepted for {ty}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn the_text_of_a_filter_comes_back() {
    for text in [
        "shuffle",
        "zstd,3",
        "zstd,-2",
        "zfp,accuracy=0.001",
        "zfp,rate=8",
        "zfp,precision=20",
        "zfp,reversible",
        "zfp,rel=0.001",
        "sz,abs=0.001",
        "sz,rel=1e-6",
        "bitround,12",
        "f32",
        "pco,8",
        "deflate,6",
        "lz4",
        "bitshuffle",
        "crc32c",
    ] {
        assert_eq!(text.parse::<Filter>().expect(text).to_string(), text);
    }
    assert_eq!(pipeline(" shuffle  deflate ").to_string(), "shuffle deflate,6");
    assert_eq!(pipeline("sz,abs=1e-3").to_string(), "sz,abs=0.001");
}

#[test]
fn text_that_is_no_filter_is_an_error_that_says_what_would_be() {
    for (text, says) in [
        ("gzip", "the filters are deflate, shuffle"),
        ("zstd,99", "an integer from -7 to 22"),
        ("zstd,3,4", "an integer from -7 to 22"),
        ("shuffle,4", "no parameters"),
        ("bitround", "the number of mantissa bits"),
        ("zfp", "accuracy="),
        ("zfp,accuracy=-1", "accuracy="),
        ("zfp,precision=0", "precision="),
        ("sz,abs=nan", "abs="),
        ("sz,0.1", "abs="),
        ("", "the filters are"),
    ] {
        let error = text.parse::<Filter>().expect_err(text).to_string();
        assert!(error.contains(says), "{error}");
    }
}

#[test]
fn integers_never_pass_a_filter_for_floating_point_numbers() {
    for ty in [Byte, Char, Short, Int, UByte, UShort, UInt, Int64, UInt64] {
        for text in ["bitround,8", "f32", "sz,abs=1", "sz,rel=0.1", "zfp,accuracy=1", "zfp,rel=0.1"]
        {
            refusal(text, ty);
        }
    }
    assert!(refusal("zfp,accuracy=1", Int).contains("zfp,reversible or pco"));
    assert!(refusal("f32", Float).contains("float is not double"));
    assert!(refusal("pco", Char).contains("char is text"));
}

#[test]
fn filters_in_an_impossible_order_are_refused_with_the_remedy() {
    for (text, says) in [
        ("zstd shuffle", "put it before zstd"),
        ("deflate bitround,3", "put it before deflate"),
        ("shuffle pco", "leave shuffle out"),
        ("pco shuffle", "leave it out"),
        ("pco sz,abs=1", "use one of the two"),
        ("sz,abs=1 bitshuffle", "leave it out"),
        ("shuffle bitround,3", "put it before shuffle"),
        ("bitround,24", "from 0 to 23"),
    ] {
        let error = refusal(text, Float);
        assert!(error.contains(says), "{text}: {error}");
    }
    let long = ["crc32c"; 17].join(" ");
    assert!(refusal(&long, Float).contains("at most 16"));
}

#[test]
fn a_fill_value_that_no_float_holds_is_refused_where_doubles_become_floats() {
    let fill = 1e20f64.to_be_bytes();
    let chunk = Chunk::new(Double, &[4]).with_fill(&fill);
    let error = pipeline("f32").check(&chunk).expect_err("1e20 is no float").to_string();
    assert!(error.contains("the fill value 1e20 is no float"), "{error}");
    let fill = 9.969_209_968_386_869e36f64.to_be_bytes();
    pipeline("f32").check(&Chunk::new(Double, &[4]).with_fill(&fill)).expect("netCDF's own is one");
}

#[test]
fn a_fill_value_of_another_type_is_refused() {
    let chunk = Chunk::new(Double, &[4]).with_fill(&[0; 4]);
    assert!(pipeline("bitround,4").check(&chunk).is_err());
}

#[test]
fn chunks_that_no_memory_holds_are_refused() {
    let shape = [1 << 30, 1 << 30, 1 << 30];
    assert!(Pipeline::default().check(&Chunk::new(Double, &shape)).is_err());
    let shape = [1 << 30, 1 << 30, 1 << 30, 0];
    assert!(Pipeline::default().check(&Chunk::new(Double, &shape)).is_ok());
}
