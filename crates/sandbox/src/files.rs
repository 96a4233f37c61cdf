//! The rules for files, ports and signals, by Landlock.

use std::ffi::CString;
use std::fs::File;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::error::SandboxError;
use crate::report::{PORTS, SIGNALS};
use crate::rules::Rules;
use crate::sandbox::{Level, Sandbox};

// Rights on files (landlock(7)).
const EXECUTE: u64 = 1;
const WRITE_FILE: u64 = 1 << 1;
const READ_FILE: u64 = 1 << 2;
const READ_FOLDER: u64 = 1 << 3;
const MAKE_DEVICE: u64 = 1 << 6 | 1 << 11;
const TRUNCATE: u64 = 1 << 14;
const COMMAND_DEVICE: u64 = 1 << 15;
const READING: u64 = READ_FILE | READ_FOLDER;
const EXECUTING: u64 = READING | EXECUTE;
/// Not everything: no device is made or controlled in there.
const WRITING: u64 = !(EXECUTE | MAKE_DEVICE | COMMAND_DEVICE);
/// The rights that a file has which is no folder.
const OF_SINGLE_FILES: u64 = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | COMMAND_DEVICE;

const NOT_OWN: &str = "it leads to the entries of this process, and not of the one that reads it; \
                       workers without `isolate` may `read` their own";

/// Devices that programs and libraries need and that tell nothing.
pub(crate) const DEVICES: [&str; 5] =
    ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// Files that programs read and execute: themselves, their libraries, and what those need.
const OF_PROGRAMS: &str = include_str!("programs.txt");

/// Opens all paths and makes the rules, for a kernel with this interface of Landlock.
pub(crate) fn rules(sandbox: &Sandbox, version: u32) -> Result<Rules, SandboxError> {
    // Each interface knows a number of rights.
    let known = (1 << [0, 13, 14, 15, 15, 16][version.min(5) as usize]) - 1;
    let files = match sandbox.level {
        Level::NoNetwork => 0,
        Level::ReadOnly => known & !EXECUTING,
        Level::Strict => known,
    };
    let scopes = match sandbox.level {
        _ if version < SIGNALS => 0,
        Level::NoNetwork => 1,
        Level::ReadOnly | Level::Strict => 3,
    };
    let (networks, ports) = if version < PORTS { (0, &[][..]) } else { (3, &sandbox.ports[..]) };
    let handled = [files, networks, scopes];
    let mut rules = Rules { handled, ports: ports.into(), ..Rules::default() };
    let has_own = !sandbox.program && !sandbox.isolate;
    for (method, paths, rights) in [
        ("read", &sandbox.read, READING),
        ("write", &sandbox.write, WRITING),
        ("execute", &sandbox.execute, EXECUTING),
    ] {
        for path in paths {
            add(&mut rules, method, path, rights, has_own && method == "read")?;
        }
    }
    let devices = DEVICES.into_iter().map(|path| (path, READ_FILE | WRITE_FILE));
    let programs = of_programs(sandbox).map(|path| (path, EXECUTING));
    for (path, rights) in devices.chain(programs).filter(|(path, _)| Path::new(path).exists()) {
        add(&mut rules, "execute", Path::new(path), rights, false)?;
    }
    Ok(rules)
}

/// Returns the files of programs that may be used without being named.
pub(crate) fn of_programs(sandbox: &Sandbox) -> impl Iterator<Item = &'static str> + use<> {
    sandbox.program.then(|| OF_PROGRAMS.lines()).into_iter().flatten()
}

fn add(
    rules: &mut Rules,
    method: &'static str,
    path: &Path,
    rights: u64,
    may_be_own: bool,
) -> Result<(), SandboxError> {
    let problem =
        |problem: String| SandboxError::Path { method, path: path.display().to_string(), problem };
    let failed = |error: std::io::Error| problem(error.to_string());
    let file = File::options().read(true).custom_flags(libc::O_PATH).open(path).map_err(failed)?;
    let is_folder = file.metadata().map_err(failed)?.is_dir();
    let rights = rights & rules.handled[0] & if is_folder { u64::MAX } else { OF_SINGLE_FILES };
    let own = own_entry(path);
    if own.is_some() && !may_be_own {
        return Err(problem(NOT_OWN.to_owned()));
    }
    match (rights, own) {
        // It is an error for the kernel.
        (0, _) => {}
        (_, Some(own)) => rules.own.push((own, rights)),
        (_, None) => rules.files.push((file.into(), rights)),
    }
    Ok(())
}

/// Returns the path of the same entry of any process, if a path leads to one of this process. Its
/// links are followed here: what a worker puts in their place leads the next one nowhere else.
fn own_entry(path: &Path) -> Option<CString> {
    let real = path.canonicalize().ok()?;
    // This process may have another number in `/proc` than in its namespace.
    ["/proc/thread-self", "/proc/self"].into_iter().find_map(|own| {
        let here = Path::new(own).canonicalize().ok().filter(|here| !path.starts_with(here))?;
        let own = Path::new(own).join(real.strip_prefix(here).ok()?);
        CString::new(own.into_os_string().into_vec()).ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_programs_have_no_secrets() {
        for secret in ["/etc/ssl/private/key", "/etc/shadow", "/etc/gshadow", "/root", "/home"] {
            let has_it = |folder: &&str| Path::new(secret).starts_with(folder);
            assert_eq!(OF_PROGRAMS.lines().find(has_it), None, "{secret}");
        }
    }

    #[test]
    fn links_to_own_entries_are_followed_once() {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("link");
        let thread = std::fs::canonicalize("/proc/thread-self").unwrap();
        let host = std::fs::canonicalize("/proc/self").unwrap();
        for (path, own) in [
            ("/proc/self/status", Some("/proc/self/status")),
            ("/proc/self/task/../fd", Some("/proc/self/fd")),
            ("/proc/thread-self/stat", Some("/proc/thread-self/stat")),
            ("/dev/fd", Some("/proc/self/fd")),
            ("/proc/self", Some("/proc/self/")),
            ("/proc/self/root", None),
            ("/proc/self/exe", None),
            (thread.to_str().unwrap(), None),
            (host.to_str().unwrap(), None),
        ] {
            let found = own_entry(Path::new(path)).map(|it| it.into_string().unwrap());
            assert_eq!(found.as_deref(), own, "{path}");
            let is_own = own.is_some() || path.starts_with(host.to_str().unwrap());
            let _ = std::fs::remove_file(&link);
            std::os::unix::fs::symlink(path, &link).unwrap();
            assert_eq!(own_entry(&link).is_some(), is_own, "{path}");
        }
    }
}
