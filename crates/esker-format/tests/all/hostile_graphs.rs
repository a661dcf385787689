//! Graphs from enemies: an error with the graph, the byte and the object, and memory bounded by
//! what was given.

use esker_format::graph::{GraphFault, GraphSet, Of, decode};

use esker_testkit::memory;
use esker_testkit::random::Random;

fn random_graph(random: &mut Random) -> Vec<u8> {
    let mut set = GraphSet::default();
    set.add_graph("g").unwrap();
    let (vertices, edges) = (random.below(9), random.below(5));
    for edge in 0..edges {
        set.add_edge(&format!("e{edge}"), edge as f64, random.below(2) == 0).unwrap();
    }
    for vertex in 0..vertices {
        let name = format!("v{vertex}");
        set.add_vertex(&name).unwrap();
        set.put_in("g", &name).unwrap();
        for _ in 0..random.below(4) {
            set.attach(&name, &format!("var{}", random.below(9))).unwrap();
        }
        set.put_attr(Of::Vertex(&name), "lo", vec![1i32, 2, 3]).unwrap();
    }
    for _ in 0..random.below(12) {
        if vertices > 0 && edges > 0 {
            let (a, b) = (random.below(vertices), random.below(vertices));
            let edge = format!("e{}", random.below(edges));
            set.connect(&format!("v{a}"), &edge, &format!("v{b}")).unwrap();
        }
    }
    set.encode("g", |_| Some(3)).unwrap()
}

/// Gives changed bytes their checksum, so that the rest is read.
fn sign(bytes: &mut [u8]) {
    let end = bytes.len() - 8;
    let sum = format!("{:08x}", crc32c::crc32c(&bytes[..end]));
    bytes[end..].copy_from_slice(sum.as_bytes());
}

fn read(bytes: &[u8]) -> Result<(), GraphFault> {
    let (read, used) = memory::peak(|| decode("g", bytes).map(drop));
    assert!(used <= 64 * bytes.len() + 64 * 1024, "{used} for {} bytes", bytes.len());
    if let Err(fault) = &read {
        assert!(fault.offset <= bytes.len() as u64);
        assert!(fault.to_string().starts_with("graph \"g\", byte "), "{fault}");
    }
    read
}

#[test]
fn damaged_graphs_are_refused_and_take_no_more_memory_than_they_have_bytes() {
    let rounds = std::env::var("ESKER_FUZZ_ROUNDS").ok().and_then(|n| n.parse().ok());
    let mut refused = 0;
    let rounds = rounds.unwrap_or(20_000u64);
    for seed in 0..rounds {
        let random = &mut Random(seed);
        let whole = random_graph(random);
        read(&whole).unwrap();
        let mut bytes = whole.clone();
        // One changed byte is always noticed by the checksum.
        let at = random.below(bytes.len());
        bytes[at] ^= 1 + random.below(255) as u8;
        read(&bytes).unwrap_err();
        // Signed again, what is read is a graph or an error.
        for _ in 0..=random.below(4) {
            let at = 16 + random.below(bytes.len() - 24);
            bytes[at] = match random.below(3) {
                0 => 0xff,
                1 => 0,
                _ => random.below(256) as u8,
            };
        }
        sign(&mut bytes);
        refused += u64::from(read(&bytes).is_err());
        // Cut short anywhere, with and without a length that says so.
        bytes.truncate(random.below(bytes.len()) / 4 * 4);
        read(&bytes).unwrap_err();
        if bytes.len() >= 24 {
            let length = bytes.len() as u64;
            bytes[8..16].copy_from_slice(&length.to_be_bytes());
            sign(&mut bytes);
            let _ = read(&bytes);
        }
    }
    assert!(refused > rounds / 4, "only {refused} of {rounds} were refused");
}

#[test]
fn counts_that_nothing_can_hold_are_named_with_their_object() {
    let mut set = GraphSet::default();
    set.add_graph("g").unwrap();
    set.add_vertex("here").unwrap();
    set.put_in("g", "here").unwrap();
    let whole = set.encode("g", |_| None).unwrap();
    // Head 16, attributes 12, edges 12, tag and count of the vertices 12, name 12.
    let mut bytes = whole.clone();
    bytes[64..72].copy_from_slice(&(1u64 << 60).to_be_bytes());
    sign(&mut bytes);
    let fault = read(&bytes).unwrap_err();
    assert_eq!((fault.offset, &*fault.object), (64, "vertex 0 (\"here\")"));
    assert!(fault.what.contains("the number of variables is 1152921504606846976"), "{fault}");
    let mut bytes = whole.clone();
    bytes[44..52].copy_from_slice(&7u64.to_be_bytes());
    sign(&mut bytes);
    let fault = read(&bytes).unwrap_err();
    assert_eq!((fault.offset, &*fault.object), (44, "the list of vertices"));
    let mut bytes = whole;
    bytes[6] = 2;
    sign(&mut bytes);
    assert!(read(&bytes).unwrap_err().what.contains("version 2"));
    assert!(read(&[0; 64]).unwrap_err().what.contains("never written"));
}
