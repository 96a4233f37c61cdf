//! A worker program of its own: its functions are called by name, so that it need not be the host's executable.

use std::fmt;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::function_of;
use crate::functions::Named;
use crate::start::{self, Program};

/// The functions that a worker program offers, for hosts that start it with `Builder::worker_command`.
///
/// A host of the same build may also call functions that have no name, as if this were [`init`](crate::init).
///
/// ```no_run
/// fn resize((image, width): (Vec<u8>, u32)) -> Vec<u8> {
///     # let _ = width;
///     // ...
///     image
/// }
///
/// fn main() {
///     brigade_worker::Server::new().task("resize", resize).version("1.4").run();
///     eprintln!("this program is started by its host, and not by hand");
///     std::process::exit(2);
/// }
/// ```
#[must_use = "a server does nothing until `run`"]
#[derive(Default)]
pub struct Server {
    named: Named,
    version: Option<String>,
}

impl Server {
    /// A server without functions.
    pub fn new() -> Self {
        Self::default()
    }

    /// Offers a function under a name. It is a function item, or a closure that captures nothing.
    ///
    /// # Panics
    /// When another function has that name.
    pub fn task<F, A, R>(mut self, name: impl Into<String>, function: F) -> Self
    where
        F: Fn(A) -> R + Copy + Send + 'static,
        A: DeserializeOwned + 'static,
        R: Serialize + 'static,
    {
        let name = name.into();
        let entry = function_of::<F, A, R>(function);
        assert!(!self.named.contains_key(&name), "two functions with the name {name:?}");
        self.named.insert(name, entry);
        self
    }

    /// The version of what the functions take and return; a host compares it with its `Builder::worker_version`.
    pub fn version(mut self, version: impl Into<String>) -> Self {
        self.version = Some(version.into());
        self
    }

    /// Makes this process a worker if a host has started it as one; should come before any thread is started.
    ///
    /// In any other process it returns at once. In a worker it never returns, as [`init`](crate::init).
    pub fn run(self) {
        start::run(Program { named: self.named, server: true, version: self.version });
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Server")
            .field("tasks", &self.named.keys().collect::<Vec<_>>())
            .field("version", &self.version)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::catch_unwind;

    #[test]
    fn a_process_that_no_host_has_started_goes_on() {
        Server::new().task("not", |value: bool| !value).version("1").run();
        assert!(crate::is_initialised());
    }

    #[test]
    fn two_functions_with_one_name_are_a_mistake_that_is_told() {
        let twice = || {
            drop(Server::new().task("not", |value: bool| !value).task("not", |value: u8| !value));
        };
        let message = *catch_unwind(twice).unwrap_err().downcast::<String>().unwrap();
        assert!(message.contains("\"not\""), "{message}");
    }
}
