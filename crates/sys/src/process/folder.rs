//! The folders of processes in `/proc`.

use std::path::PathBuf;

use rustix::fs::{CWD, readlinkat_raw};

/// Returns the folder of a process. None is there if `/proc` is that of another pid namespace, as
/// after `unshare --pid --fork` without `--mount-proc`: the number is that of a stranger there.
pub(crate) fn folder_of(pid: u32) -> PathBuf {
    let all = if has_our_numbers() { "/proc" } else { "/proc/none" };
    PathBuf::from(format!("{all}/{pid}"))
}

/// Returns `true` if `/proc` shows processes by the numbers that this one knows. Does not allocate.
pub(crate) fn has_our_numbers() -> bool {
    let mut buffer = [0_u8; 16];
    let Ok(length) = readlinkat_raw(CWD, c"/proc/self", &mut buffer) else { return false };
    let number = std::str::from_utf8(&buffer[..length]).ok().and_then(|number| number.parse().ok());
    number == Some(std::process::id())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_a_folder() {
        assert!(has_our_numbers());
        assert!(folder_of(std::process::id()).join("stat").exists());
    }
}
