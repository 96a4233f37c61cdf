//! The answers to system calls, by seccomp.

use std::collections::BTreeMap;

use brigade_sys::confine::THIS_PROCESS;

use crate::calls::number_of;
use crate::calls_allowed::{ABSENT, ALWAYS, CONNECTIONS, PROCESSES};
use crate::calls_denied::{CHANGES, NETWORK};
use crate::error::SandboxError;
use crate::program::{Answer, Answers, Call, Condition};
use crate::sandbox::{Level, Sandbox};

use Answer::Allow;

/// Calls of the x32 interface of x86-64 have this bit. Kernels with that interface know the same
/// calls under two numbers.
const X32: u32 = 0x4000_0000;

/// The answer to calls that libraries do without.
const ABSENCE: Answer = Answer::Fail(libc::ENOSYS);

/// Makes the filter of a sandbox, as the words of its instructions.
pub(crate) fn filter(sandbox: &Sandbox) -> Result<Vec<u64>, SandboxError> {
    // A program does not record why it ends, and is written for other surroundings.
    let refusal = if sandbox.program { Answer::Fail(libc::EPERM) } else { Answer::Trap };
    let mut answers = if sandbox.level < Level::Strict {
        denied(sandbox, refusal)
    } else {
        allowed(sandbox, refusal)
    };
    for name in &sandbox.calls {
        if number_of(name).is_none() {
            return Err(SandboxError::UnknownCall { name: name.clone() });
        }
    }
    answers.all(sandbox.calls.iter().map(String::as_str), Allow);
    if sandbox.level < Level::Strict {
        answers.add_x32();
    }
    Ok(answers.program())
}

/// Returns the answers below `strict`: some calls are denied.
fn denied(sandbox: &Sandbox, refusal: Answer) -> Answers {
    let mut answers = Answers { calls: BTreeMap::new(), otherwise: Allow };
    answers.all(NETWORK.iter().copied(), refusal);
    if sandbox.level == Level::ReadOnly {
        answers.all(CHANGES.iter().copied(), refusal);
        for flag in NAMESPACES.map(|flag| u64::from(flag.cast_unsigned())) {
            answers.when("clone", [masked(0, flag, flag)], refusal);
        }
        // Its flags are in memory, where no filter can look: the C libraries use `clone` then.
        answers.all(["clone3"], ABSENCE);
    }
    // Sockets of the machine itself are no network.
    answers.when("socketpair", [is_not(0, libc::AF_UNIX)], refusal);
    answers.when("socket", [is(0, libc::AF_UNIX)], Allow);
    if !sandbox.ports.is_empty() {
        allow_streams(&mut answers);
    }
    answers.when("socket", [], refusal);
    // Input that is put into the terminal of the host.
    for command in [TIOCSTI, TIOCLINUX] {
        answers.when("ioctl", [is(1, command)], refusal);
    }
    answers
}

const TIOCSTI: i32 = 0x5412;
const TIOCLINUX: i32 = 0x541c;

/// Allows sockets for TCP, whose ports the rules for files decide on.
fn allow_streams(answers: &mut Answers) {
    for family in [libc::AF_INET, libc::AF_INET6] {
        for protocol in [0, libc::IPPROTO_TCP] {
            let stream = [is(0, family), kind_is(libc::SOCK_STREAM), is(2, protocol)];
            answers.when("socket", stream, Allow);
        }
    }
}

/// Returns the answers of `strict`: some calls are allowed.
fn allowed(sandbox: &Sandbox, refusal: Answer) -> Answers {
    let mut answers = Answers { calls: BTreeMap::new(), otherwise: refusal };
    answers.all(ALWAYS.iter().copied(), Allow);
    answers.all(ABSENT.iter().copied(), ABSENCE);
    for command in EVERYWHERE {
        answers.when("ioctl", [is(1, command)], Allow);
    }
    if sandbox.processes {
        answers.all(PROCESSES.iter().copied(), Allow);
        answers.when("clone", [masked(0, new_namespaces(), 0)], Allow);
    } else {
        for call in ["kill", "tgkill", "tkill"] {
            answers.when(call, [is(0, THIS_PROCESS.cast_signed())], Allow);
        }
        if sandbox.threads {
            let thread = u64::from((libc::CLONE_THREAD | libc::CLONE_VM).cast_unsigned());
            answers.when("clone", [masked(0, thread | new_namespaces(), thread)], Allow);
        }
    }
    // A handler of its own would go on after a call that is forbidden. But where programs may be
    // started, the C library has to reset all handlers for them.
    if sandbox.processes {
        answers.all(["rt_sigaction"], Allow);
    } else {
        answers.when("rt_sigaction", [is_not(0, libc::SIGSYS)], Allow);
    }
    // Neither signals to others nor leases and notifications.
    let commands = [libc::F_SETOWN, F_SETSIG, F_SETOWN_EX, libc::F_SETLEASE, libc::F_NOTIFY];
    answers.when("fcntl", commands.map(|command| is_not(1, command)), Allow);
    // Limits may be read.
    answers.when("prlimit64", [is(0, 0), is_null(2)], Allow);
    for option in CONTROLS {
        answers.when("prctl", [is(0, option)], Allow);
    }
    // Without packets, whose senders may choose the receiver of each.
    for kind in [libc::SOCK_STREAM, libc::SOCK_SEQPACKET] {
        answers.when("socketpair", [is(0, libc::AF_UNIX), kind_is(kind)], Allow);
    }
    // A connection that comes with the first bytes is one that nobody has allowed.
    let not_fast = |argument| masked(argument, u64::from(libc::MSG_FASTOPEN.cast_unsigned()), 0);
    answers.when("sendmsg", [not_fast(2)], Allow);
    answers.when("sendto", [not_fast(3), is_null(4)], Allow);
    if !sandbox.ports.is_empty() {
        answers.all(CONNECTIONS.iter().copied(), Allow);
        allow_streams(&mut answers);
    }
    answers
}

/// FIOCLEX, FIONCLEX, FIONBIO and FIONREAD, which every descriptor has. They are the same on all
/// processors here.
const EVERYWHERE: [i32; 4] = [0x5451, 0x5450, 0x5421, 0x541b];

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

impl Answers {
    /// Answers these calls, whatever their arguments are.
    fn all<'a>(&mut self, names: impl IntoIterator<Item = &'a str>, otherwise: Answer) {
        // A call that this processor does not have needs no answer.
        let numbers = names.into_iter().filter_map(number_of).filter_map(|it| it.try_into().ok());
        self.calls.extend(numbers.map(|it| (it, Call { rules: Vec::new(), otherwise })));
    }

    /// Answers a call if all the conditions hold.
    fn when(&mut self, name: &str, conditions: impl Into<Vec<Condition>>, answer: Answer) {
        let Some(number) = number_of(name).and_then(|it| it.try_into().ok()) else { return };
        let others = Call { rules: Vec::new(), otherwise: self.otherwise };
        self.calls.entry(number).or_insert(others).rules.push((conditions.into(), answer));
    }

    /// Answers the same calls of the x32 interface in the same way.
    fn add_x32(&mut self) {
        if cfg!(target_arch = "x86_64") {
            let x32: Vec<_> =
                self.calls.iter().map(|(it, call)| (it | X32, call.clone())).collect();
            self.calls.extend(x32);
        }
    }
}
