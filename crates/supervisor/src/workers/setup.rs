//! The initializer and the finalizer of a pool's workers.

use std::time::Duration;

use brigade_sys::executable::{EntryPoint, FunctionOffset};
use brigade_sys::sealed::SealedBytes;
use brigade_wire::shared::exporting;
use brigade_wire::{codec, sealed_argument};
use serde::Serialize;

/// Code that workers run before their first task and before they exit.
#[derive(Debug, Default)]
pub struct Setup {
    /// Runs once in the fork server, or before the initializer in each worker that is executed.
    pub preload: Option<Initializer>,
    /// Runs before the first task.
    pub initializer: Option<Initializer>,
    /// Time in which `preload` and the initializer must return.
    pub timeout: Duration,
    /// Runs before the exit.
    pub finalizer: Option<FunctionOffset>,
}

impl Setup {
    /// Sets the code that runs before the exit.
    ///
    /// # Errors
    /// If the function is not one of this executable; the text says why.
    pub fn set_finalizer(&mut self, entry: EntryPoint) -> Result<(), String> {
        self.finalizer = Some(offset(entry)?);
        Ok(())
    }

    /// Returns `true` if the host waits until a worker has run such code.
    pub(crate) fn is_awaited(&self, is_forked: bool) -> bool {
        self.initializer.is_some() || self.preload.is_some() && !is_forked
    }

    /// Returns `true` if there is no such code.
    pub fn is_empty(&self) -> bool {
        self.preload.is_none() && self.initializer.is_none() && self.finalizer.is_none()
    }
}

/// A function with its encoded argument, which exists once for all workers.
#[derive(Debug)]
pub struct Initializer {
    /// The function.
    pub function: FunctionOffset,
    /// Its argument, with copies of the shared buffers that it refers to.
    pub argument: SealedBytes,
    /// The number of bytes of the argument without its buffers.
    pub encoded: usize,
}

impl Initializer {
    /// Encodes the argument into memory that all workers share.
    ///
    /// # Errors
    /// If the argument fails to encode, or the function is not one of this executable; the text
    /// says why.
    pub fn new<A: Serialize + 'static>(entry: EntryPoint, argument: &A) -> Result<Self, String> {
        let function = offset(entry)?;
        let mut bytes = Vec::new();
        let (result, buffers) =
            exporting(|| codec::encode(argument, &mut bytes, u32::MAX as usize));
        result.map_err(|error| codec::chain(&error))?;
        let (encoded, buffers) = (bytes.len(), buffers.unwrap_or_default());
        let argument = sealed_argument::create("brigade-initializer", &bytes, &buffers)
            .map_err(|error| format!("cannot make shared memory for its argument: {error}"))?;
        Ok(Self { function, argument, encoded })
    }
}

/// Returns the offset of `entry` in the executable, or the reason why it has none.
fn offset(entry: EntryPoint) -> Result<FunctionOffset, String> {
    FunctionOffset::of(entry).map_err(|error| codec::chain(&error))
}
