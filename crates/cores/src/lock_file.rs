//! A lock file that keeps pools of several processes of one user from leasing the same cores.
//!
//! # Protocol
//! There is one file per user. The byte at a cpu's number is locked while the cpu is leased, by the
//! open file description of the pool that leased it. A pool locks the bytes of the cores that it
//! has chosen before it leases them. If that fails, it releases the locks it got and chooses again
//! without the locked cpus. No process waits for a lock while it holds others, so there is no
//! deadlock. The kernel releases the locks of a process that ends in any way.
//!
//! A pool that releases cores unlocks them first and then writes a byte, which notifies the pools
//! that watch the file.
//!
//! A file that is deleted, for example by a cleaner of `/tmp`, takes its locks along: in a new file
//! of the same name all cores would be free. Therefore a lock on the folder states whether cores
//! are leased. Each pool with leased cores holds it in shared mode, from before it locks the first
//! byte until after it has unlocked the last. Only a process that holds it exclusively, which means
//! that no core is leased, creates a new file. After locking bytes, a pool checks that the file
//! still has its name. If not, the locks are worthless: the pool releases them, and opens the file
//! anew if it holds no others. All other pools are refused until the leases in the old file have
//! been returned.
//!
//! The lock is advisory: it stops no process that does not ask. Processes must use the same folder,
//! and nobody may replace the file or the folder while cores are leased.

use std::fs::{File, symlink_metadata};
use std::io;
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use brigade_sys::byte_lock;
use brigade_sys::file_watch::FileWatch;
use brigade_sys::private_folder::PrivateFolder;

use crate::cpu_set::CpuSet;
use brigade_sys::sync::Mutex;

const FILE: &str = "cores.lock";

/// Processes that find no file hold the folder for moments and keep each other from creating one; a
/// process with leased cores holds it longer.
const ATTEMPTS: usize = 16;

/// The locks of one pool.
#[derive(Debug)]
pub(crate) struct LockFile {
    folder: PathBuf,
    path: PathBuf,
    opened: Mutex<Opened>,
    watch: Arc<FileWatch>,
}

/// The file that had the name when it was opened, and the locks on it.
#[derive(Debug)]
struct Opened {
    folder: PrivateFolder,
    file: File,
    /// The cpus whose bytes are locked. If there are any, the folder is locked too.
    held: CpuSet,
}

impl LockFile {
    pub(crate) fn open(folder: &Path) -> io::Result<Self> {
        let path = folder.join(FILE);
        let opened = Mutex::new(Opened::open(folder, &path)?);
        let watch = Arc::new(FileWatch::new(&path)?);
        Ok(Self { folder: folder.to_owned(), path, opened, watch })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns a watch that reports when the file is written to or closed.
    pub(crate) fn watch(&self) -> &Arc<FileWatch> {
        &self.watch
    }

    /// Locks all of `cpus` or none. On failure, returns the cpus that are locked elsewhere.
    pub(crate) fn try_lock(&self, cpus: &CpuSet) -> io::Result<Result<(), CpuSet>> {
        let mut opened = self.opened.lock();
        let mut outcome = opened.try_lock(cpus, &self.path)?;
        if outcome == Outcome::Gone && opened.held.is_empty() {
            // Pools that wait because of this one are notified when it is closed.
            *opened = Opened::open(&self.folder, &self.path)?;
            self.watch.follow(&self.path)?;
            outcome = opened.try_lock(cpus, &self.path)?;
        }
        match outcome {
            Outcome::Locked => Ok(Ok(())),
            Outcome::LockedByOthers(cpus) => Ok(Err(cpus)),
            Outcome::Gone => Err(gone(&self.path)),
        }
    }

    /// Unlocks cpus. If unlocking fails (splitting a lock takes memory), they stay locked until the
    /// process ends.
    pub(crate) fn unlock(&self, cpus: &CpuSet) -> io::Result<()> {
        self.opened.lock().unlock(cpus)
    }

    /// Notifies other processes that cores are free.
    pub(crate) fn announce(&self) {
        // The written byte has no meaning. On a full disk the notification is lost, until the next
        // one.
        let _ = self.opened.lock().file.write_at(b".", 0);
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Locked,
    /// Locked by others.
    LockedByOthers(CpuSet),
    /// The file was deleted or replaced.
    Gone,
}

fn gone(path: &Path) -> io::Error {
    let text = format!(
        "{} was deleted or replaced while cores were leased: it is created anew once all leases have been returned",
        path.display()
    );
    io::Error::new(io::ErrorKind::NotFound, text)
}

impl Opened {
    fn open(folder: &Path, path: &Path) -> io::Result<Self> {
        let folder = PrivateFolder::open(folder)?;
        for _ in 0..ATTEMPTS {
            if let Some(file) = folder.existing_file(FILE)? {
                return Ok(Self { folder, file, held: CpuSet::new() });
            }
            if folder.try_lock_alone()? {
                let file = folder.file(FILE);
                folder.unlock()?;
                return Ok(Self { folder, file: file?, held: CpuSet::new() });
            }
            // Waits for the process that is creating the file, which takes no time.
            folder.lock_shared()?;
            folder.unlock()?;
        }
        Err(gone(path))
    }

    fn try_lock(&mut self, cpus: &CpuSet, path: &Path) -> io::Result<Outcome> {
        if self.held.is_empty() {
            // A process holds the folder exclusively only while it creates a file.
            self.folder.lock_shared()?;
        }
        let outcome = self.try_lock_bytes(cpus).and_then(|outcome| match outcome {
            Outcome::Locked if !self.has_name(path)? => {
                self.unlock_bytes(cpus)?;
                Ok(Outcome::Gone)
            }
            outcome => Ok(outcome),
        });
        if let Ok(Outcome::Locked) = outcome {
            self.held = self.held.union(cpus);
        }
        self.unlock_folder_if_idle()?;
        outcome
    }

    /// Returns `true` if a process that opens the path now gets this file.
    fn has_name(&self, path: &Path) -> io::Result<bool> {
        let own = self.file.metadata()?;
        match symlink_metadata(path) {
            Ok(named) => Ok((named.dev(), named.ino()) == (own.dev(), own.ino())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn try_lock_bytes(&self, cpus: &CpuSet) -> io::Result<Outcome> {
        let mut locked = CpuSet::new();
        for run in cpus.runs() {
            match byte_lock::try_lock(&self.file, bytes(&run)) {
                Ok(true) => locked.extend(run),
                Ok(false) => {
                    self.unlock_bytes(&locked)?;
                    return self.locked_elsewhere(run).map(Outcome::LockedByOthers);
                }
                Err(error) => {
                    self.unlock_bytes(&locked)?;
                    return Err(error);
                }
            }
        }
        Ok(Outcome::Locked)
    }

    /// Returns the cpus of an interval that others have locked; its first one if they have been
    /// unlocked meanwhile.
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

    fn unlock(&mut self, cpus: &CpuSet) -> io::Result<()> {
        let bytes = self.unlock_bytes(cpus);
        self.held = self.held.difference(cpus);
        bytes.and(self.unlock_folder_if_idle())
    }

    fn unlock_bytes(&self, cpus: &CpuSet) -> io::Result<()> {
        let all = cpus.runs().map(|run| byte_lock::unlock(&self.file, bytes(&run)));
        // Unlocks all of them, even after one has failed.
        all.fold(Ok(()), Result::and)
    }

    fn unlock_folder_if_idle(&self) -> io::Result<()> {
        if self.held.is_empty() { self.folder.unlock() } else { Ok(()) }
    }
}

fn bytes(run: &Range<u32>) -> Range<u64> {
    u64::from(run.start)..u64::from(run.end)
}
