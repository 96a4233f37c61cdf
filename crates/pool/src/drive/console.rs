//! What workers write to stderr: carried on to ours, the last lines kept.
//!
//! Workers write into a pipe of their own, so that a death can be told with the worker's last words. A
//! thread carries the bytes on; if our own stderr does not take them, that thread waits, the pipe fills and
//! the workers that write wait too, as they would if they wrote to it directly. Nobody else is held up.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use brigade_sys::wait::{Waker, wait_readable};

/// So much of a dead worker's stderr goes into the error.
const TAIL: usize = 4096;

/// Bytes carried on in one go.
const CHUNK: usize = 16 * 1024;

/// A dead worker's pipe is read to its end, but no further than this: a process that it left behind may go on writing.
const LAST_READ: usize = 1 << 20;

pub(super) struct Console {
    pipes: Mutex<Vec<Arc<StderrPipe>>>,
    waker: Waker,
    ended: AtomicBool,
}

/// One worker's stderr.
pub(super) struct StderrPipe {
    // Non-blocking, so that reading what is there never waits.
    pipe: File,
    tail: Mutex<VecDeque<u8>>,
    closed: AtomicBool,
}

impl Console {
    pub(super) fn new() -> std::io::Result<Self> {
        Ok(Self {
            pipes: Mutex::new(Vec::new()),
            waker: Waker::new()?,
            ended: AtomicBool::new(false),
        })
    }

    /// Takes over the reading end of a new worker's stderr.
    pub(super) fn attach(&self, pipe: OwnedFd) -> Arc<StderrPipe> {
        let pipe = Arc::new(StderrPipe {
            pipe: File::from(pipe),
            tail: Mutex::new(VecDeque::new()),
            closed: AtomicBool::new(false),
        });
        self.pipes.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&pipe));
        self.waker.wake();
        pipe
    }

    /// The last words of a worker that is dead; its pipe is let go.
    pub(super) fn last_words(&self, pipe: &Arc<StderrPipe>) -> String {
        pipe.carry_on(LAST_READ);
        pipe.closed.store(true, Ordering::Release);
        self.pipes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .retain(|other| !Arc::ptr_eq(other, pipe));
        self.waker.wake();
        let tail = pipe.tail.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&tail.iter().copied().collect::<Vec<u8>>()).into_owned()
    }

    pub(super) fn end(&self) {
        self.ended.store(true, Ordering::Release);
        self.waker.wake();
    }
}

/// Carries bytes on until the pool ends.
pub(super) fn run(console: &Console) {
    while !console.ended.load(Ordering::Acquire) {
        let pipes: Vec<Arc<StderrPipe>> = {
            let pipes = console.pipes.lock().unwrap_or_else(PoisonError::into_inner);
            pipes
                .iter()
                .filter(|pipe| !pipe.closed.load(Ordering::Acquire))
                .map(Arc::clone)
                .collect()
        };
        let mut descriptors: Vec<BorrowedFd<'_>> = vec![console.waker.as_fd()];
        descriptors.extend(pipes.iter().map(|pipe| pipe.pipe.as_fd()));
        let Ok(ready) = wait_readable(&descriptors, None) else {
            return;
        };
        if ready[0] {
            console.waker.drain();
        }
        for (pipe, _) in pipes.iter().zip(&ready[1..]).filter(|(_, ready)| **ready) {
            pipe.carry_on(CHUNK);
        }
    }
}

impl StderrPipe {
    /// Reads what is there, at most `limit` bytes, keeps the end of it and writes it to our stderr.
    fn carry_on(&self, limit: usize) {
        // Held while reading and writing, so that two readers cannot swap what they read.
        let mut tail = self.tail.lock().unwrap_or_else(PoisonError::into_inner);
        let mut buffer = [0; CHUNK];
        let mut total = 0;
        while total < limit {
            match (&self.pipe).read(&mut buffer) {
                Ok(0) => {
                    // Closed by the worker and all that inherited it: nothing comes any more.
                    self.closed.store(true, Ordering::Release);
                    return;
                }
                Ok(count) => {
                    total += count;
                    tail.extend(&buffer[..count]);
                    let excess = tail.len().saturating_sub(TAIL);
                    tail.drain(..excess);
                    // Whoever closed our stderr does not want the workers' words either.
                    let _ = std::io::stderr().write_all(&buffer[..count]);
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => return,
            }
        }
    }
}
