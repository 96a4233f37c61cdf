//! A task that starts a process and leaves it behind.

use std::os::unix::process::CommandExt;
use std::process::Command;

/// Starts a process that holds the worker's standard streams for five minutes. Returns its pid.
///
/// The process belongs to the worker's process group unless `group` gives it its own.
///
/// # Panics
/// Panics if the program `sleep` cannot be started.
pub fn leaves_a_grandchild(group: bool) -> u32 {
    let mut command = Command::new("sleep");
    command.arg("300");
    if group {
        command.process_group(0);
    }
    command.spawn().expect("`sleep` is everywhere").id()
}
