//! Worker programs that are not the host's executable. Their functions are called by name.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::functions::{FUNCTIONS, NAMES, Named, Registered};
use crate::program::{Connectors, Program};
use crate::start;
use crate::{Key, function_of};

/// The functions of a worker program, for hosts that start it with `PoolBuilder::worker_command`.
///
/// A host of the same build may also call functions that have no name, as if the program had called
/// [`init`](crate::init).
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
    /// Returns a server without functions.
    pub fn new() -> Self {
        Self::default()
    }

    /// Registers a function under a name. The function is a function item, or a closure that
    /// captures nothing.
    ///
    /// # Panics
    /// Panics if another function has that name.
    pub fn task<F, A, R>(self, name: impl Into<String>, function: F) -> Self
    where
        F: Fn(A) -> R + Copy + Send + 'static,
        A: DeserializeOwned + 'static,
        R: Serialize + 'static,
    {
        self.insert(name.into(), Registered::new::<A, R>(function_of::<F, A, R>(function)))
    }

    /// Registers the function of a key under its name.
    ///
    /// # Panics
    /// Panics if another function has that name, or if the key has no function.
    #[expect(clippy::panic, reason = "documented under Panics")]
    pub fn register<A, R>(self, task: &Key<A, R>) -> Self {
        let Some(entry) = task.entry() else {
            panic!("{task:?} has no function in this program: create it by `Key::new`");
        };
        self.insert(task.name().to_owned(), Registered::new::<A, R>(entry))
    }

    fn insert(mut self, name: String, function: Registered) -> Self {
        assert!(!self.named.contains_key(&name), "two functions have the name {name:?}");
        self.named.insert(name, function);
        self
    }

    /// Sets the version of the functions and their types. A host compares it with its
    /// `PoolBuilder::worker_version`.
    pub fn version(mut self, version: impl Into<String>) -> Self {
        self.version = Some(version.into());
        self
    }

    /// Turns this process into a worker if a host has started it as one. Call it before any thread
    /// is started.
    ///
    /// In any other process it returns at once. In a worker it never returns, like
    /// [`init`](crate::init).
    pub fn run(self) {
        self.run_with(&[]);
    }

    /// Like [`run`](Self::run), for a program that can also use other links than rings.
    pub fn run_with(self, connectors: Connectors) {
        let Self { mut named, version } = self;
        // Nothing but this sets it, and a worker never returns from here.
        let _ = NAMES.set(named.keys().cloned().collect());
        let list = FUNCTIONS.entry().map(Registered::new::<(), Vec<String>>);
        named.extend(list.map(|list| (FUNCTIONS.name().to_owned(), list)));
        start::run(Program { named, server: true, version, connectors });
    }
}

brigade_sys::debug_fields! {
    impl Server { |it| tasks: it.named.keys().collect::<Vec<_>>(), version: it.version }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::catch_unwind;

    #[test]
    fn run_returns_in_a_process_that_no_host_started() {
        Server::new().task("not", |value: bool| !value).version("1").run();
        assert!(crate::is_initialized());
    }

    #[test]
    fn two_functions_with_one_name_panic_with_the_name() {
        let twice = || {
            drop(Server::new().task("not", |value: bool| !value).task("not", |value: u8| !value));
        };
        let message = *catch_unwind(twice).unwrap_err().downcast::<String>().unwrap();
        assert!(message.contains("\"not\""), "{message}");
    }
}
