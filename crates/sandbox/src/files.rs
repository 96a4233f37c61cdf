//! The rules for files, ports and signals, by Landlock.

use std::os::fd::OwnedFd;
use std::path::Path;

use brigade_sys::confine::landlock_version;
use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, NetPort, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, RulesetError, Scope,
};

use crate::error::SandboxError;
use crate::sandbox::{Level, Sandbox};

/// The newest interface whose rights are known here. Newer kernels have it too.
const NEWEST: u32 = 7;

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

/// Makes the rules; `None` if there is nothing for this kernel to enforce.
pub(crate) fn rules(sandbox: &Sandbox) -> Result<Option<OwnedFd>, SandboxError> {
    let version = landlock_version().min(NEWEST);
    if version == 0 {
        return Ok(None);
    }
    let abi = ABI::from(i32::try_from(version).unwrap_or(0));
    let made = |result: Result<RulesetCreated, RulesetError>| {
        let problem = |error: RulesetError| error.to_string();
        result.map_err(|error| SandboxError::Make {
            part: "rules for files",
            problem: problem(error),
        })
    };
    let rules = made(handled(sandbox.level, abi).and_then(Ruleset::create))?;
    let reading = AccessFs::ReadFile | AccessFs::ReadDir;
    let executing = reading | AccessFs::Execute;
    // Not everything: no device is made or controlled in there.
    let of_devices = AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::IoctlDev;
    let writing = (AccessFs::from_all(abi) & !AccessFs::Execute) & !of_devices;
    let mut rules = Rules { created: rules, abi, handled: handled_files(sandbox.level, abi) };
    for (method, paths, access) in [
        ("read", &sandbox.read, reading),
        ("write", &sandbox.write, writing),
        ("execute", &sandbox.execute, executing),
    ] {
        for path in paths {
            rules.add(method, path, access)?;
        }
    }
    for path in &DEVICES {
        rules.add_if_there(path, AccessFs::ReadFile | AccessFs::WriteFile)?;
    }
    for path in of_programs(sandbox) {
        rules.add_if_there(path, executing)?;
    }
    let mut rules = rules.created;
    if version >= crate::report::PORTS {
        for port in &sandbox.ports {
            rules = made(rules.add_rule(NetPort::new(*port, AccessNet::ConnectTcp)))?;
        }
    }
    Ok(rules.into())
}

/// Returns the files of programs that may be used without being named.
pub(crate) fn of_programs(sandbox: &Sandbox) -> &'static [&'static str] {
    if sandbox.program { &OF_PROGRAMS } else { &[] }
}

/// Returns the rights on files that are taken away unless a rule gives them back.
fn handled_files(level: Level, abi: ABI) -> BitFlags<AccessFs> {
    match level {
        Level::NoNetwork => BitFlags::EMPTY,
        Level::ReadOnly => AccessFs::from_write(abi),
        Level::Strict => AccessFs::from_all(abi),
    }
}

fn handled(level: Level, abi: ABI) -> Result<Ruleset, RulesetError> {
    let mut rules = Ruleset::default();
    let files = handled_files(level, abi);
    if !files.is_empty() {
        rules = rules.handle_access(files)?;
    }
    rules = rules.handle_access(AccessNet::from_all(abi.max(ABI::V4)))?;
    let scopes = if level == Level::NoNetwork {
        Scope::AbstractUnixSocket.into()
    } else {
        Scope::from_all(abi.max(ABI::V6))
    };
    rules.scope(scopes)
}

struct Rules {
    created: RulesetCreated,
    abi: ABI,
    handled: BitFlags<AccessFs>,
}

impl Rules {
    fn add(
        &mut self,
        method: &'static str,
        path: &Path,
        access: BitFlags<AccessFs>,
    ) -> Result<(), SandboxError> {
        let problem = |problem: String| SandboxError::Path {
            method,
            path: path.display().to_string(),
            problem,
        };
        let found = std::fs::metadata(path).map_err(|error| problem(error.to_string()))?;
        let own = format!("/proc/{}", std::process::id());
        let is_own = |path: &Path| path.starts_with(&own);
        if !is_own(path) && path.canonicalize().is_ok_and(|real| is_own(&real)) {
            let leads = "it leads to the entries of this process, and not of the one that reads it";
            return Err(problem(leads.to_owned()));
        }
        let file = PathFd::new(path).map_err(|error| problem(error.to_string()))?;
        let fitting = if found.is_dir() { access } else { access & AccessFs::from_file(self.abi) };
        let fitting = fitting & self.handled;
        if fitting.is_empty() {
            return Ok(());
        }
        // It takes the rules and gives them back.
        let rule = (&mut self.created).add_rule(PathBeneath::new(file, fitting));
        rule.map(drop).map_err(|error| problem(error.to_string()))
    }

    fn add_if_there(
        &mut self,
        path: &'static str,
        access: BitFlags<AccessFs>,
    ) -> Result<(), SandboxError> {
        let path = Path::new(path);
        if path.exists() { self.add("execute", path, access) } else { Ok(()) }
    }
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
