//! Standard input in memory, which lives as long as its job may need it.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;

use brigade_sys::sealed::SealedBytes;
use brigade_sys::sync::Mutex;

use crate::same::equal_if_same;

/// The standard input of one job, in a file in memory that nobody can change.
///
/// Each attempt reads it from its beginning. The runner frees the memory when the job is over, even
/// if its [`Outcome`](crate::Outcome) is kept.
#[derive(Clone)]
pub struct InputBlock(Arc<Block>);

struct Block {
    /// `None` once the job is over.
    held: Mutex<Option<Held>>,
    length: u64,
    identity: u64,
}

struct Held {
    bytes: SealedBytes,
    /// Told by its drop that the memory is free.
    permit: Option<Box<dyn Send + Sync>>,
}

impl InputBlock {
    /// Copies these parts, one after the other, into a file in memory.
    ///
    /// `identity` is the same for two inputs with the same content: a run that resumes compares it.
    ///
    /// # Errors
    /// If memory or descriptors run out.
    pub fn new(parts: &[&[u8]], identity: u64) -> io::Result<Self> {
        let bytes = SealedBytes::create("block", parts)?;
        let length = bytes.len() as u64;
        let held = Mutex::new(Some(Held { bytes, permit: None }));
        Ok(Self(Arc::new(Block { held, length, identity })))
    }

    /// Drops a permit when the memory is freed, so that it can count the blocks that exist.
    #[must_use]
    pub fn permit(self, permit: impl Send + Sync + 'static) -> Self {
        if let Some(held) = &mut *self.0.held.lock() {
            held.permit = Some(Box::new(permit));
        }
        self
    }

    /// Returns the number of bytes.
    pub fn len(&self) -> u64 {
        self.0.length
    }

    /// Returns `true` if there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.0.length == 0
    }

    pub(crate) fn identity(&self) -> u64 {
        self.0.identity
    }

    /// Opens it for reading from its beginning.
    pub(crate) fn open(&self) -> io::Result<File> {
        let held = self.0.held.lock();
        let held = held.as_ref().ok_or_else(|| io::Error::other("its job is over"))?;
        // A duplicate would share its position with an earlier attempt, and permit writing.
        File::open(format!("/proc/self/fd/{}", held.bytes.as_fd().as_raw_fd()))
    }

    /// Frees the memory.
    pub(crate) fn release(&self) {
        let held = self.0.held.lock().take();
        // The permit may run code of the client's: not under the lock.
        drop(held);
    }
}

brigade_sys::debug_fields! {
    impl InputBlock { |it| length: it.0.length }
}

equal_if_same!(InputBlock);

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn each_attempt_reads_all_of_it_until_the_job_is_over() {
        let permit = Arc::new(());
        let block = InputBlock::new(&[b"a", b"bc"], 7).expect("memory").permit(Arc::clone(&permit));
        assert_eq!((block.len(), block.identity()), (3, 7));
        for _ in 0..2 {
            let mut text = String::new();
            block.open().expect("held").read_to_string(&mut text).expect("memory");
            assert_eq!(text, "abc");
        }
        let copy = block.clone();
        copy.release();
        assert_eq!(Arc::strong_count(&permit), 1);
        assert!(block.open().is_err());
    }
}
