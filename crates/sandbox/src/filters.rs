//! The answers to system calls, by seccomp: those of the table in `calls.txt`, and the rules for
//! calls whose arguments decide.

use std::collections::BTreeMap;
use std::fs::read_to_string;

use brigade_sys::confine::THIS_PROCESS;

use crate::calls::{named, table};
use crate::error::SandboxError;
use crate::program::{Answer, Answers, Call, Condition};
use crate::sandbox::{Level, Sandbox};

use Answer::{Allow, Fail};

/// Makes the filter of a sandbox, as the words of its instructions.
pub(crate) fn filter(sandbox: &Sandbox) -> Result<Vec<u64>, SandboxError> {
    let mut rules = KnownCalls::of_table(sandbox);
    rules.add(sandbox);
    for name in &sandbox.calls {
        let unknown = || SandboxError::UnknownCall { name: name.clone() };
        // A call that this processor does not have needs no answer.
        if let Some(number) = named(name).ok_or_else(unknown)?.number {
            rules.calls.insert(number, Call { rules: Vec::new(), otherwise: Allow });
        }
    }
    // A call that is not in the table does not exist: nobody has asked yet what it does.
    Ok(Answers { calls: rules.calls, otherwise: Fail(libc::ENOSYS) }.program())
}

/// The answers to known calls.
struct KnownCalls {
    calls: BTreeMap<u32, Call>,
    /// The answer to what is forbidden.
    refusal: Answer,
}

impl KnownCalls {
    /// Returns the answers that do not depend on arguments.
    fn of_table(sandbox: &Sandbox) -> Self {
        // A program does not record why it ends, and is written for other surroundings.
        let refusal = if sandbox.program { Fail(libc::EPERM) } else { Answer::Trap };
        let answer = |word: &str| match word.trim_end_matches('*') {
            "yes" => Allow,
            "processes" if sandbox.processes => Allow,
            "connect" if !sandbox.ports.is_empty() => Allow,
            "EINVAL" => Fail(libc::EINVAL),
            "ENOSYS" => Fail(libc::ENOSYS),
            "ENOTTY" => Fail(libc::ENOTTY),
            "EOPNOTSUPP" => Fail(libc::EOPNOTSUPP),
            "EPERM" => Fail(libc::EPERM),
            _ => refusal,
        };
        let lines = table().iter().filter_map(|line| {
            let otherwise = answer(line.answers[sandbox.level as usize]);
            Some((line.number?, Call { rules: Vec::new(), otherwise }))
        });
        Self { calls: lines.collect(), refusal }
    }

    /// Adds what depends on arguments. The first rule of a call that holds counts.
    fn add(&mut self, sandbox: &Sandbox) {
        if sandbox.level < Level::Strict {
            // Sockets of the machine itself are no network.
            self.refuse("socketpair", [is_not(0, libc::AF_UNIX)]);
            self.allow("socket", [is(0, libc::AF_UNIX)]);
            // Input that is put into the terminal of the host.
            for command in [TIOCSTI, TIOCLINUX] {
                self.refuse("ioctl", [is(1, command)]);
            }
        }
        // Look-ups of names ask the kernel for the addresses of the machine, and do without.
        self.when("socket", [is(0, libc::AF_NETLINK)], Fail(libc::EACCES));
        self.add_connections(sandbox);
        if sandbox.level > Level::NoNetwork {
            for flag in NAMESPACES.into_iter().chain([libc::CLONE_PARENT]) {
                let flag = u64::from(flag.cast_unsigned());
                self.refuse("clone", [masked(0, flag, flag)]);
            }
            // The pages of all pipes are counted for the user.
            self.when("fcntl", [is(1, libc::F_SETPIPE_SZ)], Fail(libc::EPERM));
        }
        match sandbox.level {
            Level::NoNetwork => {}
            Level::ReadOnly => self.add_others(),
            Level::Strict => self.add_strict(sandbox),
        }
    }

    /// Closes the ways around the rules for ports, which know `connect` and `bind` only.
    fn add_connections(&mut self, sandbox: &Sandbox) {
        // A connection that comes with the first bytes.
        let fast = u64::from(libc::MSG_FASTOPEN.cast_unsigned());
        for (name, flags) in [("sendto", 3), ("sendmsg", 2), ("sendmmsg", 3)] {
            self.refuse(name, [masked(flags, fast, fast)]);
        }
        if sandbox.ports.is_empty() {
            return;
        }
        for family in [libc::AF_INET, libc::AF_INET6] {
            for protocol in [0, libc::IPPROTO_TCP] {
                self.allow("socket", [is(0, family), kind_is(libc::SOCK_STREAM), is(2, protocol)]);
            }
            // Look-ups of names sort addresses with these.
            self.when("socket", [is(0, family), kind_is(libc::SOCK_DGRAM)], Fail(libc::EACCES));
        }
        // It binds a socket that has no port.
        self.refuse("listen", []);
        // It may make another protocol of the socket, as on a kernel without that.
        let protocol = [is(1, libc::IPPROTO_TCP), is(2, TCP_ULP)];
        self.when("setsockopt", protocol, Fail(libc::ENOENT));
    }

    /// Adds the rules of `read_only`, in which files and other processes may be looked at.
    fn add_others(&mut self) {
        self.allow("prlimit64", [is_null(2)]);
        for own in OWN {
            self.allow("prlimit64", [is(0, own)]);
            self.allow("setpriority", [is(0, 0), is(1, own)]);
            self.allow("ioprio_set", [is(0, IOPRIO_WHO_PROCESS), is(1, own)]);
            for name in OF_PROCESSES {
                self.allow(name, [is(0, own)]);
            }
        }
        for command in OF_FILES_READ {
            self.allow("ioctl", [is(1, command.cast_signed())]);
        }
        for kind in OF_FILE_SYSTEMS {
            self.when("ioctl", [masked(1, 0xff00, kind << 8)], Fail(libc::ENOTTY));
        }
    }

    fn add_strict(&mut self, sandbox: &Sandbox) {
        for command in EVERYWHERE {
            self.allow("ioctl", [is(1, command)]);
        }
        if sandbox.processes {
            self.allow("clone", []);
            // The C library resets all handlers for programs.
            self.allow("rt_sigaction", []);
        } else {
            for call in ["kill", "tgkill", "tkill"] {
                self.allow(call, [is(0, THIS_PROCESS.cast_signed())]);
            }
            if sandbox.threads {
                // With a table of descriptors and a folder of its own, a thread multiplies limits.
                self.allow("clone", [masked(0, THREAD, THREAD)]);
            }
            // A handler of its own would go on after a call that is forbidden.
            self.allow("rt_sigaction", [is_not(0, libc::SIGSYS)]);
        }
        self.allow("close_range", [masked(2, libc::CLOSE_RANGE_UNSHARE.into(), 0)]);
        // Neither signals to others nor leases and notifications.
        let commands = [libc::F_SETOWN, F_SETSIG, F_SETOWN_EX, libc::F_SETLEASE, libc::F_NOTIFY];
        self.allow("fcntl", commands.map(|command| is_not(1, command)));
        // The sandbox has made the highest limits the current ones, except for this, which the
        // host changes: so others can only fall.
        let sets = Condition { is_equal: false, ..is_null(2) };
        self.when("prlimit64", [is(1, RLIMIT_DATA), sets], Fail(libc::EPERM));
        for own in OWN {
            self.allow("prlimit64", [is(0, own)]);
        }
        self.allow("setrlimit", [is_not(0, RLIMIT_DATA)]);
        // Without capabilities, ids can only be exchanged, and there is nothing to exchange.
        for (kind, names) in OF_IDS {
            if has_one_id(kind) {
                for name in names {
                    self.allow(name, []);
                }
            }
        }
        for option in CONTROLS {
            self.allow("prctl", [is(0, option)]);
        }
        // Without packets, whose senders may choose the receiver of each.
        for kind in [libc::SOCK_STREAM, libc::SOCK_SEQPACKET] {
            self.allow("socketpair", [is(0, libc::AF_UNIX), kind_is(kind)]);
        }
        // Look-ups of users and names ask a service of the machine first, and do without.
        self.when("socket", [is(0, libc::AF_UNIX)], Fail(libc::EACCES));
        self.allow("sendto", [is_null(4)]);
        // The host's own pidfd is at the other end of a socket.
        let peer = [is(1, libc::SOL_SOCKET), is(2, SO_PEERPIDFD)];
        self.when("getsockopt", peer, Fail(libc::ENOPROTOOPT));
    }

    fn allow(&mut self, name: &str, conditions: impl Into<Vec<Condition>>) {
        self.when(name, conditions, Allow);
    }

    fn refuse(&mut self, name: &str, conditions: impl Into<Vec<Condition>>) {
        self.when(name, conditions, self.refusal);
    }

    /// Answers a call if all the conditions hold.
    fn when(&mut self, name: &str, conditions: impl Into<Vec<Condition>>, answer: Answer) {
        let number = named(name).and_then(|line| line.number);
        if let Some(call) = number.and_then(|number| self.calls.get_mut(&number)) {
            call.rules.push((conditions.into(), answer));
        }
    }
}

const TIOCSTI: i32 = 0x5412;
const TIOCLINUX: i32 = 0x541c;
const TCP_ULP: i32 = 31;
const SO_PEERPIDFD: i32 = 77;
const F_SETSIG: i32 = 10;
const F_SETOWN_EX: i32 = 15;
const IOPRIO_WHO_PROCESS: i32 = 1;

/// The number of the limit on private memory, on all processors here.
const RLIMIT_DATA: i32 = 2;

/// The numbers by which a process is meant that makes a call.
const OWN: [i32; 2] = [0, THIS_PROCESS.cast_signed()];

/// Calls that change how a process runs, whose id is their first argument.
const OF_PROCESSES: [&str; 6] = [
    "migrate_pages",
    "move_pages",
    "sched_setaffinity",
    "sched_setattr",
    "sched_setparam",
    "sched_setscheduler",
];

/// The letters of commands of file systems (ioctl(2)), many of which change a file that was opened
/// for reading: those of all (f, v), XFS, FAT, OCFS2, NILFS, Btrfs, bcachefs, F2FS, HFS+, Ceph and
/// CIFS.
const OF_FILE_SYSTEMS: [u64; 12] =
    [0x66, 0x76, 0x58, 0x72, 0x6f, 0x6e, 0x94, 0xbc, 0xf5, 0x68, 0x97, 0xcf];

/// Commands of file systems that change nothing, or need a file that was opened for writing: to
/// read attributes (`FS_IOC_GETFLAGS`, `FS_IOC_FSGETXATTR`) and the map of a file
/// (`FS_IOC_FIEMAP`), and to share blocks (`FICLONE`, `FICLONERANGE`).
const OF_FILES_READ: [u32; 5] = [0x8008_6601, 0x801c_581f, 0xc020_660b, 0x4004_9409, 0x4020_940d];

/// FIOCLEX, FIONCLEX, FIONBIO and FIONREAD, which every descriptor has. They are the same on all
/// processors here.
const EVERYWHERE: [i32; 4] = [0x5451, 0x5450, 0x5421, 0x541b];

/// The flags of `clone` that all C libraries set for a thread.
const THREAD: u64 =
    (libc::CLONE_THREAD | libc::CLONE_VM | libc::CLONE_FILES | libc::CLONE_FS).cast_unsigned() as _;

/// The lines of `/proc/self/status` with the ids of a process, and the calls that set them.
const OF_IDS: [(&str, [&str; 4]); 2] = [
    ("Uid:", ["setuid", "setreuid", "setresuid", "setfsuid"]),
    ("Gid:", ["setgid", "setregid", "setresgid", "setfsgid"]),
];

/// Options of `prctl` that change nothing but this process's looks.
const CONTROLS: [i32; 9] = [
    libc::PR_SET_NAME,
    libc::PR_GET_NAME,
    libc::PR_GET_DUMPABLE,
    libc::PR_GET_PDEATHSIG,
    libc::PR_CAPBSET_READ,
    libc::PR_SET_NO_NEW_PRIVS,
    libc::PR_GET_NO_NEW_PRIVS,
    libc::PR_SET_TIMERSLACK,
    PR_SET_VMA,
];

/// Names memory in `/proc/PID/maps`; allocators do.
const PR_SET_VMA: i32 = 0x5356_4d41;

/// The flags of `clone` that make namespaces. That for a namespace of time is not among them: its
/// bit belongs to the signal for the parent there.
const NAMESPACES: [i32; 7] = [
    libc::CLONE_NEWNS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
];

/// Returns `true` if the real, effective, saved and file system's ids of this process are one.
fn has_one_id(kind: &str) -> bool {
    let status = read_to_string("/proc/self/status").unwrap_or_default();
    let mut ids =
        status.lines().find_map(|line| line.strip_prefix(kind)).map(str::split_whitespace);
    ids.as_mut().is_some_and(|ids| ids.next().is_some_and(|first| ids.all(|id| id == first)))
}

/// Compares the lower half of an argument: that is all the kernel looks at if it is an `int`.
fn half(argument: u8, value: i32, is_equal: bool) -> Condition {
    let value = u64::from(value.cast_unsigned());
    Condition { argument, mask: u32::MAX.into(), value, is_equal }
}

fn is(argument: u8, value: i32) -> Condition {
    half(argument, value, true)
}

fn is_not(argument: u8, value: i32) -> Condition {
    half(argument, value, false)
}

/// A null pointer, or the number 0.
fn is_null(argument: u8) -> Condition {
    masked(argument, u64::MAX, 0)
}

fn masked(argument: u8, mask: u64, value: u64) -> Condition {
    Condition { argument, mask, value, is_equal: true }
}

/// The type of a socket, without its flags.
fn kind_is(kind: i32) -> Condition {
    masked(1, 0xf, u64::from(kind.cast_unsigned()))
}

#[cfg(test)]
mod tests;
