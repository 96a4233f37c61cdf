//! The namespaces of a sandbox.

use std::path::{Path, PathBuf};

use brigade_sys::confine::Visible;

use crate::error::SandboxError;
use crate::files::{devices, of_programs};
use crate::prepared::Isolation;
use crate::sandbox::{Level, Sandbox};

/// Finds what stays visible; `None` if the sandbox has no namespaces of its own.
pub(crate) fn isolation(sandbox: &Sandbox) -> Result<Option<Isolation>, SandboxError> {
    if !sandbox.isolate {
        return Ok(None);
    }
    let network = sandbox.ports.is_empty();
    let is_everything = |path: &PathBuf| path == Path::new("/");
    let all = [&sandbox.read, &sandbox.write, &sandbox.execute];
    if sandbox.level < Level::Strict || all.into_iter().flatten().any(is_everything) {
        return Ok(Some(Isolation { network, files: None }));
    }
    let mut files = Vec::new();
    for (method, paths) in [("read", &sandbox.read), ("execute", &sandbox.execute)] {
        add(&mut files, method, paths, false)?;
    }
    add(&mut files, "write", &sandbox.write, true)?;
    let there = |paths: &[&'static str]| -> Vec<&'static str> {
        paths.iter().copied().filter(|path| Path::new(path).exists()).collect()
    };
    add(&mut files, "write", &there(devices(sandbox)), true)?;
    add(&mut files, "execute", &there(of_programs(sandbox)), false)?;
    Ok(Some(Isolation { network, files: Some(files) }))
}

fn add(
    files: &mut Vec<Visible>,
    method: &'static str,
    paths: &[impl AsRef<Path>],
    is_writable: bool,
) -> Result<(), SandboxError> {
    for path in paths {
        let found = Visible::new(path.as_ref(), is_writable);
        files.push(found.map_err(|error| SandboxError::Path {
            method,
            path: path.as_ref().display().to_string(),
            problem: error.to_string(),
        })?);
    }
    Ok(())
}
