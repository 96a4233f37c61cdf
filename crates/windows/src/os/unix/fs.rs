//! `std::os::unix::fs`: files have no numbers, owners and modes here.

use std::fs::{DirBuilder, File, FileType, Metadata, OpenOptions, Permissions};
use std::io::{Error, ErrorKind, Result};

pub trait MetadataExt {
    fn dev(&self) -> u64 {
        0
    }

    fn ino(&self) -> u64 {
        0
    }

    fn nlink(&self) -> u64 {
        1
    }

    fn uid(&self) -> u32 {
        0
    }

    fn mtime(&self) -> i64 {
        0
    }

    fn mtime_nsec(&self) -> i64 {
        0
    }

    fn ctime(&self) -> i64 {
        0
    }

    fn ctime_nsec(&self) -> i64 {
        0
    }

    fn size(&self) -> u64;
}

impl MetadataExt for Metadata {
    fn size(&self) -> u64 {
        self.len()
    }
}

pub trait FileExt {
    fn read_at(&self, _: &mut [u8], _: u64) -> Result<usize> {
        Err(Error::from(ErrorKind::Unsupported))
    }

    fn read_exact_at(&self, _: &mut [u8], _: u64) -> Result<()> {
        Err(Error::from(ErrorKind::Unsupported))
    }

    fn write_at(&self, _: &[u8], _: u64) -> Result<usize> {
        Err(Error::from(ErrorKind::Unsupported))
    }
}

impl FileExt for File {}

pub trait FileTypeExt {
    fn is_fifo(&self) -> bool {
        false
    }

    fn is_socket(&self) -> bool {
        false
    }
}

impl FileTypeExt for FileType {}

pub trait OpenOptionsExt {
    fn mode(&mut self, _: u32) -> &mut Self {
        self
    }

    fn custom_flags(&mut self, _: i32) -> &mut Self {
        self
    }
}

impl OpenOptionsExt for OpenOptions {}

pub trait DirBuilderExt {
    fn mode(&mut self, _: u32) -> &mut Self {
        self
    }
}

impl DirBuilderExt for DirBuilder {}

pub trait PermissionsExt {
    fn mode(&self) -> u32 {
        0
    }
}

impl PermissionsExt for Permissions {}
