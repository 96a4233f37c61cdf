//! The settings that the builders of clients and nodes have in common: the queue, and the
//! connection to its servers.

use std::time::Duration;

use crate::endpoint::Endpoint;
use crate::error::ClusterError;
use crate::names::{Names, Queue};
use crate::setup::QueueSettings;

/// The shortest time that the server can keep exactly enough.
const MIN: Duration = Duration::from_secs(1);

/// The queue, and the connection to its servers.
#[derive(Debug, Clone)]
pub(crate) struct QueueOptions {
    pub(crate) endpoint: Endpoint,
    pub(crate) queue: String,
    /// All but the names, which `queue` decides.
    pub(crate) settings: QueueSettings,
}

impl Default for QueueOptions {
    /// Returns the options of the default queue, with the connection that the environment
    /// describes.
    fn default() -> Self {
        Self {
            endpoint: Endpoint::from_env(),
            queue: Queue::default().as_str().to_owned(),
            settings: QueueSettings::new(Names::new(Queue::default())),
        }
    }
}

impl QueueOptions {
    /// Returns the settings of the queue, if its name is one and the server can keep them.
    pub(crate) fn settings(&self) -> Result<QueueSettings, ClusterError> {
        let settings = &self.settings;
        let checks = [
            // The server takes 0 for its own default, or for no limit.
            ("replicas", settings.replicas == 0, "must be at least 1"),
            ("max_tasks", settings.max_tasks == 0, "must be at least 1"),
            ("outcome_life", settings.outcome_life < MIN, "must be at least 1 s"),
            ("lease", settings.lease < MIN, "must be at least 1 s"),
        ];
        if let Some((field, _, problem)) = checks.into_iter().find(|(_, is_wrong, _)| *is_wrong) {
            return Err(ClusterError::Configuration { field, problem: problem.to_owned() });
        }
        Ok(QueueSettings { names: Names::new(self.queue.parse()?), ..settings.clone() })
    }
}

/// Implements the setters of a builder that has [`QueueOptions`] in its field `options`.
macro_rules! impl_queue_options {
    ($builder:ident) => {
        brigade_sys::setters! {
            impl $builder;

            /// Sets the name of the queue. Default: `default`.
            pub fn queue(self, queue: impl Into<String>) { self.options.queue = queue.into() }

            /// Sets the number of servers that store each message. Default: 1.
            ///
            /// A property of the queue: the first node or client sets it.
            pub fn replicas(self, replicas: usize) { self.options.settings.replicas = replicas }

            /// Sets the maximum number of tasks that are not done. Default: 1,000,000.
            ///
            /// A property of the queue: the first node or client sets it.
            pub fn max_tasks(self, tasks: u32) { self.options.settings.max_tasks = tasks.into() }

            /// Sets the time for which outcomes are kept. Default: 24 hours.
            ///
            /// A property of the queue: the first node or client sets it.
            pub fn outcome_life(self, life: std::time::Duration) {
                self.options.settings.outcome_life = life;
            }

            /// Sets the time after which the tasks of a silent node are run elsewhere. Default:
            /// 10 s.
            ///
            /// A property of the queue: the first node or client sets it.
            pub fn lease(self, lease: std::time::Duration) { self.options.settings.lease = lease }

            /// Sets the URLs of the servers, separated by commas. The login stays as it is.
            /// Default: `NATS_URL`, or `nats://127.0.0.1:4222`.
            pub fn url(self, urls: impl Into<String>) {
                self.options.endpoint = self.options.endpoint.url(urls);
            }

            /// Sets the servers and the login. Default: as in the environment, see
            /// [`Endpoint::from_env`](crate::Endpoint::from_env).
            pub fn endpoint(self, endpoint: crate::Endpoint) { self.options.endpoint = endpoint }
        }
    };
}

pub(crate) use impl_queue_options;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_the_server_would_replace_are_refused() {
        let options = QueueOptions::default();
        assert!(options.settings().is_ok());
        let (short, settings) = (Duration::from_millis(999), options.settings.clone());
        for (field, settings) in [
            ("replicas", QueueSettings { replicas: 0, ..settings.clone() }),
            ("max_tasks", QueueSettings { max_tasks: 0, ..settings.clone() }),
            ("outcome_life", QueueSettings { outcome_life: short, ..settings.clone() }),
            ("lease", QueueSettings { lease: short, ..settings.clone() }),
        ] {
            let options = QueueOptions { settings, ..options.clone() };
            let error = options.settings().unwrap_err().to_string();
            assert!(error.starts_with(field), "{error}");
        }
    }
}
