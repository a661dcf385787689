//! Who may read a file, and what else is attached to it: given to a new file by the file that it is
//! like, before anything is written to it.

use std::ffi::CString;
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use rustix::fs::{Gid, Uid, XattrFlags};
use rustix::io::Errno;

use crate::Stripes;
use crate::stripes::ATTRIBUTE;

/// The access list of a file. Its permissions are in the mode as well, but not one from the other.
const ACCESS: &[u8] = b"system.posix_acl_access";
/// The access list that a directory gives to new files.
const DEFAULT: &[u8] = b"system.posix_acl_default";
/// A list of names and a value are never longer (the kernel's own limits).
const LONGEST: usize = 64 << 10;

/// Creates a file that nobody else may open yet, with the striping that `like` has.
pub(super) fn create_private(path: &Path, like: &Path) -> io::Result<File> {
    create_with(path, PRIVATE, value(like, ATTRIBUTE)?.as_deref(), &Lustre)
}

/// The mode of a file that nobody else may open.
pub(super) const PRIVATE: u32 = 0o600;

/// What there is of a parallel file system; tests have one of their own.
pub(super) trait Striping {
    /// Whether new files of this directory can have stripes.
    fn is_here(&self, directory: &Path) -> bool;
    /// Gives a file that was never opened its stripes.
    fn set(&self, path: &Path, attribute: &[u8]) -> io::Result<()>;
}

/// Lustre.
#[derive(Debug)]
pub(super) struct Lustre;

impl Striping for Lustre {
    #[cfg(target_os = "linux")]
    fn is_here(&self, directory: &Path) -> bool {
        const LUSTRE: u64 = 0x0bd0_0bd0;
        rustix::fs::statfs(directory).is_ok_and(|system| system.f_type as u64 == LUSTRE)
    }

    #[cfg(not(target_os = "linux"))]
    fn is_here(&self, _: &Path) -> bool {
        false
    }

    fn set(&self, path: &Path, attribute: &[u8]) -> io::Result<()> {
        let name = std::ffi::OsStr::from_bytes(ATTRIBUTE);
        Ok(rustix::fs::lsetxattr(path, name, attribute, XattrFlags::empty())?)
    }
}

/// Creates a file that must be new, with this striping: a file has it from before it is opened for the first
/// time, or not at all.
pub(super) fn create_with(
    path: &Path,
    mode: u32,
    striping: Option<&[u8]>,
    system: &dyn Striping,
) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = fs::OpenOptions::new();
    options.read(true).write(true).mode(mode);
    #[cfg(target_os = "linux")]
    if let Some(striping) = striping {
        // As `tar` restores it: a file that was never opened takes it.
        let kind = rustix::fs::FileType::RegularFile;
        rustix::fs::mknodat(rustix::fs::CWD, path, kind, mode.into(), 0)?;
        // A stripe that cannot be had costs speed, not data.
        let _ = system.set(path, striping);
        let no_follow = rustix::fs::OFlags::NOFOLLOW.bits() as i32;
        return options.custom_flags(no_follow).open(path);
    }
    let _ = (striping, system);
    options.create_new(true).open(path)
}

/// Bytes of a stripe of an open file, if it has such.
pub(super) fn stripe_of(file: &File) -> Option<u64> {
    let mut bytes = [0; 64 << 10];
    let name = std::ffi::OsStr::from_bytes(ATTRIBUTE);
    let length = rustix::fs::fgetxattr(file, name, &mut bytes[..]).ok()?;
    Stripes::of_attribute(bytes.get(..length)?).map(|stripes| stripes.size).filter(|size| *size > 0)
}

/// Gives `new`, which only its owner may open, the owner, group, access lists, extended attributes and at
/// last the mode of `like`.
///
/// Owner and group are kept where the system allows it. Where the group cannot be, it gets no more than
/// everybody has: otherwise another group could read what it could not before.
pub(crate) fn give(new: &File, like: &Path) -> io::Result<()> {
    let old = fs::metadata(like)?;
    let own = new.metadata()?;
    let owner = (old.uid() != own.uid()).then(|| Uid::from_raw(old.uid()));
    let group = (old.gid() != own.gid()).then(|| Gid::from_raw(old.gid()));
    let mut has_group = true;
    if owner.is_some() || group.is_some() {
        let both = rustix::fs::fchown(new, owner, group);
        if both.is_err() && group.is_some() {
            has_group = rustix::fs::fchown(new, None, group).is_ok();
        }
    }
    let (mut has_access, mut has_default, mut lost_access) = (false, false, false);
    for name in names(like)? {
        let Some(value) = value(like, &name)? else { continue };
        let is_list = name == ACCESS || name == DEFAULT;
        if name == ACCESS && !has_group {
            // What the list gives to the group would go to another one.
            lost_access = true;
            continue;
        }
        match rustix::fs::fsetxattr(new, &*cstring(&name)?, &value, XattrFlags::empty()) {
            Ok(()) => {
                has_access |= name == ACCESS;
                has_default |= name == DEFAULT;
            }
            // Of a list the mode shows who is in it at most, not what the group may: that is nothing then.
            Err(Errno::NOTSUP) if is_list => lost_access |= name == ACCESS,
            Err(error) if is_list || is_lack(error) => return Err(error.into()),
            // What only others may set (trusted, a label that the policy chooses) stays behind.
            Err(_) => {}
        }
    }
    // One that the directory gave would let people in that could not read what is replaced.
    for (name, is_own) in [(ACCESS, has_access), (DEFAULT, has_default)] {
        if !is_own && (name == ACCESS || old.is_dir()) {
            let _ = rustix::fs::fremovexattr(new, &*cstring(name)?);
        }
    }
    // A program's marks (set-user-ID) do not go to data; a directory's do.
    let all = if old.is_dir() { 0o7777 } else { 0o777 };
    let mut mode = old.mode() & all;
    if !has_group {
        mode &= !0o070 | (mode & 0o007) << 3;
    }
    if lost_access {
        mode &= !0o070;
    }
    new.set_permissions(fs::Permissions::from_mode(mode))
}

/// Whether the disk is full, which is told.
fn is_lack(error: Errno) -> bool {
    matches!(error, Errno::NOSPC | Errno::DQUOT | Errno::IO)
}

fn cstring(name: &[u8]) -> io::Result<CString> {
    CString::new(name).map_err(io::Error::from)
}

/// The names of the extended attributes of a file; none where there are no such.
fn names(path: &Path) -> io::Result<Vec<Vec<u8>>> {
    let mut list = vec![0; LONGEST];
    let length = match rustix::fs::listxattr(path, &mut list[..]) {
        Ok(length) => length,
        Err(Errno::NOTSUP | Errno::NOSYS | Errno::ACCESS | Errno::PERM) => 0,
        Err(error) => return Err(error.into()),
    };
    let names = list[..length].split(|byte| *byte == 0).filter(|name| !name.is_empty());
    // Lustre's is given when the file is made.
    Ok(names.filter(|name| !name.starts_with(b"lustre.")).map(<[u8]>::to_vec).collect())
}

/// An extended attribute of a file, if it has it and lets us read it.
fn value(path: &Path, name: &[u8]) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = vec![0; LONGEST];
    let name = std::ffi::OsStr::from_bytes(name);
    match rustix::fs::getxattr(path, name, &mut bytes[..]) {
        Ok(length) => {
            bytes.truncate(length);
            Ok(Some(bytes))
        }
        Err(Errno::IO) => Err(Errno::IO.into()),
        Err(_) => Ok(None),
    }
}
