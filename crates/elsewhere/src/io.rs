//! `rustix::io`.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

pub use crate::fs::FdFlags;
use crate::kernel;

pub type Result<T> = std::result::Result<T, Errno>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Errno(i32);

macro_rules! errors {
    ($($name:ident $number:ident)*) => {
        impl Errno { $(pub const $name: Self = Self(crate::$number);)* }
    };
}

errors! {
    ADDRINUSE EADDRINUSE AGAIN EAGAIN BADF EBADF BUSY EBUSY CANCELED ECANCELED CHILD ECHILD
    CONNABORTED ECONNABORTED CONNREFUSED ECONNREFUSED CONNRESET ECONNRESET EXIST EEXIST INTR EINTR
    INVAL EINVAL IO EIO NAMETOOLONG ENAMETOOLONG NOENT ENOENT NOMEM ENOMEM NOPROTOOPT ENOPROTOOPT
    NOSYS ENOSYS SRCH ESRCH WOULDBLOCK EAGAIN
}

impl Errno {
    pub fn from_io_error(error: &io::Error) -> Option<Self> {
        error.raw_os_error().map(Self)
    }

    pub const fn from_raw_os_error(number: i32) -> Self {
        Self(number)
    }

    pub const fn raw_os_error(self) -> i32 {
        self.0
    }
}

impl From<Errno> for io::Error {
    fn from(error: Errno) -> Self {
        if error == Errno::NOSYS { unsupported() } else { Self::from_raw_os_error(error.0) }
    }
}

/// Returns the error of everything that is missing.
pub fn unsupported() -> io::Error {
    let text = format!("this needs Linux: the program was built for {}", std::env::consts::OS);
    io::Error::new(io::ErrorKind::Unsupported, text)
}

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
