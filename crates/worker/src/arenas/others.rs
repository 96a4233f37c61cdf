//! The arenas of other workers.
//!
//! The host sends the descriptor of an arena over the control socket before the first message that
//! names a buffer in it, and remembers the last [`FOREIGN_ARENAS`] that it has sent. This worker
//! receives a descriptor when such a message arrives, and keeps as many arenas, the last ones. So
//! it has each arena that the host remembers, and needs neither the file system nor a right to look
//! into its host, which it may have given up.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use brigade_sys::arena::ForeignArena;
use brigade_sys::sync::Mutex;
use brigade_wire::handshake::{FOREIGN_ARENAS, ToWorkerControl};
use brigade_wire::shared::ArenaRef;

use crate::control::Control;

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct OtherArenas {
    control: Arc<Control>,
    /// The last one at the end.
    known: Mutex<VecDeque<Arc<ForeignArena>>>,
}

impl OtherArenas {
    pub(super) fn new(control: Arc<Control>) -> Self {
        Self { control, known: Mutex::default() }
    }

    /// Returns an arena that a message names.
    pub(crate) fn find(&self, wanted: ArenaRef) -> io::Result<Arc<ForeignArena>> {
        let mut known = self.known.lock();
        if let Some(found) = known.iter().find(|arena| arena.reference() == wanted) {
            return Ok(Arc::clone(found));
        }
        loop {
            let arena = Arc::new(self.receive()?);
            if known.len() == FOREIGN_ARENAS {
                known.pop_front();
            }
            known.push_back(Arc::clone(&arena));
            if arena.reference() == wanted {
                return Ok(arena);
            }
        }
    }

    /// Returns `true` if no arena was received.
    pub(crate) fn is_empty(&self) -> bool {
        self.known.lock().is_empty()
    }

    /// Maps the next arena that the host has sent.
    fn receive(&self) -> io::Result<ForeignArena> {
        match self.control.try_receive()? {
            Some((ToWorkerControl::Arena(reference), descriptors)) => {
                let descriptor = descriptors.into_iter().next();
                let descriptor = descriptor.ok_or(io::ErrorKind::InvalidData)?;
                ForeignArena::open(descriptor, reference)
            }
            Some(_) => Err(io::ErrorKind::InvalidData.into()),
            None => Err(io::Error::other(
                "the host cannot send it, nor its bytes, which exceed `message_limit`",
            )),
        }
    }
}
