//! Layouts are ranked by what reads of them take.

use esker_policy::advice::{Array, Reads, rank};
use esker_policy::reading::{Costs, Layout, Span};

fn array() -> Array {
    Array { shape: vec![256, 256, 256], element: 4 }
}

fn layouts() -> Vec<Layout> {
    vec![
        Layout::Blocks(vec![8, 8, 8]),
        Layout::Canonical,
        Layout::Blocks(vec![256, 256, 1]),
        Layout::Blocks(vec![32, 32, 32]),
    ]
}

fn best(spans: [Span; 3]) -> (usize, Option<f64>) {
    let reads = [Reads { spans: spans.to_vec(), times: 10.0 }];
    let ranked = rank(&array(), &layouts(), 0, &reads, &Costs::default(), 1e-9);
    assert!(ranked.windows(2).all(|pair| pair[0].seconds <= pair[1].seconds));
    (ranked[0].layout, ranked[0].pays_after)
}

#[test]
fn the_best_layout_is_the_one_the_reads_are_made_for() {
    assert_eq!(best([Span::All, Span::All, Span::Elements(1)]).0, 2);
    assert_eq!(best([Span::Elements(1), Span::All, Span::All]).0, 1);
    assert_eq!(best([Span::All; 3]).0, 1);
    assert_eq!(best([Span::Elements(100); 3]).0, 3);
}

#[test]
fn a_layout_pays_when_what_it_saves_is_what_it_cost() {
    let reads = [Reads { spans: vec![Span::All; 3], times: 3.0 }];
    let ranked = rank(&array(), &layouts(), 0, &reads, &Costs::default(), 1e-9);
    let now = ranked.iter().find(|advice| advice.layout == 0).unwrap();
    assert_eq!((now.cost, now.pays_after), (0.0, None));
    let canonical = ranked.iter().find(|advice| advice.layout == 1).unwrap();
    let times = canonical.pays_after.unwrap();
    let even = canonical.cost + times * canonical.seconds - times * now.seconds;
    assert!(even.abs() < 1e-9 * canonical.cost, "{even}");
    // What is slower than what is there never pays.
    let thin = ranked.iter().find(|advice| advice.layout == 2).unwrap();
    assert!(thin.seconds > now.seconds && thin.pays_after.is_none());
}
