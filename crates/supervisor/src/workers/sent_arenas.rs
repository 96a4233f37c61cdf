//! The arenas of other workers that a worker was sent.

use std::collections::VecDeque;
use std::io;
use std::os::fd::AsFd;

use brigade_sys::arena::ResultView;
use brigade_sys::control::ControlSocket;
use brigade_wire::handshake::{FOREIGN_ARENAS, ToWorkerControl};

/// The arenas that a worker was sent and keeps: the last [`FOREIGN_ARENAS`].
#[derive(Default)]
pub(crate) struct SentArenas {
    /// Their inodes, the last one at the end.
    inodes: VecDeque<u64>,
    is_disabled: bool,
}

impl SentArenas {
    /// Sends no arenas from now on.
    pub(crate) fn disable(&mut self) {
        self.is_disabled = true;
    }

    /// Sends the descriptor of an arena, unless the worker has it. Returns `false` if that is
    /// impossible now.
    pub(crate) fn send(&mut self, control: Option<&ControlSocket>, arena: &ResultView) -> bool {
        let inode = arena.reference().inode;
        if self.is_disabled {
            return false;
        }
        if self.inodes.contains(&inode) {
            return true;
        }
        let Some(Ok(())) = control.map(|control| send(control, arena)) else { return false };
        if self.inodes.len() == FOREIGN_ARENAS {
            self.inodes.pop_front();
        }
        self.inodes.push_back(inode);
        true
    }
}

fn send(control: &ControlSocket, arena: &ResultView) -> io::Result<()> {
    let message = ToWorkerControl::Arena(arena.reference());
    let packet = message.encode().map_err(io::Error::other)?;
    // A worker that receives nothing must not block its host.
    control.try_send(&packet, &[arena.for_reader()?.as_fd()])
}
