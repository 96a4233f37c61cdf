//! `cargo xtask asan`: the unit tests of the two crates that handle raw memory, under `AddressSanitizer`.
//!
//! `brigade-sys` holds all unsafe code; `brigade-wire` lays its rings and slots out in shared memory. The sanitizer
//! finds what a test does not notice: reads and writes outside of an object, use after free, and leaks.
//!
//! The runtime comes with the pinned toolchain. `-Z` flags are for nightly compilers, so `RUSTC_BOOTSTRAP` lets the
//! stable one take this one. The target is named because only then are build scripts and macros, which run inside the
//! compiler, left alone. In its own target folder, as for loom.

use std::path::{Path, PathBuf};
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
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| PathBuf::from("target"), PathBuf::from);
    let tests = in_target(&target);
    println!("running {tests}");
    tests.run()
}

fn in_target(target: &Path) -> Invocation {
    Invocation::cargo("test --target x86_64-unknown-linux-gnu -p brigade-sys -p brigade-wire --lib")
        .variable("RUSTC_BOOTSTRAP", "1")
        .variable("RUSTFLAGS", "-Zsanitizer=address")
        .variable("CARGO_TARGET_DIR", &target.join("asan").to_string_lossy())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::in_target;

    #[test]
    fn sanitized_code_stays_out_of_the_usual_target_folder() {
        assert_eq!(
            in_target(Path::new("target")).to_string(),
            "RUSTC_BOOTSTRAP=1 RUSTFLAGS=-Zsanitizer=address CARGO_TARGET_DIR=target/asan cargo test \
             --target x86_64-unknown-linux-gnu -p brigade-sys -p brigade-wire --lib"
        );
    }
}
