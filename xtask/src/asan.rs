//! `cargo xtask asan`: runs the unit tests of the two crates that handle raw memory under
//! `AddressSanitizer`.
//!
//! `brigade-sys` holds all unsafe code; `brigade-wire` lays out its rings and slots in shared
//! memory. The sanitizer finds errors that a test does not notice: reads and writes outside an
//! object, use after free, and leaks.
//!
//! The runtime comes with the pinned toolchain. Only packages of the workspace are instrumented, by
//! a wrapper of the compiler, so their dependencies are those of the other tests. `RUSTC_BOOTSTRAP`
//! makes the stable compiler accept the `-Z` flag.
//!
//! An allocation that is too large fails, as it does without the sanitizer, instead of ending the
//! process: that such a length is an error is what some tests check.

use std::process::ExitCode;

use crate::invocation::Invocation;

pub(crate) fn run(arguments: &[String]) -> Result<ExitCode, String> {
    if !arguments.is_empty() {
        return Err("`cargo xtask asan` takes no arguments".to_owned());
    }
    check()?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn check() -> Result<(), String> {
    let tests = tests();
    tests.clone().arguments(["--no-run".to_owned()]).counted().run()?;
    tests.run()
}

fn tests() -> Invocation {
    Invocation::cargo("test -p brigade-sys -p brigade-wire --lib")
        .wrapped("asan.sh")
        .variable("ASAN_OPTIONS", "allocator_may_return_null=1")
}
