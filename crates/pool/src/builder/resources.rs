//! Resources that tasks share.

use brigade_base::Resource;

use super::PoolBuilder;
use crate::Pool;

brigade_sys::setters! {
    impl PoolBuilder;

    /// Declares a limited resource, such as GPUs, memory or licenses. Tasks take of it what they
    /// [need](crate::TaskBuilder::needs) while they run.
    ///
    /// A task starts when a worker is free and all that it needs is left. Whoever waits first gets
    /// what is given back first; a task that needs something else, or less than what is left for
    /// those before it, goes ahead. In the task, `worker::indices` returns the numbers of its
    /// pieces, which no other task has at that time; but a task that is killed
    /// [`in_process`](Self::in_process) goes on with its own.
    ///
    /// The pool only counts: nothing keeps a task from using more than it has taken. For that there
    /// are [limits](Self::limits).
    ///
    /// Names have 1 to 16 lower-case letters, digits and `_`, with a letter first.
    ///
    /// ```
    /// use brigade::Resource;
    ///
    /// fn train(epochs: u32) -> String {
    ///     let gpus = brigade::worker::indices("gpu").unwrap_or_default();
    ///     format!("{epochs} epochs on GPU {gpus:?}")
    /// }
    ///
    /// brigade::init();
    /// let pool = brigade::Pool::builder()
    ///     .workers(4)
    ///     .resource("gpu", Resource::Indexed(2))
    ///     .resource("memory", Resource::Sum(16 << 30))
    ///     .build()?;
    /// let task = pool.task(train).needs("gpu", 1).needs("memory", 2 << 30);
    /// println!("{}", task.submit(3)?.wait()?); // 3 epochs on GPU [0]
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn resource(self, name: impl Into<String>, resource: Resource) {
        self.resources.push((name.into(), resource));
    }
}

impl Pool {
    /// Returns name and amount of each [resource](crate::PoolBuilder::resource).
    pub fn resources(&self) -> impl Iterator<Item = (&str, Resource)> {
        self.shared().config.resources.iter()
    }
}
