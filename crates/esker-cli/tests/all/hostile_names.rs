//! What others have chosen (names in files, paths, arguments) does not steer the terminal.

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{esker, good, run};
use esker::{CreateOptions, Dataset, DimLen, ExternalType, Owner, Selection, Values};

/// Twelve bytes: clears the screen, C1, turns the direction, rings.
fn hostile(letter: char) -> String {
    format!("{letter}\u{1b}[2J\u{9b}\u{202e}\u{7}z")
}

/// What a terminal would obey, by the Unicode standard's lists; line breaks are the command's own.
fn obeyed(c: char) -> bool {
    let bidi = ['\u{61c}', '\u{200e}', '\u{200f}'].contains(&c);
    let ranges = ['\u{2028}'..='\u{202e}', '\u{2066}'..='\u{2069}'];
    !matches!(c, '\n' | '\t') && c.is_control() || bidi || ranges.iter().any(|r| r.contains(&c))
}

/// A file of which every name and text is hostile, made of one with names of the same lengths, because none of our
/// writers makes such names.
fn hostile_file(path: &Path) {
    let name = |letter: char| letter.to_string().repeat(12);
    let mut def = Dataset::create(path, CreateOptions::new()).unwrap();
    let time = def.add_dim(&name('R'), DimLen::Unlimited).unwrap();
    let x = def.add_dim(&name('X'), DimLen::Fixed(3)).unwrap();
    let letters = def.add_dim(&name('L'), DimLen::Fixed(12)).unwrap();
    let fixed = def.add_var(&name('F'), ExternalType::Int, &[x]).unwrap();
    let record = def.add_var(&name('V'), ExternalType::Float, &[time, x]).unwrap();
    let text = def.add_var(&name('C'), ExternalType::Char, &[x, letters]).unwrap();
    for owner in [Owner::Global, fixed.into(), record.into(), text.into()] {
        def.put_attr(owner, &name('A'), Values::from(name('T').as_str())).unwrap();
        let mut bytes = name('U').into_bytes();
        bytes.extend(b" \x9b31m");
        def.put_attr(owner, &name('B'), Values::Char(bytes)).unwrap();
    }
    let mut ds = def.enddef().unwrap();
    ds.put(fixed, &Selection::all(), &[1, 2, 3]).unwrap();
    ds.put(record, &Selection::slab(&[0, 0], &[2, 3]), &[0.5f32; 6]).unwrap();
    let texts = Values::Char(name('W').repeat(3).into_bytes());
    ds.put_values(text, &Selection::all(), &texts).unwrap();
    ds.close().unwrap();
    let mut bytes = fs::read(path).unwrap();
    let mut changed = 0;
    for letter in "RXLFVCATBUW".chars() {
        let (plain, evil) = (name(letter).into_bytes(), hostile(letter).into_bytes());
        assert_eq!(plain.len(), evil.len());
        for at in 0..bytes.len() - 11 {
            if bytes[at..at + 12] == plain[..] {
                bytes[at..at + 12].copy_from_slice(&evil);
                changed += 1;
            }
        }
    }
    assert!(changed > 20);
    fs::write(path, bytes).unwrap();
}

#[test]
fn no_command_lets_names_steer_the_terminal() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str| dir.path().join(name).to_str().unwrap().to_string();
    let evil = file(&format!("{}.nc", hostile('f')));
    hostile_file(Path::new(&evil));
    let (other, missing, out) = (file("other.nc"), file(&hostile('m')), file(&hostile('o')));
    hostile_file(Path::new(&other));
    let mut bytes = fs::read(&other).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 0x55;
    fs::write(&other, bytes).unwrap();
    let cut = file(&hostile('c'));
    fs::write(&cut, &fs::read(&evil).unwrap()[..100]).unwrap();
    let text = file(&hostile('t'));
    fs::write(
        &text,
        format!("netcdf {} {{ dimensions: {} = {} ; }}", hostile('n'), hostile('d'), hostile('v')),
    )
    .unwrap();
    let container = file(&format!("{}.esk", hostile('k')));
    let var = hostile('V');
    let some = hostile('q');
    let calls: Vec<Vec<&str>> = vec![
        vec!["info", &evil],
        vec!["info", "--stats", &evil],
        vec!["info", "-v", &evil],
        vec!["info", "--json", &evil],
        vec!["dump", &evil],
        vec!["dump", "-h", &evil],
        vec!["dump", "-x", &evil],
        vec!["dump", "-s", &evil],
        vec!["dump", "-b", "c", &evil],
        vec!["dump", "-f", "c", &evil],
        vec!["dump", "-v", &var, &evil],
        vec!["dump", "-v", &some, &evil],
        vec!["dump", "-n", &some, &evil],
        vec!["check", &evil],
        vec!["check", "--json", &evil],
        vec!["check", &cut],
        vec!["check", &missing],
        vec!["check", "--repair", &out, &cut],
        vec!["offsets", &evil],
        vec!["offsets", "--text", &evil],
        vec!["offsets", "-s", "-g", "-r", &evil],
        vec!["offsets", "--json", &evil],
        vec!["offsets", "-v", &some, &evil],
        vec!["diff", &evil, &other],
        vec!["diff", "--json", &evil, &other],
        vec!["diff", &evil, &missing],
        vec!["diff", "-v", &some, &evil, &other],
        vec!["copy", &evil, &out],
        vec!["copy", "-O", "--json", &evil, &out],
        vec!["copy", "-O", "-v", &some, &evil, &out],
        vec!["copy", "-O", "-d", "q\u{1b}[2J=1:2", &evil, &out],
        vec!["copy", "-O", "--kind", &some, &evil, &out],
        vec!["copy", "-O", "--filter", &some, &evil, &out],
        vec!["copy", "--layout", "log", &evil, &container],
        vec!["info", &container],
        vec!["check", &container],
        vec!["recover", &container],
        vec!["replay", &container, &out],
        vec!["replay", &evil, &out],
        vec!["recover", &evil],
        vec!["recover", &evil, "--dir", &missing],
        vec!["recover", &missing],
        vec!["refs", &evil, "-o", "-"],
        vec!["refs", &evil],
        vec!["refs", "-v", &some, &evil],
        vec!["gen", &text, "-o", &out],
        vec!["gen", &text],
        vec!["gen", &missing, "-o", &out],
        vec!["bench", &some],
        vec!["bench", "--peer", &some],
        vec!["simulate", &some],
        vec!["completions", &some],
        vec![&some],
        vec!["dump", &format!("--{some}")].leak_str(),
    ];
    let mut told = 0;
    for arguments in &calls {
        let run = run(arguments);
        for (stream, text) in [("stdout", &run.out), ("stderr", &run.err)] {
            let at = text.find(obeyed);
            let context = at.map(|at| text[..at].chars().rev().take(60).collect::<String>());
            let context = context.map(|text| text.chars().rev().collect::<String>());
            assert_eq!(context, None, "esker {arguments:?}, {stream}");
            told += usize::from(text.contains(r"\u{1b}") || text.contains(r"\%1b"));
        }
    }
    assert!(told > 20, "names are told as escapes, and not left out: {told}");
}

/// Keeps strings of a list for the rest of the test.
trait LeakStr {
    fn leak_str(self) -> Vec<&'static str>;
}

impl LeakStr for Vec<&str> {
    fn leak_str(self) -> Vec<&'static str> {
        self.into_iter().map(|text| &*text.to_string().leak()).collect()
    }
}

#[test]
fn names_that_are_told_as_escapes_are_read_again_by_gen() {
    // Legal in files: no rule is broken by C1 and marks of direction.
    let dir = tempfile::tempdir().unwrap();
    let (first, text, second): (PathBuf, PathBuf, PathBuf) =
        (dir.path().join("a.nc"), dir.path().join("a.cdl"), dir.path().join("b.nc"));
    let name = "v\u{9b}31m\u{202e}x\u{2066}";
    let mut def = Dataset::create(&first, CreateOptions::new()).unwrap();
    let x = def.add_dim(&format!("d{name}"), DimLen::Fixed(2)).unwrap();
    let v = def.add_var(name, ExternalType::Short, &[x]).unwrap();
    let words = Values::from("a\u{202e}b\u{9b}\u{1b}c");
    def.put_attr(v, &format!("a{name}"), words.clone()).unwrap();
    let mut ds = def.enddef().unwrap();
    ds.put(v, &Selection::all(), &[7i16, 8]).unwrap();
    ds.close().unwrap();
    let dumped = esker(&["dump", first.to_str().unwrap()]).output().unwrap();
    assert!(dumped.status.success());
    fs::write(&text, &dumped.stdout).unwrap();
    good(&["gen", text.to_str().unwrap(), "-o", second.to_str().unwrap()]);
    let ds = Dataset::open(&second).unwrap();
    let v = ds.var(name).unwrap();
    assert_eq!(ds.get::<i16>(v, &Selection::all()).unwrap(), [7, 8]);
    let attribute = ds.schema().attr(Owner::Var(v), &format!("a{name}")).unwrap();
    assert_eq!(*attribute, words);
    if esker_testkit::programs::have("ncgen") {
        // ncgen has no escapes in names, but reads the text as it is meant.
        let third = dir.path().join("c.nc");
        let made = std::process::Command::new("ncgen").arg("-o").args([&third, &text]).output();
        assert!(made.unwrap().status.success());
        let ds = Dataset::open(&third).unwrap();
        let attrs = &ds.schema().vars.iter().next().unwrap().attrs;
        assert_eq!(attrs.iter().next().unwrap().values, words);
    }
}
