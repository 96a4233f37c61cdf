//! Pools that most tests begin with, and checks for a worker's death.

use std::time::Duration;

use brigade::{Exit, Key, Pool, PoolBuilder, TaskError, TaskErrorKind};
use brigade_testkit::Sandbox;

/// Returns the builder of a named pool with a short grace, so that a worker that does not exit
/// fails its test soon.
///
/// If the variable `BRIGADE_TEST_SANDBOX` is set, the initializer closes all files but temporary
/// ones, and all system calls that neither a worker nor such a file needs.
pub fn builder(workers: usize) -> PoolBuilder {
    let builder =
        Pool::builder().workers(workers).name("test").stop_grace(Duration::from_millis(500));
    if std::env::var_os("BRIGADE_TEST_SANDBOX").is_none() {
        return builder;
    }
    let sandbox = Sandbox::default().files().keep(std::env::temp_dir()).calls();
    builder.try_initializer(Sandbox::enter, sandbox.allow(CALLS_OF_TASKS.iter().copied()))
}

/// The system calls of the tasks of the tests: temporary files, threads, and sleeping.
const CALLS_OF_TASKS: &[i64] = &[
    libc::SYS_openat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_mkdir,
    libc::SYS_mkdirat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_unlink,
    libc::SYS_unlinkat,
    libc::SYS_readlinkat,
    libc::SYS_renameat2,
    libc::SYS_statx,
    libc::SYS_newfstatat,
    libc::SYS_lseek,
    libc::SYS_getdents64,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_readlink,
    libc::SYS_fsync,
    libc::SYS_ftruncate,
    libc::SYS_writev,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_rename,
    libc::SYS_clone3,
    libc::SYS_set_robust_list,
    libc::SYS_rseq,
    libc::SYS_prctl,
    libc::SYS_sched_getaffinity,
    libc::SYS_clock_nanosleep,
    libc::SYS_nanosleep,
    libc::SYS_kill,
    libc::SYS_getppid,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_pause,
    libc::SYS_restart_syscall,
    libc::SYS_epoll_pwait,
    libc::SYS_getcwd,
    libc::SYS_close_range,
];

/// Builds the pool described by [`builder`].
///
/// # Panics
/// Panics if it cannot be built.
pub fn pool(workers: usize) -> Pool {
    builder(workers).build().expect("a pool")
}

/// Returns the number of the current attempt, inside a task.
pub fn attempt() -> u32 {
    brigade::worker::attempt().map_or(0, brigade_wire::Attempt::get)
}

/// Returns the pid and exit status of the process that died under a task.
///
/// # Panics
/// Panics if the task failed in any other way, or succeeded.
#[track_caller]
pub fn worker_died<R: std::fmt::Debug>(outcome: Result<R, TaskError>) -> (u32, Exit) {
    let error = outcome.expect_err("the worker should have died");
    match error.kind() {
        TaskErrorKind::WorkerDied { pid, exit, .. } => (*pid, *exit),
        _ => panic!("the worker should have died, but the outcome is {error:?}"),
    }
}

/// Returns the square.
pub fn square(number: u64) -> u64 {
    number * number
}

/// Joins texts: a key that tests share with the program `server`.
pub static JOIN: Key<Vec<String>, String> = Key::new("join/1", |texts: Vec<String>| texts.concat());

/// Returns the number. Aborts at fifty.
///
/// # Panics
/// If it is a multiple of seven.
pub fn picky(number: u64) -> u64 {
    assert!(!number.is_multiple_of(7), "{number} is a multiple of seven");
    if number == 50 {
        std::process::abort();
    }
    number
}
