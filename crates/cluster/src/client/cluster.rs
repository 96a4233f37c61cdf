//! The cluster as its users see it.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use brigade_task::{Data, Executor, NamedFunction, SubmitError, TaskError};

use super::ClusterHandle;
use super::ClusterSubmitFuture;
use super::batch::Batch;
use super::builder::ClusterBuilder;
use super::map::{Chunks, ClusterMap, ClusterMapUnordered};
use super::prepare::Place;
use super::record::Facts;
use super::shared::{Command, Shared};
use super::task::ClusterTask;
use crate::error::ClusterError;

/// A connection to a queue whose tasks run on many machines.
///
/// It is used like a `Pool`, from any thread, blocking or async, with any
/// runtime. It has one thread of its own. Nodes may come and go; tasks wait in the queue meanwhile.
///
/// Dropping it waits for the answers to the submissions, for at most 5 s, and leaves the tasks to
/// the nodes. Handles without an outcome then end with
/// [`Disconnected`](brigade_task::TaskErrorKind::Disconnected).
///
/// ```no_run
/// use brigade::Key;
/// use brigade::cluster::Cluster;
///
/// pub static LENGTH: Key<String, usize> = Key::new("length/1", |text: String| text.len());
///
/// let cluster = Cluster::connect("nats://127.0.0.1:4222")?;
/// let handle = cluster.submit(&LENGTH, "abc".to_owned())?;
/// assert_eq!(handle.wait()?, 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Cluster {
    pub(super) shared: Arc<Shared>,
    /// `None` once it is closed.
    pub(super) driver: Option<JoinHandle<()>>,
}

impl Cluster {
    /// Connects to the queue `default` of a server, which is created if it does not exist.
    ///
    /// # Errors
    /// If the server cannot be reached, or cannot be used.
    pub fn connect(url: impl Into<String>) -> Result<Self, ClusterError> {
        Self::builder().url(url).connect()
    }

    /// Returns a builder. Without further settings, the client connects to the servers of
    /// `NATS_URL`, or to one on this machine, with the login that the environment describes; see
    /// [`Endpoint::from_env`](crate::Endpoint::from_env).
    pub fn builder() -> ClusterBuilder {
        ClusterBuilder::default()
    }

    /// Submits a task; see [`ClusterTask::submit`].
    ///
    /// # Errors
    /// As there.
    pub fn submit<F: NamedFunction<A, R, By>, A: Data, R: Data, By>(
        &self,
        function: F,
        argument: A,
    ) -> Result<ClusterHandle<R>, SubmitError<A>> {
        self.task(function).submit(argument)
    }

    /// Submits a task, and blocks until the server has stored it or refused it; see
    /// [`ClusterTask::try_submit`].
    ///
    /// # Errors
    /// As there.
    pub fn try_submit<F: NamedFunction<A, R, By>, A: Data, R: Data, By>(
        &self,
        function: F,
        argument: A,
    ) -> Result<ClusterHandle<R>, SubmitError<A>> {
        self.task(function).try_submit(argument)
    }

    /// Submits a task like [`try_submit`](Self::try_submit), but waits at most `timeout` for room
    /// in the queue; see [`ClusterTask::submit_timeout`].
    ///
    /// # Errors
    /// As there.
    pub fn submit_timeout<F: NamedFunction<A, R, By>, A: Data, R: Data, By>(
        &self,
        function: F,
        argument: A,
        timeout: Duration,
    ) -> Result<ClusterHandle<R>, SubmitError<A>> {
        self.task(function).submit_timeout(argument, timeout)
    }

    /// Submits a task as a future, which waits where [`submit`](Self::submit) blocks.
    ///
    /// # Errors
    /// As `submit`.
    pub fn submit_async<F: NamedFunction<A, R, By>, A: Data, R: Data, By>(
        &self,
        function: F,
        argument: A,
    ) -> ClusterSubmitFuture<A, R> {
        self.task(function).submit_async(argument)
    }

    /// Returns a builder for a task with settings of its own.
    pub fn task<F: NamedFunction<A, R, By>, A: Data, R: Data, By>(
        &self,
        function: F,
    ) -> ClusterTask<'_, A, R> {
        ClusterTask::new(&self.shared, Place::Client, function.name_and_types())
    }

    /// Applies a task to each input and yields the results in the order of the inputs.
    ///
    /// The iterator is lazy and bounded: it takes inputs as results are consumed. A task that fails
    /// yields an error item, and the iteration continues.
    pub fn map<F: NamedFunction<I::Item, R, By>, I: IntoIterator<Item: Data>, R: Data, By>(
        &self,
        function: F,
        inputs: I,
    ) -> ClusterMap<'_, I::IntoIter, R> {
        ClusterMap::new(Chunks::new(&self.shared, None, function.name_and_types(), inputs))
    }

    /// Applies a task to each input like [`map`](Self::map), but yields the results in the order of
    /// completion.
    pub fn map_unordered<
        F: NamedFunction<I::Item, R, By>,
        I: IntoIterator<Item: Data>,
        R: Data,
        By,
    >(
        &self,
        function: F,
        inputs: I,
    ) -> ClusterMapUnordered<'_, I::IntoIter, R> {
        ClusterMapUnordered::new(Chunks::new(&self.shared, None, function.name_and_types(), inputs))
    }

    /// Opens a named batch: a set of tasks that a later run of the program continues. See
    /// [`Batch`].
    ///
    /// Blocks until the server has listed what earlier runs have left.
    ///
    /// # Errors
    /// If the name has characters other than letters, digits, `-` and `_`, or the server is away.
    pub fn batch(&self, name: &str) -> Result<Batch<'_>, ClusterError> {
        Batch::open(&self.shared, name)
    }

    /// Returns `false` while the link to the server is down. Nothing is lost in that time.
    pub fn is_connected(&self) -> bool {
        self.shared.is_up()
    }
}

/// Runs the same code as a `Pool`, on many machines:
///
/// ```no_run
/// use brigade::cluster::Cluster;
/// use brigade::{Executor, Key, Pool};
///
/// static SQUARE: Key<u64, u64> = Key::new("square/1", |x: u64| x * x);
///
/// fn sum_of_squares(executor: &impl Executor) -> Result<u64, Box<dyn std::error::Error>> {
///     let mut sum = executor.submit(&SQUARE, 1)?.wait()?;
///     for square in executor.map(&SQUARE, 2..=4) {
///         sum += square?;
///     }
///     Ok(sum)
/// }
///
/// fn main() -> Result<(), Box<dyn std::error::Error>> {
///     brigade::init();
///     let sum = match std::env::var("NATS_URL") {
///         Ok(url) => sum_of_squares(&Cluster::connect(url)?)?,
///         Err(_) => sum_of_squares(&Pool::builder().build()?)?,
///     };
///     println!("{sum}");
///     Ok(())
/// }
/// ```
impl Executor for Cluster {
    type Facts = Facts;

    fn submit<F: NamedFunction<A, R, By>, A: Data, R: Data, By>(
        &self,
        function: F,
        argument: A,
    ) -> Result<ClusterHandle<R>, SubmitError<A>> {
        Self::submit(self, function, argument)
    }

    fn map<F: NamedFunction<I::Item, R, By>, I: IntoIterator<Item: Data>, R: Data, By>(
        &self,
        function: F,
        inputs: I,
    ) -> impl Iterator<Item = Result<R, TaskError>> {
        Self::map(self, function, inputs)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if self.shared.is_forked() {
            return;
        }
        self.shared.send(Command::Close);
        if let Some(driver) = self.driver.take() {
            // A panic there would be a bug of the cluster; the panic hook has reported it.
            let _ = driver.join();
        }
    }
}

brigade_sys::debug_fields! {
    impl Cluster {
        |it| queue: it.shared.names.queue(), is_connected: it.is_connected()
    }
}
