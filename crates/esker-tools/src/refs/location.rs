//! Where a reader will find the file.

use std::path::{Component, Path, PathBuf};

use esker::Dataset;

/// Where a reader will find the file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Location {
    /// Where it is now: `file://` and the absolute path.
    #[default]
    Here,
    /// The path from the directory of the references, for files that move together. A reader must
    /// have that directory as its current one.
    Relative,
    /// A URL that fsspec understands, where the file (or the folder, of a dataset whose chunks are
    /// in files of their own) will be.
    Url(String),
}

/// Where a reader will find the files of a dataset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Urls {
    /// The dataset: its file, or its folder.
    pub(super) dataset: String,
    /// The classic file.
    pub(super) classic: String,
    /// What the URLs of the files with chunks are before their number, if there are any.
    pub(super) chunks: Option<String>,
}

impl Urls {
    /// The file of this number, as entries of chunk tables count.
    pub(super) fn of(&self, file: u32) -> String {
        match &self.chunks {
            Some(chunks) if file > 0 => format!("{chunks}{file}"),
            _ => self.classic.clone(),
        }
    }
}

impl Location {
    /// The URLs of a dataset's files, for references in `directory`, which is absolute.
    pub(super) fn urls(&self, dataset: &Dataset, directory: &Path) -> Urls {
        let path = dataset.path();
        let number_one = dataset.chunk_file(1);
        let one = number_one.as_ref().and_then(|one| Some((one.parent()?, one.file_name()?)));
        let Some((folder, one)) = one else {
            let classic = self.url(path, directory);
            return Urls { dataset: classic.clone(), classic, chunks: None };
        };
        let within = |name: &std::ffi::OsStr| match self {
            Location::Url(url) => {
                format!("{}/{}", url.trim_end_matches('/'), name.to_string_lossy())
            }
            _ => self.url(&folder.join(name), directory),
        };
        let mut chunks = within(one);
        // The number.
        chunks.pop();
        let classic = within(path.file_name().unwrap_or_default());
        Urls { dataset: self.url(folder, directory), classic, chunks: Some(chunks) }
    }

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
