//! `rustix::io`.

use std::os::fd::{AsFd, OwnedFd};

pub use crate::fs::FdFlags;
use crate::kernel;

pub use crate::errno::{Errno, Result, unsupported};

pub fn retry_on_intr<T>(mut call: impl FnMut() -> Result<T>) -> Result<T> {
    call()
}

refused! {
    dup2<F>(F, &mut OwnedFd);
    fcntl_dupfd_cloexec<F>(F, i32) -> OwnedFd;
    fcntl_setfd<F>(F, FdFlags);
    ioctl_fionbio<F>(F, bool);
    pread<F, B>(F, B, u64) -> usize;
    pwrite<F>(F, &[u8], u64) -> usize;
}

/// Takes what a counter has.
pub fn read(counter: impl AsFd, bytes: &mut [u8]) -> Result<usize> {
    let count = kernel::read(counter)?.to_ne_bytes();
    bytes.get_mut(..count.len()).ok_or(Errno::INVAL)?.copy_from_slice(&count);
    Ok(count.len())
}

pub fn write(descriptor: impl AsFd, bytes: &[u8]) -> Result<usize> {
    kernel::write(descriptor, bytes)
}
