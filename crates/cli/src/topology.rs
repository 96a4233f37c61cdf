//! `brigade topology`: the cores that jobs can be pinned to.

use std::io;

pub(crate) fn show() -> io::Result<()> {
    Ok(())
}
