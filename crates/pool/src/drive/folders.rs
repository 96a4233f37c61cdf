//! The folders of workers' servers that the workers could not remove.
//!
//! Without descriptors this process cannot remove them either. Such a folder is kept in mind, and removed with the next one or
//! at the pool's end.

use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

#[derive(Default)]
pub(super) struct Folders {
    left: Mutex<Vec<PathBuf>>,
}

impl Folders {
    /// Removes a folder that may be gone already, and those that could not be removed before.
    pub(super) fn remove(&self, folder: PathBuf) {
        self.left.lock().unwrap_or_else(PoisonError::into_inner).push(folder);
        self.remove_all();
    }

    /// Removes what could not be removed before.
    pub(super) fn remove_all(&self) {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
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
    fn a_folder_that_could_not_be_removed_is_removed_with_the_next_one() {
        let base = tempfile::tempdir().unwrap();
        let (first, second) = (base.path().join("first"), base.path().join("second"));
        fs::write(&first, "no folder, so it cannot be removed as one").unwrap();
        fs::create_dir(&second).unwrap();
        let folders = Folders::default();
        folders.remove(first.clone());
        folders.remove(base.path().join("gone"));
        assert_eq!(*folders.left.lock().unwrap(), std::slice::from_ref(&first));
        fs::remove_file(&first).unwrap();
        fs::create_dir(&first).unwrap();
        folders.remove(second.clone());
        assert!(!first.exists() && !second.exists());
        assert!(folders.left.lock().unwrap().is_empty());
    }
}
