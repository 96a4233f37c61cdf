//! A realistic task: SHA-256 of many small files, by path.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use brigade_testkit::Random;
use sha2::{Digest, Sha256};
use tempfile::TempDir;

use crate::load::Load;
use crate::report::Outcome;

/// A temporary tree of files, deleted on drop.
#[derive(Debug)]
pub(crate) struct Tree {
    _folder: TempDir,
    pub(crate) list: PathBuf,
}

/// Largest size of a file. Larger files would measure the digest, smaller ones the opening.
const LARGEST: u64 = 16 << 10;

/// Number of files in one folder.
const FANOUT: usize = 256;

impl Tree {
    /// Creates files of 0 to 16 KiB; the same seed gives the same files.
    pub(crate) fn create(load: &Load) -> Outcome<Self> {
        let folder = TempDir::with_prefix("brigade-bench-")?;
        let mut random = Random::new(load.seed);
        let mut list = String::new();
        let mut bytes = Vec::new();
        for number in 0..load.files {
            let parent = folder.path().join(format!("{:03}", number / FANOUT));
            if number % FANOUT == 0 {
                fs::create_dir(&parent)?;
            }
            bytes.clear();
            for _ in 0..random.within(0..LARGEST / 8 + 1) {
                bytes.extend(random.number().to_le_bytes());
            }
            let path = parent.join(format!("{number:05}"));
            fs::write(&path, &bytes)?;
            writeln!(list, "{}", path.display())?;
        }
        let path = folder.path().join("list");
        fs::write(&path, list)?;
        Ok(Self { _folder: folder, list: path })
    }

    /// Reads every file into the page cache, which earlier sections may have emptied.
    pub(crate) fn warm(&self) -> Outcome<()> {
        for path in paths(&self.list)? {
            fs::read(path)?;
        }
        Ok(())
    }
}

/// Reads the paths in a list.
pub(crate) fn paths(list: &Path) -> Outcome<Vec<String>> {
    Ok(fs::read_to_string(list)?.lines().map(str::to_owned).collect())
}

/// Returns the digest of one file; this is the task.
pub(crate) fn digest(path: String) -> Result<[u8; 32], String> {
    let bytes = fs::read(&path).map_err(|error| format!("{path}: {error}"))?;
    Ok(Sha256::digest(bytes).into())
}

/// Returns one digest over all digests in order, equal for contestants that did the same work.
pub(crate) fn checksum(digests: &[[u8; 32]]) -> String {
    let digest = Sha256::digest(digests.as_flattened());
    digest.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::{Tree, checksum, digest, paths};
    use crate::load::Load;

    #[test]
    fn the_same_seed_creates_the_same_files() {
        let load = Load { files: 300, ..Load::new(true) };
        let digests = |tree: &Tree| -> Vec<_> {
            paths(&tree.list).unwrap().into_iter().map(|path| digest(path).unwrap()).collect()
        };
        let (one, two) = (Tree::create(&load).unwrap(), Tree::create(&load).unwrap());
        assert_eq!(digests(&one).len(), 300);
        assert_eq!(checksum(&digests(&one)), checksum(&digests(&two)));
        let folder = one.list.parent().unwrap().to_owned();
        drop(one);
        assert!(!folder.exists());
    }
}
