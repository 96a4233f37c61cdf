//! `rustix::process`.

use std::num::NonZeroI32;
use std::os::fd::{BorrowedFd, OwnedFd};

use crate::fs::Mode;

flags! {
    PidfdFlags: NONBLOCK;
    WaitIdOptions: EXITED NOHANG NOWAIT STOPPED;
    WaitOptions: NOHANG;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Pid(NonZeroI32);

impl Pid {
    pub const fn from_raw(number: i32) -> Option<Self> {
        match NonZeroI32::new(number) {
            Some(number) => Some(Self(number)),
            None => None,
        }
    }

    pub const fn as_raw_pid(self) -> i32 {
        self.0.get()
    }

    pub const fn as_raw_nonzero(self) -> NonZeroI32 {
        self.0
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Signal(i32);

impl Signal {
    pub const ABORT: Self = Self(crate::SIGABRT);
    pub const CONT: Self = Self(crate::SIGCONT);
    pub const INT: Self = Self(crate::SIGINT);
    pub const KILL: Self = Self(crate::SIGKILL);
    pub const STOP: Self = Self(crate::SIGSTOP);
    pub const TERM: Self = Self(crate::SIGTERM);
    pub const URG: Self = Self(crate::SIGURG);

    pub const fn as_raw(self) -> i32 {
        self.0
    }
}

#[derive(Debug, Clone, Copy)]
pub enum Resource {
    As,
    Core,
    Cpu,
    Data,
    Fsize,
    Nofile,
    Nproc,
    Stack,
}

#[derive(Debug, Clone, Copy)]
pub struct Rlimit {
    pub current: Option<u64>,
    pub maximum: Option<u64>,
}

#[derive(Debug)]
pub enum WaitId<'a> {
    All,
    Pid(Pid),
    PidFd(BorrowedFd<'a>),
}

#[derive(Debug)]
pub struct WaitIdStatus(());

impl WaitIdStatus {
    pub fn stopped(&self) -> bool {
        false
    }
}

#[derive(Debug)]
pub enum DumpableBehavior {
    NotDumpable,
}

/// The id of a user or a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Id(u32);

impl Id {
    pub const fn as_raw(self) -> u32 {
        self.0
    }
}

pub fn umask(mask: Mode) -> Mode {
    mask
}

pub fn getegid() -> Id {
    Id(0)
}

pub fn geteuid() -> Id {
    Id(0)
}

/// Returns this process, which has an id everywhere.
pub fn getpid() -> Pid {
    Pid::from_raw(crate::getpid()).unwrap_or(Pid(NonZeroI32::MIN))
}

pub fn getppid() -> Option<Pid> {
    None
}

pub fn getrlimit(_: Resource) -> Rlimit {
    Rlimit { current: None, maximum: None }
}

refused! {
    chdir<P>(P);
    fchdir<F>(F);
    child_subreaper() -> Option<Pid>;
    getpgid(Option<Pid>) -> Pid;
    getpriority_process(Option<Pid>) -> i32;
    kill_process(Pid, Signal);
    kill_process_group(Pid, Signal);
    pidfd_open(Pid, PidfdFlags) -> OwnedFd;
    pidfd_send_signal<F>(F, Signal);
    pivot_root<P, Q>(P, Q);
    prlimit(Option<Pid>, Resource, Rlimit) -> Rlimit;
    set_child_subreaper(Option<Pid>);
    set_dumpable_behavior(DumpableBehavior);
    set_parent_process_death_signal(Option<Signal>);
    setpgid(Option<Pid>, Option<Pid>);
    setpriority_process(Option<Pid>, i32);
    setrlimit(Resource, Rlimit);
    test_kill_process(Pid);
    test_kill_process_group(Pid);
    waitid(WaitId<'_>, WaitIdOptions) -> Option<WaitIdStatus>;
    waitpid(Option<Pid>, WaitOptions) -> Option<()>;
}
