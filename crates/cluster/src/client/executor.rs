//! Clusters as executors, for code that also runs on a pool.

use std::time::Duration;

use brigade_pool::{Executor, SubmitError, Task, TaskError, TaskHandle, TaskState};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::cluster::Cluster;
use super::handle::ClusterHandle;

/// Runs the same code as a [`Pool`](brigade_pool::Pool), on many machines:
///
/// ```no_run
/// use brigade::cluster::Cluster;
/// use brigade::{Executor, Pool, Task, TaskHandle};
///
/// static SQUARE: Task<u64, u64> = Task::new("square/1", |x: u64| x * x);
///
/// fn sum_of_squares(executor: &impl Executor) -> Result<u64, Box<dyn std::error::Error>> {
///     let mut sum = executor.submit_key(&SQUARE, 1)?.wait()?;
///     for square in executor.map_key(&SQUARE, 2..=4) {
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
    type Handle<R: DeserializeOwned + 'static> = ClusterHandle<R>;

    fn submit_key<A, R>(
        &self,
        task: &Task<A, R>,
        argument: A,
    ) -> Result<ClusterHandle<R>, SubmitError<A>>
    where
        A: Serialize + DeserializeOwned + 'static,
        R: Serialize + DeserializeOwned + 'static,
    {
        self.submit(task, argument)
    }

    fn map_key<A, R, I>(
        &self,
        task: &Task<A, R>,
        inputs: I,
    ) -> impl Iterator<Item = Result<R, TaskError>>
    where
        I: IntoIterator<Item = A>,
        A: Serialize + DeserializeOwned + 'static,
        R: Serialize + DeserializeOwned + 'static,
    {
        self.map(task, inputs)
    }
}

impl<R: DeserializeOwned + 'static> TaskHandle<R> for ClusterHandle<R> {
    fn wait(self) -> Result<R, TaskError> {
        Self::wait(self)
    }

    fn wait_timeout(&mut self, timeout: Duration) -> Option<Result<R, TaskError>> {
        Self::wait_timeout(self, timeout)
    }

    fn cancel(&self) -> bool {
        Self::cancel(self)
    }

    fn kill(&self) -> bool {
        Self::kill(self)
    }

    fn on_done(&self, callback: impl FnOnce(Result<R, TaskError>) + Send + 'static) {
        Self::on_done(self, callback);
    }

    fn state(&self) -> TaskState {
        Self::state(self)
    }

    fn is_done(&self) -> bool {
        Self::is_done(self)
    }
}
