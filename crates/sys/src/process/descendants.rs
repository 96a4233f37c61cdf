//! Who has started whom, as `/proc` says: a number at one moment.

use std::fs;

/// The children of all threads of a process.
pub(super) fn children(pid: u32) -> Vec<u32> {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return Vec::new();
    };
    let mut children = Vec::new();
    for thread in threads.flatten() {
        match fs::read_to_string(thread.path().join("children")) {
            Ok(list) => {
                children.extend(list.split_whitespace().filter_map(|pid| pid.parse::<u32>().ok()));
            }
            // A kernel without CONFIG_PROC_CHILDREN; or a thread that has ended, and then this costs a little.
            Err(_) => return children_by_search(pid),
        }
    }
    children
}

fn children_by_search(parent: u32) -> Vec<u32> {
    let Ok(processes) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let numbers = processes.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.filter(|pid| parent_of(*pid) == Some(parent)).collect()
}

/// The parent of a process, if there is one of this number.
pub(super) fn parent_of(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold anything; state and parent follow the last one.
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::{Process, command};

    #[test]
    fn a_child_is_found_in_both_ways_and_knows_its_parent() {
        let child = Process::spawn(command("sleep").arg("60")).expect("a process");
        let us = std::process::id();
        assert!(children(us).contains(&child.pid()));
        assert!(children_by_search(us).contains(&child.pid()));
        assert_eq!(parent_of(child.pid()), Some(us));
    }

    #[test]
    fn a_process_that_is_not_there_has_nobody() {
        assert!(children(u32::MAX).is_empty());
        assert_eq!(parent_of(u32::MAX), None);
    }
}
