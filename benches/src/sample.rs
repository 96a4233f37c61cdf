//! Reduces many measured times to one figure.

use std::hint::black_box;
use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

use brigade_sys::clock::now;

use crate::load::Load;
use crate::report::{Outcome, Report};

/// Repeated measurements of one quantity; durations are in seconds.
#[derive(Debug, Default)]
pub(crate) struct Sample(Vec<f64>);

impl Sample {
    pub(crate) fn add(&mut self, time: Duration) {
        self.push(time.as_secs_f64());
    }

    pub(crate) fn push(&mut self, value: f64) {
        self.0.push(value);
    }

    pub(crate) fn append(&mut self, mut other: Self) {
        self.0.append(&mut other.0);
    }

    /// Returns the value below which `percent` of all values lie, or `None` without values. It is
    /// exact, because every value is kept.
    pub(crate) fn percentile(&mut self, percent: usize) -> Option<f64> {
        self.per_mille(10 * percent)
    }

    /// Returns the value below which `share` thousandths of all values lie, or `None` without
    /// values.
    pub(crate) fn per_mille(&mut self, share: usize) -> Option<f64> {
        self.0.sort_by(f64::total_cmp);
        let last = self.0.len().checked_sub(1)?;
        Some(self.0[(self.0.len() * share / 1_000).min(last)])
    }

    pub(crate) fn median(&mut self) -> Outcome<f64> {
        Ok(self.percentile(50).ok_or("nothing was measured")?)
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

/// Times one call.
pub(crate) fn timed<T>(call: impl FnOnce() -> Outcome<T>) -> Outcome<(Duration, T)> {
    let begin = Instant::now();
    let value = call()?;
    Ok((begin.elapsed(), value))
}

/// Reads the first and the last byte, and returns the time since the worker's clock showed `sent`
/// nanoseconds.
pub(crate) fn time_to_read(sent: u64, bytes: &[u8]) -> Outcome<Duration> {
    let (first, last) = (bytes.first().copied(), bytes.last().copied());
    if black_box((first, last)).0.is_none() {
        return Err("the result is empty".into());
    }
    Ok(Duration::from_nanos(now().as_nanos().saturating_sub(sent)))
}

/// Measures consecutive round trips without a pause, so that neither side falls asleep.
pub(crate) fn busy_trips(load: &Load, mut trip: impl FnMut() -> Outcome<()>) -> Outcome<Sample> {
    let warm = Instant::now();
    for _ in 0..WARM_TRIPS {
        trip()?;
        if warm.elapsed().as_secs_f64() > load.trip_seconds / 4.0 {
            break;
        }
    }
    let mut sample = Sample::default();
    let begin = Instant::now();
    while sample.len() < load.trips && begin.elapsed().as_secs_f64() < load.trip_seconds {
        sample.add(timed(&mut trip)?.0);
    }
    Ok(sample)
}

/// Measures round trips with a pause before each, in which all spinning ends and both sides fall
/// asleep. The pause is part of the load, not synchronization: a caller that works between calls.
pub(crate) fn parked_trips(load: &Load, mut trip: impl FnMut() -> Outcome<()>) -> Outcome<Sample> {
    let mut sample = Sample::default();
    for _ in 0..load.parked_trips {
        brigade_testkit::pause(Duration::from_secs_f64(load.pause_seconds));
        sample.add(timed(&mut trip)?.0);
    }
    Ok(sample)
}

/// Records median and 99th percentile of round trips.
pub(crate) fn record_trips(report: &mut Report, name: &str, trips: Outcome<Sample>) {
    match trips {
        Ok(mut sample) => {
            for percent in [50, 99] {
                if let Some(value) = sample.percentile(percent) {
                    report.record(format!("{name}_p{percent}_seconds"), value);
                }
            }
        }
        Err(error) => report.miss(format!("{name}_p50_seconds"), error.to_string()),
    }
}

/// Returns tasks per second.
pub(crate) fn throughput(
    load: &Load,
    most: usize,
    run: impl FnMut(usize) -> Outcome<()>,
) -> Outcome<f64> {
    rate(load.laps, load.throughput_seconds, PILOT_TASKS..=most, run)
}

/// Returns tasks per second, the median of all laps. A pilot run of the fewest tasks finds the
/// number of tasks that fills the seconds of a lap.
pub(crate) fn rate(
    laps: usize,
    seconds: f64,
    tasks: RangeInclusive<usize>,
    mut run: impl FnMut(usize) -> Outcome<()>,
) -> Outcome<f64> {
    let (fewest, most) = tasks.into_inner();
    let pilot = timed(|| run(fewest))?.0.as_secs_f64();
    let fitting = Duration::from_secs_f64(seconds / pilot * number(fewest));
    let tasks = usize::try_from(fitting.as_secs())?.clamp(fewest, most);
    let mut times = Sample::default();
    for _ in 0..laps {
        times.add(timed(|| run(tasks))?.0);
    }
    Ok(number(tasks) / times.median()?)
}

/// Enough to warm up code, memory and branch predictors.
const WARM_TRIPS: usize = 1_000;

/// Enough for an estimate, and short even for the slowest contestant.
const PILOT_TASKS: usize = 2_000;

/// Converts a count to a figure; counts here are always small.
pub(crate) fn number(count: usize) -> f64 {
    u32::try_from(count).map_or(f64::MAX, f64::from)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Sample, throughput};
    use crate::load::Load;

    #[test]
    fn percentiles_are_measured_values() {
        let mut sample = Sample::default();
        assert_eq!(sample.percentile(50), None);
        for seconds in (1..=100).rev() {
            sample.add(Duration::from_secs(seconds));
        }
        assert_eq!(sample.percentile(50), Some(51.0));
        assert_eq!(sample.percentile(99), Some(100.0));
        assert_eq!(sample.per_mille(955), Some(96.0));
    }

    #[test]
    fn throughput_fills_the_time_up_to_the_maximum() {
        let mut runs = Vec::new();
        let load = Load { throughput_seconds: 1e9, ..Load::new(true) };
        let rate = throughput(&load, 5_000, |tasks| {
            runs.push(tasks);
            Ok(())
        });
        assert_eq!(runs, [2_000, 5_000]);
        assert!(rate.unwrap() > 0.0);
    }
}
