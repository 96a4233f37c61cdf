//! The namespaces of a sandbox.

use std::ffi::{CString, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use brigade_sys::confine::{Isolation, Visible};

use crate::error::SandboxError;
use crate::files::{DEVICES, of_programs};
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
    let exists = |path: &&str| Path::new(path).exists();
    add(&mut files, "write", DEVICES.into_iter().filter(exists), true)?;
    add(&mut files, "execute", of_programs(sandbox).filter(exists), false)?;
    Ok(Some(Isolation { network, files: Some(files) }))
}

fn add(
    files: &mut Vec<Visible>,
    method: &'static str,
    paths: impl IntoIterator<Item: AsRef<Path>>,
    is_writable: bool,
) -> Result<(), SandboxError> {
    for path in paths {
        let found = visible(path.as_ref(), is_writable);
        files.push(found.map_err(|error| SandboxError::Path {
            method,
            path: path.as_ref().display().to_string(),
            problem: error.to_string(),
        })?);
    }
    Ok(())
}

/// Finds a file, and the links over which its path leads.
fn visible(path: &Path, is_writable: bool) -> io::Result<Visible> {
    let real = path.canonicalize()?;
    let text = |path: &Path| CString::new(path.as_os_str().as_bytes());
    let parts = |path: &Path| -> Vec<OsString> {
        path.components().rev().map(|part| part.as_os_str().to_owned()).collect()
    };
    let (mut links, mut here) = (Vec::new(), PathBuf::from("/"));
    // The next part of the path is the last one here. That it exists bounds the number of links.
    let mut rest = parts(&std::path::absolute(path)?);
    while let Some(part) = rest.pop() {
        match Path::new(&part).components().next() {
            Some(Component::ParentDir) => {
                here.pop();
            }
            _ => here.push(&part),
        }
        if let Ok(target) = here.read_link() {
            links.push((text(&here)?, text(&target)?));
            here.pop();
            rest.extend(parts(&target));
        }
    }
    Ok(Visible { path: text(&real)?, links, is_folder: real.is_dir(), is_writable })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_link_below_a_link_hides_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        for name in ["z", "m/a"] {
            std::fs::create_dir_all(path(name)).unwrap();
            std::fs::write(path(name).join("file"), "text").unwrap();
        }
        symlink("z", path("b")).unwrap();
        symlink("../n", path("z/x")).unwrap();
        symlink("m/a", path("n")).unwrap();
        let found = ["b", "b/x", "b/../b/x/file"].map(|name| visible(&path(name), false).unwrap());
        let names = |it: &Visible| it.links.len();
        assert_eq!(found.each_ref().map(names), [1, 3, 4]);
        assert_eq!(found[1].path.to_bytes(), path("m/a").as_os_str().as_bytes());
    }
}
