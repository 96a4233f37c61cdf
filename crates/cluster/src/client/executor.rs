//! Clusters as executors, for code that also runs on a pool.

use brigade_task::{Data, Executor, NamedFunction, SubmitError, TaskError};

use super::ClusterHandle;
use super::cluster::Cluster;
use super::record::Facts;

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
