//! What was probably meant.

/// The end of a sentence about a name that does not exist: the names that are near it.
pub fn hint<'a>(wanted: &str, names: impl Iterator<Item = &'a str>) -> String {
    let wanted_folded = wanted.to_lowercase();
    let limit = (wanted.chars().count() / 3).clamp(1, 3);
    let mut near: Vec<(usize, &str)> = names
        .map(|name| (distance(&wanted_folded, &name.to_lowercase()), name))
        .filter(|(distance, _)| *distance <= limit)
        .collect();
    near.sort();
    match near.as_slice() {
        [] => String::new(),
        [(_, one)] => format!("; did you mean \"{one}\"?"),
        [(_, first), (_, second), ..] => format!("; did you mean \"{first}\" or \"{second}\"?"),
    }
}

/// Levenshtein's distance, over characters, giving up on long names.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().take(64).collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().take(64).enumerate() {
        let mut before = i;
        row[0] = i + 1;
        for (j, cb) in b.iter().enumerate() {
            let substituted = before + usize::from(ca != *cb);
            before = row[j + 1];
            row[j + 1] = substituted.min(row[j] + 1).min(before + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_offered() {
        let names = ["temperature", "salinity", "time"];
        assert_eq!(hint("temprature", names.into_iter()), "; did you mean \"temperature\"?");
        assert_eq!(hint("TIME", names.into_iter()), "; did you mean \"time\"?");
        assert_eq!(hint("pressure", names.into_iter()), "");
    }
}
