//! The initializer and the finalizer of a pool's workers.

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use brigade_sys::executable::{EntryPoint, FunctionOffset};
use brigade_sys::sealed::SealedBytes;
use brigade_wire::codec;
use brigade_worker::{finalizer_of, initializer_of, try_initializer_of};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::PoolError;

/// Loading a model or a large table takes seconds; anything that takes longer than this hangs.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);

/// Checked initializer and finalizer.
#[derive(Debug, Clone)]
pub(crate) struct Setup {
    pub(crate) initializer: Option<Initializer>,
    pub(crate) timeout: Duration,
    pub(crate) finalizer: Option<FunctionOffset>,
}

impl Setup {
    pub(crate) fn is_empty(&self) -> bool {
        self.initializer.is_none() && self.finalizer.is_none()
    }
}

/// A function with its encoded argument, which exists once for all workers.
#[derive(Debug, Clone)]
pub(crate) struct Initializer {
    pub(crate) function: FunctionOffset,
    pub(crate) argument: Arc<SealedBytes>,
}

/// Collects the settings; problems are reported by `build`.
#[derive(Debug)]
pub(crate) struct SetupBuilder {
    initializer: Option<Result<Initializer, String>>,
    timeout: Duration,
    finalizer: Option<EntryPoint>,
}

impl SetupBuilder {
    pub(crate) fn new() -> Self {
        Self { initializer: None, timeout: DEFAULT_TIMEOUT, finalizer: None }
    }

    pub(crate) fn set_initializer<F, A, T>(&mut self, function: F, argument: &A)
    where
        F: Fn(A) -> T + Copy + Send + 'static,
        A: Serialize + DeserializeOwned + 'static,
        T: 'static,
    {
        self.initializer = Some(initializer(initializer_of::<F, A, T>(function), argument));
    }

    pub(crate) fn set_try_initializer<F, A, T, E>(&mut self, function: F, argument: &A)
    where
        F: Fn(A) -> Result<T, E> + Copy + Send + 'static,
        A: Serialize + DeserializeOwned + 'static,
        T: 'static,
        E: Display + 'static,
    {
        let entry = try_initializer_of::<F, A, T, E>(function);
        self.initializer = Some(initializer(entry, argument));
    }

    pub(crate) fn set_timeout(&mut self, timeout: Duration) {
        self.timeout = timeout;
    }

    pub(crate) fn set_finalizer<F: Fn() + Copy + Send + 'static>(&mut self, function: F) {
        self.finalizer = Some(finalizer_of(function));
    }

    /// Returns the settings if all of them are valid. `limit` is the maximum size of an argument in
    /// bytes.
    pub(crate) fn check(self, limit: usize) -> Result<Setup, PoolError> {
        let wrong = |field, problem| PoolError::Configuration { field, problem };
        if self.timeout.is_zero() {
            let problem = "must be greater than zero".to_owned();
            return Err(wrong("initializer_timeout", problem));
        }
        let initializer =
            self.initializer.transpose().map_err(|problem| wrong("initializer", problem))?;
        if let Some(initializer) = &initializer
            && initializer.argument.len() > limit
        {
            let length = initializer.argument.len();
            let problem =
                format!("its argument has {length} bytes, more than `message_limit` ({limit})");
            return Err(wrong("initializer", problem));
        }
        let finalizer = self.finalizer.map(offset).transpose();
        let finalizer = finalizer.map_err(|problem| wrong("finalizer", problem))?;
        Ok(Setup { initializer, timeout: self.timeout, finalizer })
    }
}

fn initializer<A: Serialize + 'static>(
    entry: EntryPoint,
    argument: &A,
) -> Result<Initializer, String> {
    let function = offset(entry)?;
    let sealed = if let Some((prefix, bytes)) = codec::contiguous_parts(argument) {
        seal(&[prefix.as_slice(), bytes])
    } else {
        let mut encoded = Vec::new();
        codec::encode(argument, &mut encoded, u32::MAX as usize)
            .map_err(|error| codec::chain(&error))?;
        seal(&[&encoded])
    };
    Ok(Initializer { function, argument: Arc::new(sealed?) })
}

fn offset(entry: EntryPoint) -> Result<FunctionOffset, String> {
    FunctionOffset::of(entry).map_err(|error| codec::chain(&error))
}

fn seal(parts: &[&[u8]]) -> Result<SealedBytes, String> {
    SealedBytes::create("brigade-initializer", parts)
        .map_err(|error| format!("failed to make shared memory for its argument: {error}"))
}
