//! Looks for the outcome, the history and the dead letter of a task.

use std::time::Duration;

use crate::message::History;
use crate::names::TaskKey;
use crate::server::Server;

/// The pause before a request is sent again.
const PAUSE: Duration = Duration::from_millis(250);

/// The state of a task in the streams.
#[derive(Debug, Default)]
pub(super) struct Examined {
    /// `true` if it has an outcome.
    pub(super) is_done: bool,
    pub(super) history: History,
    /// Sequence of the history in its stream; 0 if there is none.
    pub(super) revision: u64,
}

impl Server {
    /// Looks for the outcome and the history of a task. Asks until the server answers.
    pub(super) async fn examine(&self, key: &TaskKey) -> Examined {
        loop {
            match self.try_examine(key).await {
                Ok(examined) => return examined,
                Err(reason) => {
                    tracing::debug!(%key, reason, "cannot look for an outcome; trying again");
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }

    async fn try_examine(&self, key: &TaskKey) -> Result<Examined, String> {
        if self.has_outcome(key).await? {
            return Ok(Examined { is_done: true, ..Examined::default() });
        }
        let names = self.names();
        let message = self.last(&names.history_stream(), &names.returned(key)).await?;
        let Some(message) = message else { return Ok(Examined::default()) };
        // A history of another version is as good as none: the limit of deaths comes sooner.
        let history = History::from_bytes(&message.payload).unwrap_or_default();
        Ok(Examined { is_done: false, history, revision: message.sequence })
    }

    /// Returns whether there is a dead letter of a task.
    pub(super) async fn has_dead_letter(&self, key: &TaskKey) -> Result<bool, String> {
        let names = self.names();
        Ok(self.last(&names.history_stream(), &names.dead(key)).await?.is_some())
    }

    /// Returns whether a task has an outcome.
    pub(super) async fn has_outcome(&self, key: &TaskKey) -> Result<bool, String> {
        let names = self.names();
        Ok(self.last(&names.outcomes_stream(), &names.outcome(key)).await?.is_some())
    }
}
