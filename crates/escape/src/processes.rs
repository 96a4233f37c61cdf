//! The host and other processes: their memory, their descriptors, signals to them; and programs.

use crate::attempt::{Attempt, Ruins, Text, address, refused, tries};
use crate::targets::{SECRET, Targets};

const SIGTERM: u64 = 15;
const SIGCHLD: u64 = 0x11;

pub(crate) const ATTEMPTS: &[Attempt] = &[
    Attempt {
        name: "signal the host",
        ruins: Ruins::Nothing,
        run: |it| tries(libc::SYS_kill, [it.host.into(), SIGTERM]),
    },
    Attempt {
        name: "look for the host",
        ruins: Ruins::Nothing,
        run: |it| tries(libc::SYS_kill, [it.host.into(), 0]),
    },
    Attempt {
        name: "kill another worker",
        ruins: Ruins::Nothing,
        run: |it| tries(libc::SYS_kill, [it.sibling.into(), 9]),
    },
    Attempt {
        name: "kill everybody",
        ruins: Ruins::Nothing,
        run: |_| tries(libc::SYS_kill, [u64::MAX, 9]),
    },
    Attempt {
        name: "signal our group",
        ruins: Ruins::Nothing,
        run: |_| tries(libc::SYS_kill, [0, SIGTERM]),
    },
    Attempt {
        name: "signal a group",
        ruins: Ruins::Nothing,
        run: |it| tries(libc::SYS_kill, [group(it), SIGTERM]),
    },
    Attempt {
        name: "signal a thread of the host",
        ruins: Ruins::Nothing,
        run: |it| tries(libc::SYS_tgkill, [it.host.into(), it.host.into(), SIGTERM]),
    },
    Attempt {
        name: "signal a thread by its number alone",
        ruins: Ruins::Nothing,
        run: |it| tries(libc::SYS_tkill, [it.host.into(), SIGTERM]),
    },
    Attempt {
        name: "queue a signal",
        ruins: Ruins::Nothing,
        run: |it| {
            let information = [0_u64; 16];
            let at = address(information.as_ptr());
            tries(libc::SYS_rt_sigqueueinfo, [it.host.into(), SIGTERM, at])
        },
    },
    Attempt {
        name: "queue a signal for a thread",
        ruins: Ruins::Nothing,
        run: |it| {
            let information = [0_u64; 16];
            let at = address(information.as_ptr());
            tries(libc::SYS_rt_tgsigqueueinfo, [it.host.into(), it.host.into(), SIGTERM, at])
        },
    },
    Attempt {
        name: "let the kernel signal the host",
        ruins: Ruins::Nothing,
        run: |it| tries(libc::SYS_fcntl, [0, libc::F_SETOWN as u64, it.host.into()]),
    },
    Attempt {
        name: "choose that signal",
        ruins: Ruins::Nothing,
        run: |_| tries(libc::SYS_fcntl, [0, 10, 9]),
    },
    Attempt {
        name: "open the host as a descriptor",
        ruins: Ruins::Nothing,
        run: |it| tries(libc::SYS_pidfd_open, [it.host.into(), 0]),
    },
    Attempt {
        name: "signal through a descriptor",
        ruins: Ruins::Nothing,
        run: |_| tries(libc::SYS_pidfd_send_signal, [0, SIGTERM, 0, 0]),
    },
    Attempt {
        name: "take a descriptor of the host",
        ruins: Ruins::Nothing,
        run: |_| tries(libc::SYS_pidfd_getfd, [0, 1, 0]),
    },
    Attempt {
        name: "trace the host",
        ruins: Ruins::Nothing,
        run: |it| tries(libc::SYS_ptrace, [libc::PTRACE_ATTACH.into(), it.host.into(), 0, 0]),
    },
    Attempt {
        name: "seize the host",
        ruins: Ruins::Nothing,
        run: |it| tries(libc::SYS_ptrace, [libc::PTRACE_SEIZE.into(), it.host.into(), 0, 0]),
    },
    Attempt {
        name: "read the host's memory with process_vm_readv",
        ruins: Ruins::Nothing,
        run: |it| {
            let buffer = [0_u8; 64];
            let local = [address(buffer.as_ptr()), SECRET.len() as u64];
            let remote = [it.address, SECRET.len() as u64];
            let (local, remote) = (address(local.as_ptr()), address(remote.as_ptr()));
            tries(libc::SYS_process_vm_readv, [it.host.into(), local, 1, remote, 1, 0])
        },
    },
    Attempt {
        name: "write to the host's memory with process_vm_writev",
        ruins: Ruins::Nothing,
        run: |it| {
            let local = [it.address, 0];
            let at = address(local.as_ptr());
            tries(libc::SYS_process_vm_writev, [it.host.into(), at, 1, at, 1, 0])
        },
    },
    Attempt {
        name: "advise the host's memory",
        ruins: Ruins::Nothing,
        run: |_| tries(libc::SYS_process_madvise, [0, 0, 0, 4, 0]),
    },
    Attempt {
        name: "compare with the host",
        ruins: Ruins::Nothing,
        run: |it| tries(libc::SYS_kcmp, [it.host.into(), it.host.into(), 0, 0, 0]),
    },
    Attempt {
        name: "move pages of the host",
        ruins: Ruins::Nothing,
        run: |it| tries(libc::SYS_migrate_pages, [it.host.into(), 0, 0, 0]),
    },
    Attempt {
        name: "slow the host down",
        ruins: Ruins::Nothing,
        run: |it| tries(libc::SYS_setpriority, [0, it.host.into(), 19]),
    },
    Attempt {
        name: "pin the host",
        ruins: Ruins::Nothing,
        run: |it| {
            let mask = [1_u64];
            tries(libc::SYS_sched_setaffinity, [it.host.into(), 8, address(mask.as_ptr())])
        },
    },
    Attempt {
        name: "limit the host",
        ruins: Ruins::Nothing,
        run: |it| {
            let limit = [0_u64; 2];
            tries(libc::SYS_prlimit64, [it.host.into(), 7, address(limit.as_ptr()), 0])
        },
    },
    Attempt {
        name: "read a limit of the host",
        ruins: Ruins::Nothing,
        run: |it| {
            let limit = [0_u64; 2];
            tries(libc::SYS_prlimit64, [it.host.into(), 7, 0, address(limit.as_ptr())])
        },
    },
    Attempt {
        name: "raise our own limit",
        ruins: Ruins::Nothing,
        run: |_| {
            let limit = [u64::MAX; 2];
            tries(libc::SYS_prlimit64, [0, 7, address(limit.as_ptr()), 0])
        },
    },
    Attempt {
        name: "lead a group of its own",
        ruins: Ruins::Nothing,
        run: |_| tries(libc::SYS_setpgid, [0, 0]),
    },
    Attempt { name: "lead a session", ruins: Ruins::Nothing, run: |_| tries(libc::SYS_setsid, []) },
    Attempt { name: "fork", ruins: Ruins::Nothing, run: |_| starts_process(SIGCHLD) },
    Attempt {
        name: "fork and wait",
        ruins: Ruins::Nothing,
        run: |_| starts_process(0x4000 | SIGCHLD),
    },
    Attempt {
        name: "start a process that shares our memory",
        ruins: Ruins::Nothing,
        run: |_| starts_process(0x100 | SIGCHLD),
    },
    Attempt {
        name: "start a process in a new namespace of users",
        ruins: Ruins::Nothing,
        run: |_| starts_process(libc::CLONE_NEWUSER as u64 | SIGCHLD),
    },
    Attempt {
        name: "start a thread in a new namespace of users",
        ruins: Ruins::Nothing,
        run: |_| {
            let thread = libc::CLONE_THREAD | libc::CLONE_VM | libc::CLONE_SIGHAND;
            starts_process(u64::from((thread | libc::CLONE_NEWUSER).cast_unsigned()))
        },
    },
    Attempt {
        name: "start a process with clone3",
        ruins: Ruins::Nothing,
        run: |_| {
            let arguments = [0_u64; 11];
            tries(libc::SYS_clone3, [address(arguments.as_ptr()), 88])
        },
    },
    Attempt { name: "execute a shell", ruins: Ruins::Nothing, run: |_| executes("/bin/sh") },
    Attempt {
        name: "execute ourselves",
        ruins: Ruins::Nothing,
        run: |_| executes("/proc/self/exe"),
    },
    Attempt {
        name: "execute a program that we have written",
        ruins: Ruins::Nothing,
        run: |it| {
            let path = format!("{}/program", it.allowed);
            std::fs::write(&path, "#!/bin/sh\n").map_err(|error| error.to_string())?;
            executes(&path)
        },
    },
    Attempt {
        name: "make a program in memory",
        ruins: Ruins::Nothing,
        run: |_| tries(libc::SYS_memfd_create, [Text::new("program").at(), 0]),
    },
    Attempt {
        name: "execute a descriptor",
        ruins: Ruins::Nothing,
        run: |_| tries(libc::SYS_execveat, [0, Text::new("").at(), 0, 0, 0x1000]),
    },
    Attempt {
        name: "start a program with the standard library",
        ruins: Ruins::Nothing,
        run: |_| match std::process::Command::new("/bin/true").status() {
            Ok(status) => Err(format!("it ran: {status}")),
            Err(error) => error.raw_os_error().ok_or_else(|| error.to_string()),
        },
    },
];

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
