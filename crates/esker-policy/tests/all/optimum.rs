//! In two dimensions, as few rectangles as there can be.
//!
//! The optimum is known: concave corners, less the largest number of chords between them that do not touch, less holes,
//! plus components (Ohtsuki 1982). It is counted here on a bitmap, with a matching of its own.

use esker_policy::boxes::Boxes;
use esker_policy::cluster::{Limits, cluster};
use proptest::prelude::*;

struct Bitmap {
    height: i64,
    width: i64,
    set: Vec<bool>,
}

impl Bitmap {
    fn at(&self, y: i64, x: i64) -> bool {
        let inside = (0..self.height).contains(&y) && (0..self.width).contains(&x);
        inside && self.set[(y * self.width + x) as usize]
    }

    /// Three of the four cells around are set.
    fn concave(&self, y: i64, x: i64) -> bool {
        let around = [(y - 1, x - 1), (y - 1, x), (y, x - 1), (y, x)];
        around.into_iter().filter(|(y, x)| self.at(*y, *x)).count() == 3
    }

    /// How many connected parts what is set (or not) has, with these neighbours, on a bitmap with a border of one.
    fn parts(&self, set: bool, neighbours: &[(i64, i64)]) -> usize {
        let inside =
            |y: i64, x: i64| (-1..=self.height).contains(&y) && (-1..=self.width).contains(&x);
        let mut seen = std::collections::HashSet::new();
        let mut parts = 0;
        for y in -1..=self.height {
            for x in -1..=self.width {
                if self.at(y, x) != set || !seen.insert((y, x)) {
                    continue;
                }
                parts += 1;
                let mut waiting = vec![(y, x)];
                while let Some((y, x)) = waiting.pop() {
                    let near = neighbours.iter().map(|(dy, dx)| (y + dy, x + dx));
                    waiting.extend(near.filter(|(y, x)| {
                        inside(*y, *x) && self.at(*y, *x) == set && seen.insert((*y, *x))
                    }));
                }
            }
        }
        parts
    }

    /// Chords from a concave corner in one direction: both cells beside it are set all the way.
    fn chords(&self, down: bool) -> Vec<[i64; 3]> {
        let mut chords = Vec::new();
        for y in 0..=self.height {
            for x in 0..=self.width {
                let mut length = 0;
                let free = |length: i64| match down {
                    true => self.at(y + length, x - 1) && self.at(y + length, x),
                    false => self.at(y - 1, x + length) && self.at(y, x + length),
                };
                while self.concave(y, x) && free(length) {
                    length += 1;
                    let end = if down { (y + length, x) } else { (y, x + length) };
                    if self.concave(end.0, end.1) {
                        chords.push(if down { [x, y, y + length] } else { [y, x, x + length] });
                        break;
                    }
                }
            }
        }
        chords
    }

    fn optimum(&self) -> usize {
        let corners = (0..=self.height).flat_map(|y| (0..=self.width).map(move |x| (y, x)));
        let concave = corners.filter(|(y, x)| self.concave(*y, *x)).count();
        let (level, upright) = (self.chords(false), self.chords(true));
        let meet = |a: &[i64; 3], b: &[i64; 3]| {
            (a[1]..=a[2]).contains(&b[0]) && (b[1]..=b[2]).contains(&a[0])
        };
        let mut partner: Vec<Option<usize>> = vec![None; upright.len()];
        let matched = (0..level.len()).filter(|chord| {
            let mut seen = vec![false; upright.len()];
            augment(*chord, &|a, b| meet(&level[a], &upright[b]), &mut partner, &mut seen)
        });
        let independent = level.len() + upright.len() - matched.count();
        let four = [(0, 1), (1, 0), (0, -1), (-1, 0)];
        let eight = [&four[..], &[(1, 1), (1, -1), (-1, 1), (-1, -1)]].concat();
        let holes = self.parts(false, &eight) - 1;
        concave + self.parts(true, &four) - independent - holes
    }
}

fn augment(
    from: usize,
    meet: &dyn Fn(usize, usize) -> bool,
    partner: &mut [Option<usize>],
    seen: &mut [bool],
) -> bool {
    for other in 0..partner.len() {
        if meet(from, other) && !std::mem::replace(&mut seen[other], true) {
            let free = partner[other].is_none_or(|next| augment(next, meet, partner, seen));
            if free {
                partner[other] = Some(from);
                return true;
            }
        }
    }
    false
}

/// How many rectangles come of the cells of a bitmap, each a box.
fn rectangles(bitmap: &Bitmap) -> usize {
    let mut boxes = Boxes::new(2);
    for y in 0..bitmap.height {
        for x in (0..bitmap.width).filter(|x| bitmap.at(y, *x)) {
            boxes.push(&[y as u64 * 3, x as u64 * 2], &[3, 2]).unwrap();
        }
    }
    cluster(&boxes, &Limits::default()).unwrap().len()
}

#[test]
fn the_formula_knows_shapes_that_one_can_count() {
    let of = |rows: &[&str]| Bitmap {
        height: rows.len() as i64,
        width: rows[0].len() as i64,
        set: rows.iter().flat_map(|row| row.bytes().map(|byte| byte == b'#')).collect(),
    };
    for (rows, optimum) in [
        (&["##", "#."][..], 2),
        (&["###", "#.#", "###"], 4),
        (&["#.", ".#"], 2),
        (&[".#.", "###", ".#."], 3),
        (&["###...", "###...", "..####", "..####"], 2),
        (&["###..", "#####", "..###"], 3),
        (&[".##.", "####", "####", ".##."], 3),
    ] {
        assert_eq!(of(rows).optimum(), optimum, "{rows:?}");
        assert_eq!(rectangles(&of(rows)), optimum, "{rows:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn cells_at_random_become_the_fewest_rectangles(
        (height, width, share, cells) in (1..24i64, 1..24i64, 1..100u8, proptest::collection::vec(0..100u8, 24 * 24)),
    ) {
        let set = cells.into_iter().take((height * width) as usize).map(|cell| cell < share).collect();
        let bitmap = Bitmap { height, width, set };
        prop_assume!(bitmap.set.contains(&true));
        prop_assert_eq!(rectangles(&bitmap), bitmap.optimum());
    }

    #[test]
    fn rectangles_over_each_other_become_the_fewest(
        slabs in proptest::collection::vec((0..30i64, 0..30i64, 1..10i64, 1..10i64), 1..30),
    ) {
        let (height, width) = (40, 40);
        let mut bitmap = Bitmap { height, width, set: vec![false; 1600] };
        let mut boxes = Boxes::new(2);
        for (y, x, h, w) in slabs {
            boxes.push(&[y as u64, x as u64], &[h as u64, w as u64]).unwrap();
            (y..y + h).for_each(|y| (x..x + w).for_each(|x| bitmap.set[(y * width + x) as usize] = true));
        }
        let merged = cluster(&boxes, &Limits { parts_per_box: 100, ..Limits::default() }).unwrap();
        prop_assert_eq!(merged.len(), bitmap.optimum());
    }
}
