//! The filters of system calls, by seccomp.
//!
//! Two filters are installed, because one can only decide between two answers: the first lets calls
//! fail that libraries do without, and the second ends the process for everything that is not
//! allowed. Of several answers the kernel takes the strictest.

use std::collections::BTreeMap;

use brigade_sys::confine::THIS_PROCESS;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen as Width, SeccompCmpOp as Is,
    SeccompCondition as Condition, SeccompFilter, SeccompRule,
};

use crate::calls::number_of;
use crate::calls_allowed::{ABSENT, ALWAYS, CONNECTIONS, PROCESSES};
use crate::calls_denied::{CHANGES, NETWORK};
use crate::error::SandboxError;
use crate::sandbox::{Level, Sandbox};

/// The rules of a filter: for each call, the arguments to which the rule applies; any of them if
/// the list is empty.
#[derive(Default)]
struct Rules(BTreeMap<i64, Vec<SeccompRule>>);

/// Calls of the x32 interface of x86-64 have this bit. Kernels with that interface know the same
/// calls under two numbers.
const X32: i64 = 0x4000_0000;

/// Makes the filters of a sandbox, as the words of their instructions.
pub(crate) fn filters(sandbox: &Sandbox) -> Result<Vec<Vec<u64>>, SandboxError> {
    let further = further_calls(sandbox)?;
    let refusal = if sandbox.program { refused() } else { SeccompAction::Trap };
    if sandbox.level < Level::Strict {
        let denied = denied(sandbox, &further).map_err(make)?;
        // Its flags are in memory, where no filter can look: the C libraries use `clone` then.
        let mut absent = Rules::default();
        absent.all(["clone3"]);
        absent.add_x32();
        return Ok(vec![
            compile(absent, SeccompAction::Allow, missing())?,
            compile(denied, SeccompAction::Allow, refusal)?,
        ]);
    }
    let mut absent = Rules::default();
    let is_absent = |name: &&&str| !number_of(name).is_some_and(|call| further.contains(&call));
    absent.all(ABSENT.iter().filter(|name| **name != "ioctl").filter(is_absent).copied());
    absent.other_controls(&further).map_err(make)?;
    let allowed = allowed(sandbox, &further).map_err(make)?;
    Ok(vec![
        compile(absent, SeccompAction::Allow, missing())?,
        compile(allowed, refusal, SeccompAction::Allow)?,
    ])
}

fn refused() -> SeccompAction {
    SeccompAction::Errno(libc::EPERM.cast_unsigned())
}

fn missing() -> SeccompAction {
    SeccompAction::Errno(libc::ENOSYS.cast_unsigned())
}

fn further_calls(sandbox: &Sandbox) -> Result<Vec<i64>, SandboxError> {
    let number = |name: &String| {
        number_of(name).ok_or_else(|| SandboxError::UnknownCall { name: name.clone() })
    };
    sandbox.calls.iter().map(number).collect()
}

/// Returns the calls that a sandbox below `strict` denies.
fn denied(sandbox: &Sandbox, further: &[i64]) -> Result<Rules, seccompiler::BackendError> {
    let mut rules = Rules::default();
    rules.all(NETWORK.iter().copied());
    if sandbox.level == Level::ReadOnly {
        rules.all(CHANGES.iter().copied());
        for flag in NAMESPACES.map(|flag| u64::from(flag.cast_unsigned())) {
            rules.when("clone", [masked(0, flag, flag)?])?;
        }
    }
    // Sockets of the machine itself are no network.
    let local = || only(0, Is::Ne, libc::AF_UNIX);
    rules.when("socketpair", [local()?])?;
    if sandbox.ports.is_empty() {
        rules.when("socket", [local()?])?;
    } else {
        let families = [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6];
        let others = families.into_iter().map(|family| only(0, Is::Ne, family));
        rules.when_all("socket", others.collect::<Result<_, _>>()?)?;
        for family in [libc::AF_INET, libc::AF_INET6] {
            for kind in [libc::SOCK_DGRAM, libc::SOCK_RAW, libc::SOCK_SEQPACKET] {
                rules.when_all("socket", vec![only(0, Is::Eq, family)?, kind_is(kind)?])?;
            }
            let others = vec![
                only(0, Is::Eq, family)?,
                only(2, Is::Ne, 0)?,
                only(2, Is::Ne, libc::IPPROTO_TCP)?,
            ];
            rules.when_all("socket", others)?;
        }
    }
    // Input that is put into the terminal of the host.
    rules.when("ioctl", [only(1, Is::Eq, TIOCSTI)?, only(1, Is::Eq, TIOCLINUX)?])?;
    rules.0.retain(|call, _| !further.contains(call));
    rules.add_x32();
    Ok(rules)
}

const TIOCSTI: i32 = 0x5412;
const TIOCLINUX: i32 = 0x541c;

/// Returns the calls that a strict sandbox allows.
fn allowed(sandbox: &Sandbox, further: &[i64]) -> Result<Rules, seccompiler::BackendError> {
    let mut rules = Rules::default();
    rules.all(ALWAYS.iter().copied());
    // The other filter decides on them.
    rules.all(ABSENT.iter().copied());
    if sandbox.processes {
        rules.all(PROCESSES.iter().copied());
        rules.when("clone", [masked(0, new_namespaces(), 0)?])?;
    } else {
        for call in ["kill", "tgkill", "tkill"] {
            rules.when(call, [only(0, Is::Eq, THIS_PROCESS.cast_signed())?])?;
        }
        if sandbox.threads {
            let thread = u64::from((libc::CLONE_THREAD | libc::CLONE_VM).cast_unsigned());
            let mask = thread | new_namespaces();
            rules.when("clone", [masked(0, mask, thread)?])?;
        }
    }
    // A handler of its own would go on after a call that is forbidden.
    rules.when("rt_sigaction", [only(0, Is::Ne, libc::SIGSYS)?])?;
    // Neither signals to others nor leases and notifications.
    let commands = [libc::F_SETOWN, F_SETSIG, F_SETOWN_EX, libc::F_SETLEASE, libc::F_NOTIFY];
    let commands = commands.into_iter().map(|command| only(1, Is::Ne, command));
    rules.when_all("fcntl", commands.collect::<Result<_, _>>()?)?;
    // Limits may be read.
    rules.when_all("prlimit64", vec![only(0, Is::Eq, 0)?, pointer(2, Is::Eq, 0)?])?;
    for option in CONTROLS {
        rules.when("prctl", [only(0, Is::Eq, option)?])?;
    }
    // Without packets, whose senders may choose the receiver of each.
    for kind in [libc::SOCK_STREAM, libc::SOCK_SEQPACKET] {
        rules.when_all("socketpair", vec![only(0, Is::Eq, libc::AF_UNIX)?, kind_is(kind)?])?;
    }
    let not_fast = |argument| masked(argument, u64::from(libc::MSG_FASTOPEN.cast_unsigned()), 0);
    rules.when("sendmsg", [not_fast(2)?])?;
    rules.when_all("sendto", vec![not_fast(3)?, pointer(4, Is::Eq, 0)?])?;
    if !sandbox.ports.is_empty() {
        rules.all(CONNECTIONS.iter().copied());
        for family in [libc::AF_INET, libc::AF_INET6] {
            for protocol in [0, libc::IPPROTO_TCP] {
                let stream = vec![
                    only(0, Is::Eq, family)?,
                    kind_is(libc::SOCK_STREAM)?,
                    only(2, Is::Eq, protocol)?,
                ];
                rules.when_all("socket", stream)?;
            }
        }
    }
    for call in further {
        rules.0.insert(*call, Vec::new());
    }
    Ok(rules)
}

const F_SETSIG: i32 = 10;
const F_SETOWN_EX: i32 = 15;

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

fn new_namespaces() -> u64 {
    NAMESPACES.into_iter().fold(0, |all, flag| all | u64::from(flag.cast_unsigned()))
}

type Made<T> = Result<T, seccompiler::BackendError>;

/// Compares the lower half of an argument: that is all the kernel looks at if it is an `int`.
fn only(argument: u8, is: Is, value: i32) -> Made<Condition> {
    Condition::new(argument, Width::Dword, is, u64::from(value.cast_unsigned()))
}

fn pointer(argument: u8, is: Is, value: u64) -> Made<Condition> {
    Condition::new(argument, Width::Qword, is, value)
}

fn masked(argument: u8, mask: u64, value: u64) -> Made<Condition> {
    Condition::new(argument, Width::Qword, Is::MaskedEq(mask), value)
}

/// The type of a socket, without its flags.
fn kind_is(kind: i32) -> Made<Condition> {
    Condition::new(1, Width::Dword, Is::MaskedEq(0xf), u64::from(kind.cast_unsigned()))
}

impl Rules {
    /// Applies to these calls, whatever their arguments are.
    fn all<'a>(&mut self, names: impl IntoIterator<Item = &'a str>) {
        // A call that this processor does not have needs no rule.
        self.0.extend(names.into_iter().filter_map(number_of).map(|call| (call, Vec::new())));
    }

    /// Applies to a call if one of the conditions holds.
    fn when(&mut self, name: &str, any: impl IntoIterator<Item = Condition>) -> Made<()> {
        any.into_iter().try_for_each(|condition| self.when_all(name, vec![condition]))
    }

    /// Applies to a call if all the conditions hold.
    fn when_all(&mut self, name: &str, all: Vec<Condition>) -> Made<()> {
        if let Some(call) = number_of(name) {
            self.0.entry(call).or_default().push(SeccompRule::new(all)?);
        }
        Ok(())
    }

    /// Applies to `ioctl`, except for what every descriptor has.
    fn other_controls(&mut self, further: &[i64]) -> Made<()> {
        const EVERYWHERE: [i32; 4] = [0x5451, 0x5450, 0x5421, 0x541b];
        if number_of("ioctl").is_some_and(|call| further.contains(&call)) {
            return Ok(());
        }
        // FIOCLEX, FIONCLEX, FIONBIO and FIONREAD, which are the same on all processors here.
        let others = EVERYWHERE.into_iter().map(|command| only(1, Is::Ne, command));
        self.when_all("ioctl", others.collect::<Made<_>>()?)
    }

    /// Applies to the same calls of the x32 interface.
    fn add_x32(&mut self) {
        if cfg!(target_arch = "x86_64") {
            let x32: Vec<_> = self.0.iter().map(|(call, it)| (call | X32, it.clone())).collect();
            self.0.extend(x32);
        }
    }
}

fn make(error: seccompiler::BackendError) -> SandboxError {
    SandboxError::Make { part: "filter of system calls", problem: error.to_string() }
}

fn compile(
    rules: Rules,
    otherwise: SeccompAction,
    matching: SeccompAction,
) -> Result<Vec<u64>, SandboxError> {
    let arch = std::env::consts::ARCH.try_into().map_err(make)?;
    let filter = SeccompFilter::new(rules.0, otherwise, matching, arch).map_err(make)?;
    let program: BpfProgram = filter.try_into().map_err(make)?;
    let word = |it: &seccompiler::sock_filter| {
        u64::from(it.code) | u64::from(it.jt) << 16 | u64::from(it.jf) << 24 | u64::from(it.k) << 32
    };
    Ok(program.iter().map(word).collect())
}
