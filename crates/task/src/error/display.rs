//! The text of an error: which task, what happened, and what to do.

use std::fmt;

use brigade_crash::End;
use brigade_sys::process::{Exit, last_line};
use brigade_wire::Attempt;

use super::{FORKED, TaskError, TaskErrorKind};

/// In one line; `{:#}` adds the stack, if there is one.
impl fmt::Display for TaskError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_task(out)?;
        self.write_kind(out)?;
        let stack = self.stack().filter(|_| out.alternate());
        stack.map_or(Ok(()), |stack| write!(out, "\n{stack}"))
    }
}

impl TaskError {
    fn write_task(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.inner.task {
            Some(task) => write!(out, "{task}")?,
            None => out.write_str("a task")?,
        }
        if let Some(label) = &self.inner.label {
            write!(out, " ({label})")?;
        }
        if let Some(index) = self.inner.index {
            write!(out, ", item {index}")?;
        }
        if self.inner.attempt != Attempt::first() {
            write!(out, ", attempt {}", self.inner.attempt.get())?;
        }
        Ok(())
    }

    fn write_kind(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.inner.kind {
            TaskErrorKind::Panicked { message, location, .. } => {
                write!(out, " panicked at {}: {}", Printable(location), Printable(message))
            }
            TaskErrorKind::WorkerDied { pid, exit, stderr_tail } => {
                self.write_death(*pid, *exit, stderr_tail, out)
            }
            TaskErrorKind::DeadlineExceeded { limit, elapsed } if self.is_queue_deadline() => {
                write!(
                    out,
                    " was not started within its queue deadline of {limit:?} (waited {elapsed:.3?})"
                )
            }
            TaskErrorKind::DeadlineExceeded { limit, elapsed } => {
                write!(out, " exceeded its deadline of {limit:?} (ended after {elapsed:.3?})")
            }
            TaskErrorKind::LimitExceeded { limit, used } => {
                write!(out, " exceeded its limit of {limit}")?;
                used.map_or(Ok(()), |used| write!(out, " (used {used})"))
            }
            TaskErrorKind::Denied { call, pid } => write!(
                out,
                " tried what its sandbox forbids: the system call `{call}` (pid {pid}); if the \
                 code may do that, allow it with a method of `Sandbox`"
            ),
            TaskErrorKind::Cancelled => out.write_str(" was cancelled before it started"),
            TaskErrorKind::Killed => {
                out.write_str(" was killed")?;
                self.elapsed().map_or(Ok(()), |elapsed| write!(out, " after {elapsed:.3?}"))
            }
            TaskErrorKind::Codec { message } => {
                write!(out, " cannot pass a value between processes: {}", Printable(message))
            }
            TaskErrorKind::Function { message } => {
                let message = Printable(message);
                write!(out, " called a function that its worker does not know: {message}")
            }
            TaskErrorKind::Needs { message } => write!(out, " can never run: {message}"),
            TaskErrorKind::PoolBroken { reason } => {
                write!(out, " cannot run, the pool is broken: {reason}")
            }
            TaskErrorKind::PoolClosed => out.write_str(" cannot run, the pool has been shut down"),
            TaskErrorKind::Forked => write!(out, " belongs to another process: {FORKED}"),
            TaskErrorKind::GivenUp { deaths, reason } => {
                write!(out, " was given up after {deaths} deaths and is a dead letter: {reason}")
            }
            TaskErrorKind::Lost { reason } => {
                write!(out, " has no outcome anymore, and is not in the queue: {reason}")
            }
            TaskErrorKind::Disconnected { reason } => {
                write!(out, " has no known outcome, the cluster cannot be used: {reason}")
            }
        }
    }

    fn write_death(
        &self,
        pid: u32,
        exit: Exit,
        stderr_tail: &str,
        out: &mut fmt::Formatter<'_>,
    ) -> fmt::Result {
        write!(out, " lost its worker (pid {pid}): ")?;
        if self.inner.circumstances.broke_protocol {
            out.write_str("the pool killed it because it broke the protocol")?;
        } else {
            write!(out, "{}", End { exit, crash: self.crash() })?;
        }
        if let Some(elapsed) = self.elapsed() {
            write!(out, ", after {elapsed:.3?}")?;
        }
        if let Some(line) = last_line(stderr_tail) {
            write!(out, "; its last line on stderr: {}", Printable(line))?;
        }
        if self.is_quarantined() {
            out.write_str("; quarantined because it killed too many workers")?;
        }
        Ok(())
    }
}

/// A text of a worker, which may not be trusted with the terminal on which it is printed.
struct Printable<'a>(&'a str);

impl fmt::Display for Printable<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|character| match character {
            '\n' | '\t' => write!(out, "{character}"),
            other if other.is_control() => write!(out, "{}", other.escape_debug()),
            other => write!(out, "{other}"),
        })
    }
}
