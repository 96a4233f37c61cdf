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
const OF_PROGRAMS: [&str; 22] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/nix/store",
    "/etc/alternatives",
    "/etc/fonts",
    "/etc/group",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/ld.so.preload",
    "/etc/localtime",
    "/etc/nsswitch.conf",
    "/etc/passwd",
    "/etc/ssl/cert.pem",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/sys/devices/system/cpu",
    "/proc/cpuinfo",
];

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
    let devices = DEVICES.iter().map(|path| (path, READ_FILE | WRITE_FILE));
    let programs = of_programs(sandbox).iter().map(|path| (path, EXECUTING));
    for (path, rights) in devices.chain(programs).filter(|(path, _)| Path::new(path).exists()) {
        add(&mut rules, "execute", Path::new(path), rights, false)?;
    }
    Ok(rules)
}

/// Returns the files of programs that may be used without being named.
pub(crate) fn of_programs(sandbox: &Sandbox) -> &'static [&'static str] {
    if sandbox.program { &OF_PROGRAMS } else { &[] }
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
    let own = format!("/proc/{}", std::process::id());
    let is_own = |path: &Path| path.starts_with(&own);
    let leads_to_own = !is_own(path) && path.canonicalize().is_ok_and(|real| is_own(&real));
    if leads_to_own && !may_be_own {
        return Err(problem(NOT_OWN.to_owned()));
    }
    match rights {
        // It is an error for the kernel.
        0 => {}
        _ if leads_to_own => {
            let path = std::path::absolute(path).map_err(failed)?.into_os_string().into_vec();
            let path = CString::new(path).map_err(|error| failed(error.into()))?;
            rules.own.push((path, rights));
        }
        _ => rules.files.push((file.into(), rights)),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_programs_have_no_secrets() {
        for secret in ["/etc/ssl/private/key", "/etc/shadow", "/etc/gshadow", "/root", "/home"] {
            let has_it = |folder: &&&str| Path::new(secret).starts_with(folder);
            assert_eq!(OF_PROGRAMS.iter().find(has_it), None, "{secret}");
        }
    }
}
