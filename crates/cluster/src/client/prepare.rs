//! Makes submissions of arguments, on the thread of the caller.

use std::time::SystemTime;

use brigade_codec::chain;
use brigade_task::SubmitErrorKind;
use brigade_worker::problem_of_name;
use serde::Serialize;

use super::machine::{Ticket, WhenFull};
use super::open_batch::OpenBatch;
use super::settings::Settings;
use super::shared::Shared;
use super::submission::{Content, OutcomeTarget, Submission};
use crate::message::{Items, TaskHead};
use crate::names::{ItemId, Lane, TaskKey};

/// Maximum number of bytes of an encoded argument.
const ARGUMENT_LIMIT: usize = 1 << 30;

/// The owner and the id of a task.
#[derive(Debug, Clone)]
pub(super) enum Place {
    /// Outside of batches. The id is the number of the submission.
    Client,
    /// An item of a batch, which an earlier run may have submitted.
    Batch(OpenBatch, ItemId),
}

impl Place {
    /// Makes the submission of encoded items.
    pub(super) fn prepare(
        &self,
        shared: &Shared,
        ticket: Ticket,
        name: &str,
        settings: &Settings,
        items: Items,
        target: OutcomeTarget,
    ) -> Result<Submission, SubmitErrorKind> {
        if let Some(problem) = problem_of_name(name) {
            return Err(SubmitErrorKind::Function { message: format!("{name:?}: {problem}") });
        }
        let (key, may_be_done) = match self {
            Self::Client => {
                let item = ItemId::number(ticket);
                (TaskKey { origin: shared.origin.clone(), item }, false)
            }
            Self::Batch(OpenBatch { origin, is_continued }, item) => {
                (TaskKey { origin: origin.clone(), item: item.clone() }, *is_continued)
            }
        };
        let class = settings.requirements.class().map_err(|error| refused(&error))?;
        let lane = Lane { priority: settings.priority, class };
        let is_checked = key.origin.is_batch() && !settings.accepts_any_input;
        let input_hashes = if is_checked { items.hashes() } else { Vec::new() };
        let mut run = settings.run;
        // A worker death that is to be retried is not the last one.
        run.max_deaths = run.max_deaths.max(run.retry.retries().saturating_add(1));
        let head = TaskHead {
            key: key.clone(),
            name: name.to_owned(),
            label: settings.label.as_deref().map(str::to_owned),
            items: target.items(),
            is_chunk: matches!(target, OutcomeTarget::Chunk { .. }),
            run,
            may_be_done,
            announces_start: settings.announces_start,
            submitted_at: now_millis(),
        };
        let content = Content::new(&shared.names, &lane, (head, settings.types), items)
            .map_err(|error| refused(&error))?;
        Ok(Submission {
            ticket,
            key,
            lane,
            content,
            target,
            input_hashes,
            when_full: WhenFull::Wait,
            admission: None,
        })
    }
}

/// Encodes an argument.
pub(super) fn encode<A: Serialize + 'static>(argument: &A) -> Result<Vec<u8>, SubmitErrorKind> {
    let mut encoded = Vec::new();
    brigade_codec::encode(argument, &mut encoded, ARGUMENT_LIMIT)
        .map_err(|error| SubmitErrorKind::Codec { message: chain(&error) })?;
    Ok(encoded)
}

fn refused(error: &dyn std::error::Error) -> SubmitErrorKind {
    SubmitErrorKind::Codec { message: chain(error) }
}

/// Returns the milliseconds since 1970, for display only.
fn now_millis() -> u64 {
    #[expect(clippy::disallowed_methods, reason = "for display on other machines")]
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
