//! The shell for the commands of `brigade parallel`: that from which it was called.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// Variable that names the shell.
pub(crate) const VARIABLE: &str = "PARALLEL_SHELL";
/// The last resort.
const SYSTEM_SHELL: &str = "/bin/sh";

/// Names of programs that are shells.
const SHELLS: &[&str] = &[
    "ash", "bash", "csh", "dash", "fish", "ksh", "ksh93", "mksh", "pdksh", "rc", "sash", "sh",
    "tcsh", "yash", "zsh",
];

/// Returns `$PARALLEL_SHELL`, the closest ancestor that is a shell, or `$SHELL`.
pub(crate) fn of_user() -> OsString {
    let variable = |name| env::var_os(name).filter(|value| !value.is_empty());
    variable(VARIABLE)
        .or_else(|| of_ancestors().map(PathBuf::into_os_string))
        .or_else(|| variable("SHELL"))
        .unwrap_or_else(|| SYSTEM_SHELL.into())
}

fn of_ancestors() -> Option<PathBuf> {
    let mut pid = std::os::unix::process::parent_id();
    while pid > 1 {
        let process = PathBuf::from(format!("/proc/{pid}"));
        if let Some(shell) = shell(&process) {
            return Some(shell);
        }
        pid = parent(&fs::read_to_string(process.join("stat")).ok()?)?;
    }
    None
}

/// Returns the program by whose name a process calls itself, if that is a shell. The file that the
/// process executes may be another one: `dash` for `sh`, or `busybox`, which is no shell by its own
/// name.
fn shell(process: &Path) -> Option<PathBuf> {
    let words = fs::read(process.join("cmdline")).ok()?;
    let called = words.split(|byte| *byte == 0).next()?;
    // A login shell begins with a hyphen.
    let called = called.strip_prefix(b"-").unwrap_or(called);
    let called = PathBuf::from(OsString::from_vec(called.to_vec()));
    let is_shell = SHELLS.iter().any(|shell| called.file_name() == Some(shell.as_ref()));
    let path = env::var_os("PATH").unwrap_or_default();
    // A path with a root replaces the folder that it is joined to.
    let mut programs = env::split_paths(&path).map(|folder| folder.join(&called));
    programs.find(|program| is_shell && program.is_file())
}

/// Returns the parent's id in a line of `/proc/PID/stat`. The name may contain anything.
fn parent(stat: &str) -> Option<u32> {
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parent_is_the_second_field_after_the_name() {
        assert_eq!(parent("12 (a) b) S 7 12"), Some(7));
        assert_eq!(parent("12 (a"), None);
    }
}
