//! The report of a run: an HTML page and a trace.

mod page;
mod record;
mod trace;

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::time::{SystemTime, UNIX_EPOCH};

use brigade_base::Monotonic;
use brigade_sys::clock;
use serde_json::json;

use crate::event::Event;
use crate::runner::Runner;

use record::{Record, Records, Status};

/// Collects the attempts of a run, and presents them as an HTML page and as a trace.
///
/// The attempts are kept in an unnamed file, so memory use does not grow with the number of jobs.
///
/// ```no_run
/// use brigade::runner::{About, Job, Report, Runner};
///
/// let runner = Runner::builder().build()?;
/// let mut report = Report::new(&runner)?;
/// let mut kept = Ok(());
/// runner.run((1..=100).map(|n| Job::new("gzip").arg(format!("{n}.log"))), |event| {
///     if kept.is_ok() {
///         kept = report.note(&event);
///     }
/// })?;
/// kept?;
/// report.page(&mut std::fs::File::create("report.html")?, &About::default())?;
/// report.trace(&mut std::fs::File::create("trace.json")?)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Report {
    records: Records,
    start: Monotonic,
    began: Option<SystemTime>,
    is_pinned: bool,
    cores: usize,
    slots: usize,
    /// The largest number of cores of one job.
    widest: usize,
    /// The slots of running jobs, with the number of running jobs after the start of each.
    running: BTreeMap<usize, usize>,
    /// Number of failures whose last lines were recorded.
    quoted: usize,
}

/// Number of lines kept of what a failed job has printed.
const LAST_LINES: usize = 8;
/// Number of failures whose last lines are kept; the page of a run with more must stay usable.
const MAX_QUOTED: usize = 1000;

/// Facts about a run that its events do not contain. All of them are optional.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct About {
    /// The command line, or another title.
    pub command: String,
    /// The exit status of the program.
    pub status: Option<u8>,
    /// Number of jobs of the list, without those that were skipped.
    pub total: Option<u64>,
    /// Number of jobs that were skipped because an earlier run has done them.
    pub skipped: u64,
}

impl Report {
    /// Starts the report of a run that is about to begin.
    ///
    /// # Errors
    /// Returns an error if no temporary file can be created.
    pub fn new(runner: &Runner) -> io::Result<Self> {
        Ok(Self {
            records: Records::new()?,
            start: clock::now(),
            began: None,
            is_pinned: runner.is_pinned(),
            cores: runner.cores().get(),
            slots: runner.slots().get(),
            widest: 1,
            running: BTreeMap::new(),
            quoted: 0,
        })
    }

    /// Takes in an event of the run: the end of an attempt is recorded, everything else is ignored.
    ///
    /// # Errors
    /// Returns an error if there is no room for the record.
    pub fn note(&mut self, event: &Event) -> io::Result<()> {
        let (outcome, mut record) = match event {
            Event::Started { slot, .. } => {
                self.running.insert(*slot, self.running.len() + 1);
                return Ok(());
            }
            Event::Retrying(outcome) => {
                (outcome, Record { status: Status::Retried, ..Record::of(outcome) })
            }
            Event::Finished(outcome) if outcome.attempts > 0 => (outcome, Record::of(outcome)),
            _ => return Ok(()),
        };
        self.began.get_or_insert(outcome.started_at - outcome.started);
        self.widest = self.widest.max(outcome.cores.len());
        if let Some(with_it) = self.running.remove(&outcome.slot) {
            record.running = Some((with_it, self.running.len()));
        }
        if !outcome.ending.is_success() && self.quoted < MAX_QUOTED {
            record.last_lines = outcome.last_lines(LAST_LINES);
            self.quoted += 1;
        }
        self.records.push(&record)
    }

    /// Writes a self-contained HTML page: a timeline of the cores, the durations of jobs, the
    /// failures with the end of their output, and a table of all jobs that can be searched.
    ///
    /// # Errors
    /// Returns an error if the writer fails or the records cannot be read.
    pub fn page(&mut self, writer: &mut impl Write, about: &About) -> io::Result<()> {
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let since_1970 = |time: SystemTime| time.duration_since(UNIX_EPOCH).unwrap_or_default();
        let facts = json!({
            "pinned": self.is_pinned, "slots": self.slots,
            "cores": self.cores.min(self.slots.saturating_mul(self.widest)),
            "wall": clock::now().saturating_since(self.start).as_secs_f64(),
            "began": self.began.map(|began| since_1970(began).as_secs_f64()),
            "command": about.command, "status": about.status, "total": about.total,
            "skipped": about.skipped, "host": host.trim(), "version": env!("CARGO_PKG_VERSION"),
        });
        page::write(writer, &mut self.records, self.is_pinned, &facts)
    }

    /// Writes a trace in Chrome's format, which Perfetto opens, with one row for each core, or for
    /// each slot if jobs are not pinned, and a counter of running jobs.
    ///
    /// # Errors
    /// Returns an error if the writer fails or the records cannot be read.
    pub fn trace(&mut self, writer: &mut impl Write) -> io::Result<()> {
        trace::write(writer, &mut self.records, self.is_pinned)
    }
}
