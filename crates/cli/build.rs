//! Sets `BRIGADE_VERSION` to the version, with the commit and its date if they are known.
//!
//! Only optimized builds have a commit: else each commit would compile the crate again during
//! development.

use std::env;
use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let version = env::var("CARGO_PKG_VERSION").unwrap_or_default();
    let is_optimized = env::var("PROFILE").is_ok_and(|profile| profile == "release");
    let commit = if is_optimized { commit() } else { None };
    let commit = commit.map_or_else(String::new, |commit| format!(" ({commit})"));
    println!("cargo::rustc-env=BRIGADE_VERSION={version}{commit}");
}

/// Returns the commit and its date. A source archive has none, even within the repository of
/// something else.
fn commit() -> Option<String> {
    git(&["ls-files", "--error-unmatch", "build.rs"])?;
    // HEAD names the branch, and its log changes with each commit.
    for file in ["HEAD", "logs/HEAD"] {
        let path = git(&["rev-parse", "--git-path", file])?;
        if Path::new(&path).exists() {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    git(&["log", "-1", "--format=%h %cs"])
}

/// Returns what git prints; `None` if it is missing or fails.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
