//! Named batches: tasks that a later run of the program continues.

use std::sync::Arc;

use brigade_task::{Data, NamedFunction, SubmitError, SubmitErrorKind};
use futures_util::StreamExt;

use super::ClusterHandle;
use super::map::{Chunks, ClusterMap, ClusterMapUnordered};
use super::open_batch::{OPEN, OpenBatch};
use super::prepare::Place;
use super::shared::{Command, Shared};
use super::task::ClusterTask;
use crate::error::ClusterError;
use crate::message::StartMessage;
use crate::names::{ItemId, NameError, Origin};

/// A named set of tasks, whose outcomes outlive the client; returned by
/// [`Cluster::batch`](crate::Cluster::batch).
///
/// Each item has one recorded outcome. A program that was interrupted opens the batch of the same
/// name and submits everything again: items that are done yield their recorded outcomes, items that
/// are in the queue are waited for, and only the others are submitted. An item whose input has
/// changed yields an error. Outcomes are kept for the
/// [life of outcomes](crate::ClusterBuilder::outcome_life) of the queue.
///
/// ```no_run
/// # use brigade::Key;
/// # use brigade::cluster::Cluster;
/// # pub static LENGTH: Key<String, usize> = Key::new("length/1", |text: String| text.len());
/// # let (cluster, texts) = (Cluster::connect("nats://127.0.0.1:4222")?, vec![String::new()]);
/// let batch = cluster.batch("lengths-2026-11-21")?;
/// for length in batch.map(&LENGTH, texts) {
///     println!("{}", length?);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Batch<'cluster> {
    shared: &'cluster Arc<Shared>,
    batch: OpenBatch,
}

impl<'cluster> Batch<'cluster> {
    pub(super) fn open(shared: &'cluster Arc<Shared>, name: &str) -> Result<Self, ClusterError> {
        let origin = Origin::batch(name)?;
        let batch = origin.clone();
        let found = shared.ask(OPEN, move |server| async move { server.find(&batch).await })?;
        let (behind, done) = (found.last_sequence, found.items);
        shared.send(Command::Follow { origin: origin.clone(), behind, done });
        Ok(Self { shared, batch: OpenBatch { origin, is_continued: found.is_continued } })
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        self.batch.origin.as_str()
    }

    /// Returns `true` if an earlier run has left outcomes or tasks.
    pub fn is_continued(&self) -> bool {
        self.batch.is_continued
    }

    /// Submits an item of the batch; see [`ClusterTask::submit`].
    ///
    /// # Errors
    /// As there, and [`SubmitErrorKind::Function`] if the id of the item has characters other than
    /// letters, digits, `-` and `_`.
    pub fn submit<F: NamedFunction<A, R, By>, A: Data, R: Data, By>(
        &self,
        item: &str,
        function: F,
        argument: A,
    ) -> Result<ClusterHandle<R>, SubmitError<A>> {
        match self.task(item, function) {
            Ok(task) => task.submit(argument),
            Err(error) => {
                let kind = SubmitErrorKind::Function { message: error.to_string() };
                Err(SubmitError::new(kind, argument))
            }
        }
    }

    /// Returns a builder for an item with settings of its own.
    ///
    /// # Errors
    /// If the id of the item has characters other than letters, digits, `-` and `_`.
    pub fn task<F: NamedFunction<A, R, By>, A: Data, R: Data, By>(
        &self,
        item: &str,
        function: F,
    ) -> Result<ClusterTask<'cluster, A, R>, NameError> {
        let place = Place::Batch(self.batch.clone(), ItemId::named(item)?);
        Ok(ClusterTask::new(self.shared, place, function.name_and_types()))
    }

    /// Calls `callback` with an item and the name of its host when a node begins a task of this
    /// batch that [announces its start](ClusterTask::announce_start).
    ///
    /// The name is the one that the node was given, or else that of its machine. Announcements are
    /// hints: one may arrive after the outcome, twice if the task runs twice, or never if the link
    /// is down. The callback runs on the thread of the cluster, and must not block.
    ///
    /// # Errors
    /// If the server cannot be reached.
    pub fn on_start(
        &self,
        mut callback: impl FnMut(&str, &str) + Send + 'static,
    ) -> Result<(), ClusterError> {
        let origin = self.batch.origin.clone();
        let mut starts = self.shared.ask(OPEN, move |server| async move {
            let subject = server.names().starts_of(&origin);
            let subscribed = server.jetstream.client().subscribe(subject).await;
            subscribed.map_err(|error| ClusterError::server("subscribe", error))
        })?;
        // Ends with the driver.
        drop(self.shared.run(move |_| async move {
            while let Some(message) = starts.next().await {
                if let Ok(StartMessage { item, host }) = StartMessage::from_bytes(&message.payload)
                {
                    callback(&item, &host);
                }
            }
        }));
        Ok(())
    }

    /// Applies a task to each input like [`Cluster::map`](crate::Cluster::map). The items of the
    /// batch are the positions of the inputs, so every run must have the same inputs in the same
    /// order.
    ///
    /// Dropping the iterator leaves the tasks to the nodes, for the next run.
    pub fn map<F: NamedFunction<I::Item, R, By>, I: IntoIterator<Item: Data>, R: Data, By>(
        &self,
        function: F,
        inputs: I,
    ) -> ClusterMap<'cluster, I::IntoIter, R> {
        let batch = Some(self.batch.clone());
        ClusterMap::new(Chunks::new(self.shared, batch, function.name_and_types(), inputs))
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
    ) -> ClusterMapUnordered<'cluster, I::IntoIter, R> {
        let batch = Some(self.batch.clone());
        ClusterMapUnordered::new(Chunks::new(self.shared, batch, function.name_and_types(), inputs))
    }
}

brigade_sys::debug_fields! {
    impl Batch<'_> {
        |it| name: it.name(), is_continued: it.is_continued()
    }
}
