//! Prints events as JSON lines.

use std::io::{self, Write};

use brigade::runner::{Captured, Ending, Event, Outcome};
use serde_json::{Value, json};

use crate::patient::Patient;
use crate::screen::Statistics;

/// Number of bytes of each output that an event carries.
const TAIL: usize = 4096;

/// Prints an event as a line of JSON on standard output.
pub(crate) fn print(event: &Event) -> io::Result<()> {
    let Some(value) = value(event) else { return Ok(()) };
    print_value(&value)
}

/// Prints the end of a run as a line of JSON on standard output.
pub(crate) fn print_end(statistics: &Statistics, status: u8) -> io::Result<()> {
    print_value(&json!({
        "event": "end", "status": status, "succeeded": statistics.succeeded,
        "failed": statistics.failed, "skipped": statistics.supply.skipped,
        "wall": statistics.elapsed().as_secs_f64(),
    }))
}

fn print_value(value: &Value) -> io::Result<()> {
    let mut line = value.to_string();
    line.push('\n');
    let mut stdout = Patient(io::stdout().lock());
    stdout.write_all(line.as_bytes())?;
    stdout.flush()
}

fn value(event: &Event) -> Option<Value> {
    Some(match event {
        Event::Started { number, job, attempt, slot, host, pid, cores, at } => json!({
            "event": "started", "job": number, "command": job.command_on(*slot).to_string(),
            "label": job.label, "attempt": attempt, "slot": slot, "host": host.as_deref(), "pid": pid, "cores": cores,
            "at": at.as_secs_f64(),
        }),
        Event::Retrying(outcome) => json!({
            "event": "retrying", "job": outcome.number, "attempt": outcome.attempts,
            "ending": outcome.ending.to_string(), "slot": outcome.slot, "cores": outcome.cores,
            "started": outcome.started.as_secs_f64(), "wall": outcome.wall.as_secs_f64(),
        }),
        Event::Finished(outcome) => finished(outcome),
        Event::CanaryPassed { prelude } => json!({ "event": "canary_passed", "prelude": prelude }),
        Event::Halting(reason) => {
            json!({ "event": "halting", "reason": format!("{reason:?}").to_lowercase() })
        }
        Event::Grace { running, left } => {
            json!({ "event": "grace", "running": running, "left": left.as_secs_f64() })
        }
        Event::Signalled { running, signal } => {
            json!({ "event": "signalled", "running": running, "signal": signal })
        }
        Event::Stray { pid, name, number, is_gone } => {
            json!({ "event": "stray", "pid": pid, "name": name, "job": number, "gone": is_gone })
        }
        Event::Suspended => json!({ "event": "suspended" }),
        Event::WantsTerminal { number, pid } => {
            json!({ "event": "wants_terminal", "job": number, "pid": pid })
        }
        Event::Waiting { need } => {
            json!({ "event": "waiting", "need": format!("{need:?}").to_lowercase() })
        }
        _ => return None,
    })
}

fn finished(outcome: &Outcome) -> Value {
    let (exit_code, signal) = match outcome.ending {
        Ending::Exited(code) => (Some(code), None),
        Ending::Signalled(signal) => (None, Some(signal)),
        _ => (None, None),
    };
    json!({
        "event": "finished", "job": outcome.number, "command": outcome.command().to_string(),
        "label": outcome.job.label, "success": outcome.ending.is_success(),
        "ending": outcome.ending.to_string(), "exit_code": exit_code, "signal": signal,
        "attempts": outcome.attempts, "slot": outcome.slot, "host": outcome.host.as_deref(), "cores": outcome.cores,
        "started": outcome.started.as_secs_f64(), "wall": outcome.wall.as_secs_f64(),
        "user": outcome.user.as_secs_f64(), "system": outcome.system.as_secs_f64(),
        "peak_memory": outcome.peak_memory, "stdout": text(&outcome.stdout), "stderr": text(&outcome.stderr),
        "stdout_cut": is_cut(&outcome.stdout), "stderr_cut": is_cut(&outcome.stderr),
    })
}

fn is_cut(captured: &Captured) -> bool {
    captured.len().is_ok_and(|length| length > TAIL as u64)
}

fn text(captured: &Captured) -> String {
    String::from_utf8_lossy(&captured.tail(TAIL).unwrap_or_default()).into_owned()
}
