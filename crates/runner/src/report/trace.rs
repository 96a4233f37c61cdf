//! A trace in Chrome's format: one row per core, or per slot if jobs were not pinned.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::time::Duration;

use brigade_trace::Trace;
use serde_json::json;

use super::record::{Record, Records};

pub(super) fn write(writer: &mut impl Write, records: &mut Records) -> io::Result<()> {
    let mut rows = BTreeSet::new();
    let mut trace = Trace::object(writer)?;
    records.each(|record| {
        let arguments = json!({
            "job": record.number, "attempts": record.attempts, "failure": record.failure,
            "cpu_us": record.busy, "peak_memory": record.memory,
        });
        for row in rows_of(&record) {
            rows.insert((row, record.cores.is_empty()));
            let category = record.status.name();
            let start = Duration::from_micros(record.start);
            let wall = Duration::from_micros(record.wall);
            trace.slice(row, (&record.name, category), (start, wall), &arguments)?;
        }
        Ok(())
    })?;
    for (row, is_slot) in rows {
        let name = if is_slot { format!("slot {row}") } else { format!("core {row}") };
        trace.name_row(row, &name)?;
    }
    trace.name_process("brigade run")?;
    trace.finish()?;
    Ok(())
}

fn rows_of(record: &Record) -> Vec<u32> {
    if record.cores.is_empty() {
        vec![u32::try_from(record.slot).unwrap_or(u32::MAX)]
    } else {
        record.cores.clone()
    }
}
