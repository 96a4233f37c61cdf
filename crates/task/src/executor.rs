//! Code that runs tasks either in a pool or on a cluster.

use crate::backend::Facts;
use crate::error::{SubmitError, TaskError};
use crate::function::{Data, NamedFunction};
use crate::handle::Handle;

/// Runs tasks: a pool on this machine, or a cluster on many.
///
/// ```
/// use brigade::{Executor, Key, Pool};
///
/// fn square(x: u64) -> u64 {
///     x * x
/// }
///
/// static SQUARE: Key<u64, u64> = Key::new("square/1", square);
///
/// fn sum_of_squares(executor: &impl Executor) -> Result<u64, Box<dyn std::error::Error>> {
///     let first = executor.submit(&SQUARE, 1)?;
///     let mut sum = first.wait()?;
///     for square in executor.map(&SQUARE, 2..=4) {
///         sum += square?;
///     }
///     Ok(sum)
/// }
///
/// # brigade::init();
/// assert_eq!(sum_of_squares(&Pool::builder().workers(1).build()?)?, 30);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// With the feature `cluster`, `brigade::cluster::Cluster` is one too; its documentation has an
/// example that chooses between both.
pub trait Executor: Send + Sync {
    /// The facts that it knows of its tasks.
    type Facts: Facts;

    /// Submits a task. Blocks while the queue is full.
    ///
    /// # Errors
    /// Returns a [`SubmitError`], which contains the argument, if the task is not accepted.
    fn submit<F: NamedFunction<A, R, By>, A: Data, R: Data, By>(
        &self,
        function: F,
        argument: A,
    ) -> Result<Handle<R, Self::Facts>, SubmitError<A>>;

    /// Applies a function to each input and yields the results in the order of the inputs. The
    /// iterator is lazy: it takes inputs as results are consumed.
    fn map<F: NamedFunction<I::Item, R, By>, I: IntoIterator<Item: Data>, R: Data, By>(
        &self,
        function: F,
        inputs: I,
    ) -> impl Iterator<Item = Result<R, TaskError>>;
}
