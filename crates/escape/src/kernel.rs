//! Networks, and interfaces of the kernel that a task does not need.

use crate::attempt::{Attempt, Text, address, call, harmless, refused, tries};

pub(crate) const ATTEMPTS: &[Attempt] = &[
    harmless("a TCP socket", |_| socket(libc::AF_INET, libc::SOCK_STREAM)),
    harmless("a UDP socket", |_| socket(libc::AF_INET, libc::SOCK_DGRAM)),
    harmless("a raw socket", |_| socket(libc::AF_INET, libc::SOCK_RAW)),
    harmless("a TCP socket of IPv6", |_| socket(libc::AF_INET6, libc::SOCK_STREAM)),
    harmless("a socket of this machine", |_| socket(libc::AF_UNIX, libc::SOCK_STREAM)),
    harmless("a socket of the kernel", |_| socket(libc::AF_NETLINK, libc::SOCK_RAW)),
    harmless("a socket for packets", |_| socket(libc::AF_PACKET, libc::SOCK_RAW)),
    harmless("a socket for ciphers", |_| socket(libc::AF_ALG, libc::SOCK_SEQPACKET)),
    harmless("a socket of virtual machines", |_| socket(libc::AF_VSOCK, 1)),
    harmless("a Bluetooth socket", |_| socket(libc::AF_BLUETOOTH, 3)),
    harmless("a CAN socket", |_| socket(libc::AF_CAN, libc::SOCK_RAW)),
    harmless("a socket of TIPC", |_| socket(libc::AF_TIPC, 5)),
    harmless("a socket for XDP", |_| socket(libc::AF_XDP, libc::SOCK_RAW)),
    harmless("a socket for keys", |_| socket(libc::AF_KEY, libc::SOCK_RAW)),
    harmless("a socket without a family", |_| socket(0, 1)),
    harmless("a socket of a family that is unknown", |_| socket(99, 1)),
    harmless("a pair of sockets for packets", |_| {
        let pair = [0_i32; 2];
        tries(libc::SYS_socketpair, [1, 2, 0, address(pair.as_ptr())])
    }),
    #[cfg(target_arch = "x86_64")]
    harmless("a socket by the number of another interface", |_| {
        tries(libc::SYS_socket | 0x4000_0000, [2, 1, 0])
    }),
    harmless("connect", |_| tries(libc::SYS_connect, [0, 0, 0])),
    harmless("bind", |_| tries(libc::SYS_bind, [0, 0, 0])),
    harmless("listen", |_| tries(libc::SYS_listen, [0, 1])),
    harmless("accept", |_| tries(libc::SYS_accept4, [0, 0, 0, 0])),
    harmless("send to an address", |_| {
        let name = [1_u8; 16];
        tries(libc::SYS_sendto, [0, 0, 0, 0, address(name.as_ptr()), 16])
    }),
    harmless("send many packets", |_| tries(libc::SYS_sendmmsg, [0, 0, 0, 0])),
    harmless("io_uring", |_| tries(libc::SYS_io_uring_setup, [8, 0])),
    harmless("enter an io_uring", |_| tries(libc::SYS_io_uring_enter, [0, 1, 0, 0])),
    harmless("asynchronous input", |_| tries(libc::SYS_io_setup, [1, 0])),
    harmless("a program in the kernel", |_| tries(libc::SYS_bpf, [0, 0, 0])),
    harmless("count events", |_| tries(libc::SYS_perf_event_open, [0, 0, 0, 0, 0])),
    harmless("handle page faults", |_| tries(libc::SYS_userfaultfd, [1])),
    harmless("read keys", |_| tries(libc::SYS_keyctl, [0, 0, 0, 0, 0])),
    harmless("add a key", |_| tries(libc::SYS_add_key, [0, 0, 0, 0, 0])),
    harmless("request a key", |_| tries(libc::SYS_request_key, [0, 0, 0, 0])),
    harmless("type on the terminal", |_| tries(libc::SYS_ioctl, [1, 0x5412, Text::new("x").at()])),
    harmless("paste on the console", |_| {
        tries(libc::SYS_ioctl, [1, 0x541c, Text::new("\x03").at()])
    }),
    harmless("type with a number that is cut", |_| {
        tries(libc::SYS_ioctl, [1, 0x1_0000_5412, Text::new("x").at()])
    }),
    harmless("a new namespace of users", |_| unshare(libc::CLONE_NEWUSER)),
    harmless("a new network", |_| unshare(libc::CLONE_NEWNET)),
    harmless("new mounts", |_| unshare(libc::CLONE_NEWNS)),
    harmless("enter a namespace", |_| tries(libc::SYS_setns, [0, 0])),
    harmless("load a module", |_| tries(libc::SYS_init_module, [0, 0, 0])),
    harmless("load a module from a file", |_| tries(libc::SYS_finit_module, [0, 0, 0])),
    harmless("unload a module", |_| tries(libc::SYS_delete_module, [0, 0])),
    harmless("load a kernel", |_| tries(libc::SYS_kexec_load, [0, 0, 0, 0])),
    harmless("reboot", |_| tries(libc::SYS_reboot, [0, 0, 0, 0])),
    harmless("rename the machine", |_| tries(libc::SYS_sethostname, [Text::new("x").at(), 1])),
    harmless("set the clock", |_| tries(libc::SYS_settimeofday, [0, 0])),
    harmless("set another clock", |_| tries(libc::SYS_clock_settime, [0, 0])),
    harmless("tune the clock", |_| tries(libc::SYS_adjtimex, [0])),
    harmless("read the kernel's log", |_| tries(libc::SYS_syslog, [3, 0, 0])),
    #[cfg(target_arch = "x86_64")]
    harmless("use ports of devices", |_| tries(libc::SYS_iopl, [3])),
    #[cfg(target_arch = "x86_64")]
    harmless("change the table of segments", |_| tries(libc::SYS_modify_ldt, [1, 0, 0])),
    harmless("become root, or a user as root", |_| {
        let other = u64::from(call(libc::SYS_geteuid, []) == 0);
        tries(libc::SYS_setuid, [other]).map(of_id)
    }),
    harmless("connect with the first packet", |_| {
        let (name, byte) = ([0x0100_007f_0100_0002_u64, 0], [0_u8; 1]);
        let fast = u64::from(libc::MSG_FASTOPEN.cast_unsigned());
        let (at, to) = (address(byte.as_ptr()), address(name.as_ptr()));
        with_socket(|socket| tries(libc::SYS_sendto, [socket, at, 1, fast, to, 16]))
    }),
    harmless("listen without a port", |_| {
        with_socket(|socket| tries(libc::SYS_listen, [socket, 1]))
    }),
    harmless("ask for the host as a descriptor", |_| {
        let (mut found, length) = ([0_u32; 1], [4_u32; 1]);
        let (at, length) = (address(found.as_mut_ptr()), address(length.as_ptr()));
        let asks = |fd: &u64| call(libc::SYS_getsockopt, [*fd, 1, 77, at, length]) == 0;
        (0..64).find(asks).map_or(Ok(0), |fd| Err(format!("socket {fd} has it")))
    }),
    harmless("take a large pipe", |_| {
        let pipe = [0_i32; 2];
        call(libc::SYS_pipe2, [address(pipe.as_ptr()), 0]);
        tries(libc::SYS_fcntl, [u64::from(pipe[1].cast_unsigned()), 1031, 1 << 20])
    }),
    #[cfg(target_arch = "x86_64")]
    harmless("trace by the number of another interface", |it| {
        tries(0x4000_0000 | 0x209, [16, it.host.into(), 0, 0])
    }),
    harmless("a call of a newer kernel", |_| tries(600, [])),
    harmless("become another user", |_| tries(libc::SYS_setresuid, [1, 1, 1]).map(of_id)),
    harmless("join groups", |_| tries(libc::SYS_setgroups, [0, 0])),
    harmless("take capabilities", |_| tries(libc::SYS_capset, [0, 0])),
    harmless("install another filter", |_| tries(libc::SYS_seccomp, [1, 0, 0])),
    harmless("let anybody trace us", |_| tries(libc::SYS_prctl, [0x5961_6d61, u64::MAX])),
    harmless("outlive the host", |_| tries(libc::SYS_prctl, [1, 0])),
    harmless("handle denials ourselves", |_| {
        let action = [0_u64; 4];
        tries(libc::SYS_rt_sigaction, [31, address(action.as_ptr()), 0, 8])
    }),
    harmless("share memory by a number", |_| tries(libc::SYS_shmget, [7, 4096, 0o1777])),
    harmless("a queue of messages", |_| tries(libc::SYS_msgget, [7, 0o1777])),
    harmless("semaphores", |_| tries(libc::SYS_semget, [7, 1, 0o1777])),
    harmless("a named queue", |_| tries(libc::SYS_mq_open, [Text::new("x").at(), 0o102, 0o777, 0])),
    harmless("secret memory", |_| tries(libc::SYS_memfd_secret, [0])),
    harmless("join pipes", |_| tries(libc::SYS_splice, [0, 0, 1, 0, 1, 0])),
    harmless("lend pages to a pipe", |_| tries(libc::SYS_vmsplice, [1, 0, 0, 0])),
    harmless("change the personality", |_| tries(libc::SYS_personality, [0x0040_0000])),
    harmless("lock all memory", |_| tries(libc::SYS_mlockall, [3])),
    harmless("a call that does not exist", |_| tries(9999, [])),
];

fn socket(family: i32, kind: i32) -> Result<i32, String> {
    tries(libc::SYS_socket, [u64::from(family.cast_unsigned()), u64::from(kind.cast_unsigned()), 0])
}

/// Returns the error for an id that is not ours, also where a namespace of users has no other.
fn of_id(error: i32) -> i32 {
    if error == libc::EINVAL { libc::EPERM } else { error }
}

/// Does something with a new socket for TCP, if there is one.
fn with_socket(does: impl FnOnce(u64) -> Result<i32, String>) -> Result<i32, String> {
    let socket = call(libc::SYS_socket, [2, 1, 0]);
    u64::try_from(socket).map_or_else(|_| refused(socket), does)
}

fn unshare(flag: i32) -> Result<i32, String> {
    tries(libc::SYS_unshare, [u64::from(flag.cast_unsigned())])
}
