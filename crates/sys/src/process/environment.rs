//! The environment of any process.

use std::fs;
use std::thread;
use std::time::Duration;

use super::folder_of;

/// Maximum number of pauses for a process that is executing a program. It may wait for a disk, or
/// for a processor. Together they take 3.1 s.
pub(crate) const PAUSES: u32 = 500;

/// The length of each pause, which is counted from 0.
pub(crate) const PAUSE: fn(u32) -> Duration = |number| Duration::from_millis(1 << (number / 100));

/// Returns the environment with which a process was started, each entry with a zero byte at its
/// end. It is empty if the process has ended, or belongs to somebody else.
///
/// A process that is executing a program has none until the kernel has mapped the program, which
/// takes long if that is read from a disk. This waits for that, for three seconds.
/// `guardian::sweep` does the same without allocating.
pub fn environment_of(pid: u32) -> Vec<u8> {
    let file = |name: &str| folder_of(pid).join(name);
    let environment = || fs::read(file("environ")).unwrap_or_default();
    // Kernel threads and processes that have ended have no program. The command line appears
    // together with the environment.
    let is_executing = || {
        fs::read_link(file("exe")).is_ok()
            && fs::read(file("cmdline")).is_ok_and(|line| line.is_empty())
    };
    for number in 0..PAUSES {
        let found = environment();
        if !found.is_empty() {
            return found;
        }
        if !is_executing() {
            break;
        }
        thread::sleep(PAUSE(number));
    }
    // It is there by now, unless it is empty.
    environment()
}
