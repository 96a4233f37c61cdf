//! The initializer and the finalizer of a pool's workers.

use std::time::Duration;

use brigade_sys::executable::{EntryPoint, FunctionOffset};
use brigade_sys::sealed::SealedBytes;
use brigade_wire::codec;
use serde::Serialize;

/// Loading a model or a large table takes seconds; anything that takes longer than this hangs.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);

/// The functions that run in each worker before its first and after its last task.
#[derive(Debug)]
pub(crate) struct Setup {
    pub(crate) initializer: Option<Initializer>,
    pub(crate) timeout: Duration,
    pub(crate) finalizer: Option<FunctionOffset>,
}

impl Default for Setup {
    fn default() -> Self {
        Self { initializer: None, timeout: DEFAULT_TIMEOUT, finalizer: None }
    }
}

impl Setup {
    pub(crate) fn is_empty(&self) -> bool {
        self.initializer.is_none() && self.finalizer.is_none()
    }
}

/// A function with its encoded argument, which exists once for all workers.
#[derive(Debug)]
pub(crate) struct Initializer {
    pub(crate) function: FunctionOffset,
    pub(crate) argument: SealedBytes,
}

impl Initializer {
    pub(crate) fn new<A: Serialize + 'static>(
        entry: EntryPoint,
        argument: &A,
    ) -> Result<Self, String> {
        let function = offset(entry)?;
        let argument = if let Some((prefix, bytes)) = codec::contiguous_parts(argument) {
            seal(&[prefix.as_slice(), bytes])
        } else {
            let mut encoded = Vec::new();
            codec::encode(argument, &mut encoded, u32::MAX as usize)
                .map_err(|error| codec::chain(&error))?;
            seal(&[&encoded])
        };
        Ok(Self { function, argument: argument? })
    }
}

/// Returns the offset of `entry` in the executable, or the reason why it has none.
pub(crate) fn offset(entry: EntryPoint) -> Result<FunctionOffset, String> {
    FunctionOffset::of(entry).map_err(|error| codec::chain(&error))
}

fn seal(parts: &[&[u8]]) -> Result<SealedBytes, String> {
    SealedBytes::create("brigade-initializer", parts)
        .map_err(|error| format!("failed to make shared memory for its argument: {error}"))
}
