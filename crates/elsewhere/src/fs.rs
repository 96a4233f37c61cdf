//! `rustix::fs`.

use std::ffi::CStr;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::io::Result;
use crate::kernel;
pub use crate::stat as Stat;
pub use crate::time::Timespec;

flags! {
    FdFlags: CLOEXEC;
    MemfdFlags: ALLOW_SEALING CLOEXEC;
    Mode: RGRP ROTH RUSR RWXG RWXO RWXU WUSR;
    OFlags: CLOEXEC CREATE DIRECTORY NOFOLLOW NONBLOCK PATH RDONLY RDWR RWMODE WRONLY;
    SealFlags: FUTURE_WRITE GROW SEAL SHRINK WRITE;
}

impl Mode {
    pub const fn from_raw_mode(_: u32) -> Self {
        Self::empty()
    }
}

#[derive(Debug, Clone, Copy)]
pub enum FileType {
    RegularFile,
}

#[derive(Debug, Clone, Copy)]
pub enum FlockOperation {
    LockExclusive,
    LockShared,
    NonBlockingLockExclusive,
    Unlock,
}

/// Stands for the current folder.
#[derive(Debug, Clone, Copy)]
pub struct Cwd;

pub const CWD: Cwd = Cwd;

refused! {
    fchmod<F>(F, Mode);
    fcntl_getfl<F>(F) -> OFlags;
    fcntl_setfl<F>(F, OFlags);
    flock<F>(F, FlockOperation);
    mkdir<P>(P, Mode);
    mkdirat<F, P>(F, P, Mode);
    mknodat<F, P>(F, P, FileType, Mode, u64);
    open<P>(P, OFlags, Mode) -> OwnedFd;
    openat<F, P>(F, P, OFlags, Mode) -> OwnedFd;
    readlinkat_raw<F, P>(F, P, &mut [u8]) -> usize;
    symlinkat<P, F, Q>(P, F, Q);
}

pub fn memfd_create<P>(_: P, _: MemfdFlags) -> Result<OwnedFd> {
    kernel::create_memory()
}

pub fn ftruncate(memory: impl AsFd, length: u64) -> Result<()> {
    kernel::resize(memory, length)
}

pub fn fcntl_add_seals(memory: impl AsFd, seals: SealFlags) -> Result<()> {
    kernel::add_seals(memory, seals.bits())
}

pub fn fcntl_get_seals(memory: impl AsFd) -> Result<SealFlags> {
    kernel::seals(memory).map(SealFlags)
}

/// Returns the length of memory, as its size.
pub fn fstat(memory: impl AsFd) -> Result<Stat> {
    let length = kernel::length(memory)?;
    let st_size = i64::try_from(length).unwrap_or(i64::MAX);
    Ok(Stat { st_dev: 0, st_ino: 0, st_mode: 0, st_uid: 0, st_size, st_blocks: 0 })
}

/// The entries of a folder: none.
pub struct RawDir<'a>(PhantomData<&'a mut [u8]>);

impl<'a> RawDir<'a> {
    pub fn new<F>(_: F, _: &'a mut [MaybeUninit<u8>]) -> Self {
        Self(PhantomData)
    }

    pub fn next(&mut self) -> Option<Result<RawDirEntry<'_>>> {
        None
    }
}

pub struct RawDirEntry<'a>(&'a CStr);

impl RawDirEntry<'_> {
    pub fn file_name(&self) -> &CStr {
        self.0
    }
}

pub mod inotify {
    //! `rustix::fs::inotify`.

    use super::{BorrowedFd, MaybeUninit, OwnedFd, PhantomData, Result};

    flags! {
        CreateFlags: CLOEXEC NONBLOCK;
        ReadFlags: CLOSE_WRITE QUEUE_OVERFLOW;
        WatchFlags: CLOSE_WRITE MODIFY;
    }

    refused! {
        add_watch<F, P>(F, P, WatchFlags) -> i32;
        init(CreateFlags) -> OwnedFd;
    }

    pub struct Reader<'a>(PhantomData<BorrowedFd<'a>>);

    impl<'a> Reader<'a> {
        pub fn new<F>(_: F, _: &'a mut [MaybeUninit<u8>]) -> Self {
            Self(PhantomData)
        }

        pub fn next(&mut self) -> Result<Event> {
            Err(crate::io::Errno::NOSYS)
        }
    }

    pub struct Event(ReadFlags);

    impl Event {
        pub fn events(&self) -> ReadFlags {
            self.0
        }
    }
}
