//! Rules of Landlock: the files and ports that a process may still use (landlock(7)).

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use brigade_sys::confine::{BENEATH, add_rule, create_rules};
use brigade_sys::descriptors::above_streams;

/// Rules, of which a set is made for each process. Numbers are those of the kernel.
#[derive(Debug, Default)]
pub struct Rules {
    /// The rights on files and on networks, and the scopes, that are taken away.
    pub handled: [u64; 3],
    /// Files, and folders with all that is below them, and the rights on them that stay.
    pub files: Vec<(OwnedFd, u64)>,
    /// Entries of the process itself in `/proc`, which it adds by itself.
    pub own: Vec<(CString, u64)>,
    /// Ports to which TCP connections may be made.
    pub ports: Vec<u16>,
}

impl Rules {
    /// Makes a set of the rules; `None` if they take nothing away.
    pub(crate) fn make(&self) -> io::Result<Option<OwnedFd>> {
        const PORT: u32 = 2;
        const CONNECT: u64 = 2;
        if self.handled == [0; 3] {
            return Ok(None);
        }
        let set = create_rules(self.handled)?;
        for (file, rights) in &self.files {
            let file = file.as_raw_fd().cast_unsigned();
            add_rule(&set, BENEATH, [*rights, file.into()])?;
        }
        for port in &self.ports {
            add_rule(&set, PORT, [CONNECT, u64::from(*port)])?;
        }
        // A program gets other files in the places of the streams, before it enters the sandbox.
        above_streams(set).map(Some)
    }
}
