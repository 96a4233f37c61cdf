//! Prints what the libraries report on standard error: warnings, or what `BRIGADE_LOG` and `-v` ask
//! for.
//!
//! While a progress area is on the terminal, lines are held back until it is drawn again, which is
//! several times a second.

use std::io::{self, Write};

use miette::{Report, miette};
use parking_lot::Mutex;
use tracing_subscriber::filter::EnvFilter;

use crate::arguments::Command;
use crate::patient::Patient;

/// The variable with a filter, such as `info` or `brigade_cluster=debug`.
const VARIABLE: &str = "BRIGADE_LOG";

/// The levels of no, one and more `-v`. The client of NATS repeats what `brigade_cluster` says.
const LEVELS: [&str; 3] =
    ["warn,async_nats=error", "info,async_nats=error", "debug,async_nats=info"];

/// Maximum number of bytes that are held back; later lines are lost.
const MAX: usize = 64 << 10;

/// Lines that are held back; `None` without an area.
static HELD: Mutex<Option<Vec<u8>>> = Mutex::new(None);

/// Prints the events of the libraries from now on.
pub(crate) fn install(command: &Command) -> Result<(), Report> {
    let level = LEVELS[usize::from(verbosity(command)).min(LEVELS.len() - 1)];
    let filter = match std::env::var(VARIABLE) {
        Ok(text) if !text.is_empty() => EnvFilter::try_new(&text)
            .map_err(|error| miette!("{VARIABLE}={text} is not a filter: {error}"))?,
        _ => EnvFilter::new(level),
    };
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(|| EventLines)
        .with_ansi(false)
        .without_time()
        .finish();
    // Fails only if there is one already.
    let _ = tracing::subscriber::set_global_default(subscriber);
    Ok(())
}

/// Returns the number of `-v`, which means something else for a run.
fn verbosity(command: &Command) -> u8 {
    match command {
        Command::Node(node) => node.verbose,
        Command::Cluster(cluster) => cluster.verbosity(),
        _ => 0,
    }
}

/// Holds lines back from now on.
pub(crate) fn hold() {
    HELD.lock().get_or_insert_default();
}

/// Returns the lines that were held back.
pub(crate) fn take() -> Vec<u8> {
    HELD.lock().as_mut().map(std::mem::take).unwrap_or_default()
}

/// Prints lines at once from now on, and those that were held back.
pub(crate) fn release() {
    if let Some(held) = HELD.lock().take() {
        print(&held);
    }
}

/// The writer of events. Each write is a whole line.
struct EventLines;

impl Write for EventLines {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        match &mut *HELD.lock() {
            Some(held) if held.len() + line.len() <= MAX => held.extend_from_slice(line),
            Some(_) => {}
            None => print(line),
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

pub(crate) fn print(lines: &[u8]) {
    // Without a standard error nobody can see them.
    let _ = Patient(io::stderr()).write_all(lines);
}
