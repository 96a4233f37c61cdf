//! The builder of a single task on a cluster.

use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::Duration;

use brigade_task::backend::Content;
use brigade_task::{Data, Retry, SubmitError, SubmitErrorKind};

use super::ClusterHandle;
use super::ClusterSubmitFuture;
use super::backend::{Submitting, send};
use super::failure::not_submitted;
use super::machine::WhenFull;
use super::prepare::{Place, encode};
use super::record::{Facts, Record};
use super::settings::Settings;
use super::shared::Shared;
use super::submission::{Admission, OutcomeTarget, Submission};
use crate::clock::now;
use crate::names::Priority;
use crate::requirements::Requirements;

/// Time that [`ClusterTask::try_submit`] waits for the server.
const ANSWER_PATIENCE: Duration = Duration::from_secs(10);

/// A task with its own settings; returned by [`Cluster::task`](crate::Cluster::task) and
/// [`Batch::task`](crate::Batch::task).
///
/// There is no deadline for the time in the queue: clients and nodes have no common clock.
#[must_use = "a task is nothing until it is submitted"]
pub struct ClusterTask<'cluster, A, R> {
    shared: &'cluster Arc<Shared>,
    place: Place,
    name: Arc<str>,
    settings: Settings,
    types: PhantomData<fn(A) -> R>,
}

brigade_sys::setters! {
    impl<A: Data, R: Data> ClusterTask<'_, A, R>;

    /// Limits the run time of the task. If it takes longer, its worker is killed, and the outcome
    /// is [`DeadlineExceeded`](brigade_task::TaskErrorKind::DeadlineExceeded).
    pub fn deadline(self, limit: Duration) { self.settings.run.deadline = Some(limit) }

    /// Sets the run time after which `worker::cancelled()` returns `true` in the task, so that it
    /// can clean up and return.
    pub fn soft_deadline(self, limit: Duration) { self.settings.run.soft_deadline = Some(limit) }

    /// Sets how many times the task is run again after its worker died while running it, or its
    /// deadline passed. Default: 0.
    ///
    /// Independently of this, a task is run again after the death of its node or its server, so
    /// every task of a cluster must be safe to run twice.
    pub fn retries(self, retries: u32) { self.settings.run.retry = Retry::of(retries) }

    /// Sets how often, and after which pauses, the task is run again after its worker died while
    /// running it or its deadline passed, and after other failures that
    /// [`retry_panics`](Self::retry_panics) and [`retry_errors`](Self::retry_errors) name.
    ///
    /// During a pause the server keeps the task, and no node has it.
    pub fn retry(self, retry: Retry) { self.settings.run.retry = retry }

    /// Runs the task again after a panic too, as often as [`retry`](Self::retry) or
    /// [`retries`](Self::retries) allows. After the last attempt the panic is the outcome.
    pub fn retry_panics(self) { self.settings.run.retries_panics = true }

    /// Sets the number of deaths, of nodes and workers together, after which the task is given up.
    /// Default: 3. At least one more than [`retries`](Self::retries).
    pub fn max_deaths(self, deaths: u32) { self.settings.run.max_deaths = deaths.max(1) }

    /// Sets a label, which errors and events show. The default is the name of the task's key.
    pub fn label(self, label: impl Into<Arc<str>>) { self.settings.label = Some(label.into()) }

    /// Sets the priority. Nodes take the most urgent tasks first.
    pub fn priority(self, priority: Priority) { self.settings.priority = priority }

    /// Sets the requirements. Only nodes that meet all of them run the task; without any, it waits
    /// in the queue.
    pub fn requires(self, requirements: Requirements) { self.settings.requirements = requirements }

    /// Adds an amount of a [resource](crate::NodeBuilder::resource) that the task takes while it
    /// runs. Only nodes that have as much of it run the task.
    pub fn needs(self, resource: impl Into<String>, amount: u64) {
        self.settings.requirements.add_resource(resource.into(), amount);
    }

    /// Lets the node announce the start of the task to
    /// [`Batch::on_start`](crate::Batch::on_start). It costs a message.
    pub fn announce_start(self) { self.settings.announces_start = true }

    /// Accepts the outcome that an item of the same name had in an earlier run for another input.
    /// For names that tell what matters of the input.
    pub fn accept_any_input(self) { self.settings.accepts_any_input = true }
}

impl<'cluster, A: Data, R: Data> ClusterTask<'cluster, A, R> {
    pub(super) fn new(
        shared: &'cluster Arc<Shared>,
        place: Place,
        (name, types): (&str, u64),
    ) -> Self {
        let settings = Settings { types, ..Settings::default() };
        Self { shared, place, name: name.into(), settings, types: PhantomData }
    }

    /// Submits the task. It blocks while 1,024 submissions have no answer of the server: while the
    /// queue is full, or the server is away.
    ///
    /// The task may be lost if this process ends before the server has answered. In a named batch,
    /// the next run submits it again.
    ///
    /// # Errors
    /// [`SubmitErrorKind::Codec`] if the argument cannot be encoded, and
    /// [`SubmitErrorKind::Disconnected`] if the cluster was closed. A refusal by the server is the
    /// outcome of the handle.
    pub fn submit(&self, argument: A) -> Result<ClusterHandle<R>, SubmitError<A>> {
        let prepared = self.prepare(&argument, WhenFull::Wait, None);
        let sent = prepared.and_then(|prepared| {
            self.shared.window.enter(None)?;
            send(self.shared, Box::new(prepared)).map(ClusterHandle::new)
        });
        sent.map_err(|kind| SubmitError::new(kind, argument))
    }

    /// Submits the task, and blocks until the server has stored it or refused it.
    ///
    /// # Errors
    /// [`SubmitErrorKind::Full`] if the queue is full, and [`SubmitErrorKind::Disconnected`] if the
    /// server is away. If it does not answer for 10 s, the task is cancelled, but may have run.
    pub fn try_submit(&self, argument: A) -> Result<ClusterHandle<R>, SubmitError<A>> {
        let sent = self.send_and_wait(&argument, None);
        sent.map_err(|kind| SubmitError::new(kind, argument))
    }

    /// Submits the task like [`try_submit`](Self::try_submit), but waits at most `timeout` for room
    /// in the queue.
    ///
    /// # Errors
    /// [`SubmitErrorKind::TimedOut`] if the queue stayed full; otherwise as `try_submit`.
    pub fn submit_timeout(
        &self,
        argument: A,
        timeout: Duration,
    ) -> Result<ClusterHandle<R>, SubmitError<A>> {
        let sent = self.send_and_wait(&argument, Some(timeout));
        sent.map_err(|kind| SubmitError::new(kind, argument))
    }

    /// Submits the task. The future waits where [`submit`](Self::submit) blocks.
    ///
    /// # Errors
    /// As `submit`.
    pub fn submit_async(&self, argument: A) -> ClusterSubmitFuture<A, R> {
        let prepared = self.prepare(&argument, WhenFull::Wait, None);
        ClusterSubmitFuture::new(argument, prepared.map(|it| Submitting::new(it, self.shared)))
    }

    /// Submits the task and waits for the answer of the server; if the queue is full, until there
    /// is room or the time is over.
    fn send_and_wait(
        &self,
        argument: &A,
        timeout: Option<Duration>,
    ) -> Result<ClusterHandle<R>, SubmitErrorKind> {
        if !self.shared.is_up() {
            return Err(not_submitted("the server is not reachable at the moment"));
        }
        let (admission, answer) = sync_channel(1);
        let end = timeout.map(|timeout| now() + timeout);
        let when_full = end.map_or(WhenFull::Fail, WhenFull::WaitUntil);
        let prepared = self.prepare(argument, when_full, Some(admission))?;
        self.shared.window.enter(end)?;
        let handle = ClusterHandle::new(send(self.shared, Box::new(prepared))?);
        if let Ok(answer) = answer.recv_timeout(timeout.unwrap_or_default() + ANSWER_PATIENCE) {
            return match (answer, timeout) {
                (Err(SubmitErrorKind::Full), Some(_)) => Err(SubmitErrorKind::TimedOut),
                (answer, _) => answer.map(|()| handle),
            };
        }
        handle.request_cancel();
        Err(not_submitted("the server did not answer"))
    }

    fn prepare(
        &self,
        argument: &A,
        when_full: WhenFull,
        admission: Option<SyncSender<Admission>>,
    ) -> Result<Submission, SubmitErrorKind> {
        if self.shared.is_forked() {
            return Err(SubmitErrorKind::Forked);
        }
        let encoded = encode(argument)?;
        let ticket = self.shared.next_ticket();
        let label = self.settings.label.clone().unwrap_or_else(|| Arc::clone(&self.name));
        let facts = Facts::new(ticket, Some(label), Arc::clone(self.shared) as _);
        let target = OutcomeTarget::Task(Record::new(facts, Content::NOTHING));
        let mut items = crate::message::ItemsBuilder::default();
        items.push(&encoded);
        let prepared = self.place.prepare(
            self.shared,
            ticket,
            &self.name,
            &self.settings,
            items.finish(),
            target,
        );
        let mut submission = prepared?;
        submission.when_full = when_full;
        submission.admission = admission;
        Ok(submission)
    }
}

brigade_sys::setters! {
    impl<A, T, E> ClusterTask<'_, A, Result<T, E>>;

    /// Runs the task again if its function returns an `Err` too, as often as
    /// [`retry`](Self::retry) or [`retries`](Self::retries) allows. After the last attempt the
    /// `Err` is the value of the task.
    pub fn retry_errors(self) { self.settings.run.retries_errors = true }
}

brigade_sys::debug_fields!(impl<A, R> ClusterTask<'_, A, R> { name, place, settings });
