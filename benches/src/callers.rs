//! Closed loops: threads that each call, wait for the result, and call again.

use std::thread;
use std::time::{Duration, Instant};

use crate::load::Load;
use crate::report::{Outcome, Report};
use crate::sample::{Sample, number};

/// Records calls per second, and the time of a call, for each number of callers. `caller` returns
/// the call that the thread with this index repeats.
pub(crate) fn measure<C>(load: &Load, report: &mut Report, caller: impl Fn(usize) -> C + Sync)
where
    C: FnMut() -> Outcome<()>,
{
    for &callers in &load.callers {
        let outcome =
            laps(load, callers, &caller).and_then(|mut figures| figures.record(report, callers));
        if let Err(error) = outcome {
            report.miss(format!("callers_{callers}_per_second"), error.to_string());
        }
    }
}

/// The figures of each lap.
#[derive(Debug, Default)]
struct Figures {
    rate: Sample,
    times: [Sample; TIMES.len()],
}

/// Percentiles in thousandths, and their names.
const TIMES: [(usize, &str); 3] = [(500, "p50"), (990, "p99"), (999, "p999")];

fn laps<C>(load: &Load, callers: usize, caller: &(impl Fn(usize) -> C + Sync)) -> Outcome<Figures>
where
    C: FnMut() -> Outcome<()>,
{
    let time = Duration::from_secs_f64(load.caller_seconds);
    let mut figures = Figures::default();
    for _ in 0..load.laps {
        let begin = Instant::now();
        let mut calls = all_calls(callers, begin + time, caller)?;
        figures.rate.push(number(calls.len()) / begin.elapsed().as_secs_f64());
        for ((share, _), times) in TIMES.iter().zip(&mut figures.times) {
            times.push(calls.per_mille(*share).ok_or("no call has ended")?);
        }
    }
    Ok(figures)
}

/// Returns the times of the calls of all threads, each of which calls until `end`.
fn all_calls<C>(
    callers: usize,
    end: Instant,
    caller: &(impl Fn(usize) -> C + Sync),
) -> Outcome<Sample>
where
    C: FnMut() -> Outcome<()>,
{
    let mut all = Sample::default();
    thread::scope(|scope| {
        let start = |index| {
            // Only the text of an error can leave its thread.
            scope.spawn(move || repeat(end, caller(index)).map_err(|error| error.to_string()))
        };
        let threads: Vec<_> = (0..callers).map(start).collect();
        for thread in threads {
            all.append(thread.join().map_err(|_| "a caller has panicked")??);
        }
        Ok(all)
    })
}

/// Calls until `end`, and at least once.
fn repeat(end: Instant, mut call: impl FnMut() -> Outcome<()>) -> Outcome<Sample> {
    let mut times = Sample::default();
    let mut begin = Instant::now();
    loop {
        call()?;
        // The end of one call is the begin of the next: reading the clock takes time as well.
        let done = Instant::now();
        times.add(done - begin);
        if done >= end {
            return Ok(times);
        }
        begin = done;
    }
}

impl Figures {
    /// Records the medians of all laps.
    fn record(&mut self, report: &mut Report, callers: usize) -> Outcome<()> {
        report.record(format!("callers_{callers}_per_second"), self.rate.median()?);
        for ((_, name), times) in TIMES.iter().zip(&mut self.times) {
            report.record(format!("callers_{callers}_{name}_seconds"), times.median()?);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::measure;
    use crate::load::Load;
    use crate::report::Report;

    fn load() -> Load {
        Load { callers: vec![1, 3], caller_seconds: 0.001, laps: 2, ..Load::new(true) }
    }

    #[test]
    fn each_number_of_callers_has_four_figures() {
        let mut report = Report::default();
        measure(&load(), &mut report, |_| || Ok(()));
        assert_eq!(report.figures.len(), 8);
        assert!(report.figures["callers_3_per_second"] > 0.0);
        assert!(
            report.figures["callers_1_p50_seconds"] <= report.figures["callers_1_p999_seconds"]
        );
    }

    #[test]
    fn a_caller_that_fails_is_the_reason() {
        let mut report = Report::default();
        measure(&load(), &mut report, |index| {
            move || if index == 2 { Err("refused".into()) } else { Ok(()) }
        });
        assert_eq!(report.missing["callers_3_per_second"], "refused");
        assert!(report.figures.contains_key("callers_1_per_second"));
    }
}
