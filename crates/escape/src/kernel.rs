//! Networks, and interfaces of the kernel that a task does not need.

use crate::attempt::{Attempt, Ruins, Text, address, tries};

pub(crate) const ATTEMPTS: &[Attempt] = &[
    Attempt {
        name: "a TCP socket",
        ruins: Ruins::Nothing,
        run: |_| socket(libc::AF_INET, libc::SOCK_STREAM),
    },
    Attempt {
        name: "a UDP socket",
        ruins: Ruins::Nothing,
        run: |_| socket(libc::AF_INET, libc::SOCK_DGRAM),
    },
    Attempt {
        name: "a raw socket",
        ruins: Ruins::Nothing,
        run: |_| socket(libc::AF_INET, libc::SOCK_RAW),
    },
    Attempt {
        name: "a TCP socket of IPv6",
        ruins: Ruins::Nothing,
        run: |_| socket(libc::AF_INET6, libc::SOCK_STREAM),
    },
    Attempt {
        name: "a socket of this machine",
        ruins: Ruins::Nothing,
        run: |_| socket(libc::AF_UNIX, libc::SOCK_STREAM),
    },
    Attempt {
        name: "a socket of the kernel",
        ruins: Ruins::Nothing,
        run: |_| socket(libc::AF_NETLINK, libc::SOCK_RAW),
    },
    Attempt {
        name: "a socket for packets",
        ruins: Ruins::Nothing,
        run: |_| socket(libc::AF_PACKET, libc::SOCK_RAW),
    },
    Attempt {
        name: "a socket for ciphers",
        ruins: Ruins::Nothing,
        run: |_| socket(libc::AF_ALG, libc::SOCK_SEQPACKET),
    },
    Attempt {
        name: "a socket of virtual machines",
        ruins: Ruins::Nothing,
        run: |_| socket(libc::AF_VSOCK, 1),
    },
    Attempt {
        name: "a Bluetooth socket",
        ruins: Ruins::Nothing,
        run: |_| socket(libc::AF_BLUETOOTH, 3),
    },
    Attempt {
        name: "a CAN socket",
        ruins: Ruins::Nothing,
        run: |_| socket(libc::AF_CAN, libc::SOCK_RAW),
    },
    Attempt { name: "a socket of TIPC", ruins: Ruins::Nothing, run: |_| socket(libc::AF_TIPC, 5) },
    Attempt {
        name: "a socket for XDP",
        ruins: Ruins::Nothing,
        run: |_| socket(libc::AF_XDP, libc::SOCK_RAW),
    },
    Attempt {
        name: "a socket for keys",
        ruins: Ruins::Nothing,
        run: |_| socket(libc::AF_KEY, libc::SOCK_RAW),
    },
    Attempt { name: "a socket without a family", ruins: Ruins::Nothing, run: |_| socket(0, 1) },
    Attempt {
        name: "a socket of a family that is unknown",
        ruins: Ruins::Nothing,
        run: |_| socket(99, 1),
    },
    Attempt {
        name: "a pair of sockets for packets",
        ruins: Ruins::Nothing,
        run: |_| {
            let pair = [0_i32; 2];
            tries(libc::SYS_socketpair, [1, 2, 0, address(pair.as_ptr())])
        },
    },
    #[cfg(target_arch = "x86_64")]
    Attempt {
        name: "a socket by the number of another interface",
        ruins: Ruins::Nothing,
        run: |_| tries(libc::SYS_socket | 0x4000_0000, [2, 1, 0]),
    },
    Attempt {
        name: "connect",
        ruins: Ruins::Nothing,
        run: |_| tries(libc::SYS_connect, [0, 0, 0]),
    },
    Attempt { name: "bind", ruins: Ruins::Nothing, run: |_| tries(libc::SYS_bind, [0, 0, 0]) },
    Attempt { name: "listen", ruins: Ruins::Nothing, run: |_| tries(libc::SYS_listen, [0, 1]) },
    Attempt {
        name: "accept",
        ruins: Ruins::Nothing,
        run: |_| tries(libc::SYS_accept4, [0, 0, 0, 0]),
    },
    Attempt {
        name: "send to an address",
        ruins: Ruins::Nothing,
        run: |_| {
            let name = [1_u8; 16];
            tries(libc::SYS_sendto, [0, 0, 0, 0, address(name.as_ptr()), 16])
        },
    },
    Attempt {
        name: "send many packets",
        ruins: Ruins::Nothing,
        run: |_| tries(libc::SYS_sendmmsg, [0, 0, 0, 0]),
    },
    Attempt {
        name: "io_uring",
        ruins: Ruins::Nothing,
        run: |_| tries(libc::SYS_io_uring_setup, [8, 0]),
    },
    Attempt {
        name: "enter an io_uring",
        ruins: Ruins::Nothing,
        run: |_| tries(libc::SYS_io_uring_enter, [0, 1, 0, 0]),
    },
    Attempt {
        name: "asynchronous input",
        ruins: Ruins::Nothing,
        run: |_| tries(libc::SYS_io_setup, [1, 0]),
    },
    Attempt {
        name: "a program in the kernel",
        ruins: Ruins::Nothing,
        run: |_| tries(libc::SYS_bpf, [0, 0, 0]),
    },
    Attempt {
        name: "count events",
        ruins: Ruins::Nothing,
        run: |_| tries(libc::SYS_perf_event_open, [0, 0, 0, 0, 0]),
    },
    Attempt {
        name: "handle page faults",
        ruins: Ruins::Nothing,
        run: |_| tries(libc::SYS_userfaultfd, [1]),
    },
    Attempt {
        name: "read keys",
        ruins: Ruins::Nothing,
        run: |_| tries(libc::SYS_keyctl, [0, 0, 0, 0, 0]),
    },
    Attempt {
        name: "add a key",
        ruins: Ruins::Nothing,
        run: |_| tries(libc::SYS_add_key, [0, 0, 0, 0, 0]),
    },
    Attempt {
        name: "request a key",
        ruins: Ruins::Nothing,
        run: |_| tries(libc::SYS_request_key, [0, 0, 0, 0]),
    },
    Attempt {
        name: "type on the terminal",
        ruins: Ruins::Nothing,
        run: |_| tries(libc::SYS_ioctl, [1, 0x5412, Text::new("x").at()]),
    },
    Attempt {
        name: "paste on the console",
        ruins: Ruins::Nothing,
        run: |_| tries(libc::SYS_ioctl, [1, 0x541c, Text::new("\x03").at()]),
    },
    Attempt {
        name: "type with a number that is cut",
        ruins: Ruins::Nothing,
        run: |_| tries(libc::SYS_ioctl, [1, 0x1_0000_5412, Text::new("x").at()]),
    },
    Attempt {
        name: "a new namespace of users",
        ruins: Ruins::Nothing,
        run: |_| unshare(libc::CLONE_NEWUSER),
    },
    Attempt { name: "a new network", ruins: Ruins::Nothing, run: |_| unshare(libc::CLONE_NEWNET) },
    Attempt { name: "new mounts", ruins: Ruins::Nothing, run: |_| unshare(libc::CLONE_NEWNS) },
    Attempt {
        name: "enter a namespace",
        ruins: Ruins::Nothing,
        run: |_| tries(libc::SYS_setns, [0, 0]),
    },
    Attempt {
        name: "load a module",
        ruins: Ruins::Nothing,
        run: |_| tries(libc::SYS_init_module, [0, 0, 0]),
    },
    Attempt {
        name: "load a module from a file",
        ruins: Ruins::Nothing,
        run: |_| tries(libc::SYS_finit_module, [0, 0, 0]),
    },
    Attempt {
        name: "unload a module",
        ruins: Ruins::Nothing,
        run: |_| tries(libc::SYS_delete_module, [0, 0]),
    },
    Attempt {
        name: "load a kernel",
        ruins: Ruins::Nothing,
        run: |_| tries(libc::SYS_kexec_load, [0, 0, 0, 0]),
    },
    Attempt {
        name: "reboot",
        ruins: Ruins::Nothing,
        run: |_| tries(libc::SYS_reboot, [0, 0, 0, 0]),
    },
    Attempt {
        name: "rename the machine",
        ruins: Ruins::Nothing,
        run: |_| tries(libc::SYS_sethostname, [Text::new("x").at(), 1]),
    },
    Attempt {
        name: "set the clock",
        ruins: Ruins::Nothing,
        run: |_| tries(libc::SYS_settimeofday, [0, 0]),
    },
    Attempt {
        name: "set another clock",
        ruins: Ruins::Nothing,
        run: |_| tries(libc::SYS_clock_settime, [0, 0]),
    },
    Attempt {
        name: "tune the clock",
        ruins: Ruins::Nothing,
        run: |_| tries(libc::SYS_adjtimex, [0]),
    },
    Attempt {
        name: "read the kernel's log",
        ruins: Ruins::Nothing,
        run: |_| tries(libc::SYS_syslog, [3, 0, 0]),
    },
    #[cfg(target_arch = "x86_64")]
    Attempt {
        name: "use ports of devices",
        ruins: Ruins::Nothing,
        run: |_| tries(libc::SYS_iopl, [3]),
    },
    #[cfg(target_arch = "x86_64")]
    Attempt {
        name: "change the table of segments",
        ruins: Ruins::Nothing,
        run: |_| tries(libc::SYS_modify_ldt, [1, 0, 0]),
    },
    Attempt { name: "become root", ruins: Ruins::Nothing, run: |_| tries(libc::SYS_setuid, [0]) },
    Attempt {
        name: "become another user",
        ruins: Ruins::Nothing,
        run: |_| tries(libc::SYS_setresuid, [1, 1, 1]),
    },
    Attempt {
        name: "join groups",
        ruins: Ruins::Nothing,
        run: |_| tries(libc::SYS_setgroups, [0, 0]),
    },
    Attempt {
        name: "take capabilities",
        ruins: Ruins::Nothing,
        run: |_| tries(libc::SYS_capset, [0, 0]),
    },
    Attempt {
        name: "install another filter",
        ruins: Ruins::Nothing,
        run: |_| tries(libc::SYS_seccomp, [1, 0, 0]),
    },
    Attempt {
        name: "let anybody trace us",
        ruins: Ruins::Nothing,
        run: |_| tries(libc::SYS_prctl, [0x5961_6d61, u64::MAX]),
    },
    Attempt {
        name: "outlive the host",
        ruins: Ruins::Nothing,
        run: |_| tries(libc::SYS_prctl, [1, 0]),
    },
    Attempt {
        name: "handle denials ourselves",
        ruins: Ruins::Nothing,
        run: |_| {
            let action = [0_u64; 4];
            tries(libc::SYS_rt_sigaction, [31, address(action.as_ptr()), 0, 8])
        },
    },
    Attempt {
        name: "share memory by a number",
        ruins: Ruins::Nothing,
        run: |_| tries(libc::SYS_shmget, [7, 4096, 0o1777]),
    },
    Attempt {
        name: "a queue of messages",
        ruins: Ruins::Nothing,
        run: |_| tries(libc::SYS_msgget, [7, 0o1777]),
    },
    Attempt {
        name: "semaphores",
        ruins: Ruins::Nothing,
        run: |_| tries(libc::SYS_semget, [7, 1, 0o1777]),
    },
    Attempt {
        name: "a named queue",
        ruins: Ruins::Nothing,
        run: |_| tries(libc::SYS_mq_open, [Text::new("x").at(), 0o102, 0o777, 0]),
    },
    Attempt {
        name: "secret memory",
        ruins: Ruins::Nothing,
        run: |_| tries(libc::SYS_memfd_secret, [0]),
    },
    Attempt {
        name: "join pipes",
        ruins: Ruins::Nothing,
        run: |_| tries(libc::SYS_splice, [0, 0, 1, 0, 1, 0]),
    },
    Attempt {
        name: "lend pages to a pipe",
        ruins: Ruins::Nothing,
        run: |_| tries(libc::SYS_vmsplice, [1, 0, 0, 0]),
    },
    Attempt {
        name: "change the personality",
        ruins: Ruins::Nothing,
        run: |_| tries(libc::SYS_personality, [0x0040_0000]),
    },
    Attempt {
        name: "lock all memory",
        ruins: Ruins::Nothing,
        run: |_| tries(libc::SYS_mlockall, [3]),
    },
    Attempt { name: "a call that does not exist", ruins: Ruins::Nothing, run: |_| tries(9999, []) },
];

fn socket(family: i32, kind: i32) -> Result<i32, String> {
    tries(libc::SYS_socket, [u64::from(family.cast_unsigned()), u64::from(kind.cast_unsigned()), 0])
}

fn unshare(flag: i32) -> Result<i32, String> {
    tries(libc::SYS_unshare, [u64::from(flag.cast_unsigned())])
}
