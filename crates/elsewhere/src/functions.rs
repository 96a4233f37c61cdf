//! The functions of libc. All fail, but those that end the process.

use std::cell::Cell;
use std::ffi::{c_char, c_int, c_uint, c_void};
use std::ptr;

use crate::{
    Ioctl, c_long, cmsghdr, itimerspec, msghdr, off_t, pid_t, pollfd, rlimit, rusage, siginfo_t,
    sigset_t, stack_t, stat, timespec,
};

failing! {
    CMSG_DATA(*const cmsghdr) -> *mut u8 = ptr::null_mut();
    CMSG_FIRSTHDR(*const msghdr) -> *mut cmsghdr = ptr::null_mut();
    chdir(*const c_char) -> c_int = -1;
    clone(extern "C" fn(*mut c_void) -> c_int, *mut c_void, c_int, *mut c_void, *mut c_int) -> c_int = -1;
    clock_gettime(c_int, *mut timespec) -> c_int = -1;
    close(c_int) -> c_int = -1;
    close_range(c_uint, c_uint, c_uint) -> c_int = -1;
    dl_iterate_phdr(Option<impl Sized>, *mut c_void) -> c_int = -1;
    dlsym(*mut c_void, *const c_char) -> *mut c_void = ptr::null_mut();
    dup2(c_int, c_int) -> c_int = -1;
    execve(*const c_char, *const *const c_char, *const *const c_char) -> c_int = -1;
    fcntl(c_int, c_int, impl Sized) -> c_int = -1;
    fflush(*mut c_void) -> c_int = -1;
    fork() -> pid_t = -1;
    fstat(c_int, *mut stat) -> c_int = -1;
    getauxval(u64) -> u64 = 0;
    getcwd(*mut c_char, usize) -> *mut c_char = ptr::null_mut();
    getpid() -> pid_t = std::process::id().cast_signed();
    getppid() -> pid_t = 0;
    getpriority(c_uint, c_uint) -> c_int = -1;
    getrlimit(c_uint, *mut rlimit) -> c_int = -1;
    getrusage(c_int, *mut rusage) -> c_int = -1;
    getsockopt(c_int, c_int, c_int, *mut c_void, *mut c_uint) -> c_int = -1;
    gettid() -> pid_t = 0;
    ioctl(c_int, Ioctl, impl Sized) -> c_int = -1;
    kill(pid_t, c_int) -> c_int = -1;
    madvise(*mut c_void, usize, c_int) -> c_int = -1;
    mmap(*mut c_void, usize, c_int, c_int, c_int, off_t) -> *mut c_void = crate::MAP_FAILED;
    mprotect(*mut c_void, usize, c_int) -> c_int = -1;
    munmap(*mut c_void, usize) -> c_int = -1;
    open(*const c_char, c_int) -> c_int = -1;
    poll(*mut pollfd, u64, c_int) -> c_int = -1;
    prctl(c_int, impl Sized) -> c_int = -1;
    pread(c_int, *mut c_void, usize, off_t) -> isize = -1;
    process_vm_writev(pid_t, *const crate::iovec, u64, *const crate::iovec, u64, u64) -> isize = -1;
    process_vm_readv(pid_t, *const crate::iovec, u64, *const crate::iovec, u64, u64) -> isize = -1;
    pthread_kill(usize, c_int) -> c_int = crate::ENOSYS;
    pthread_self() -> usize = 0;
    pthread_sigmask(c_int, *const sigset_t, *mut sigset_t) -> c_int = crate::ENOSYS;
    recvmsg(c_int, *mut msghdr, c_int) -> isize = -1;
    sched_getcpu() -> c_int = 0;
    sendmsg(c_int, *const msghdr, c_int) -> isize = -1;
    setpgid(pid_t, pid_t) -> c_int = -1;
    setpriority(c_uint, c_uint, c_int) -> c_int = -1;
    setrlimit(c_uint, *const rlimit) -> c_int = -1;
    setsid() -> pid_t = -1;
    sigaction(c_int, *const crate::sigaction, *mut crate::sigaction) -> c_int = -1;
    sigaddset(*mut sigset_t, c_int) -> c_int = -1;
    sigaltstack(*const stack_t, *mut stack_t) -> c_int = -1;
    sigdelset(*mut sigset_t, c_int) -> c_int = -1;
    sigemptyset(*mut sigset_t) -> c_int = -1;
    sigfillset(*mut sigset_t) -> c_int = -1;
    sigtimedwait(*const sigset_t, *mut siginfo_t, *const timespec) -> c_int = -1;
    sysconf(c_int) -> c_long = -1;
    timer_create(c_int, *mut crate::sigevent, *mut *mut c_void) -> c_int = -1;
    timer_settime(*mut c_void, c_int, *const itimerspec, *mut itimerspec) -> c_int = -1;
    waitid(c_uint, c_uint, *mut siginfo_t, c_int) -> c_int = -1;
    waitpid(pid_t, *mut c_int, c_int) -> pid_t = -1;
    abort() -> ! = std::process::abort();
    _exit(c_int) -> ! = std::process::abort();
}

thread_local! {
    static ERROR: Cell<c_int> = const { Cell::new(crate::ENOSYS) };
}

pub fn __errno_location() -> *mut c_int {
    ERROR.with(Cell::as_ptr)
}

/// Stands in for `libc::syscall`, which takes any number of arguments.
#[macro_export]
macro_rules! syscall {
    ($($argument:expr),* $(,)?) => {{
        let _ = ($(&$argument,)*);
        -1 as $crate::c_long
    }};
}
