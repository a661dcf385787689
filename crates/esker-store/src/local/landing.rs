//! What has a name in the file system that a dataset is going to take.

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use super::{LocalFile, directory_of};
use crate::{Landing, Occupant};

/// The most links that are followed, as by the kernel.
const LINKS: usize = 40;

pub(super) fn landing(path: &Path) -> io::Result<Landing> {
    let (path, metadata) = follow(path)?;
    let Some(metadata) = metadata else {
        return Ok(Landing { path, occupant: Occupant::Nothing });
    };
    if metadata.is_dir() {
        return Ok(Landing { path, occupant: Occupant::Directory });
    }
    if !metadata.is_file() {
        let kind = metadata.file_type();
        let what = match () {
            () if kind.is_fifo() => "a pipe",
            () if kind.is_socket() => "a socket",
            () => "a device",
        };
        return Err(refuse(&format!("it is {what}, which no file is put in place of")));
    }
    // One that may not be written may not be replaced either, whatever its directory allows.
    let file = OpenOptions::new().read(true).write(true).open(&path)?;
    if file.metadata()?.len() == 0 {
        // Where there are no locks, two might fill it: the draft grows beside it then.
        if file.try_lock().is_ok() && file.metadata()?.len() == 0 {
            let occupant = Occupant::Empty(LocalFile::shared(&path, file));
            return Ok(Landing { path, occupant });
        }
    }
    if is_mount_point(&path) {
        return Err(refuse(
            "it is a mount point, whose file cannot be replaced but only written over, and a failure \
             would leave neither the old nor the new; empty it first (`: > FILE`) if the old may go",
        ));
    }
    Ok(Landing { path, occupant: Occupant::File })
}

fn refuse(why: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, why.to_string())
}

/// The name behind links, of something that need not be there.
fn follow(path: &Path) -> io::Result<(PathBuf, Option<fs::Metadata>)> {
    let mut path = path.to_path_buf();
    for _ in 0..LINKS {
        match fs::metadata(&path) {
            Ok(metadata) => return Ok((fs::canonicalize(&path)?, Some(metadata))),
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            Err(_) => {}
        }
        match fs::symlink_metadata(&path) {
            // A link to what is not there yet: a place that somebody has chosen for the file.
            Ok(link) if link.is_symlink() => {
                let may_lie = fs::metadata(directory_of(&path))?.mode() & 0o1002 == 0o1002;
                if may_lie && link.uid() != rustix::process::geteuid().as_raw() && link.uid() != 0 {
                    let why =
                        "it is a link of another user in a directory that everybody may write to";
                    return Err(io::Error::new(ErrorKind::PermissionDenied, why));
                }
                path = directory_of(&path).join(fs::read_link(&path)?);
            }
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok((path, None)),
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::other("too many links lead to it"))
}

/// Whether something is mounted at this name, which a rename cannot replace.
#[cfg(target_os = "linux")]
fn is_mount_point(path: &Path) -> bool {
    use rustix::fs::{AtFlags, CWD, StatxAttributes, StatxFlags, statx};
    let found = statx(CWD, path, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::BASIC_STATS);
    let root = StatxAttributes::MOUNT_ROOT;
    found.is_ok_and(|found| {
        found.stx_attributes_mask.contains(root) && found.stx_attributes.contains(root)
    })
}

#[cfg(not(target_os = "linux"))]
fn is_mount_point(path: &Path) -> bool {
    let device = |path: &Path| fs::metadata(path).map(|metadata| metadata.dev()).ok();
    device(path) != device(directory_of(path))
}
