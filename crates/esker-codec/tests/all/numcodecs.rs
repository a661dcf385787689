//! What numcodecs, Zarr's filters, makes of our chunks, and we of its.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::common::pipeline;
use esker_codec::{Chunk, FilterMask, Scratch};
use esker_format::ExternalType;
use serde_json::{Value, json};

/// For each case decodes our chunk by the metadata and encodes the elements; answers with both.
const SCRIPT: &str = r#"
import base64, json, sys
import numpy as np, numcodecs
numcodecs.get_codec({"id": "crc32c", "location": "end"})
answers = []
for case in json.load(sys.stdin):
    filters = [numcodecs.get_codec(f) for f in json.loads(case["filters"]) or []]
    compressor = json.loads(case["compressor"])
    chain = filters + ([numcodecs.get_codec(compressor)] if compressor else [])
    elements = np.frombuffer(base64.b64decode(case["elements"]), case["dtype"])
    data = base64.b64decode(case["stored"])
    for codec in reversed(chain):
        data = codec.decode(data)
    decoded = numcodecs.compat.ensure_bytes(data)
    data = elements
    for codec in chain:
        if codec.codec_id == "bitround":  # it knows no big-endian numbers
            native = codec.encode(data.astype(data.dtype.newbyteorder("=")))
            data = native.astype(native.dtype.newbyteorder(">"))
        else:
            data = codec.encode(data)
    encoded = numcodecs.compat.ensure_bytes(data)
    answers.append([base64.b64encode(decoded).decode(), base64.b64encode(encoded).decode()])
json.dump(answers, sys.stdout)
"#;

fn python() -> Option<PathBuf> {
    esker_testkit::python::with("numcodecs, google_crc32c")
}

fn to_base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for part in bytes.chunks(3) {
        let word = part.iter().fold(0usize, |word, &b| word << 8 | usize::from(b))
            << (8 * (3 - part.len()));
        for i in 0..4 {
            let digit = DIGITS[word >> (18 - 6 * i) & 63];
            text.push(if i <= part.len() { digit.into() } else { '=' });
        }
    }
    text
}

fn from_base64(text: &str) -> Vec<u8> {
    let value = |c: u8| match c {
        b'A'..=b'Z' => c - b'A',
        b'a'..=b'z' => c - b'a' + 26,
        b'0'..=b'9' => c - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let (mut bytes, mut held, mut bits) = (Vec::new(), 0u32, 0);
    for c in text.bytes().filter(|&c| c != b'=') {
        held = held << 6 | u32::from(value(c));
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push((held >> bits) as u8);
        }
    }
    bytes
}

fn dtype(ty: ExternalType) -> &'static str {
    match ty {
        ExternalType::Byte => "|i1",
        ExternalType::Char => "|S1",
        ExternalType::UByte => "|u1",
        ExternalType::Short => ">i2",
        ExternalType::UShort => ">u2",
        ExternalType::Int => ">i4",
        ExternalType::UInt => ">u4",
        ExternalType::Int64 => ">i8",
        ExternalType::UInt64 => ">u8",
        ExternalType::Float => ">f4",
        ExternalType::Double => ">f8",
    }
}

fn elements(ty: ExternalType, count: usize) -> Vec<u8> {
    let value = |i: usize| (i as f64 / 9.0).sin() * 50.0 + (i % 7) as f64 / 3.0;
    (0..count)
        .flat_map(|i| match ty {
            ExternalType::Float => (value(i) as f32).to_be_bytes().to_vec(),
            ExternalType::Double => value(i).to_be_bytes().to_vec(),
            _ => (value(i) as i64).to_be_bytes()[8 - ty.size() as usize..].to_vec(),
        })
        .collect()
}

#[test]
fn numcodecs_reads_our_chunks_and_we_read_its() {
    let Some(python) = python() else { return };
    let texts = [
        "",
        "deflate,6",
        "deflate,12",
        "zstd,3",
        "zstd,-4",
        "lz4",
        "shuffle",
        "shuffle deflate,1",
        "shuffle zstd,5",
        "shuffle lz4",
        "shuffle zstd crc32c",
        "crc32c",
        "bitround,7 shuffle zstd",
        "bitround,0 deflate",
        "bitround,5",
        "f32",
        "f32 shuffle deflate",
        "f32 bitround,3 zstd crc32c",
    ];
    let mut scratch = Scratch::new();
    let (mut cases, mut inputs) = (Vec::new(), Vec::new());
    for text in texts {
        for ty in ExternalType::ALL {
            for count in [1, 7, 1000] {
                let shape = [count];
                let (pipeline, chunk) = (pipeline(text), Chunk::new(ty, &shape));
                if pipeline.check(&chunk).is_err() {
                    continue;
                }
                let codecs = pipeline.numcodecs(&chunk).expect("Zarr knows them");
                let (bytes, mut stored) = (elements(ty, count), Vec::new());
                let encoded =
                    pipeline.encode(&chunk, &bytes, &mut stored, &mut scratch).expect("it works");
                assert_eq!(encoded.mask, FilterMask(0));
                let mut ours = vec![0; bytes.len()];
                pipeline
                    .decode(&chunk, encoded.mask, &stored, &mut ours, &mut scratch)
                    .expect("it works");
                cases.push(json!({
                    "filters": codecs.filters, "compressor": codecs.compressor, "dtype": dtype(ty),
                    "elements": to_base64(&bytes), "stored": to_base64(&stored),
                }));
                inputs.push((pipeline, ty, count, ours, stored));
            }
        }
    }
    let mut child = Command::new(python)
        .args(["-c", SCRIPT])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("Python starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin.write_all(Value::from(cases).to_string().as_bytes()).expect("it reads");
    drop(stdin);
    let output = child.wait_with_output().expect("it ends");
    let answers: Vec<[String; 2]> = serde_json::from_slice(&output.stdout).expect("answers");
    assert_eq!(answers.len(), inputs.len());

    for ([decoded, encoded], (pipeline, ty, count, ours, stored)) in answers.iter().zip(inputs) {
        let what = format!("'{pipeline}' of {count} {ty}");
        assert_eq!(from_base64(decoded), ours, "{what}: numcodecs reads what we read");
        let (shape, theirs) = ([count], from_base64(encoded));
        let mut back = vec![0; ours.len()];
        pipeline
            .decode(&Chunk::new(ty, &shape), FilterMask(0), &theirs, &mut back, &mut scratch)
            .unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(back, ours, "{what}: we read what numcodecs wrote");
        // Where a format leaves the writer no choice, the bytes are the same.
        if ["", "shuffle", "crc32c", "bitround,5", "f32"].contains(&pipeline.to_string().as_str()) {
            assert_eq!(stored, theirs, "{what}");
        }
    }
}

#[test]
fn metadata_are_those_of_zarr() {
    let chunk = Chunk::new(ExternalType::Double, &[8]);
    let codecs = pipeline("f32 shuffle zstd,3").numcodecs(&chunk).expect("Zarr knows them");
    assert_eq!(
        codecs.filters,
        r#"[{"id":"astype","encode_dtype":">f4","decode_dtype":">f8"},{"id":"shuffle","elementsize":4}]"#
    );
    assert_eq!(codecs.compressor, r#"{"id":"zstd","level":3}"#);
    let codecs = pipeline("").numcodecs(&chunk).expect("Zarr knows nothing simpler");
    assert_eq!((codecs.filters.as_str(), codecs.compressor.as_str()), ("null", "null"));
    for text in ["pco", "zfp,reversible", "sz,abs=1", "bitshuffle zstd"] {
        assert_eq!(pipeline(text).numcodecs(&chunk), None, "{text}");
    }
}
