//! Ends a process group when this process ends, even if the leader of the group ends first.
//!
//! A host that is killed by SIGKILL takes its workers along, but the worker's own lifeline ends
//! with the worker, and with it the knowledge of the processes that its tasks have started. So the
//! host itself holds a pipe for each group, with both ends armed: the kernel sends SIGKILL to the
//! whole group when either end closes while the other is open.
//!
//! - The kernel closes the descriptors of a process one after the other. Whichever end comes first,
//!   the other one is still armed, so nothing depends on their order.
//! - The kernel remembers the group, not its number: a group that has got the number later is not
//!   harmed.
//! - No process and no thread waits for the host's end, so nothing is copied, woken or left to be
//!   killed by mistake.
//! - The kernel checks the right to send against the user that this process had when it armed the
//!   ends.
//!
//! Processes that have left the group are not reached, and a copy of the host that `fork` has made
//! delays the end until it has ended too.

use std::io;
use std::os::fd::OwnedFd;

use rustix::pipe::{PipeFlags, pipe_with};

use super::kill_on_change;
use crate::process::Process;

/// Kills a process group when this process ends, or on drop.
#[derive(Debug)]
pub struct GroupLifeline {
    _reader: OwnedFd,
    _writer: OwnedFd,
}

impl GroupLifeline {
    /// Binds the group that `leader` leads to the life of this process.
    ///
    /// # Errors
    /// If descriptors run out, or the group is gone.
    pub fn bind(leader: &Process) -> io::Result<Self> {
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC)?;
        let group = -leader.number();
        kill_on_change(&reader, group)?;
        kill_on_change(&writer, group)?;
        Ok(Self { _reader: reader, _writer: writer })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::{Exit, Signal, command};

    #[test]
    fn a_whole_group_ends_with_the_first_end_that_closes() -> io::Result<()> {
        for closes_reader in [true, false] {
            let leader = Process::spawn(command("sleep").arg("60"))?;
            let GroupLifeline { _reader: reader, _writer: writer } = GroupLifeline::bind(&leader)?;
            assert_eq!(leader.try_reap()?, None);
            let _other = if closes_reader {
                drop(reader);
                writer
            } else {
                drop(writer);
                reader
            };
            assert_eq!(leader.reap()?, Exit::Signal(9));
        }
        Ok(())
    }

    #[test]
    fn the_group_of_a_dead_leader_is_reached() -> io::Result<()> {
        let script = "sleep 60 <&0 >/dev/null & exec sleep 60";
        let (here, there) = crate::descriptors::output_pipe()?;
        let leader = Process::spawn(command("sh").args(["-c", script]).stderr(there))?;
        let lifeline = GroupLifeline::bind(&leader)?;
        leader.signal(Signal::Kill)?;
        // Not reaped, because that would kill the group.
        crate::wait::wait_readable(&[leader.pidfd()], None)?;
        drop(lifeline);
        // The end of the stream: no process of the group is left.
        assert_eq!(crate::wait::wait_readable(&[std::os::fd::AsFd::as_fd(&here)], None)?, [true]);
        Ok(())
    }
}
