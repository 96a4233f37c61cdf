//! Machines for tests: network namespaces that are connected to a bridge.
//!
//! A network is removed when it is dropped. If its test was killed, the next network on this
//! machine removes it: all its names begin with the pid of its test.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::processes::{Signal, hit, is_alive};
use crate::{BOUND, wait_until};

/// The beginning of the names of bridges, links and namespaces.
const PREFIX: &str = "bg";

/// Number of names that this process has made.
static MADE: AtomicU32 = AtomicU32::new(0);

/// A bridge of this machine, and hosts that are connected to it.
#[derive(Debug)]
pub struct Network {
    name: String,
    /// The first three numbers of the addresses.
    subnet: String,
    hosts: usize,
}

impl Network {
    /// Returns `true` if this process may make networks, for which it must be root and have the
    /// program `ip` of the Debian package `iproute2`. Tests that need it pass without it, and
    /// `cargo xtask test` says that they were left out.
    pub fn permitted() -> bool {
        let name = unused_name();
        let made = run(&["netns", "add", &name]);
        let made = made.and_then(|_| run(&["link", "add", &name, "type", "bridge"]));
        let _ = run(&["netns", "del", &name]);
        let _ = run(&["link", "del", &name]);
        made.is_ok()
    }

    /// Makes a bridge and a number of hosts, all of whose links are up.
    ///
    /// # Panics
    /// Panics if the system refuses it.
    pub fn new(hosts: usize) -> Self {
        remove_leftovers();
        let network = Self { name: unused_name(), subnet: free_subnet(), hosts };
        let bridge = &network.name;
        ip(&["link", "add", bridge, "type", "bridge"]);
        ip(&["addr", "add", &format!("{}/24", network.address()), "dev", bridge]);
        ip(&["link", "set", bridge, "up"]);
        for host in 0..hosts {
            let (space, address) = (network.space(host), format!("{}/24", network.host(host)));
            ip(&["netns", "add", &space]);
            let peer = ["type", "veth", "peer", "name", "eth0", "netns", &space];
            ip(&[&["link", "add", &space][..], &peer].concat());
            ip(&["link", "set", &space, "master", bridge, "up"]);
            ip(&["-n", &space, "addr", "add", &address, "dev", "eth0"]);
            ip(&["-n", &space, "link", "set", "eth0", "up"]);
            ip(&["-n", &space, "link", "set", "lo", "up"]);
        }
        network
    }

    /// Returns the address of the bridge, where servers outside of the hosts may listen.
    pub fn address(&self) -> String {
        format!("{}.1", self.subnet)
    }

    /// Returns a command that runs a program on a host. The process is the program itself.
    pub fn command(&self, host: usize, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.space(host)]).arg(program.as_ref());
        command
    }

    /// Cuts a host off, as if its cable was pulled: packets are lost, and nothing else happens.
    ///
    /// # Panics
    /// Panics if the system refuses it.
    pub fn cut_off(&self, host: usize) {
        ip(&["link", "set", &self.space(host), "down"]);
    }

    /// Connects a host again.
    ///
    /// # Panics
    /// Panics if the system refuses it.
    pub fn connect(&self, host: usize) {
        ip(&["link", "set", &self.space(host), "up"]);
    }

    /// Returns the pids of the processes on a host.
    ///
    /// # Panics
    /// Panics if the system does not tell.
    pub fn pids(&self, host: usize) -> Vec<u32> {
        pids_of(&self.space(host)).expect("the pids of a host")
    }

    fn host(&self, host: usize) -> String {
        format!("{}.{}", self.subnet, host + 2)
    }

    /// Returns the name of a host's namespace, which is also the name of its link to the bridge.
    fn space(&self, host: usize) -> String {
        format!("{}n{host}", self.name)
    }
}

impl Drop for Network {
    /// Kills what runs on the hosts, and removes everything.
    fn drop(&mut self) {
        for host in 0..self.hosts {
            remove_space(&self.space(host));
        }
        let _ = run(&["link", "del", &self.name]);
    }
}

/// Returns a name for a network. The length of all names is limited to 15 bytes, of which a pid has
/// up to 7.
fn unused_name() -> String {
    let number = MADE.fetch_add(1, Ordering::Relaxed) % 100;
    format!("{PREFIX}{}b{number}", std::process::id())
}

/// Removes the networks of tests that were killed.
fn remove_leftovers() {
    let is_left = |name: &str| {
        let rest = name.strip_prefix(PREFIX)?;
        let end = rest.find(|letter: char| !letter.is_ascii_digit())?;
        let pid = rest[..end].parse().ok()?;
        (!is_alive(pid)).then_some(())
    };
    // Without the folder, there was no namespace yet.
    for entry in fs::read_dir("/run/netns").into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if is_left(&name).is_some() {
            remove_space(&name);
        }
    }
    for entry in fs::read_dir("/sys/class/net").into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if is_left(&name).is_some() {
            // Links of namespaces go with these, perhaps at this moment.
            let _ = run(&["link", "del", &name]);
        }
    }
}

/// Removes a namespace, the processes in it, and its link to the bridge.
fn remove_space(space: &str) {
    // A namespace lives as long as its processes.
    let pids = pids_of(space).unwrap_or_default();
    for pid in &pids {
        hit(*pid, Signal::KILL);
    }
    wait_until("the end of all processes on a host", BOUND, || {
        !pids.iter().any(|pid| is_alive(*pid))
    });
    let _ = run(&["link", "del", space]);
    let _ = run(&["netns", "del", space]);
}

/// Returns the pids of the processes in a namespace.
fn pids_of(space: &str) -> Result<Vec<u32>, String> {
    let listed = run(&["netns", "pids", space])?;
    Ok(listed.lines().filter_map(|line| line.trim().parse().ok()).collect())
}

/// Returns the beginning of addresses that no link of this machine has. They are from the block
/// that is reserved for benchmarks of network devices (RFC 2544).
fn free_subnet() -> String {
    let taken = run(&["-o", "-4", "addr"]).expect("the addresses of this machine");
    let first = std::process::id();
    let subnets = (0..512).map(|more| (first + more) % 512);
    let mut subnets = subnets.map(|index| format!("198.{}.{}", 18 + index / 256, index % 256));
    let is_free = |subnet: &String| !taken.contains(&format!(" {subnet}."));
    subnets.find(is_free).expect("a free subnet")
}

fn ip(arguments: &[&str]) {
    if let Err(problem) = run(arguments) {
        panic!("`ip {}`: {problem}", arguments.join(" "));
    }
}

/// Runs `ip`, and returns its output.
fn run(arguments: &[&str]) -> Result<String, String> {
    let output = Command::new("ip").args(arguments).stdin(Stdio::null()).output();
    let output = output.map_err(|error| error.to_string())?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_leave_nothing_behind_even_of_killed_tests() {
        if !Network::permitted() {
            return;
        }
        let exists = |name: &str| Path::new("/sys/class/net").join(name).exists();
        // A pid above the limit of Linux is nobody's.
        let left = format!("{PREFIX}9999999b0");
        ip(&["link", "add", &left, "type", "bridge"]);
        ip(&["netns", "add", &left]);
        let network = Network::new(2);
        assert!(!exists(&left) && !Path::new("/run/netns").join(&left).exists());
        let (bridge, space) = (network.name.clone(), network.space(1));
        assert!(exists(&bridge) && exists(&space));
        let mut child = network.command(1, "sleep").arg("600").spawn().unwrap();
        wait_until("the process is on its host", BOUND, || network.pids(1) == [child.id()]);
        assert!(network.pids(0).is_empty());
        drop(network);
        assert!(!child.wait().unwrap().success());
        wait_until("the links are gone", BOUND, || !exists(&bridge) && !exists(&space));
    }
}
