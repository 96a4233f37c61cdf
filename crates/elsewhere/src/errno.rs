//! The errors of `rustix::io`.

use std::io;

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
