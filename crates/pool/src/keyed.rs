//! Tasks whose function has a key.

use brigade_worker::{FUNCTIONS, Task};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{SubmitError, TaskError};
use crate::function_ref::FunctionRef;
use crate::handle::Handle;
use crate::map::{Functions, Map, MapUnordered};
use crate::pool::Pool;
use crate::task::TaskBuilder;

impl Pool {
    /// Submits a task like [`submit`](Self::submit), for the function of a key.
    ///
    /// A worker of the same build runs the function itself. A worker of another program (see
    /// [`worker_command`](crate::PoolBuilder::worker_command)) runs the function that it has
    /// registered under the key's name. That name is also the label, unless another one is set.
    ///
    /// ```
    /// use brigade::Task;
    ///
    /// pub static LENGTH: Task<String, usize> = Task::new("length/1", |text: String| text.len());
    ///
    /// # brigade::init();
    /// let pool = brigade::Pool::builder().workers(1).build()?;
    /// assert_eq!(pool.submit_key(&LENGTH, "abc".to_owned())?.wait()?, 3);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As `submit`.
    pub fn submit_key<A, R>(
        &self,
        task: &Task<A, R>,
        argument: A,
    ) -> Result<Handle<R>, SubmitError<A>>
    where
        A: Serialize + DeserializeOwned + 'static,
        R: Serialize + DeserializeOwned + 'static,
    {
        self.task_key(task).submit(argument)
    }

    /// Submits a task like [`submit_key`](Self::submit_key), but returns an error if the queue is
    /// full.
    ///
    /// # Errors
    /// [`SubmitErrorKind::Full`](crate::SubmitErrorKind::Full) if the queue is full;
    /// otherwise as `submit`.
    pub fn try_submit_key<A, R>(
        &self,
        task: &Task<A, R>,
        argument: A,
    ) -> Result<Handle<R>, SubmitError<A>>
    where
        A: Serialize + DeserializeOwned + 'static,
        R: Serialize + DeserializeOwned + 'static,
    {
        self.task_key(task).try_submit(argument)
    }

    /// Returns a builder like [`task`](Self::task), for the function of a key.
    pub fn task_key<A, R>(&self, task: &Task<A, R>) -> TaskBuilder<'_, A, R>
    where
        A: Serialize + DeserializeOwned + 'static,
        R: Serialize + DeserializeOwned + 'static,
    {
        TaskBuilder::new(self, self.function(task)).label(task.name())
    }

    /// Applies the function of a key to each input like [`map`](Self::map).
    pub fn map_key<A, R, I>(
        &self,
        task: &Task<A, R>,
        inputs: I,
    ) -> Map<'_, Task<A, R>, I::IntoIter, R>
    where
        I: IntoIterator<Item = A>,
        A: Serialize + DeserializeOwned + 'static,
        R: Serialize + DeserializeOwned + 'static,
    {
        Map::new(
            self,
            Functions::of_key(self.function(task)),
            Some(task.name()),
            inputs.into_iter(),
        )
    }

    /// Applies the function of a key to each input like [`map_unordered`](Self::map_unordered).
    pub fn map_key_unordered<A, R, I>(
        &self,
        task: &Task<A, R>,
        inputs: I,
    ) -> MapUnordered<'_, Task<A, R>, I::IntoIter, R>
    where
        I: IntoIterator<Item = A>,
        A: Serialize + DeserializeOwned + 'static,
        R: Serialize + DeserializeOwned + 'static,
    {
        MapUnordered::new(
            self,
            Functions::of_key(self.function(task)),
            Some(task.name()),
            inputs.into_iter(),
        )
    }

    /// Returns the names of the functions that the worker program has registered, by asking a
    /// worker. Workers of this same program have none, unless it runs a `Server`.
    ///
    /// # Errors
    /// A [`TaskError`] if no worker can be asked, or does not answer.
    pub fn registered_functions(&self) -> Result<Vec<String>, TaskError> {
        let asked = self.submit_key(&FUNCTIONS, ()).map_err(SubmitError::into_task_error)?;
        asked.wait()
    }

    fn function<A, R>(&self, task: &Task<A, R>) -> Result<FunctionRef, String> {
        FunctionRef::of_key(task, self.shared().config.supervisor.command.is_some())
    }
}
