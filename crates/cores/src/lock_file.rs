//! Cores that several processes of one user share without taking the same ones.
//!
//! # Protocol
//! One file a user; the byte with a cpu's number is locked while the cpu is leased, by the open file description of the pool that
//! leased it. Whoever chooses cores locks their bytes before it believes that it has them; where that fails, it lets go of what it
//! has locked and chooses again without those cpus. Nobody waits for a lock while holding others, so that there is no deadlock.
//! The kernel lets go of the locks of a process that ends, in any way.
//!
//! The lock is cooperative: it keeps nobody away who does not ask. Processes must use the same folder.
//! Whoever gives cores back unlocks first and writes a byte afterwards, which those who watch the file hear.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use brigade_sys::byte_lock;
use brigade_sys::private_folder::{PrivateFolder, user_id};

use crate::cpu_set::CpuSet;

const FILE: &str = "cores.lock";

/// The locks of one pool.
#[derive(Debug)]
pub(crate) struct LockFile {
    file: File,
    path: PathBuf,
}

/// `$XDG_RUNTIME_DIR/brigade`; without that variable a folder in `/tmp` with the number of the user.
pub(crate) fn usual_folder() -> PathBuf {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    runtime.filter(|folder| folder.is_absolute()).map_or_else(
        || PathBuf::from(format!("/tmp/brigade-{}", user_id())),
        |folder| folder.join("brigade"),
    )
}

impl LockFile {
    pub(crate) fn open(folder: &Path) -> io::Result<Self> {
        let file = PrivateFolder::open(folder)?.file(FILE)?;
        Ok(Self { file, path: folder.join(FILE) })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Locks all of `cpus`, or none: then it says which are locked by others.
    pub(crate) fn try_lock(&self, cpus: &CpuSet) -> io::Result<Result<(), CpuSet>> {
        // Whoever starts after the file was deleted makes a new one, and would know nothing of our locks.
        if self.file.metadata()?.nlink() == 0 {
            let text = format!("{} was deleted while in use: restart", self.path.display());
            return Err(io::Error::new(io::ErrorKind::NotFound, text));
        }
        let mut locked = CpuSet::new();
        for run in cpus.runs() {
            match byte_lock::try_lock(&self.file, bytes(&run)) {
                Ok(true) => locked.extend(run),
                Ok(false) => {
                    self.unlock(&locked);
                    return self.locked_elsewhere(run).map(Err);
                }
                Err(error) => {
                    self.unlock(&locked);
                    return Err(error);
                }
            }
        }
        Ok(Ok(()))
    }

    /// Those of an interval that others have locked; its first, if they have just let go of them.
    fn locked_elsewhere(&self, run: Range<u32>) -> io::Result<CpuSet> {
        let mut elsewhere = CpuSet::new();
        let mut rest = bytes(&run);
        while !rest.is_empty()
            && let Some(found) = byte_lock::locked_elsewhere(&self.file, rest.clone())?
        {
            rest.start = found.end;
            elsewhere.extend(found.filter_map(|byte| u32::try_from(byte).ok()));
        }
        if elsewhere.is_empty() {
            elsewhere.insert(run.start);
        }
        Ok(elsewhere)
    }

    pub(crate) fn unlock(&self, cpus: &CpuSet) {
        for run in cpus.runs() {
            if let Err(error) = byte_lock::unlock(&self.file, bytes(&run)) {
                // Splitting a lock takes memory; the cores stay ours for the other processes until this one ends.
                tracing::error!(?error, ?run, "cores could not be unlocked");
            }
        }
    }

    /// Lets other processes know that cores are free.
    pub(crate) fn announce(&self) {
        // What is written means nothing. On a full disk the event is missed, until the next one.
        let _ = self.file.write_at(b".", 0);
    }
}

fn bytes(run: &Range<u32>) -> Range<u64> {
    u64::from(run.start)..u64::from(run.end)
}
