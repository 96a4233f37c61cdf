//! Ping-pongs of eight bytes through a pair of sockets and through two pipes.

use std::fs::File;
use std::io::{Read, Write, stdin, stdout};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;

use brigade_sys::process::Process;

use super::Echo;
use crate::report::Outcome;

const MESSAGE: [u8; 8] = *b"no-op ok";

/// The caller's side.
#[derive(Debug)]
pub(super) struct PingPong {
    to: File,
    from: File,
    /// Killed when this is dropped.
    _other: Process,
}

impl PingPong {
    pub(super) fn over_sockets(core: usize) -> Outcome<Self> {
        let (here, there) = UnixStream::pair()?;
        let other = Echo::Socket.start(core, there.into(), None)?;
        let to = File::from(OwnedFd::from(here));
        Ok(Self { from: to.try_clone()?, to, _other: other })
    }

    pub(super) fn over_pipes(core: usize) -> Outcome<Self> {
        let (request, to) = std::io::pipe()?;
        let (from, reply) = std::io::pipe()?;
        let other = Echo::Pipe.start(core, request.into(), Some(reply.into()))?;
        let (to, from) = (File::from(OwnedFd::from(to)), File::from(OwnedFd::from(from)));
        Ok(Self { to, from, _other: other })
    }

    pub(super) fn trip(&mut self) -> Outcome<()> {
        let mut reply = MESSAGE;
        self.to.write_all(&MESSAGE)?;
        Ok(self.from.read_exact(&mut reply)?)
    }
}

/// Runs the other side until the caller's side is closed.
pub(super) fn echo(kind: Echo) -> Outcome<()> {
    // Without the standard library's buffers, which would add to the time.
    let input = stdin().as_fd().try_clone_to_owned()?;
    let output = match kind {
        Echo::Pipe => stdout().as_fd().try_clone_to_owned()?,
        _ => input.try_clone()?,
    };
    let (mut input, mut output) = (File::from(input), File::from(output));
    let mut message = MESSAGE;
    while input.read_exact(&mut message).is_ok() {
        output.write_all(&message)?;
    }
    Ok(())
}
