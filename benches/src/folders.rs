//! Folders of the checkout.

use std::path::{Path, PathBuf};

/// Returns the root of the checkout. This executable is never installed, so the sources it was
/// built from still exist.
pub(crate) fn root() -> PathBuf {
    benches().parent().unwrap_or(benches()).to_owned()
}

/// Returns the folder of the programs that measure peers.
pub(crate) fn peers() -> PathBuf {
    benches().join("peers")
}

/// Returns cargo's target folder.
pub(crate) fn target() -> PathBuf {
    root().join(std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()))
}

fn benches() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}
