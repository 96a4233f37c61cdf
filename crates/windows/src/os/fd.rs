//! `std::os::fd`, of open files.

use std::fs::File;
use std::io;
use std::marker::PhantomData;
use std::net::{TcpListener, TcpStream};
use std::process::{ChildStderr, ChildStdin, ChildStdout, Stdio};
use std::sync::atomic::{AtomicI32, Ordering};

pub type RawFd = i32;

#[derive(Debug)]
pub struct OwnedFd(File, RawFd);

impl OwnedFd {
    pub fn try_clone(&self) -> io::Result<Self> {
        self.0.try_clone().map(|file| Self(file, self.1))
    }
}

/// Gives the file a number that no other one has.
impl From<File> for OwnedFd {
    fn from(file: File) -> Self {
        static NEXT: AtomicI32 = AtomicI32::new(0);
        Self(file, NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

impl From<OwnedFd> for File {
    fn from(file: OwnedFd) -> Self {
        file.0
    }
}

impl From<OwnedFd> for Stdio {
    fn from(file: OwnedFd) -> Self {
        file.0.into()
    }
}

#[derive(Debug, Clone, Copy)]
pub struct BorrowedFd<'a>(RawFd, PhantomData<&'a File>);

impl BorrowedFd<'_> {
    pub const fn borrow_raw(number: RawFd) -> Self {
        Self(number, PhantomData)
    }

    pub fn try_clone_to_owned(&self) -> io::Result<OwnedFd> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

pub trait AsFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        BorrowedFd(-1, PhantomData)
    }
}

impl AsFd for OwnedFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        BorrowedFd(self.1, PhantomData)
    }
}

impl AsRawFd for OwnedFd {
    fn as_raw_fd(&self) -> RawFd {
        self.1
    }
}

impl AsFd for BorrowedFd<'_> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        *self
    }
}

impl AsRawFd for BorrowedFd<'_> {
    fn as_raw_fd(&self) -> RawFd {
        self.0
    }
}

pub trait AsRawFd {
    /// Returns a number that is no descriptor.
    fn as_raw_fd(&self) -> RawFd {
        -1
    }
}

pub trait IntoRawFd: Sized {
    /// Returns a number that is no descriptor.
    fn into_raw_fd(self) -> RawFd {
        -1
    }
}

macro_rules! descriptors {
    ($($type:ty)*) => { $(impl AsFd for $type {} impl AsRawFd for $type {})* };
}

descriptors! {
    File ChildStdin ChildStdout ChildStderr io::Stdin io::Stdout io::Stderr
    TcpListener TcpStream
}

impl<T: AsFd + ?Sized> AsFd for &T {
    fn as_fd(&self) -> BorrowedFd<'_> {
        (**self).as_fd()
    }
}

impl<T: AsFd + ?Sized> AsFd for &mut T {
    fn as_fd(&self) -> BorrowedFd<'_> {
        (**self).as_fd()
    }
}

impl<T: AsFd + ?Sized> AsFd for Box<T> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        (**self).as_fd()
    }
}

impl<T: AsFd + ?Sized> AsFd for std::sync::Arc<T> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        (**self).as_fd()
    }
}

impl IntoRawFd for OwnedFd {}

pub trait FromRawFd: Sized {
    /// Panics: nothing here returns the number of a descriptor.
    fn from_raw_fd(_: RawFd) -> Self {
        unreachable!("there are no descriptors")
    }
}

impl FromRawFd for OwnedFd {}
