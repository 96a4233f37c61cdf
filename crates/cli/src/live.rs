//! `brigade run --status`: serves the state of the run as a live view.
//!
//! Jobs are the tasks of the snapshot, and slots its workers. The output thread records events, and
//! the thread of the server takes snapshots.

mod record;

use std::sync::Arc;

use brigade::metrics::PoolSnapshot;
use brigade::runner::{Event, Runner};
use brigade::status::{ServeError, Source, StatusServer, Terms};
use miette::{Report, miette};
use parking_lot::Mutex;

use crate::top::address;
use record::LiveRecord;

/// A live view of a run. Dropping it ends the server.
#[derive(Debug)]
pub(crate) struct LiveView {
    subject: Subject,
    server: StatusServer,
}

impl LiveView {
    /// Serves the run at an address: a host and a port, or only a port.
    pub(crate) fn serve(address: &str, runner: &Runner) -> Result<Self, Report> {
        let record = LiveRecord::new(runner.slots().get());
        let subject = Subject(Arc::new(Mutex::new(record)));
        let address = address::resolve(address)?;
        let server = StatusServer::serve(address, subject.clone()).map_err(|error| match error {
            ServeError::NotLoopback(address) => miette!(
                help =
                    "use 127.0.0.1, and a tunnel from other machines: ssh -L 8080:127.0.0.1:8080",
                "the live view has no authentication, and other machines can reach {address}"
            ),
            error => Report::from_err(error).wrap_err("cannot serve the live view"),
        })?;
        Ok(Self { subject, server })
    }

    /// Returns the address for a browser.
    pub(crate) fn url(&self) -> String {
        self.server.to_string()
    }

    /// Records an event, and the number of jobs still to come, if known.
    pub(crate) fn note(&self, event: &Event, remaining: Option<u64>) {
        self.subject.0.lock().note(event, remaining);
    }
}

#[derive(Debug, Clone)]
struct Subject(Arc<Mutex<LiveRecord>>);

impl Source for Subject {
    fn snapshot(&self) -> Option<PoolSnapshot> {
        let measurement = self.0.lock().measure();
        Some(measurement.summarize())
    }

    fn terms(&self) -> Terms {
        Terms::RUNNER
    }
}
