//! Removes the folders of workers' servers that the workers could not remove.
//!
//! Without free descriptors this process cannot remove them either. Such a folder is remembered and
//! removed together with the next one, or at the pool's end.

use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;

use brigade_sys::sync::Mutex;

#[derive(Default)]
pub(crate) struct Folders {
    left: Mutex<Vec<PathBuf>>,
}

impl Folders {
    /// Removes a folder, which may be gone already, and folders that could not be removed before.
    pub(crate) fn remove(&self, folder: PathBuf) {
        self.left.lock().push(folder);
        self.remove_all();
    }

    /// Removes the folders that could not be removed before.
    pub(crate) fn remove_all(&self) {
        let mut left = self.left.lock();
        left.retain(|folder| match fs::remove_dir_all(folder) {
            Ok(()) => false,
            Err(error) => error.kind() != ErrorKind::NotFound,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_stayed_is_removed_with_the_next_one() {
        let base = tempfile::tempdir().unwrap();
        let (first, second) = (base.path().join("first"), base.path().join("second"));
        fs::write(&first, "a file, which cannot be removed as a folder").unwrap();
        fs::create_dir(&second).unwrap();
        let folders = Folders::default();
        folders.remove(first.clone());
        folders.remove(base.path().join("gone"));
        assert_eq!(*folders.left.lock(), std::slice::from_ref(&first));
        fs::remove_file(&first).unwrap();
        fs::create_dir(&first).unwrap();
        folders.remove(second.clone());
        assert!(!first.exists() && !second.exists());
        assert!(folders.left.lock().is_empty());
    }
}
