//! `std::os::fd`, of open files.

use std::fs::File;
use std::io;
use std::marker::PhantomData;
use std::net::{TcpListener, TcpStream};
use std::process::{ChildStderr, ChildStdin, ChildStdout, Stdio};

pub type RawFd = i32;

#[derive(Debug)]
pub struct OwnedFd(File);

impl OwnedFd {
    pub fn try_clone(&self) -> io::Result<Self> {
        self.0.try_clone().map(Self)
    }
}

impl From<File> for OwnedFd {
    fn from(file: File) -> Self {
        Self(file)
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
pub struct BorrowedFd<'a>(PhantomData<&'a File>);

impl BorrowedFd<'_> {
    pub const fn borrow_raw(_: RawFd) -> Self {
        Self(PhantomData)
    }

    pub fn try_clone_to_owned(&self) -> io::Result<OwnedFd> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

pub trait AsFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        BorrowedFd(PhantomData)
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
    OwnedFd BorrowedFd<'_> File ChildStdin ChildStdout ChildStderr io::Stdin io::Stdout io::Stderr
    TcpListener TcpStream
}

impl<T: AsFd + ?Sized> AsFd for &T {}
impl<T: AsFd + ?Sized> AsFd for &mut T {}
impl<T: AsFd + ?Sized> AsFd for Box<T> {}
impl<T: AsFd + ?Sized> AsFd for std::sync::Arc<T> {}

impl IntoRawFd for OwnedFd {}

pub trait FromRawFd: Sized {
    /// Panics: nothing here returns the number of a descriptor.
    fn from_raw_fd(_: RawFd) -> Self {
        unreachable!("there are no descriptors")
    }
}

impl FromRawFd for OwnedFd {}
