//! The host and other processes: their memory, their descriptors, signals to them; and programs.

use crate::attempt::{Attempt, Text, address, harmless, refused, tries};
use crate::targets::{SECRET, Targets};

const SIGTERM: u64 = 15;
const SIGCHLD: u64 = 0x11;

pub(crate) const ATTEMPTS: &[Attempt] = &[
    harmless("signal the host", |it| tries(libc::SYS_kill, [it.host.into(), SIGTERM])),
    harmless("look for the host", |it| tries(libc::SYS_kill, [it.host.into(), 0])),
    harmless("kill another worker", |it| tries(libc::SYS_kill, [it.sibling.into(), 9])),
    harmless("kill everybody", |_| tries(libc::SYS_kill, [u64::MAX, 9])),
    harmless("signal our group", |_| tries(libc::SYS_kill, [0, SIGTERM])),
    harmless("signal a group", |it| tries(libc::SYS_kill, [group(it), SIGTERM])),
    harmless("signal a thread of the host", |it| {
        tries(libc::SYS_tgkill, [it.host.into(), it.host.into(), SIGTERM])
    }),
    harmless("signal a thread by its number alone", |it| {
        tries(libc::SYS_tkill, [it.host.into(), SIGTERM])
    }),
    harmless("queue a signal", |it| {
        let information = [0_u64; 16];
        let at = address(information.as_ptr());
        tries(libc::SYS_rt_sigqueueinfo, [it.host.into(), SIGTERM, at])
    }),
    harmless("queue a signal for a thread", |it| {
        let information = [0_u64; 16];
        let at = address(information.as_ptr());
        tries(libc::SYS_rt_tgsigqueueinfo, [it.host.into(), it.host.into(), SIGTERM, at])
    }),
    harmless("let the kernel signal the host", |it| {
        tries(libc::SYS_fcntl, [0, libc::F_SETOWN as u64, it.host.into()])
    }),
    harmless("choose that signal", |_| tries(libc::SYS_fcntl, [0, 10, 9])),
    harmless("open the host as a descriptor", |it| {
        tries(libc::SYS_pidfd_open, [it.host.into(), 0])
    }),
    harmless("signal through a descriptor", |_| {
        tries(libc::SYS_pidfd_send_signal, [0, SIGTERM, 0, 0])
    }),
    harmless("take a descriptor of the host", |_| tries(libc::SYS_pidfd_getfd, [0, 1, 0])),
    harmless("trace the host", |it| {
        tries(libc::SYS_ptrace, [libc::PTRACE_ATTACH.into(), it.host.into(), 0, 0])
    }),
    harmless("seize the host", |it| {
        tries(libc::SYS_ptrace, [libc::PTRACE_SEIZE.into(), it.host.into(), 0, 0])
    }),
    harmless("read the host's memory with process_vm_readv", |it| {
        let buffer = [0_u8; 64];
        let local = [address(buffer.as_ptr()), SECRET.len() as u64];
        let remote = [it.address, SECRET.len() as u64];
        let (local, remote) = (address(local.as_ptr()), address(remote.as_ptr()));
        tries(libc::SYS_process_vm_readv, [it.host.into(), local, 1, remote, 1, 0])
    }),
    harmless("write to the host's memory with process_vm_writev", |it| {
        let local = [it.address, 0];
        let at = address(local.as_ptr());
        tries(libc::SYS_process_vm_writev, [it.host.into(), at, 1, at, 1, 0])
    }),
    harmless("advise the host's memory", |_| tries(libc::SYS_process_madvise, [0, 0, 0, 4, 0])),
    harmless("compare with the host", |it| {
        tries(libc::SYS_kcmp, [it.host.into(), it.host.into(), 0, 0, 0])
    }),
    harmless("move pages of the host", |it| {
        tries(libc::SYS_migrate_pages, [it.host.into(), 0, 0, 0])
    }),
    harmless("slow the host down", |it| tries(libc::SYS_setpriority, [0, it.host.into(), 19])),
    harmless("pin the host", |it| {
        let mask = [1_u64];
        tries(libc::SYS_sched_setaffinity, [it.host.into(), 8, address(mask.as_ptr())])
    }),
    harmless("limit the host", |it| {
        let limit = [0_u64; 2];
        tries(libc::SYS_prlimit64, [it.host.into(), 7, address(limit.as_ptr()), 0])
    }),
    harmless("read a limit of the host", |it| {
        let limit = [0_u64; 2];
        tries(libc::SYS_prlimit64, [it.host.into(), 7, 0, address(limit.as_ptr())])
    }),
    harmless("raise our own limit", |_| {
        let limit = [u64::MAX; 2];
        tries(libc::SYS_prlimit64, [0, 7, address(limit.as_ptr()), 0])
    }),
    harmless("lead a group of its own", |_| tries(libc::SYS_setpgid, [0, 0])),
    harmless("lead a session", |_| tries(libc::SYS_setsid, [])),
    harmless("fork", |_| starts_process(SIGCHLD)),
    harmless("fork and wait", |_| starts_process(0x4000 | SIGCHLD)),
    harmless("start a process that shares our memory", |_| starts_process(0x100 | SIGCHLD)),
    harmless("start a process in a new namespace of users", |_| {
        starts_process(libc::CLONE_NEWUSER as u64 | SIGCHLD)
    }),
    harmless("start a thread in a new namespace of users", |_| {
        let thread = libc::CLONE_THREAD | libc::CLONE_VM | libc::CLONE_SIGHAND;
        starts_process(u64::from((thread | libc::CLONE_NEWUSER).cast_unsigned()))
    }),
    harmless("start a child of the host", |_| {
        starts_process(SIGCHLD | u64::from(libc::CLONE_PARENT.cast_unsigned()))
    }),
    harmless("start a thread with descriptors of its own", |_| {
        let thread = libc::CLONE_THREAD | libc::CLONE_VM | libc::CLONE_SIGHAND;
        starts_process(u64::from(thread.cast_unsigned()))
    }),
    harmless("limit another worker", |it| limits(it.sibling.into(), 0)),
    harmless("schedule the host", |it| {
        let priority = [0_u64; 1];
        let at = address(priority.as_ptr());
        tries(libc::SYS_sched_setscheduler, [it.host.into(), 0, at])
    }),
    harmless("slow the input of the host down", |it| {
        tries(libc::SYS_ioprio_set, [1, it.host.into(), 0x4004])
    }),
    harmless("move single pages of the host", |it| {
        tries(libc::SYS_move_pages, [it.host.into(), 0, 0, 0, 0, 0])
    }),
    harmless("start a process with clone3", |_| {
        let arguments = [0_u64; 11];
        tries(libc::SYS_clone3, [address(arguments.as_ptr()), 88])
    }),
    harmless("execute a shell", |_| executes("/bin/sh")),
    harmless("execute ourselves", |_| executes("/proc/self/exe")),
    harmless("execute a program that we have written", |it| {
        let path = format!("{}/program", it.allowed);
        std::fs::write(&path, "#!/bin/sh\n").map_err(|error| error.to_string())?;
        executes(&path)
    }),
    harmless("make a program in memory", |_| {
        tries(libc::SYS_memfd_create, [Text::new("program").at(), 0])
    }),
    harmless("execute a descriptor", |_| {
        tries(libc::SYS_execveat, [0, Text::new("").at(), 0, 0, 0x1000])
    }),
    harmless("start a program with the standard library", |_| {
        match std::process::Command::new("/bin/true").status() {
            Ok(status) => Err(format!("it ran: {status}")),
            Err(error) => error.raw_os_error().ok_or_else(|| error.to_string()),
        }
    }),
];

/// Limits the core dumps of a process.
fn limits(process: u64, size: u64) -> Result<i32, String> {
    const CORE: u64 = 4;
    let limit = [size, size];
    tries(libc::SYS_prlimit64, [process, CORE, address(limit.as_ptr()), 0])
}

/// Starts a process or a thread, which must not happen: a copy would go on in the middle of a task.
fn starts_process(flags: u64) -> Result<i32, String> {
    let pid = crate::attempt::call(libc::SYS_clone, [flags, 0, 0, 0, 0]);
    if pid == 0 {
        // The copy.
        crate::attempt::call(libc::SYS_exit_group, [0]);
    }
    refused(pid)
}

fn executes(path: &str) -> Result<i32, String> {
    let path = Text::new(path);
    let arguments = [path.at(), 0];
    tries(libc::SYS_execve, [path.at(), address(arguments.as_ptr()), address([0_u64].as_ptr())])
}

/// Returns the number by which `kill` knows the host's group.
fn group(targets: &Targets) -> u64 {
    i64::from(targets.host).wrapping_neg().cast_unsigned()
}
