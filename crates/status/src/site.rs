//! The resources of the server: answers requests and makes events.

use std::net::IpAddr;
use std::sync::Arc;

use brigade_metrics::PoolSnapshot;
use brigade_metrics::export::{PROMETHEUS_MEDIA_TYPE, prometheus_text};
use brigade_sys::catch_panic::catch_panic;
use serde::Serialize;

use crate::host;
use crate::page;
use crate::request::RoutedRequest;
use crate::response::{self, NO_CONTENT_POLICY, Status};
use crate::source::{Source, Terms};

/// The resources of a server.
pub(crate) struct Site {
    source: Box<dyn Source>,
    /// Names of this server in `Host` fields, besides its address and `localhost`.
    names: Vec<String>,
    /// Name of the node in all snapshots; `None` if the source says it.
    node: Option<String>,
    program: String,
}

/// The answer to a request.
#[derive(Debug)]
pub(crate) enum Answer {
    /// A whole response.
    Response(Arc<[u8]>),
    /// The beginning of the events.
    Events(Arc<[u8]>),
}

/// The description of the process, which is the first event of a stream.
#[derive(Serialize)]
struct About<'a> {
    program: &'a str,
    pid: u32,
    version: &'static str,
    terms: Terms,
}

impl Site {
    pub(crate) fn new(source: Box<dyn Source>, names: Vec<String>, node: Option<String>) -> Self {
        let program = std::env::args_os().next().unwrap_or_default();
        let program = std::path::Path::new(&program).file_name().unwrap_or_default();
        Self { source, names, node, program: program.to_string_lossy().into_owned() }
    }

    /// Answers the result of parsing a request that came in over the address `local`.
    pub(crate) fn answer(
        &self,
        request: Result<RoutedRequest, Status>,
        local: IpAddr,
        accepts_followers: bool,
    ) -> Answer {
        let with_body = request.as_ref().map_or(true, |request| request.with_body);
        request
            .and_then(|request| self.route(&request, local, accepts_followers))
            .unwrap_or_else(|status| Answer::Response(response::encode_error(status, with_body)))
    }

    fn route(
        &self,
        request: &RoutedRequest,
        local: IpAddr,
        accepts_followers: bool,
    ) -> Result<Answer, Status> {
        if !host::is_own(&request.host, local, &self.names) {
            return Err(Status::ForeignHost);
        }
        let (media_type, body, policy) = match request.path.as_str() {
            "/" => ("text/html; charset=utf-8", page::HTML.to_owned(), page::POLICY),
            "/snapshot.json" => ("application/json", json(&self.snapshot()?)?, NO_CONTENT_POLICY),
            "/metrics" => {
                (PROMETHEUS_MEDIA_TYPE, prometheus_text(&[self.snapshot()?]), NO_CONTENT_POLICY)
            }
            "/events" if !request.with_body => {
                return Ok(Answer::Response(response::encode_stream_head().into()));
            }
            "/events" if accepts_followers => return Ok(Answer::Events(self.begin_events())),
            "/events" => return Err(Status::Busy),
            path => {
                let worker = path.strip_prefix("/stack/").ok_or(Status::NotFound)?;
                (response::TEXT, self.stack(worker)?, NO_CONTENT_POLICY)
            }
        };
        let head = (media_type, policy);
        Ok(Answer::Response(response::encode(Status::Ok, head, &body, request.with_body)))
    }

    /// Returns the beginning of a stream of events: the head, the description of the process, and
    /// the present state.
    fn begin_events(&self) -> Arc<[u8]> {
        let mut bytes = response::encode_stream_head();
        let (program, pid) = (self.program.as_str(), std::process::id());
        let version = env!("CARGO_PKG_VERSION");
        let about = About { program, pid, version, terms: self.source.terms() };
        if let Ok(about) = json(&about) {
            bytes.extend(event("about", &about).as_bytes());
        }
        bytes.extend(&*self.event());
        bytes.into()
    }

    /// Returns the present state as an event.
    pub(crate) fn event(&self) -> Arc<[u8]> {
        let event = match self.snapshot().and_then(|snapshot| json(&snapshot)) {
            Ok(snapshot) => event("snapshot", &snapshot),
            Err(Status::Gone) => event("gone", "{}"),
            Err(_) => event("failed", "{}"),
        };
        event.into_bytes().into()
    }

    /// Returns where the task of a worker is, the number of which a client has sent.
    fn stack(&self, worker: &str) -> Result<String, Status> {
        let worker = worker.parse().map_err(|_| Status::NotFound)?;
        let stack = catch_panic(|| self.source.stack(worker)).map_err(|_| Status::SourceFailed)?;
        stack.ok_or(Status::NotFound)
    }

    fn snapshot(&self) -> Result<PoolSnapshot, Status> {
        let snapshot = catch_panic(|| self.source.snapshot()).map_err(|panic| {
            tracing::error!(panic, "cannot make a snapshot for the live view");
            Status::SourceFailed
        })?;
        let mut snapshot = snapshot.ok_or(Status::Gone)?;
        snapshot.node = self.node.clone().or(snapshot.node);
        Ok(snapshot)
    }
}

fn json(value: &impl Serialize) -> Result<String, Status> {
    serde_json::to_string(value).map_err(|error| {
        tracing::error!(%error, "cannot encode a snapshot for the live view");
        Status::SourceFailed
    })
}

/// Encodes an event. JSON has no line breaks, so `data` is one line.
fn event(name: &str, data: &str) -> String {
    format!("event: {name}\ndata: {data}\n\n")
}
