//! The task functions.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};

pub(crate) fn noop((): ()) {}

/// A chunk of a map.
pub(crate) fn nothing(numbers: Vec<u64>) -> Vec<()> {
    numbers.into_iter().map(|_| ()).collect()
}

/// A task of a grain, in microseconds.
pub(crate) fn busy(micros: u64) {
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_micros(micros) {
        std::hint::spin_loop();
    }
}

/// A chunk of a map of them.
pub(crate) fn busy_all(micros: Vec<u64>) -> Vec<()> {
    micros.into_iter().map(busy).collect()
}

pub(crate) fn length(payload: Vec<u8>) -> usize {
    payload.len()
}

/// The value for the next call of [`hand_over`].
static READY: Mutex<Vec<u8>> = Mutex::new(Vec::new());

pub(crate) fn prepare(size: usize) {
    *READY.lock().unwrap_or_else(PoisonError::into_inner) = vec![1; size];
}

pub(crate) fn hand_over((): ()) -> Vec<u8> {
    std::mem::take(&mut READY.lock().unwrap_or_else(PoisonError::into_inner))
}

pub(crate) fn pid((): ()) -> u32 {
    std::process::id()
}

/// Waits until the host has seen the expected number of tasks begin.
pub(crate) fn meet(address: String) -> Result<u32, String> {
    let meet = || -> std::io::Result<u32> {
        let mut connection = UnixStream::connect(&address)?;
        connection.set_read_timeout(Some(Duration::from_secs(20)))?;
        connection.write_all(&std::process::id().to_le_bytes())?;
        connection.read_exact(&mut [0])?;
        Ok(std::process::id())
    };
    meet().map_err(|error| error.to_string())
}

/// Reports that it has begun, and hangs.
pub(crate) fn hang(address: String) -> Result<u32, String> {
    meet(address)?;
    std::thread::park_timeout(Duration::from_secs(600));
    Ok(0)
}

pub(crate) fn digests(paths: Vec<String>) -> Result<Vec<[u8; 32]>, String> {
    let digest = |path: String| {
        let bytes = fs::read(&path).map_err(|error| format!("{path}: {error}"))?;
        Ok(Sha256::digest(bytes).into())
    };
    paths.into_iter().map(digest).collect()
}
