//! Measures a node that has nothing to do: its CPU time, and its messages.

use std::fs;
use std::time::Duration;

use brigade::Link;
use brigade_testkit::pause;

use super::node;
use crate::cluster::{Running, Servers};
use crate::load::Load;
use crate::report::{Outcome, Report};
use crate::sample::number;

/// Periods of the load before the measurement, because a node searches for stuck messages more
/// often after its start, and periods of the measurement.
const SETTLING: u32 = 2;
const WINDOW: u32 = 3;

pub(super) fn measure(link: Link, load: &Load, report: &mut Report) {
    let measured = minute(link, load);
    let names = ["idle_cpu_per_minute_seconds", "idle_messages_per_minute_count"];
    match measured {
        Ok(figures) => {
            for (name, figure) in names.into_iter().zip(figures) {
                report.record(name, figure);
            }
        }
        Err(error) => report.miss(names[0], error.to_string()),
    }
}

/// Returns the seconds of CPU time and the number of messages in a minute.
fn minute(link: Link, load: &Load) -> Outcome<[f64; 2]> {
    let running = Servers::One.start()?;
    let _node = node(&running, Servers::One, link, load.workers)?;
    let period = Duration::from_secs(load.idle_seconds);
    pause(period * SETTLING);
    let begin = (cpu_seconds()?, messages(&running)?);
    pause(period * WINDOW);
    let end = (cpu_seconds()?, messages(&running)?);
    let minutes = (period * WINDOW).as_secs_f64() / 60.0;
    Ok([(end.0 - begin.0) / minutes, number(end.1 - begin.1) / minutes])
}

/// Returns the CPU time of all threads of this process. The workers are idle, and cost nothing.
fn cpu_seconds() -> Outcome<f64> {
    let mut nanos = 0.0;
    for thread in fs::read_dir("/proc/self/task")? {
        let text = fs::read_to_string(thread?.path().join("schedstat"))?;
        let first = text.split_whitespace().next().ok_or("schedstat is empty")?;
        nanos += first.parse::<f64>()?;
    }
    Ok(nanos / 1e9)
}

/// Returns the number of messages in both directions, of the node alone.
fn messages(running: &Running) -> Outcome<usize> {
    let Running::One(server) = running else { return Err("there are several servers".into()) };
    let state = server.monitor("/varz").ok_or("the server does not answer")?;
    ["in_msgs", "out_msgs"].into_iter().try_fold(0, |sum, name| {
        let (_, rest) = state.split_once(&format!("\"{name}\":")).ok_or("no number of messages")?;
        let digits: String = rest.trim().chars().take_while(char::is_ascii_digit).collect();
        Ok(sum + digits.parse::<usize>()?)
    })
}
