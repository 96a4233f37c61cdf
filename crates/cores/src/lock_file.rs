//! Cores that several processes of one user share without taking the same ones.
//!
//! # Protocol
//! One file a user; the byte with a cpu's number is locked while the cpu is leased, by the open file description of the pool that
//! leased it. Whoever chooses cores locks their bytes before it believes that it has them; where that fails, it lets go of what it
//! has locked and chooses again without those cpus. Nobody waits for a lock while holding others, so that there is no deadlock.
//! The kernel lets go of the locks of a process that ends, in any way.
//!
//! Whoever gives cores back unlocks first and writes a byte afterwards, which those who watch the file hear.
//!
//! A file that is deleted, by a cleaner of `/tmp` for example, takes its locks along: in a new file of the same name all cores would
//! be free. So the lock of the folder says whether cores are leased. Each pool that has some holds it together with the others, from
//! before it locks the first byte until after it has unlocked the last. A new file is made only by somebody who has the folder
//! alone, which means that no core is leased. Whoever has locked bytes looks then whether the file still has its name, and does not
//! believe in the locks if not: it lets go of them, and opens the file anew if it holds no others. All others are refused until
//! the leases in the old file have come back.
//!
//! The lock is cooperative: it keeps nobody away who does not ask. Processes must use the same folder, and nobody may replace the
//! file or the folder by another one while cores are leased.

use std::fs::{File, symlink_metadata};
use std::io;
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use brigade_sys::byte_lock;
use brigade_sys::file_watch::FileWatch;
use brigade_sys::private_folder::{PrivateFolder, user_id};

use crate::cpu_set::CpuSet;

const FILE: &str = "cores.lock";

/// Those who find no file hold the folder for moments, and keep each other from making one; whoever has leased cores holds it longer.
const ATTEMPTS: usize = 16;

/// The locks of one pool.
#[derive(Debug)]
pub(crate) struct LockFile {
    folder: PathBuf,
    path: PathBuf,
    opened: Mutex<Opened>,
    watch: Arc<FileWatch>,
}

/// The file that had the name when it was opened.
#[derive(Debug)]
struct Opened {
    folder: PrivateFolder,
    file: File,
    /// The cpus whose bytes are locked. While there are any, the folder is locked too.
    held: CpuSet,
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
        let path = folder.join(FILE);
        let opened = Mutex::new(Opened::open(folder, &path)?);
        let watch = Arc::new(FileWatch::new(&path)?);
        Ok(Self { folder: folder.to_owned(), path, opened, watch })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Hears when something is written to the file, or when it is closed.
    pub(crate) fn watch(&self) -> &Arc<FileWatch> {
        &self.watch
    }

    /// Locks all of `cpus`, or none: then it says which are locked by others.
    pub(crate) fn try_lock(&self, cpus: &CpuSet) -> io::Result<Result<(), CpuSet>> {
        let mut opened = self.lock();
        let first = opened.try_lock(cpus, &self.path)?;
        if first != Outcome::Gone {
            return first.into_result(&self.path);
        }
        if opened.held.is_empty() {
            // Whoever waits because of this one hears that it is closed.
            *opened = Opened::open(&self.folder, &self.path)?;
            self.watch.follow(&self.path)?;
            return opened.try_lock(cpus, &self.path)?.into_result(&self.path);
        }
        Outcome::Gone.into_result(&self.path)
    }

    /// Unlocks what was locked. What cannot be unlocked (splitting a lock takes memory) stays locked until the process ends.
    pub(crate) fn unlock(&self, cpus: &CpuSet) -> io::Result<()> {
        self.lock().unlock(cpus)
    }

    /// Lets other processes know that cores are free.
    pub(crate) fn announce(&self) {
        // What is written means nothing. On a full disk the event is missed, until the next one.
        let _ = self.lock().file.write_at(b".", 0);
    }

    fn lock(&self) -> MutexGuard<'_, Opened> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Locked,
    /// Others have locked these.
    Elsewhere(CpuSet),
    /// The file has lost its name.
    Gone,
}

impl Outcome {
    fn into_result(self, path: &Path) -> io::Result<Result<(), CpuSet>> {
        match self {
            Self::Locked => Ok(Ok(())),
            Self::Elsewhere(cpus) => Ok(Err(cpus)),
            Self::Gone => Err(gone(path)),
        }
    }
}

fn gone(path: &Path) -> io::Error {
    let text = format!(
        "{} was deleted or replaced while cores were leased: it is made anew when all leases have come back",
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
            // Waits for somebody who is making it, which takes no time.
            folder.lock_shared()?;
            folder.unlock()?;
        }
        Err(gone(path))
    }

    fn try_lock(&mut self, cpus: &CpuSet, path: &Path) -> io::Result<Outcome> {
        if self.held.is_empty() {
            // Nobody has the folder alone for longer than it takes to make a file.
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

    /// Whether a process that opens the file now gets this one.
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
                    return self.locked_elsewhere(run).map(Outcome::Elsewhere);
                }
                Err(error) => {
                    self.unlock_bytes(&locked)?;
                    return Err(error);
                }
            }
        }
        Ok(Outcome::Locked)
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

    fn unlock(&mut self, cpus: &CpuSet) -> io::Result<()> {
        let bytes = self.unlock_bytes(cpus);
        self.held = self.held.difference(cpus);
        bytes.and(self.unlock_folder_if_idle())
    }

    fn unlock_bytes(&self, cpus: &CpuSet) -> io::Result<()> {
        let all = cpus.runs().map(|run| byte_lock::unlock(&self.file, bytes(&run)));
        // All of them, also behind one that fails.
        all.fold(Ok(()), Result::and)
    }

    fn unlock_folder_if_idle(&self) -> io::Result<()> {
        if self.held.is_empty() { self.folder.unlock() } else { Ok(()) }
    }
}

fn bytes(run: &Range<u32>) -> Range<u64> {
    u64::from(run.start)..u64::from(run.end)
}
