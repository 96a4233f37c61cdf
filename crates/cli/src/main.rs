//! The command `brigade`.
#![forbid(unsafe_code)]
fn main() {}
