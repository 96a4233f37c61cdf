//! What runs in the workers.

use std::cell::RefCell;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// A file to digest. `OsString` carries every name that the file system allows, which `PathBuf` does not with serde.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Job {
    path: OsString,
    crash: bool,
}

/// A digest and how much was read for it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Digested {
    pub(crate) sha256: [u8; 32],
    pub(crate) bytes: u64,
}

/// Why a file could not be read.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ReadFailure {
    /// The error's kind, for the summary.
    pub(crate) kind: String,
    /// What the system said.
    pub(crate) message: String,
}

impl Job {
    pub(crate) fn new(path: &Path, crash_on: Option<&str>) -> Self {
        let crash = crash_on.is_some_and(|text| path.to_string_lossy().contains(text));
        Self { path: path.as_os_str().to_owned(), crash }
    }
}

impl From<&io::Error> for ReadFailure {
    fn from(error: &io::Error) -> Self {
        Self { kind: error.kind().to_string(), message: error.to_string() }
    }
}

/// Reads the file in pieces, so that its size does not matter.
pub(crate) fn digest(job: Job) -> Result<Digested, ReadFailure> {
    if job.crash {
        let _ =
            rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    }
    read(PathBuf::from(job.path)).map_err(|error| ReadFailure::from(&error))
}

thread_local! {
    /// A worker runs one task after the other; the buffer serves them all.
    static BUFFER: RefCell<Vec<u8>> = RefCell::new(vec![0; 128 * 1024]);
}

fn read(path: PathBuf) -> io::Result<Digested> {
    let mut file = File::open(path)?;
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
