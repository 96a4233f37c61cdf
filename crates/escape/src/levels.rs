//! The attempts that other levels than `strict` must refuse as well, by their names.

/// Attempts at each level, in pools that may connect to a port.
pub(crate) const WITH_PORTS: &[&str] = &["connect with the first packet", "listen without a port"];

/// Attempts at the level `no_network` and above.
pub(crate) const AT_NO_NETWORK: &[&str] = &[
    "a UDP socket",
    "a raw socket",
    "a socket of the kernel",
    "a socket for packets",
    "a socket of virtual machines",
    "io_uring",
    "type on the terminal",
    "type with a number that is cut",
    "take a descriptor of the host",
    "a socket by the number of another interface",
    "trace by the number of another interface",
    "a call of a newer kernel",
    "a call that does not exist",
];

/// Attempts at the level `read_only` and above.
pub(crate) const AT_READ_ONLY: &[&str] = &[
    // Files.
    "make a file outside",
    "make a folder outside",
    "delete a file",
    "delete a folder",
    "truncate a file by its path",
    "write to a file that may only be read",
    "change the mode of a file",
    "change the owner of a file",
    "change the times of a file",
    "give a file an attribute",
    "give a file an attribute by its folder",
    "take an attribute away from a file",
    "set the flags of a file by its path",
    "set the flags of a file that was opened for reading",
    "set the project of a file that was opened for reading",
    "seal a file that was opened for reading",
    "mount",
    "change the root",
    "open a file system",
    "move a mount",
    // Other processes.
    "signal the host",
    "kill another worker",
    "signal a thread of the host",
    "queue a signal",
    "trace the host",
    "read the host's memory with process_vm_readv",
    "advise the host's memory",
    "compare with the host",
    "move pages of the host",
    "move single pages of the host",
    "slow the host down",
    "slow the input of the host down",
    "schedule the host",
    "pin the host",
    "limit the host",
    "limit another worker",
    "start a child of the host",
    "take a large pipe",
    // The kernel.
    "a program in the kernel",
    "count events",
    "handle page faults",
    "add a key",
    "a new namespace of users",
    "enter a namespace",
    "load a module",
    "rename the machine",
    "set the clock",
    "read the kernel's log",
];
