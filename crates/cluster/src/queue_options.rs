//! The settings that the builders of clients and nodes have in common: the queue, and the
//! connection to its servers.

use std::time::Duration;

use crate::endpoint::Endpoint;
use crate::error::ClusterError;
use crate::names::{Names, Queue};
use crate::setup::QueueSettings;

/// The shortest time that the server can keep exactly enough.
const SHORTEST: Duration = Duration::from_secs(1);

/// The queue, and the connection to its servers.
#[derive(Debug, Clone)]
pub(crate) struct QueueOptions {
    pub(crate) endpoint: Endpoint,
    pub(crate) queue: String,
    pub(crate) replicas: Option<usize>,
    pub(crate) max_tasks: Option<u32>,
    pub(crate) outcome_life: Option<Duration>,
    pub(crate) lease: Option<Duration>,
}

impl QueueOptions {
    /// Returns the options of the default queue, with the connection that the environment
    /// describes.
    pub(crate) fn from_env() -> Self {
        Self {
            endpoint: Endpoint::from_env(),
            queue: Queue::default().as_str().to_owned(),
            replicas: None,
            max_tasks: None,
            outcome_life: None,
            lease: None,
        }
    }

    /// Returns the settings of the queue, if its name is one and the server can keep them.
    pub(crate) fn settings(&self) -> Result<QueueSettings, ClusterError> {
        let default = QueueSettings::new(Names::new(self.queue.parse()?));
        let is_short = |time: Option<Duration>| time.is_some_and(|time| time < SHORTEST);
        let checks = [
            // The server takes 0 for its own default, or for no limit.
            ("replicas", self.replicas == Some(0), "must be at least 1"),
            ("max_tasks", self.max_tasks == Some(0), "must be at least 1"),
            ("outcome_life", is_short(self.outcome_life), "must be at least 1 s"),
            ("lease", is_short(self.lease), "must be at least 1 s"),
        ];
        if let Some((field, _, problem)) = checks.into_iter().find(|(_, is_wrong, _)| *is_wrong) {
            return Err(ClusterError::Configuration { field, problem: problem.to_owned() });
        }
        Ok(QueueSettings {
            replicas: self.replicas.unwrap_or(default.replicas),
            max_tasks: self.max_tasks.map_or(default.max_tasks, i64::from),
            outcome_life: self.outcome_life.unwrap_or(default.outcome_life),
            lease: self.lease.unwrap_or(default.lease),
            ..default
        })
    }
}

/// Implements the setters of a builder that has [`QueueOptions`] in its field `options`.
macro_rules! impl_queue_options {
    ($builder:ident) => {
        impl $builder {
            /// Sets the name of the queue. Default: `default`.
            pub fn queue(mut self, queue: impl Into<String>) -> Self {
                self.options.queue = queue.into();
                self
            }

            /// Sets the number of servers that store each message. Default: 1.
            ///
            /// A property of the queue: the first node or client sets it.
            pub fn replicas(mut self, replicas: usize) -> Self {
                self.options.replicas = Some(replicas);
                self
            }

            /// Sets the maximum number of tasks that are not done. Default: 1,000,000.
            ///
            /// A property of the queue: the first node or client sets it.
            pub fn max_tasks(mut self, tasks: u32) -> Self {
                self.options.max_tasks = Some(tasks);
                self
            }

            /// Sets the time for which outcomes are kept. Default: 24 hours.
            ///
            /// A property of the queue: the first node or client sets it.
            pub fn outcome_life(mut self, life: std::time::Duration) -> Self {
                self.options.outcome_life = Some(life);
                self
            }

            /// Sets the time after which the tasks of a silent node are run elsewhere. Default:
            /// 10 s.
            ///
            /// A property of the queue: the first node or client sets it.
            pub fn lease(mut self, lease: std::time::Duration) -> Self {
                self.options.lease = Some(lease);
                self
            }

            /// Sets the URLs of the servers, separated by commas. The login stays as it is.
            /// Default: `NATS_URL`, or `nats://127.0.0.1:4222`.
            pub fn url(mut self, urls: impl Into<String>) -> Self {
                self.options.endpoint = self.options.endpoint.url(urls);
                self
            }

            /// Sets the servers and the login. Default: as in the environment, see
            /// [`Endpoint::from_env`](crate::Endpoint::from_env).
            pub fn endpoint(mut self, endpoint: crate::Endpoint) -> Self {
                self.options.endpoint = endpoint;
                self
            }
        }
    };
}

pub(crate) use impl_queue_options;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_the_server_would_replace_are_refused() {
        let options = QueueOptions::from_env();
        assert!(options.settings().is_ok());
        let short = Some(Duration::from_millis(999));
        for (field, options) in [
            ("replicas", QueueOptions { replicas: Some(0), ..options.clone() }),
            ("max_tasks", QueueOptions { max_tasks: Some(0), ..options.clone() }),
            ("outcome_life", QueueOptions { outcome_life: short, ..options.clone() }),
            ("lease", QueueOptions { lease: short, ..options.clone() }),
        ] {
            let error = options.settings().unwrap_err().to_string();
            assert!(error.starts_with(field), "{error}");
        }
    }
}
