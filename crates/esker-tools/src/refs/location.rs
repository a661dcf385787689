//! Where a reader will find the file.

use std::path::{Component, Path, PathBuf};

/// Where a reader will find the file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Location {
    /// Where it is now: `file://` and the absolute path.
    #[default]
    Here,
    /// The path from the directory of the references, for files that move together. A reader must
    /// have that directory as its current one.
    Relative,
    /// A URL that fsspec understands, where the file will be.
    Url(String),
}

impl Location {
    /// The URL of `file`, which is absolute, for references in `directory`, which is too.
    pub(super) fn url(&self, file: &Path, directory: &Path) -> String {
        match self {
            // fsspec takes what follows as it is: nothing is escaped.
            Location::Here => format!("file://{}", file.display()),
            Location::Relative => from(directory, file).display().to_string(),
            Location::Url(url) => url.clone(),
        }
    }
}

/// The way from a directory to a file, both absolute.
fn from(directory: &Path, file: &Path) -> PathBuf {
    let (mut there, mut here) = (file.components().peekable(), directory.components().peekable());
    while there.peek().is_some() && there.peek() == here.peek() {
        there.next();
        here.next();
    }
    here.map(|_| Component::ParentDir).chain(there).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relative_path_begins_at_the_references() {
        let way = |directory: &str, file: &str| {
            Location::Relative.url(Path::new(file), Path::new(directory))
        };
        assert_eq!(way("/a/b", "/a/b/x.nc"), "x.nc");
        assert_eq!(way("/a/b", "/a/c/x.nc"), "../c/x.nc");
        assert_eq!(way("/a/b/c", "/x.nc"), "../../../x.nc");
        assert_eq!(way("/a", "/a/b c/x.nc"), "b c/x.nc");
    }

    #[test]
    fn an_absolute_path_is_not_escaped() {
        assert_eq!(
            Location::Here.url(Path::new("/a b/ü%20.nc"), Path::new("/")),
            "file:///a b/ü%20.nc"
        );
    }
}
