//! Runs the initializer before a worker's first task, and the finalizer before it ends.
//!
//! Both run on the thread that runs the tasks. The initializer is part of the start: the host waits
//! for its result, and a worker whose initializer fails never gets a task. The finalizer is part of
//! an orderly end: the host allows it the grace period of any worker that stops, then ends the
//! process.

use std::fmt::Display;
use std::marker::PhantomData;

use brigade_sys::executable::{Adapter, EntryError, EntryPoint, Invocation, entry_point};
use brigade_sys::sealed::SealedView;
use brigade_wire::PanicReport;
use brigade_wire::handshake::Hello;
use brigade_wire::sealed_argument::SealedArgument;
use serde::de::DeserializeOwned;

use crate::bounded::bounded;
use crate::buffers::importing;
use crate::functions::Functions;
use crate::panic_capture::panicked;
use crate::stderr::report_end;
use crate::typed::decode;
use crate::{panic_capture, state};

/// Error texts are truncated to this, so that they fit into a packet.
const REASON_LIMIT: usize = 16 * 1024;

/// Returns the plain function through which a worker calls an initializer. It decodes an `A` and
/// keeps the `T`.
pub fn initializer_of<F, A, T, E>(function: F) -> EntryPoint
where
    F: Fn(A) -> Result<T, E> + Copy + Send + 'static,
    A: DeserializeOwned + 'static,
    T: 'static,
    E: Display + 'static,
{
    entry_point::<F, Prepares<Thread, A, T, E>>(function)
}

/// Returns the plain function through which a fork server calls `preload`; see [`initializer_of`].
pub fn preload_of<F, A, T, E>(function: F) -> EntryPoint
where
    F: Fn(A) -> Result<T, E> + Copy + Send + 'static,
    A: DeserializeOwned + 'static,
    T: Send + Sync + 'static,
    E: Display + 'static,
{
    entry_point::<F, Prepares<Process, A, T, E>>(function)
}

/// Returns the plain function through which a worker calls a finalizer.
pub fn finalizer_of<F: Fn() + Copy + Send + 'static>(function: F) -> EntryPoint {
    entry_point::<F, Finalizes>(function)
}

/// A place where a process keeps the value of a function that prepares it.
trait Keeper<T> {
    fn keep(value: T);
}

struct Thread;

impl<T: 'static> Keeper<T> for Thread {
    fn keep(value: T) {
        state::set(value);
    }
}

struct Process;

impl<T: Send + Sync + 'static> Keeper<T> for Process {
    fn keep(value: T) {
        state::set_preloaded(value);
    }
}

struct Prepares<K, A, T, E>(PhantomData<(K, A, T, E)>);

impl<F, K, A, T, E> Adapter<F> for Prepares<K, A, T, E>
where
    F: Fn(A) -> Result<T, E>,
    K: Keeper<T>,
    A: DeserializeOwned + 'static,
    E: Display + 'static,
{
    fn call(function: F, invocation: &mut Invocation<'_>) -> Result<(), EntryError> {
        // Nothing is encoded here, so `EntryError::Result` is the function's own error.
        let value = function(decode(invocation)?)
            .map_err(|error| EntryError::Result(bounded(&error, REASON_LIMIT)))?;
        K::keep(value);
        Ok(())
    }
}

struct Finalizes;

impl<F: Fn()> Adapter<F> for Finalizes {
    fn call(function: F, _: &mut Invocation<'_>) -> Result<(), EntryError> {
        function();
        Ok(())
    }
}

/// The initializer and the finalizer of the host's greeting.
#[derive(Debug)]
pub(crate) struct WorkerSetup {
    /// Called before the initializer, in a worker that was not forked from a server that has done
    /// so.
    preload: Option<(u64, SealedView)>,
    initializer: Option<(u64, SealedView)>,
    finalizer: Option<u64>,
}

impl WorkerSetup {
    /// Returns that of a greeting, with the arguments of `preload` and of the initializer.
    pub(crate) fn new(hello: &Hello, [preload, initializer]: [Option<SealedView>; 2]) -> Self {
        Self {
            preload: hello.preload.zip(preload),
            initializer: hello.initializer.zip(initializer),
            finalizer: hello.finalizer,
        }
    }

    /// Returns `true` if the host waits for the end of [`initialize`](Self::initialize).
    pub(crate) fn is_awaited(&self) -> bool {
        self.preload.is_some() || self.initializer.is_some()
    }

    /// Runs `preload` and the initializer, if there are any. The error can follow "the worker could
    /// not be started: ".
    pub(crate) fn initialize(&mut self, functions: &Functions) -> Result<(), String> {
        // Taken, because the arguments are needed only once.
        if let Some((offset, argument)) = self.preload.take() {
            prepare(functions, "`preload`", offset, argument)?;
        }
        match self.initializer.take() {
            Some((offset, argument)) => prepare(functions, "its initializer", offset, argument),
            None => Ok(()),
        }
    }

    /// Runs the finalizer, if there is one. Nobody waits for its result, so errors are written to
    /// stderr.
    pub(crate) fn finalize(&self, functions: &Functions) {
        let Some(offset) = self.finalizer else { return };
        match call(functions, offset, None) {
            Ok(Ok(_)) => {}
            Ok(Err(report)) => report_end(&describe_panic("the finalizer", &report)),
            Err(reason) => report_end(&format_args!("the finalizer cannot be called: {reason}")),
        }
    }
}

/// Calls a function that prepares a process for tasks. The error can follow "the worker could not
/// be started: ".
pub(crate) fn prepare(
    functions: &Functions,
    who: &str,
    offset: u64,
    argument: SealedView,
) -> Result<(), String> {
    let argument = SealedArgument::open(argument)
        .map_err(|error| format!("the argument of {who} cannot be read: {error}"))?;
    match call(functions, offset, Some(&argument)) {
        Ok(Ok(Ok(()))) => Ok(()),
        Ok(Ok(Err(EntryError::Argument(reason)))) => {
            let reason = bounded(&reason, REASON_LIMIT);
            Err(format!("the argument of {who} cannot be decoded: {reason}"))
        }
        Ok(Ok(Err(EntryError::Result(reason)))) => Err(format!("{who} failed: {reason}")),
        Ok(Err(report)) => Err(describe_panic(who, &report)),
        Err(reason) => Err(format!("{who} cannot be called: {reason}")),
    }
}

/// From the outside in: the error if it could not be called, its panic, its own result.
type Called = Result<Result<Result<(), EntryError>, Box<PanicReport>>, String>;

fn call(functions: &Functions, offset: u64, argument: Option<&SealedArgument>) -> Called {
    let entry = functions.at(offset)?;
    let (encoded, buffers) = argument.map_or((&[][..], &[][..]), |it| (it.encoded(), it.buffers()));
    let with_buffers = importing(buffers);
    let task = || {
        let mut result = Vec::new();
        let mut invocation = Invocation::new(encoded, &mut result, 0);
        if !buffers.is_empty() {
            invocation.with_buffers = Some(&with_buffers);
        }
        entry(&mut invocation)
    };
    Ok(panic_capture::run(task, || ()))
}

fn describe_panic(who: &str, report: &PanicReport) -> String {
    format!("{who} {}", panicked(report.location.as_ref(), &report.message))
}
