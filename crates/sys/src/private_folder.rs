//! A folder that only this user can read or change.

use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Mode, OFlags, flock, fstat, mkdir, open, openat};
use rustix::io::{Errno, retry_on_intr};
use rustix::process::geteuid;

use crate::file_lock;

/// A folder of this user, closed to all others.
#[derive(Debug)]
pub struct PrivateFolder(OwnedFd);

impl PrivateFolder {
    /// Returns `$XDG_RUNTIME_DIR/brigade`; if that variable names no folder of this user, a folder
    /// in `/tmp` named after the user id.
    pub fn default_path() -> PathBuf {
        path_in(std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from))
    }

    /// Opens the folder, and creates it first if it does not exist.
    ///
    /// The folder may lie in one that everybody can write to, such as `/tmp`: a link is not
    /// followed, and the opened folder is checked, not its name.
    ///
    /// # Errors
    /// `PermissionDenied` if it belongs to another user or is open to others.
    pub fn open(path: &Path) -> io::Result<Self> {
        match mkdir(path, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::RDONLY;
        let folder = open(path, flags, Mode::empty())?;
        let status = fstat(&folder)?;
        let refuse = |why: &str| {
            Err(io::Error::new(io::ErrorKind::PermissionDenied, format!("the folder {why}")))
        };
        if status.st_uid != geteuid().as_raw() {
            return refuse("belongs to another user");
        }
        if Mode::from_raw_mode(status.st_mode).intersects(Mode::RWXG | Mode::RWXO) {
            return refuse("is open to other users: its mode should be 0700");
        }
        Ok(Self(folder))
    }

    /// Opens a file of the folder for reading and writing, and creates it first if it does not
    /// exist. A link is not followed.
    pub fn file(&self, name: &str) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(File::from(openat(&self.0, name, flags, Mode::RUSR | Mode::WUSR)?))
    }

    /// Opens a file of the folder for reading and writing; `None` if it does not exist. A link is
    /// not followed.
    pub fn existing_file(&self, name: &str) -> io::Result<Option<File>> {
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match openat(&self.0, name, flags, Mode::empty()) {
            Ok(file) => Ok(Some(File::from(file))),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Takes the lock of the folder, shared with all others who call this; waits while somebody
    /// holds it exclusively.
    ///
    /// Cleaners of temporary folders, such as `systemd-tmpfiles`, skip a locked folder.
    pub fn lock_shared(&self) -> io::Result<()> {
        Ok(retry_on_intr(|| flock(&self.0, FlockOperation::LockShared))?)
    }

    /// Takes the lock of the folder exclusively. Returns `false` if somebody else holds it in
    /// either way.
    pub fn try_lock_alone(&self) -> io::Result<bool> {
        file_lock::try_lock(&self.0)
    }

    /// Releases the lock of the folder.
    pub fn unlock(&self) -> io::Result<()> {
        Ok(retry_on_intr(|| flock(&self.0, FlockOperation::Unlock))?)
    }
}

fn path_in(runtime: Option<PathBuf>) -> PathBuf {
    // After `su`, the variable may still name the folder of another user.
    let is_own = |folder: &PathBuf| {
        folder.is_absolute()
            && fs::metadata(folder).is_ok_and(|found| found.is_dir() && found.uid() == user_id())
    };
    runtime.filter(is_own).map_or_else(
        || PathBuf::from(format!("/tmp/brigade-{}", user_id())),
        |folder| folder.join("brigade"),
    )
}

/// Returns the effective user of this process.
pub fn user_id() -> u32 {
    geteuid().as_raw()
}

#[cfg(not(loom))]
#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn a_folder_is_locked_by_one_or_by_several_together() {
        let path = std::env::temp_dir().join(format!("brigade-locked-{}", std::process::id()));
        let [a, b, c] = [(); 3].map(|()| PrivateFolder::open(&path).unwrap());
        fs::remove_dir_all(&path).unwrap();
        a.lock_shared().unwrap();
        b.lock_shared().unwrap();
        assert!(!c.try_lock_alone().unwrap());
        a.unlock().unwrap();
        assert!(!c.try_lock_alone().unwrap());
        b.unlock().unwrap();
        assert!(c.try_lock_alone().unwrap());
        assert!(!a.try_lock_alone().unwrap());
    }

    #[test]
    fn only_an_own_folder_is_used_by_default() {
        let own = tempfile::tempdir().unwrap();
        assert_eq!(path_in(Some(own.path().to_owned())), own.path().join("brigade"));
        let other = PathBuf::from(format!("/tmp/brigade-{}", user_id()));
        for runtime in [None, Some("/nowhere"), Some("relative"), Some("/dev/null")] {
            assert_eq!(path_in(runtime.map(PathBuf::from)), other, "{runtime:?}");
        }
    }

    #[test]
    fn a_folder_that_others_can_enter_and_a_link_are_refused() {
        let base = std::env::temp_dir().join(format!("brigade-private-{}", std::process::id()));
        let private = PrivateFolder::open(&base).unwrap();
        assert_eq!(fs::metadata(&base).unwrap().permissions().mode() & 0o777, 0o700);
        assert!(private.existing_file("a").unwrap().is_none());
        private.file("a").unwrap();
        assert!(private.existing_file("a").unwrap().is_some());
        assert_eq!(fs::metadata(base.join("a")).unwrap().permissions().mode() & 0o177, 0);

        let link = base.join("link");
        symlink(&base, &link).unwrap();
        assert!(PrivateFolder::open(&link).is_err(), "a link was followed");
        assert!(private.file("link").is_err(), "a link was followed");

        let open = base.join("open");
        fs::create_dir(&open).unwrap();
        fs::set_permissions(&open, fs::Permissions::from_mode(0o750)).unwrap();
        let error = PrivateFolder::open(&open).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
        fs::remove_dir_all(base).unwrap();
    }
}
