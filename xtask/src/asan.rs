//! `cargo xtask asan`: runs the unit tests of the two crates that handle raw memory under
//! `AddressSanitizer`.
//!
//! `brigade-sys` holds all unsafe code; `brigade-wire` lays out its rings and slots in shared
//! memory. The sanitizer finds errors that a test does not notice: reads and writes outside an
//! object, use after free, and leaks.
//!
//! The runtime comes with the pinned toolchain. `RUSTC_BOOTSTRAP` makes the stable compiler accept
//! the `-Z` flag. Only with an explicit target are build scripts and macros, which run inside the
//! compiler, left uninstrumented. The build has its own target folder, like loom's.
//!
//! An allocation that is too large fails, as it does without the sanitizer, instead of ending the
//! process: that such a length is an error is what some tests check.

use std::path::Path;
use std::process::ExitCode;

use crate::checkout::target_folder;
use crate::invocation::Invocation;
use crate::tools::HOST;

pub(crate) fn run(arguments: &[String]) -> Result<ExitCode, String> {
    if !arguments.is_empty() {
        return Err("`cargo xtask asan` takes no arguments".to_owned());
    }
    check()?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn check() -> Result<(), String> {
    let tests = in_target(&target_folder());
    tests.clone().arguments(["--no-run".to_owned()]).counted().run()?;
    tests.run()
}

fn in_target(target: &Path) -> Invocation {
    Invocation::cargo(&format!("test --target {HOST} -p brigade-sys -p brigade-wire --lib"))
        .variable("RUSTC_BOOTSTRAP", "1")
        .variable("RUSTFLAGS", "-Zsanitizer=address")
        .variable("ASAN_OPTIONS", "allocator_may_return_null=1")
        .variable("CARGO_TARGET_DIR", &target.join("asan").to_string_lossy())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{HOST, in_target};

    #[test]
    fn asan_has_its_own_target_folder() {
        assert_eq!(
            in_target(Path::new("target")).to_string(),
            format!(
                "RUSTC_BOOTSTRAP=1 RUSTFLAGS=-Zsanitizer=address ASAN_OPTIONS=allocator_may_return_null=1 \
                 CARGO_TARGET_DIR=target/asan cargo test --target {HOST} -p brigade-sys -p brigade-wire --lib"
            )
        );
    }
}
