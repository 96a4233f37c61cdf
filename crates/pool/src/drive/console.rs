//! What workers write: carried to where the pool's settings say, the last lines of stderr kept.
//!
//! Workers write into pipes of their own, stderr always (so that a death can be told with the worker's last words), stdout
//! if it is captured. One thread carries the bytes on. If they are not taken, by our stderr or by whoever handles events,
//! that thread waits, the pipes fill and the workers that write wait too, as they would if they wrote there directly.
//! Nobody else is held up, and nothing grows: of each pipe at most a line is kept, and the tail.
//!
//! A pipe is let go when its worker is dead and what it had written is read, whoever else has inherited the other end.

mod lines;
mod pipe;

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use brigade_sys::descriptors;
use brigade_sys::wait::{Waker, wait_readable};

use crate::surroundings::Stdio;
use pipe::Pipe;
pub(super) use pipe::Writer;

/// Bytes carried on in one go.
const CHUNK: usize = 16 * 1024;

/// A dead worker's pipe is read to its end, but no further than this: a process that it left behind may go on writing.
const LAST_READ: usize = 1 << 20;

pub(super) struct Console {
    stdio: Stdio,
    pipes: Mutex<Vec<Arc<Pipe>>>,
    waker: Waker,
    ended: AtomicBool,
}

/// One worker's streams, as far as they come here.
pub(super) struct Output {
    stdout: Option<Arc<Pipe>>,
    stderr: Arc<Pipe>,
}

/// The host's ends of a new worker's streams.
pub(super) struct Ends {
    stdout: Option<OwnedFd>,
    stderr: OwnedFd,
}

/// The worker's ends.
pub(super) struct WorkerEnds {
    /// Inherited, or thrown away, if it does not come here.
    stdout: std::process::Stdio,
    stderr: OwnedFd,
}

impl Ends {
    /// Makes the pipes for a new worker.
    pub(super) fn open(stdio: Stdio) -> io::Result<(Self, WorkerEnds)> {
        let (stdout, worker_stdout) = match stdio {
            Stdio::Inherit => (None, std::process::Stdio::inherit()),
            Stdio::Null => (None, std::process::Stdio::null()),
            Stdio::Capture => {
                let (ours, theirs) = descriptors::stderr_pipe()?;
                (Some(ours), theirs.into())
            }
        };
        let (stderr, worker_stderr) = descriptors::stderr_pipe()?;
        let worker_ends = WorkerEnds { stdout: worker_stdout, stderr: worker_stderr };
        Ok((Self { stdout, stderr }, worker_ends))
    }
}

impl WorkerEnds {
    pub(super) fn give(self, command: &mut Command) {
        command.stdout(self.stdout).stderr(self.stderr);
    }
}

impl Console {
    pub(super) fn new(stdio: Stdio) -> io::Result<Self> {
        Ok(Self {
            stdio,
            pipes: Mutex::new(Vec::new()),
            waker: Waker::new()?,
            ended: AtomicBool::new(false),
        })
    }

    /// Takes over a new worker's streams.
    pub(super) fn attach(&self, ends: Ends, writer: Writer) -> Output {
        let writer = Arc::new(writer);
        let stdout = ends.stdout.map(|end| Arc::new(Pipe::of_stdout(end, &writer)));
        let stderr = Arc::new(Pipe::of_stderr(ends.stderr, self.stdio, &writer));
        let mut pipes = self.pipes();
        pipes.extend(stdout.clone());
        pipes.push(Arc::clone(&stderr));
        drop(pipes);
        self.waker.wake();
        Output { stdout, stderr }
    }

    /// The last words of a worker that is dead; its pipes are let go.
    pub(super) fn last_words(&self, output: &Output) -> String {
        for pipe in output.stdout.iter().chain([&output.stderr]) {
            pipe.carry_on(LAST_READ);
            pipe.close();
        }
        self.pipes().retain(|pipe| !pipe.is_closed());
        self.waker.wake();
        output.stderr.tail()
    }

    pub(super) fn end(&self) {
        self.ended.store(true, Ordering::Release);
        self.waker.wake();
    }

    fn pipes(&self) -> MutexGuard<'_, Vec<Arc<Pipe>>> {
        self.pipes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Carries bytes on until the pool ends.
pub(super) fn run(console: &Console) {
    while !console.ended.load(Ordering::Acquire) {
        let pipes: Vec<Arc<Pipe>> = {
            let mut pipes = console.pipes();
            pipes.retain(|pipe| !pipe.is_closed());
            pipes.clone()
        };
        let mut descriptors: Vec<BorrowedFd<'_>> = vec![console.waker.as_fd()];
        descriptors.extend(pipes.iter().map(|pipe| pipe.as_fd()));
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
