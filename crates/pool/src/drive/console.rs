//! What leaves the pool: the output of workers, and events of `tracing`.
//!
//! Workers write into pipes of their own, stderr always (so that a death can be told with the worker's last words), stdout
//! if it is captured. One thread carries the bytes to where the pool's settings say, and emits the pool's events. It alone
//! writes to our stderr and calls subscribers, so that it alone waits when they block; then the pipes fill and the workers
//! that write wait too, as they would if they wrote there directly. Nobody else is held up, and nothing grows: of each pipe at
//! most a line is kept, and the tail, and events and the last output of dead workers wait in a queue with a bound.
//!
//! Protocol:
//! - Any thread reads a pipe (it never waits, and keeps the tail), but only the console thread passes on what was read. A
//!   thread that buries a worker reads what is left, closes the pipe, and gives the bytes to the console thread as an errand.
//!   That thread reads nothing between taking bytes and passing them on, so the order stays.
//! - Captured lines come before the outcome of the task: the death is reported when the errand is done, or after
//!   [`PATIENCE`] if the subscriber takes longer.
//! - At the pool's end the thread does all errands and ends. A thread that is blocked then is left behind after a grace.
//!
//! A pipe is let go when its worker is dead and what it had written is read, whoever else has inherited the other end.

mod errands;
mod lines;
mod pipe;

use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use brigade_sys::descriptors;
use brigade_sys::poller::Poller;
use tracing::{Level, warn};

use super::alarm::Alarm;
use super::notes::{Note, Notes, is_wanted};
use super::shared::Shared;
use crate::contained::contain;
use crate::surroundings::Stdio;
use errands::{Errand, Errands, Lost};
use pipe::Pipe;
pub(super) use pipe::Writer;

/// How long the report of a death waits for a subscriber that takes the last lines.
pub(super) const PATIENCE: Duration = Duration::from_secs(1);

/// Bytes carried on in one go.
const CHUNK: usize = 16 * 1024;

/// A dead worker's pipe is read to its end, but no further than this: a process that it left behind may go on writing.
const LAST_READ: usize = 1 << 20;

pub(super) struct Console {
    stdio: Stdio,
    /// Pipes that the thread does not know yet.
    new: Mutex<Vec<Arc<Pipe>>>,
    errands: Errands,
    alarm: Alarm,
    ended: AtomicBool,
}

/// Until this is done the death of a worker is not reported.
#[derive(Debug, Clone, Copy)]
pub(super) struct LastLines(u64);

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
            new: Mutex::default(),
            errands: Errands::default(),
            alarm: Alarm::new()?,
            ended: AtomicBool::new(false),
        })
    }

    /// Takes over a new worker's streams.
    pub(super) fn attach(&self, ends: Ends, writer: Writer) -> Output {
        let writer = Arc::new(writer);
        let stdout = ends.stdout.map(|end| Arc::new(Pipe::of_stdout(end, &writer)));
        let stderr = Arc::new(Pipe::of_stderr(ends.stderr, self.stdio, &writer));
        let mut new = self.new.lock().unwrap_or_else(PoisonError::into_inner);
        new.extend(stdout.clone());
        new.push(Arc::clone(&stderr));
        drop(new);
        self.alarm.wake();
        Output { stdout, stderr }
    }

    /// The last words of a worker that is dead; its pipes are let go. With lines that are to come before the death.
    pub(super) fn last_words(&self, output: &Output) -> (String, Option<LastLines>) {
        let pipes = output.stdout.iter().chain([&output.stderr]);
        let rests = pipes.map(|pipe| (Arc::clone(pipe), pipe.read_rest(LAST_READ)));
        let is_awaited = self.stdio == Stdio::Capture;
        let last = self.errands.pass_on(rests.collect(), is_awaited);
        self.alarm.wake();
        (output.stderr.tail(), is_awaited.then_some(LastLines(last)))
    }

    pub(super) fn is_told(&self, lines: LastLines) -> bool {
        self.errands.is_done(lines.0)
    }

    /// Waits until they are told, or [`PATIENCE`] is over.
    pub(super) fn wait_until_told(&self, lines: LastLines) {
        self.errands.wait_until_done(lines.0, PATIENCE);
    }

    /// Has an event emitted, if anybody may want one of its level.
    pub(super) fn note(&self, level: Level, emit: impl FnOnce(&str) + Send + 'static) {
        if is_wanted(level) {
            self.give(Box::new(emit));
        }
    }

    pub(super) fn note_all(&self, notes: Notes) {
        notes.into_iter().for_each(|note| self.give(note));
    }

    fn give(&self, note: Note) {
        if self.errands.note(note) {
            self.alarm.wake();
        }
    }

    pub(super) fn end(&self) {
        self.ended.store(true, Ordering::Release);
        self.alarm.wake();
    }

    /// Does what is to be done, and says whether it was the last of it.
    fn do_errands(&self, shared: &Shared) -> bool {
        // Before the queue is looked at: what is given later is not needed any more.
        let ended = self.ended.load(Ordering::Acquire);
        let pool = shared.config.name.as_str();
        while let Some(errand) = self.errands.next() {
            match errand {
                // A subscriber that panics loses this event, as the panic hook says.
                Errand::Event(emit) => drop(contain(|| emit(pool))),
                Errand::Rest(pipe, bytes) => pipe.pass_on(&bytes, true),
            }
            if self.errands.done() {
                shared.reaper.wake();
            }
        }
        if let Some(Lost { events, bytes }) = self.errands.take_lost() {
            let tell = || {
                warn!(
                    pool,
                    events, bytes, "events and output were lost, who takes them is too slow"
                );
            };
            let _ = contain(tell);
        }
        ended
    }
}

/// Carries bytes on and emits events until the pool ends.
pub(super) fn run(shared: &Shared, poller: Poller) {
    let console = &shared.console;
    if let Err(error) = carry_on(shared, poller) {
        shared.give_up("pass on what workers write", &error);
        console.alarm.do_without_descriptors();
        // Nobody reads the pipes any more; a worker that writes gets an error and does not wait.
        while !console.do_errands(shared) {
            console.new.lock().unwrap_or_else(PoisonError::into_inner).clear();
            Alarm::sleep(None);
        }
    }
    console.errands.end();
}

fn carry_on(shared: &Shared, mut poller: Poller) -> io::Result<()> {
    let console = &shared.console;
    poller.add(&console.alarm, ALARM)?;
    let mut pipes: HashMap<u64, Arc<Pipe>> = HashMap::new();
    let (mut next, mut ready, mut bytes) = (ALARM + 1, Vec::new(), Vec::new());
    while !console.do_errands(shared) {
        pipes.retain(|_, pipe| {
            if pipe.is_closed() {
                poller.remove(&**pipe);
            }
            !pipe.is_closed()
        });
        let new = std::mem::take(&mut *console.new.lock().unwrap_or_else(PoisonError::into_inner));
        for pipe in new.into_iter().filter(|pipe| !pipe.is_closed()) {
            poller.add(&*pipe, next)?;
            pipes.insert(next, pipe);
            next += 1;
        }
        poller.ready_until(None, &mut ready)?;
        for token in &ready {
            let Some(pipe) = pipes.get(token) else {
                console.alarm.drain();
                continue;
            };
            bytes.clear();
            let is_end = pipe.read(CHUNK, &mut bytes);
            pipe.pass_on(&bytes, is_end);
        }
    }
    Ok(())
}

/// The token of the descriptor by which the thread is woken.
const ALARM: u64 = 0;
