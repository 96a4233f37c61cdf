//! Commands of different programs that take turns.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use brigade_sys::file_lock;
use brigade_sys::private_folder::PrivateFolder;

/// Places that all programs of a user share, under a name.
///
/// Each place is a file in a private folder, and who holds the lock on it has the place. The kernel
/// releases the lock with the end of the last process that has the file open, so a program that was
/// killed never blocks others.
///
/// ```
/// use brigade_runner::Semaphore;
///
/// let semaphore = Semaphore::open("an example".as_ref())?;
/// let place = semaphore.take(2, None)?;
/// assert!(place.is_some());
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Semaphore {
    folder: PrivateFolder,
    name: String,
}

impl Semaphore {
    /// Opens the semaphore with a name, which may have any bytes.
    ///
    /// # Errors
    /// If `$XDG_RUNTIME_DIR`, or else `/tmp`, has no room for a folder that only this user can
    /// enter.
    pub fn open(name: &OsStr) -> io::Result<Self> {
        // Any name is possible, but not every file name.
        let escaped = |byte: &u8| match byte {
            byte if byte.is_ascii_alphanumeric() => char::from(*byte).to_string(),
            byte => format!("_{byte:02x}"),
        };
        let name = format!("sem-{}", name.as_bytes().iter().map(escaped).collect::<String>());
        Ok(Self { folder: PrivateFolder::open(&PrivateFolder::default_path())?, name })
    }

    /// Takes one of the first `count` places, when one is free. Returns the locked file, or `None`
    /// if no place became free before the limit. A process that inherits the file has the place,
    /// too.
    ///
    /// # Errors
    /// If the file system has no locks, or no thread can be started.
    pub fn take(&self, count: usize, limit: Option<Duration>) -> io::Result<Option<File>> {
        let files = (1..=count).map(|place| self.folder.file(&self.file(place)));
        let files: Vec<File> = files.collect::<io::Result<_>>()?;
        let (sender, receiver) = mpsc::channel();
        for file in &files {
            if file_lock::try_lock(file)? {
                return file.try_clone().map(Some);
            }
        }
        for file in files {
            let sender = sender.clone();
            // The first place wins. Threads that get theirs later give it back at once: nobody
            // receives it.
            thread::Builder::new().spawn(move || {
                let locked = file_lock::lock(&file).map(|()| file);
                let _ = sender.send(locked);
            })?;
        }
        match limit {
            Some(limit) => receiver.recv_timeout(limit).ok().transpose(),
            None => receiver.recv().ok().transpose(),
        }
    }

    /// Waits until each place was free once.
    ///
    /// # Errors
    /// If the file system has no locks.
    pub fn wait(&self) -> io::Result<()> {
        for place in 1.. {
            let Some(file) = self.folder.existing_file(&self.file(place))? else { break };
            file_lock::lock(&file)?;
        }
        Ok(())
    }

    fn file(&self, place: usize) -> String {
        format!("{}-{place}", self.name)
    }
}
