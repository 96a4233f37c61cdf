//! `std::os::unix`.

pub mod ffi;
pub mod fs;
pub mod process;
