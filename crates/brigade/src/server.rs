//! Worker programs that are not the host's executable, with all links of this build.

use brigade_pool::Key;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The functions of a worker program, for hosts that start it with
/// [`worker_command`](crate::PoolBuilder::worker_command).
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
///     brigade::worker::Server::new().task("resize", resize).version("1.4").run();
///     eprintln!("this program is started by its host, and not by hand");
///     std::process::exit(2);
/// }
/// ```
#[must_use = "a server does nothing until `run`"]
#[derive(Debug, Default)]
pub struct Server(brigade_worker::Server);

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
        Self(self.0.task(name, function))
    }

    /// Registers the function of a key under its name.
    ///
    /// # Panics
    /// Panics if another function has that name, or if the key has no function.
    pub fn register<A, R>(self, task: &Key<A, R>) -> Self {
        Self(self.0.register(task))
    }

    /// Sets the version of the functions and their types. A host compares it with its
    /// [`worker_version`](crate::PoolBuilder::worker_version).
    pub fn version(self, version: impl Into<String>) -> Self {
        Self(self.0.version(version))
    }

    /// Turns this process into a worker if a host has started it as one. Call it before any thread
    /// is started.
    ///
    /// In any other process it returns at once. In a worker it never returns, like
    /// [`init`](crate::init).
    pub fn run(self) {
        self.0.run_with(brigade_pool::CONNECTORS);
    }
}
