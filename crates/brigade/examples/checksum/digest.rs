//! The task function, which runs in the workers.

use std::cell::RefCell;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::failure::ReadFailure;

/// A file to digest. With serde, `OsString` supports every file name, which `PathBuf` does not.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Job {
    path: OsString,
    crash: bool,
}

/// A digest and the number of bytes it covers.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Digested {
    pub(crate) sha256: [u8; 32],
    pub(crate) bytes: u64,
}

impl Job {
    pub(crate) fn new(path: &Path, crash_on: Option<&str>) -> Self {
        let crash = crash_on.is_some_and(|text| path.to_string_lossy().contains(text));
        Self { path: path.as_os_str().to_owned(), crash }
    }
}

/// The task function. A failed read is a value like any other; only a crash is a `TaskError`.
pub(crate) fn digest(job: Job) -> Result<Digested, ReadFailure> {
    let Job { path, crash } = job;
    if crash {
        let _ =
            rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    }
    digest_file(Path::new(&path)).map_err(|error| ReadFailure::from(&error))
}

thread_local! {
    /// A worker runs one task after the other, so they can share a buffer.
    static BUFFER: RefCell<Vec<u8>> = RefCell::new(vec![0; 128 * 1024]);
}

/// Reads the file in blocks, so that its size does not matter.
fn digest_file(path: &Path) -> io::Result<Digested> {
    let mut file = open(path)?;
    let mut hasher = Sha256::new();
    let mut bytes = 0;
    BUFFER.with_borrow_mut(|buffer| {
        loop {
            match file.read(buffer) {
                Ok(0) => return Ok(()),
                Ok(count) => {
                    hasher.update(&buffer[..count]);
                    bytes += count as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    })?;
    Ok(Digested { sha256: hasher.finalize().into(), bytes })
}

/// Opens a regular file. By now its name may belong to a pipe, on which `File::open` would block
/// forever.
fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
    let file = rustix::io::retry_on_intr(|| rustix::fs::open(path, flags, Mode::empty()))?;
    let file = File::from(file);
    let kind = file.metadata()?.file_type();
    // Reading a folder fails too, with a better message.
    if kind.is_file() || kind.is_dir() {
        return Ok(file);
    }
    Err(io::Error::other("no longer a regular file"))
}
