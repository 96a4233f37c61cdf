//! Flat streams, whose function emits many items for one input.

use brigade_worker::context::with_seed;
use brigade_worker::{Emit, emitting_function_of};

use super::StreamBuilder;
use super::builder::Settings;
use super::machine::Machine;
use super::task::{PoolTask, Task};
use crate::Pool;
use crate::emitted::Taken;
use crate::function_ref::FunctionRef;
use brigade_task::Data;
use brigade_task::backend::Wait;

impl Pool {
    /// Returns a builder for a stream whose function emits any number of items for each input. Each
    /// item is handed over as it is produced, with the [index](super::Item::index) of its emission.
    ///
    /// ```no_run
    /// # use brigade::Pool;
    /// # use brigade::stream::Emit;
    /// fn explode(path: String, lines: &mut Emit<'_, String>) {
    ///     let text = std::fs::read_to_string(path).unwrap_or_default();
    ///     for line in text.lines() {
    ///         if lines.emit(line.to_owned()).is_err() {
    ///             return; // nobody wants the rest
    ///         }
    ///     }
    /// }
    ///
    /// # fn run(pool: Pool) -> Result<(), Box<dyn std::error::Error>> {
    /// let stream = pool.stream_flat(explode).start()?;
    /// stream.put("a.txt".to_owned())?;
    /// stream.finish();
    /// for item in &stream {
    ///     println!("line {} of input {}: {}", item.index, item.id, item.result?);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Limits
    /// [`output`](StreamBuilder::output) bounds the items that were emitted and not received, at
    /// least one for each input that runs. A function that emits more waits, and its worker with
    /// it. So a flat stream holds at most `workers - 1` workers of its pool, or one if there is but
    /// one: other streams go on however slow its consumer is. Several flat streams together may
    /// hold all workers.
    ///
    /// # Ends
    /// An input gets no further item when its function returns, so one that emits nothing has none.
    /// If the function fails, or its worker dies, the items that were emitted before are delivered,
    /// and then an item with the error. The same holds if an item was refused because the pool
    /// shuts down or because the soft deadline had passed.
    ///
    /// In an ordered stream, the items of an input come in the order of their emission, before
    /// those of the next input. A reset drops the items of all earlier inputs, and functions that
    /// run get an error when they emit the next.
    ///
    /// With [retries](StreamBuilder::retries), the function runs again from its beginning, and
    /// those of its items are skipped that had arrived before. So it must emit the same items each
    /// time.
    pub fn stream_flat<F, A: Data, R: Data + Send>(&self, function: F) -> StreamBuilder<'_, A, R>
    where
        F: Fn(A, &mut Emit<'_, R>) + Copy + Send + 'static,
    {
        let seeded = move |(seed, input): (u64, A), emit: &mut Emit<'_, R>| {
            with_seed(seed, || function(input, emit));
        };
        StreamBuilder {
            pool: self,
            function: FunctionRef::of(emitting_function_of::<F, A, R>(function)),
            seeded: FunctionRef::of(emitting_function_of::<_, (u64, A), R>(seeded)),
            here: None,
            settings: Settings { flat: true, ..Settings::default() },
        }
    }
}

/// The next thing for a consumer to take.
pub(super) enum Turn<R> {
    /// An item that the input has emitted.
    Item(u64, PoolTask, Taken),
    /// The end of the input.
    End(u64, Task<R>),
}

/// Takes an item of the input whose turn it is, or its end after all its items.
pub(super) fn take<R>(machine: &mut Machine<Task<R>>) -> Option<Turn<R>> {
    loop {
        let (id, task) = machine.front()?;
        let Some(task) = task.as_pool().filter(|task| task.cell.emitted().is_some()).cloned()
        else {
            break;
        };
        let Some(emitted) = task.cell.emitted() else { break };
        // Before the look at the items, which have all arrived when the task ends.
        let has_ended = !task.cell.is_pending();
        match emitted.take() {
            Some(item) => {
                machine.turn(has_ended || emitted.has_some());
                return Some(Turn::Item(id, task, item));
            }
            None if has_ended => break,
            // Another consumer was faster, or a reset.
            None => machine.turn(false),
        }
    }
    machine.take().map(|(id, task)| Turn::End(id, task))
}
