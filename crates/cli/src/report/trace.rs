//! A trace in Chrome's format: one row per core, or per slot if jobs were not pinned.

use std::collections::BTreeSet;
use std::io::{self, Write};

use serde_json::json;

use crate::record::{Record, Records};

/// The id of the only process in the trace.
const PROCESS: u32 = 1;

pub(super) fn write(writer: &mut impl Write, records: &mut Records) -> io::Result<()> {
    let mut rows = BTreeSet::new();
    write!(writer, "{{\"displayTimeUnit\":\"ms\",\"traceEvents\":[")?;
    records.each(|record| {
        for row in rows_of(&record) {
            rows.insert((row, record.cores.is_empty()));
            let event = json!({
                "name": record.name, "cat": record.status, "ph": "X", "pid": PROCESS, "tid": row,
                "ts": record.start, "dur": record.wall,
                "args": {
                    "job": record.number, "attempts": record.attempts, "failure": record.failure,
                    "cpu_us": record.busy, "peak_memory": record.memory,
                },
            });
            write!(writer, "\n{event},")?;
        }
        Ok(())
    })?;
    for (row, is_slot) in rows {
        let name = if is_slot { format!("slot {row}") } else { format!("core {row}") };
        let event = json!({
            "name": "thread_name", "ph": "M", "pid": PROCESS, "tid": row, "args": { "name": name },
        });
        write!(writer, "\n{event},")?;
    }
    let event = json!({
        "name": "process_name", "ph": "M", "pid": PROCESS, "args": { "name": "brigade run" },
    });
    writeln!(writer, "\n{event}\n]}}")
}

fn rows_of(record: &Record) -> Vec<u32> {
    if record.cores.is_empty() {
        vec![u32::try_from(record.slot).unwrap_or(u32::MAX)]
    } else {
        record.cores.clone()
    }
}
