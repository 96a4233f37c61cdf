//! The types of libc. What only a kernel fills in has no size.

pub use std::ffi::{c_char, c_int, c_short, c_uint, c_void};

pub type Ioctl = c_ulong;
pub type c_long = i64;
pub type c_ulong = u64;
pub type clockid_t = c_int;
pub type dev_t = u64;
pub type ino_t = u64;
pub type off_t = i64;
pub type pid_t = c_int;
pub type sighandler_t = usize;
pub type size_t = usize;
pub type time_t = i64;

records! {
    sigset_t {}
    stat { st_dev: dev_t, st_ino: ino_t, st_mode: u32, st_uid: u32, st_size: i64, st_blocks: i64 }
    siginfo_t { si_signo: c_int, si_code: c_int }
    sigaction { sa_sigaction: sighandler_t, sa_mask: sigset_t, sa_flags: c_int }
    stack_t { ss_sp: *mut c_void, ss_flags: c_int, ss_size: usize }
    mcontext_t { gregs: [i64; 32], regs: [u64; 31], sp: u64, pc: u64, pstate: u64 }
    ucontext_t { uc_mcontext: mcontext_t }
    ucred { pid: pid_t, uid: u32, gid: u32 }
    timespec { tv_sec: time_t, tv_nsec: i64 }
    timeval { tv_sec: time_t, tv_usec: i64 }
    itimerspec { it_interval: timespec, it_value: timespec }
    rusage { ru_utime: timeval, ru_stime: timeval, ru_maxrss: c_long }
    rlimit { rlim_cur: u64, rlim_max: u64 }
    rlimit64 { rlim_cur: u64, rlim_max: u64 }
    iovec { iov_base: *mut c_void, iov_len: usize }
    msghdr {
        msg_iov: *mut iovec, msg_iovlen: usize, msg_control: *mut c_void, msg_controllen: usize,
        msg_flags: c_int
    }
    cmsghdr { cmsg_len: usize, cmsg_level: c_int, cmsg_type: c_int }
    sock_filter { code: u16, jt: u8, jf: u8, k: u32 }
    sock_fprog { len: u16, filter: *mut sock_filter }
    flock { l_type: c_short, l_whence: c_short, l_start: off_t, l_len: off_t, l_pid: pid_t }
    pollfd { fd: c_int, events: c_short, revents: c_short }
    sigevent { sigev_notify: c_int, sigev_signo: c_int }
    clone_args {
        flags: u64, pidfd: u64, child_tid: u64, parent_tid: u64, exit_signal: u64, stack: u64,
        stack_size: u64, tls: u64, set_tid: u64, set_tid_size: u64, cgroup: u64
    }
    Elf64_Phdr { p_type: u32, p_flags: u32, p_offset: u64, p_vaddr: u64, p_filesz: u64, p_memsz: u64, p_align: u64 }
    dl_phdr_info { dlpi_addr: u64, dlpi_name: *const c_char, dlpi_phdr: *const Elf64_Phdr, dlpi_phnum: u16 }
}

impl siginfo_t {
    pub fn si_pid(&self) -> pid_t {
        0
    }

    pub fn si_status(&self) -> c_int {
        0
    }

    pub fn si_addr(&self) -> *mut c_void {
        std::ptr::null_mut()
    }
}
