//! Formats the entries of a timeline.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Write};
use std::time::Duration;

use brigade_base::WorkerId;
use brigade_sys::clock::Monotonic;
use brigade_sys::process::Exit;
use serde::Serialize;
use serde_json::json;

use super::{Entry, Ran};
use crate::Trace;

/// Longer labels are cut.
const MAX_LABEL: usize = 120;

/// Number of entries that are written at once.
const CHUNK: usize = 1024;

/// Writes entries to the file of a timeline.
pub(super) struct EntryWriter {
    file: File,
    /// Collects bytes until they are flushed, so that the file always ends with a whole event.
    trace: Trace<Vec<u8>>,
    begin: Monotonic,
    /// The rows, by slot.
    rows: HashMap<u32, SlotRow>,
    lost: u64,
}

/// The row of a slot.
struct SlotRow {
    /// The time at which a process was ordered that is not ready yet.
    ordered: Option<Monotonic>,
    /// The end of the last slice.
    end: Monotonic,
}

#[derive(Serialize)]
struct EntryArguments {
    task: u64,
    attempt: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    items: Option<u32>,
    outcome: &'static str,
    worker: String,
}

impl EntryWriter {
    pub(super) fn new(file: File, pool: &str, begin: Monotonic) -> io::Result<Self> {
        let mut trace = Trace::array(Vec::new())?;
        trace.name_process(&format!("pool {pool}"))?;
        let mut writer = Self { file, trace, begin, rows: HashMap::new(), lost: 0 };
        writer.flush()?;
        Ok(writer)
    }

    /// Writes entries, and the number of those that were lost after them.
    pub(super) fn write(
        &mut self,
        entries: impl Iterator<Item = Entry>,
        lost: u64,
    ) -> io::Result<()> {
        let mut time = self.begin;
        for (count, entry) in (1_usize..).zip(entries) {
            time = self.entry(entry)?;
            if count % CHUNK == 0 {
                self.flush()?;
            }
        }
        if lost > 0 {
            self.lost += lost;
            self.trace.counter("lost", self.time(time), &json!({ "entries": self.lost }))?;
        }
        self.flush()
    }

    fn flush(&mut self) -> io::Result<()> {
        let written = self.file.write_all(&self.trace.out);
        self.trace.out.clear();
        written
    }

    pub(super) fn finish(mut self) -> io::Result<()> {
        self.file.write_all(&self.trace.finish()?)
    }

    /// Writes an entry, and returns its time.
    fn entry(&mut self, entry: Entry) -> io::Result<Monotonic> {
        match entry {
            Entry::Ordered { worker, at } => {
                self.row(worker)?.ordered = Some(at);
                Ok(at)
            }
            Entry::Ready { worker, initializing, at } => {
                if let Some(ordered) = self.row(worker)?.ordered.take() {
                    let name = if worker.generation > 1 { "restart" } else { "start" };
                    let process = json!({ "worker": text(worker) });
                    let started = initializing.unwrap_or(at);
                    self.slice(worker, (name, "start"), (ordered, started), &process)?;
                    if initializing.is_some() {
                        self.slice(worker, ("initialize", "start"), (started, at), &process)?;
                    }
                }
                Ok(at)
            }
            Entry::Ran(ran) => self.ran(&ran),
            Entry::Gone { worker, exit, interrupted, at } => {
                let is_orderly = exit == Exit::Code(0) && !interrupted;
                let name = if is_orderly { "exited" } else { "died" };
                let end = json!({ "worker": text(worker), "exit": exit.to_string() });
                self.point(worker, (name, "end"), at, &end)
            }
            Entry::NotStarted { worker, at } => {
                self.row(worker)?.ordered = None;
                let process = json!({ "worker": text(worker) });
                self.point(worker, ("did not start", "end"), at, &process)
            }
            Entry::Queue { tasks, at } => {
                self.trace.counter("queue", self.time(at), &json!({ "tasks": tasks }))?;
                Ok(at)
            }
        }
    }

    fn ran(&mut self, ran: &Ran) -> io::Result<Monotonic> {
        let Ran { worker, task, attempt, label, items, outcome, began, ended } = ran;
        let name = match label {
            Some(label) => cut(label),
            None if items.is_some() => "chunk",
            None => "task",
        };
        let (task, attempt, worker_text) = (task.get(), attempt.get(), text(*worker));
        let arguments =
            EntryArguments { task, attempt, items: *items, outcome, worker: worker_text };
        self.slice(*worker, (name, outcome), (*began, *ended), &arguments)?;
        Ok(*ended)
    }

    /// Writes a slice. A worker's stamps may be lies, so it begins where the last one ended at the
    /// earliest.
    fn slice(
        &mut self,
        worker: WorkerId,
        names: (&str, &str),
        (start, end): (Monotonic, Monotonic),
        arguments: &impl Serialize,
    ) -> io::Result<()> {
        let row = self.row(worker)?;
        let start = start.max(row.end);
        let end = end.max(start);
        row.end = end;
        let time = (self.time(start), end.saturating_since(start));
        self.trace.slice(number(worker), names, time, None, arguments)
    }

    fn point(
        &mut self,
        worker: WorkerId,
        names: (&str, &str),
        at: Monotonic,
        arguments: &impl Serialize,
    ) -> io::Result<Monotonic> {
        self.row(worker)?;
        self.trace.point(number(worker), names, self.time(at), arguments)?;
        Ok(at)
    }

    /// Returns the row of a worker's slot, and names it at its first use.
    fn row(&mut self, worker: WorkerId) -> io::Result<&mut SlotRow> {
        if !self.rows.contains_key(&worker.slot) {
            self.trace.name_row(number(worker), &format!("worker {}", worker.slot))?;
        }
        Ok(self.rows.entry(worker.slot).or_insert(SlotRow { ordered: None, end: Monotonic::ZERO }))
    }

    fn time(&self, at: Monotonic) -> Duration {
        at.saturating_since(self.begin)
    }
}

/// Returns the number of a row. Viewers take 0 for an idle thread.
fn number(worker: WorkerId) -> u32 {
    worker.slot.saturating_add(1)
}

fn text(worker: WorkerId) -> String {
    format!("{}.{}", worker.slot, worker.generation)
}

fn cut(label: &str) -> &str {
    label.char_indices().nth(MAX_LABEL).map_or(label, |(end, _)| &label[..end])
}
