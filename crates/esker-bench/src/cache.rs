//! Where programs of peers are kept that were compiled here, and run: a folder that nobody else can have put
//! anything into.

use std::fs::{self, DirBuilder, Metadata, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use esker_store::{Draft, LocalStore, Store};

/// The folder, made and looked at.
#[derive(Debug)]
pub(crate) struct Cache {
    path: PathBuf,
    /// One that goes with this.
    _fresh: Option<Draft>,
}

impl Cache {
    /// The user's: `esker` in XDG_CACHE_HOME, or in `.cache` of HOME; without these, a fresh one that is
    /// removed afterwards. `env` gives variables of the environment.
    pub(crate) fn find(env: impl Fn(&str) -> Option<PathBuf>) -> Result<Cache, String> {
        // What is not absolute is to be ignored, says the specification, and nobody's home.
        let of = |name: &str| env(name).filter(|path| path.is_absolute());
        let home = || of("HOME").map(|home| home.join(".cache"));
        match of("XDG_CACHE_HOME").or_else(home) {
            Some(base) => {
                let path = base.join("esker");
                let failed =
                    |why: String| format!("the cache {} cannot be used: {why}", path.display());
                private(&base, &path).map_err(|error| failed(error.to_string()))?;
                Ok(Cache { path, _fresh: None })
            }
            None => {
                let store: Arc<dyn Store> = Arc::new(LocalStore);
                let target = std::env::temp_dir().join("esker-cache");
                let fresh = Draft::folder(&store, &target).map_err(|error| error.to_string())?;
                let path = fresh.path().to_path_buf();
                let closed = fs::set_permissions(&path, Permissions::from_mode(0o700));
                closed.map_err(|error| format!("{}: {error}", path.display()))?;
                Ok(Cache { path, _fresh: Some(fresh) })
            }
        }
    }

    /// The same with the environment of this process.
    pub(crate) fn of_user() -> Result<Cache, String> {
        Cache::find(|name| std::env::var_os(name).map(PathBuf::from))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

/// Makes sure that only this user can have put something into the folder `path` of `base`.
fn private(base: &Path, path: &Path) -> io::Result<()> {
    fs::create_dir_all(base)?;
    let refuse = |why: String| Err(io::Error::new(ErrorKind::PermissionDenied, why));
    let own = rustix::process::geteuid().as_raw();
    let others_may_write = |facts: &Metadata| facts.mode() & 0o022 != 0;
    let above = fs::metadata(base)?;
    let is_sticky = above.mode() & 0o1000 != 0;
    if ![own, 0].contains(&above.uid()) || others_may_write(&above) && !is_sticky {
        return refuse(format!("others may write to {}", base.display()));
    }
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    // Of the name itself: a link could lead anywhere.
    let facts = fs::symlink_metadata(path)?;
    if !facts.is_dir() {
        return refuse("it is no folder (or a link to one)".to_string());
    }
    if facts.uid() != own {
        return refuse(format!("it belongs to user {}; XDG_CACHE_HOME names another", facts.uid()));
    }
    if others_may_write(&facts) {
        return refuse(
            "others may write to it, and what is in it would be run: remove it".to_string(),
        );
    }
    match facts.mode() & 0o077 {
        0 => Ok(()),
        _ => fs::set_permissions(path, Permissions::from_mode(0o700)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache(variables: &[(&str, &Path)]) -> Result<Cache, String> {
        Cache::find(|name| {
            let found = variables.iter().find(|(n, _)| *n == name);
            found.map(|(_, value)| value.to_path_buf())
        })
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o777
    }

    #[test]
    fn the_cache_is_the_users_own_and_closed_to_others() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().join("home");
        fs::create_dir(&home).unwrap();
        let found = cache(&[("HOME", &home)]).unwrap();
        assert_eq!(found.path(), home.join(".cache/esker"));
        assert_eq!(mode(found.path()), 0o700);
        let xdg = dir.path().join("xdg");
        let found = cache(&[("HOME", &home), ("XDG_CACHE_HOME", &xdg)]).unwrap();
        assert_eq!(found.path(), xdg.join("esker"));
        // A relative one is ignored.
        let found = cache(&[("HOME", &home), ("XDG_CACHE_HOME", Path::new("here"))]).unwrap();
        assert_eq!(found.path(), home.join(".cache/esker"));
    }

    #[test]
    fn without_a_home_the_cache_is_fresh_and_goes_afterwards() {
        let (one, other) = (cache(&[]).unwrap(), cache(&[]).unwrap());
        assert_ne!(one.path(), other.path());
        let path = one.path().to_path_buf();
        assert_eq!(mode(&path), 0o700);
        assert_eq!(fs::read_dir(&path).unwrap().count(), 0);
        drop(one);
        assert!(!path.exists());
    }

    #[test]
    fn a_cache_that_others_could_have_filled_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let (xdg, elsewhere) = (dir.path().join("xdg"), dir.path().join("elsewhere"));
        for path in [&xdg, &elsewhere] {
            fs::create_dir(path).unwrap();
        }
        let path = xdg.join("esker");
        std::os::unix::fs::symlink(&elsewhere, &path).unwrap();
        let why = cache(&[("XDG_CACHE_HOME", &xdg)]).unwrap_err();
        assert!(why.contains("a link"), "{why}");
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o777)).unwrap();
        let why = cache(&[("XDG_CACHE_HOME", &xdg)]).unwrap_err();
        assert!(why.contains("others may write to it"), "{why}");
        // One that others may read only is closed.
        fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
        cache(&[("XDG_CACHE_HOME", &xdg)]).unwrap();
        assert_eq!(mode(&path), 0o700);
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(&path, Some(1234), None).unwrap();
            let why = cache(&[("XDG_CACHE_HOME", &xdg)]).unwrap_err();
            assert!(why.contains("belongs to user 1234"), "{why}");
        }
        fs::remove_dir(&path).unwrap();
        fs::set_permissions(&xdg, Permissions::from_mode(0o777)).unwrap();
        let why = cache(&[("XDG_CACHE_HOME", &xdg)]).unwrap_err();
        assert!(why.contains("others may write to"), "{why}");
    }
}
