//! Records of a node: outcomes, histories and dead letters, as messages for the streams.

use std::time::Duration;

use brigade_pool::{TaskError, TaskErrorKind};

use super::held_task::HeldTask;
use super::runs::RunOutcome;
use crate::message::{
    Body, DeadLetterMessage, History, Incident, Items, MessageError, OutcomeHead, OutcomeMessage,
};
use crate::names::{Names, TaskKey};
use crate::publisher::{NOTHING, Publication, only_behind};

/// Returns the outcome of a task in which each item has the same error.
pub(super) fn outcome_of_error(error: &TaskError, items: u32) -> RunOutcome {
    let run_time = Duration::ZERO;
    RunOutcome { items: Items::of_error(error, items), count: items, run_time }
}

/// Returns the error of a task that was given up.
pub(super) fn given_up(task: &HeldTask, node: &str, deaths: u64, history: &History) -> TaskError {
    let mut reason = match &task.task {
        Ok(_) => format!("{deaths} deaths of nodes and workers"),
        Err(reason) => format!("{node}, the last node that was asked, cannot read it: {reason}"),
    };
    let died = history.reports.iter().rev().find_map(|report| match &report.incident {
        Incident::WorkerDied(description) => Some((description, &report.node)),
        Incident::HandedBack | Incident::UnknownTask(_) | Incident::Failed(_) => None,
    });
    if let Some((description, node)) = died {
        reason = format!("{reason}; the last one reported by {node}: {description}");
    }
    let deaths = u32::try_from(deaths).unwrap_or(u32::MAX);
    let last = task.earlier_attempts().max(1);
    TaskError::of(TaskErrorKind::GivenUp { deaths, reason }, task.label(), last, None)
}

/// Returns the error of a task whose function no node knows.
pub(super) fn unknown(task: &HeldTask, node: &str, names: &[String]) -> TaskError {
    let name = task.task.as_ref().map_or("(unreadable)", |task| &task.head.name);
    let known = if names.is_empty() { "no function".to_owned() } else { names.join(", ") };
    let message = format!(
        "`{name}` is not known to the nodes of the queue; {node}, the last one that was asked, knows {known}"
    );
    TaskError::of(TaskErrorKind::Function { message }, task.label(), task.attempt(), None)
}

/// Makes the message of an outcome, with its items or the object that has them.
pub(super) fn outcome(
    names: &Names,
    node: &str,
    task: &HeldTask,
    outcome: &RunOutcome,
    body: Body,
) -> Result<Publication, MessageError> {
    let mut head = OutcomeHead::new(node, outcome.count);
    (head.run_time, head.delivery) = (outcome.run_time, task.delivery.number);
    if task.key.origin.is_batch() {
        head.input_hashes = task.inputs.as_ref().map_or_else(Vec::new, Items::hashes);
    }
    let payload = OutcomeMessage { head, body }.to_bytes()?;
    Ok(Publication {
        subject: names.outcome(&task.key).into(),
        headers: only_behind(NOTHING),
        payload,
    })
}

/// Makes the message of a history, which replaces that with the sequence `revision`.
pub(super) fn history(
    names: &Names,
    key: &TaskKey,
    history: &History,
    revision: u64,
) -> Result<Publication, MessageError> {
    let payload = history.to_bytes()?;
    Ok(Publication { subject: names.returned(key).into(), headers: only_behind(revision), payload })
}

/// Makes a dead letter.
pub(super) fn dead_letter(
    names: &Names,
    node: &str,
    task: &HeldTask,
    deaths: u64,
    history: History,
) -> Result<Publication, MessageError> {
    let letter = DeadLetterMessage {
        key: task.key.clone(),
        lane: task.lane.clone(),
        message: task.payload.to_vec(),
        deaths,
        history,
        node: node.to_owned(),
    };
    let payload = letter.to_bytes()?;
    let subject = names.dead(&task.key).into();
    Ok(Publication { subject, headers: only_behind(NOTHING), payload })
}
