//! `rustix::mm`.

use std::ffi::c_void;
use std::os::fd::AsFd;
use std::ptr;

use crate::io::{Errno, Result};
use crate::kernel;

flags! {
    MapFlags: FIXED PRIVATE SHARED NORESERVE;
    MprotectFlags: READ WRITE;
    ProtFlags: READ WRITE;
}

#[derive(Debug, Clone, Copy)]
pub enum Advice {
    LinuxDontDump,
    LinuxHugepage,
    LinuxPopulateWrite,
    LinuxRemove,
    LinuxWipeOnFork,
}

refused! {
    madvise(*mut c_void, usize, Advice);
    mmap_anonymous(*mut c_void, usize, ProtFlags, MapFlags) -> *mut c_void;
    mprotect(*mut c_void, usize, MprotectFlags);
}

/// Maps all of a descriptor's memory.
pub fn mmap(
    _: *mut c_void,
    length: usize,
    _: ProtFlags,
    flags: MapFlags,
    memory: impl AsFd,
    offset: u64,
) -> Result<*mut c_void> {
    if flags.contains(MapFlags::FIXED) || offset != 0 || length > kernel::length(&memory)? {
        return Err(Errno::NOSYS);
    }
    Ok(ptr::with_exposed_provenance_mut(kernel::map(memory)?))
}

pub fn munmap(address: *mut c_void, _: usize) -> Result<()> {
    kernel::unmap(address.expose_provenance())
}
