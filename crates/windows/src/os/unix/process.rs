//! `std::os::unix::process`.

use std::ffi::OsStr;
use std::process::Command;

pub trait CommandExt {
    fn process_group(&mut self, _: i32) -> &mut Self {
        self
    }

    fn arg0<S: AsRef<OsStr>>(&mut self, _: S) -> &mut Self {
        self
    }
}

impl CommandExt for Command {}

pub fn parent_id() -> u32 {
    0
}
