//! A second decoder, which follows the format's page, gives the same bits as ours.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::common::{pipeline, there_and_back};
use esker_codec::{Chunk, Scratch};
use esker_format::ExternalType;

#[test]
fn sz_chunks_are_what_the_page_says() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let Some(python) = esker_testkit::python::with("numcodecs") else { return };
    // Shapes with their folded forms.
    let shapes: &[(&[usize], [usize; 4])] = &[
        (&[500], [1, 1, 1, 500]),
        (&[30, 41], [1, 1, 30, 41]),
        (&[9, 1, 12, 11], [1, 9, 12, 11]),
        (&[2, 3, 5, 6, 9], [6, 5, 6, 9]),
        (&[3], [1, 1, 1, 3]),
    ];
    let mut scratch = Scratch::new();
    let (mut input, mut expected) = (Vec::new(), Vec::new());
    for (case, (shape, folded)) in shapes.iter().enumerate() {
        for ty in [ExternalType::Float, ExternalType::Double] {
            for bound in ["abs=0.5", "abs=0.001", "rel=1e-7"] {
                let value = |i: usize| match i % 97 {
                    _ if case % 2 == 0 => {
                        (i as f64 / 17.0).sin() * 30.0 + (i * 31 % 7) as f64 / 50.0
                    }
                    5 => f64::NAN,
                    6..=20 => -1e34,
                    21 => 4e5,
                    _ => (i as f64 / 23.0).cos() * 30.0,
                };
                let count: usize = shape.iter().product();
                let bytes: Vec<u8> = (0..count)
                    .flat_map(|i| match ty {
                        ExternalType::Float => (value(i) as f32).to_be_bytes().to_vec(),
                        _ => value(i).to_be_bytes().to_vec(),
                    })
                    .collect();
                let pipeline = pipeline(&format!("sz,{bound}"));
                let chunk = Chunk::new(ty, shape);
                let (encoded, stored, ours) =
                    there_and_back(&pipeline, &chunk, &bytes, &mut scratch).expect("it works");
                if encoded.mask.is_raw(&pipeline) {
                    continue;
                }
                let head = [ty.size() as usize].into_iter().chain(*folded).chain([stored.len()]);
                input.extend(head.flat_map(|number| (number as u32).to_le_bytes()));
                input.extend(stored);
                expected.push((format!("{shape:?} {ty} {bound}"), ours));
            }
        }
    }
    let mut child = Command::new(&python)
        .arg(root.join("compare/decoder.py"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("Python starts");
    let mut pipe = child.stdin.take().expect("a pipe");
    let writer = std::thread::spawn(move || pipe.write_all(&input));
    let output = child.wait_with_output().expect("it ends");
    writer.join().expect("the thread ends").expect("it reads");
    assert!(output.status.success() && expected.len() > 20, "{} chunks", expected.len());
    let mut theirs = output.stdout.as_slice();
    for (what, ours) in expected {
        let (part, rest) = theirs.split_at_checked(ours.len()).expect("elements of all chunks");
        assert!(part == ours, "{what}: other bits");
        theirs = rest;
    }
}
