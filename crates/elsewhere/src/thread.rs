//! `rustix::thread`.

use std::ffi::CStr;

use crate::process::Pid;
use crate::time::Timespec;

flags! {
    CapabilitySet: DAC_OVERRIDE DAC_READ_SEARCH FOWNER;
    UnshareFlags: NEWIPC NEWNET NEWNS NEWUSER;
}

records! {
    CapabilitySets { effective: CapabilitySet, permitted: CapabilitySet, inheritable: CapabilitySet }
}

refused! {
    capabilities(Option<Pid>) -> CapabilitySets;
    nanosleep(&Timespec);
    set_capabilities(Option<Pid>, CapabilitySets);
    set_name(&CStr);
    set_no_new_privs(bool);
    unshare_unsafe(UnshareFlags);
}

pub mod futex {
    //! `rustix::thread::futex`, between threads.

    pub use crate::futex::{Flags, wait, wake};
}
