//! The live view of a cluster: its queue, lanes and nodes.
//!
//! A thread asks the server and the nodes once a second, as long as the view is open.

mod view;

use std::io;
use std::thread;
use std::time::{Duration, Instant};

use brigade::cluster::{ClusterMonitor, ClusterStatus};
use crossbeam_channel::{Receiver, select, unbounded};
use miette::{IntoDiagnostic, Report, WrapErr};

use super::app::{DisplayEvent, Scroll};
use super::{TopScreen, check_terminal};
use crate::arguments::LoginOptions;

/// The pause after an error. A request that succeeds takes a second.
const PAUSE: Duration = Duration::from_secs(1);

/// Returns `true` for the address of a server of NATS.
pub(crate) fn is_cluster(address: &str) -> bool {
    ["nats://", "tls://"].iter().any(|scheme| address.starts_with(scheme))
}

/// The state of the display.
#[derive(Debug, Default)]
struct View {
    status: ClusterStatus,
    /// Outcomes a second of each node, in the order of the nodes; `None` for new ones.
    rates: Vec<Option<f64>>,
    updated: Option<Instant>,
    /// The reason why the last request failed.
    lost: Option<String>,
    /// Number of the first node that is shown.
    first: usize,
}

/// Shows the queue of the cluster at `address` until the user ends it.
pub(crate) fn show(address: &str, queue: &str, login: &LoginOptions) -> Result<u8, Report> {
    // Before anything is drawn, so that a wrong address is an ordinary error.
    let endpoint = login.endpoint(Some(address))?;
    let mut monitor = ClusterMonitor::connect(&endpoint, queue).into_diagnostic()?;
    check_terminal("`brigade cluster status --json`")?;
    let mut view = View::default();
    view.update(monitor.fetch().into_diagnostic()?, Instant::now());
    let (sender, messages) = unbounded();
    let statuses = follow(monitor).into_diagnostic().wrap_err("cannot start a thread")?;
    let mut terminal = TopScreen::open(&sender)?;
    loop {
        terminal.0.draw(|frame| view::draw(frame, &view)).into_diagnostic()?;
        select! {
            recv(messages) -> message => match message {
                Ok(DisplayEvent::Scroll(scroll)) => view.scroll(scroll),
                Ok(DisplayEvent::End) | Err(_) => return Ok(0),
                Ok(_) => {}
            },
            recv(statuses) -> status => match status {
                Ok(Ok(status)) => view.update(status, Instant::now()),
                Ok(Err(reason)) => view.lost = Some(reason),
                Err(_) => return Ok(0),
            },
        }
    }
}

/// Starts a thread that asks again and again. It ends with the program.
fn follow(mut monitor: ClusterMonitor) -> io::Result<Receiver<Result<ClusterStatus, String>>> {
    let (sender, statuses) = unbounded();
    thread::Builder::new().name("follow".to_owned()).spawn(move || {
        loop {
            let status = monitor.fetch().into_diagnostic();
            let status = status.map_err(|error| format!("{error}: {}", error.root_cause()));
            let has_failed = status.is_err();
            if sender.send(status).is_err() {
                return;
            }
            if has_failed {
                // Nobody unparks this thread, and an early end does no harm.
                thread::park_timeout(PAUSE);
            }
        }
    })?;
    Ok(statuses)
}

impl View {
    fn update(&mut self, status: ClusterStatus, now: Instant) {
        let elapsed = self.updated.map(|at| now.saturating_duration_since(at).as_secs_f64());
        let rate = |name: &str, recorded: u64| {
            let before = self.status.nodes.iter().find(|node| node.name == name)?;
            #[expect(clippy::cast_precision_loss, reason = "a rate need not be exact")]
            let count = recorded.saturating_sub(before.recorded) as f64;
            elapsed.filter(|elapsed| *elapsed > 0.0).map(|elapsed| count / elapsed)
        };
        self.rates = status.nodes.iter().map(|node| rate(&node.name, node.recorded)).collect();
        (self.status, self.updated, self.lost) = (status, Some(now), None);
    }

    fn scroll(&mut self, scroll: Scroll) {
        self.first = scroll.target(self.first, self.status.nodes.len());
    }
}
