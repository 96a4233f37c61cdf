//! Reads parents and children of processes from `/proc`, which identifies them by numbers at one
//! moment.

use std::fs;
use std::io;

use super::folder_of;

/// Returns the children of all threads of a process; empty if the process is gone.
///
/// # Errors
/// If the system is short of descriptors or memory.
pub(super) fn children(pid: u32) -> io::Result<Vec<u32>> {
    let threads = match fs::read_dir(folder_of(pid).join("task")) {
        Err(error) if !is_shortage(&error) => return Ok(Vec::new()),
        threads => threads?,
    };
    let mut children = Vec::new();
    for thread in threads.flatten() {
        match fs::read_to_string(thread.path().join("children")) {
            Ok(list) => {
                children.extend(list.split_whitespace().filter_map(|pid| pid.parse::<u32>().ok()));
            }
            Err(error) if is_shortage(&error) => return Err(error),
            // A kernel without CONFIG_PROC_CHILDREN; or a thread that has ended, in which case this
            // costs a little.
            Err(_) => return children_by_search(pid),
        }
    }
    Ok(children)
}

/// Number of threads whose children a short look reads.
const FEW_THREADS: usize = 16;

/// Returns `true` if a short look finds that a process has no children. A process with many threads
/// may have some.
pub(super) fn has_none(pid: u32) -> bool {
    let Ok(threads) = fs::read_dir(folder_of(pid).join("task")) else {
        return false;
    };
    let mut threads = threads.flatten();
    let childless = threads.by_ref().take(FEW_THREADS).all(|thread| {
        fs::read_to_string(thread.path().join("children"))
            .is_ok_and(|children| children.trim().is_empty())
    });
    childless && threads.next().is_none()
}

fn children_by_search(parent: u32) -> io::Result<Vec<u32>> {
    let mut children = Vec::new();
    for process in fs::read_dir("/proc")?.flatten() {
        let number = process.file_name().to_str().and_then(|name| name.parse().ok());
        if let Some(pid) = number
            && parent_of(pid)? == Some(parent)
        {
            children.push(pid);
        }
    }
    Ok(children)
}

/// Returns the parent of a process, if a process has this number.
///
/// # Errors
/// If the system is short of descriptors or memory.
pub(super) fn parent_of(pid: u32) -> io::Result<Option<u32>> {
    let stat = match fs::read_to_string(folder_of(pid).join("stat")) {
        Err(error) if !is_shortage(&error) => return Ok(None),
        stat => stat?,
    };
    // The name in parentheses may contain anything; state and parent follow the last parenthesis.
    let field = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(1));
    Ok(field.and_then(|field| field.parse().ok()))
}

/// Returns `true` if a process with this number is stopped by a signal.
pub(super) fn is_stopped(pid: u32) -> bool {
    let stat = fs::read_to_string(folder_of(pid).join("stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with('T'))
}

/// Returns `true` if the error is a lack of descriptors, memory or watches, and says nothing about
/// the process.
pub fn is_shortage(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EMFILE | libc::ENFILE | libc::ENOMEM | libc::ENOBUFS | libc::ENOSPC)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::{Process, command};

    #[test]
    fn a_child_is_found_in_both_ways_and_knows_its_parent() {
        let child = Process::spawn(command("sleep").arg("60")).expect("a process");
        let us = std::process::id();
        assert!(has_none(child.pid()) && !has_none(us));
        assert!(children(us).unwrap().contains(&child.pid()));
        assert!(children_by_search(us).unwrap().contains(&child.pid()));
        assert_eq!(parent_of(child.pid()).unwrap(), Some(us));
    }

    #[test]
    fn a_missing_process_has_neither_parent_nor_children() {
        assert!(children(u32::MAX).unwrap().is_empty());
        assert_eq!(parent_of(u32::MAX).unwrap(), None);
    }
}
