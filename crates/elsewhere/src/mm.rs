//! `rustix::mm`.

use std::ffi::c_void;

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
    mmap<F>(*mut c_void, usize, ProtFlags, MapFlags, F, u64) -> *mut c_void;
    mmap_anonymous(*mut c_void, usize, ProtFlags, MapFlags) -> *mut c_void;
    mprotect(*mut c_void, usize, MprotectFlags);
    munmap(*mut c_void, usize);
}
