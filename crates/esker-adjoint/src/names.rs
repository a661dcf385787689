//! Names inside a folder of checkpoints, exactly as writers make them.
//!
//! A folder may come from anybody. A name that no writer would have made is nobody's: it is not opened and not removed.

use std::path::{Path, PathBuf};

use esker_format::inside;

/// The file that says what the folder is.
pub const MARK: &str = "esker.json";

/// What a file of the folder is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Name {
    /// What the run is.
    Mark,
    /// What a rank stored and gave up.
    Journal { rank: u32 },
    /// A checkpoint of a rank.
    Segment { number: u64, rank: u32 },
}

impl Name {
    /// What the name says, if a writer makes such names.
    pub(crate) fn parse(name: &str) -> Option<Name> {
        let rank = |text: &str| text.parse::<u32>().ok().filter(|rank| rank.to_string() == text);
        if name == MARK {
            return Some(Name::Mark);
        }
        if let Some(text) = name.strip_prefix("journal.") {
            return Some(Name::Journal { rank: rank(text)? });
        }
        let (number, owner) = name.strip_suffix(".seg")?.split_once('.')?;
        Some(Name::Segment { number: inside::version(number)?, rank: rank(owner)? })
    }
}

pub(crate) fn journal_path(folder: &Path, rank: u32) -> PathBuf {
    folder.join(format!("journal.{rank}"))
}

/// The name of a segment: no number comes twice, so that what is being written is never what is read.
pub(crate) fn segment_path(folder: &Path, rank: u32, number: u64) -> PathBuf {
    folder.join(format!("{number:08}.{rank}.seg"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_writers_make_are_names() {
        let parsed = |path: PathBuf| Name::parse(path.file_name().unwrap().to_str().unwrap());
        let folder = Path::new("run.chk");
        assert_eq!(parsed(journal_path(folder, 12)), Some(Name::Journal { rank: 12 }));
        for (number, rank) in [(0, 0), (7, 3), (123_456_789, u32::MAX)] {
            let name = Name::Segment { number, rank };
            assert_eq!(parsed(segment_path(folder, rank, number)), Some(name));
        }
        assert_eq!(Name::parse(MARK), Some(Name::Mark));
        for wrong in [
            "",
            "journal.",
            "journal.01",
            "journal.+1",
            "journal.4294967296",
            "journal.1.seg",
            "00000001.seg",
            "1.0.seg",
            "00000001.00.seg",
            "+0000001.0.seg",
            "00000001.0.seg.seg",
            "00000001.0.0.seg",
            "../00000001.0.seg",
            "notes.seg",
            ".esker.json.new",
        ] {
            assert_eq!(Name::parse(wrong), None, "{wrong:?}");
        }
    }
}
