//! A trace in Chrome's format: one row per core, or per slot if jobs were not pinned.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::time::Duration;

use brigade_trace::Trace;
use serde_json::json;

use super::record::{Record, Records, Status};

/// The row of jobs that were to be pinned, but could not be started. No core has such a number.
const NOT_STARTED: u32 = 1_000_000;

pub(super) fn write(
    writer: &mut impl Write,
    records: &mut Records,
    is_pinned: bool,
) -> io::Result<()> {
    let mut rows = BTreeMap::new();
    let mut trace = Trace::array(writer)?;
    records.each(|record| {
        for (row, name) in rows_of(&record, is_pinned) {
            add(&mut trace, row, &record)?;
            rows.insert(row, name);
        }
        if let Some((after_start, after_end)) = record.running {
            let (start, end) = (record.start, record.start + record.wall);
            for (at, running) in [(start, after_start), (end, after_end)] {
                let at = Duration::from_micros(at);
                trace.counter("running jobs", at, &json!({ "running": running }))?;
            }
        }
        Ok(())
    })?;
    for (row, name) in rows {
        trace.name_row(row, &name)?;
    }
    trace.name_process("brigade run")?;
    trace.finish()?;
    Ok(())
}

fn add(trace: &mut Trace<&mut impl Write>, row: u32, record: &Record) -> io::Result<()> {
    let mut arguments = json!({
        "job": record.number, "attempts": record.attempts, "failure": record.failure,
        "cpu_us": record.busy, "peak_memory": record.memory,
    });
    if !record.last_lines.is_empty() {
        arguments["last_lines"] = record.last_lines.join("\n").into();
    }
    let times = (Duration::from_micros(record.start), Duration::from_micros(record.wall));
    // Viewers that do not show colors show names.
    let (category, color, what) = match record.status {
        Status::Succeeded => ("ok", None, ""),
        Status::Failed => ("fail", Some("terrible"), "failed: "),
        Status::Retried => ("retry", Some("bad"), "failed, tried again: "),
        Status::TimedOut => ("late", Some("terrible"), "took too long: "),
        Status::Stopped => ("stop", Some("grey"), "stopped: "),
    };
    let name = format!("{what}{}", record.name);
    trace.slice(row, (&name, category), times, color, &arguments)
}

/// Returns the rows of an attempt and their names. Row 0 would be the idle thread for some viewers.
fn rows_of(record: &Record, is_pinned: bool) -> Vec<(u32, String)> {
    if is_pinned && record.cores.is_empty() {
        return vec![(NOT_STARTED, "not started".to_owned())];
    }
    if record.cores.is_empty() {
        let slot = u32::try_from(record.slot).unwrap_or(u32::MAX);
        return vec![(slot, format!("slot {slot}"))];
    }
    record.cores.iter().map(|core| (core + 1, format!("core {core}"))).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn record(number: u64, status: Status, cores: &[u32]) -> Record {
        Record {
            number,
            slot: 1,
            start: 10 * number,
            wall: 8,
            status,
            attempts: 1,
            busy: 5,
            memory: None,
            cores: cores.to_vec(),
            name: format!("job {number}"),
            failure: String::new(),
            last_lines: Vec::new(),
            running: Some((1, 0)),
        }
    }

    fn events(records: &[Record]) -> Vec<Value> {
        let mut kept = Records::new().expect("a file");
        records.iter().try_for_each(|record| kept.push(record)).expect("disk");
        let mut json = Vec::new();
        write(&mut json, &mut kept, true).expect("memory");
        serde_json::from_slice(&json).expect("an array")
    }

    #[test]
    fn failures_stand_out_and_no_row_is_0() {
        let records = [
            record(1, Status::Succeeded, &[0, 1]),
            record(2, Status::Retried, &[0]),
            record(3, Status::Failed, &[0]),
            record(4, Status::Failed, &[]),
        ];
        let events = events(&records);
        let slices: Vec<&Value> = events.iter().filter(|event| event["ph"] == "X").collect();
        let of = |field: &str| -> Vec<Value> {
            slices.iter().map(|slice| slice[field].clone()).collect()
        };
        assert_eq!(of("tid"), [1, 2, 1, 1, NOT_STARTED]);
        let names = ["job 1", "job 1", "failed, tried again: job 2", "failed: job 3"];
        assert_eq!(of("name")[..4], names);
        assert_eq!(of("cname")[2..4], ["bad", "terrible"]);
    }

    #[test]
    fn a_counter_has_the_number_of_running_jobs() {
        let events = events(&[record(1, Status::Succeeded, &[0])]);
        let counts: Vec<String> = events
            .iter()
            .filter(|event| event["ph"] == "C")
            .map(|event| format!("{}: {}", event["ts"], event["args"]["running"]))
            .collect();
        assert_eq!(counts, ["10.0: 1", "18.0: 0"]);
    }
}
