//! Divides the time of a section over its cases, and measures a rate in the time of one.

use std::time::{Duration, Instant};

use crate::figures::{Case, Outcome};

/// The time that is left for the cases of a section.
pub(crate) struct Budget {
    end: Instant,
    weight: u32,
}

impl Budget {
    /// Returns a budget for cases that weigh `weight` together.
    pub(crate) fn new(seconds: f64, weight: u32) -> Self {
        Self { end: Instant::now() + Duration::from_secs_f64(seconds), weight }
    }

    /// Returns the time of the next case, so that the total holds although some cases take longer.
    pub(crate) fn take(&mut self, weight: u32) -> Duration {
        let left = self.end.saturating_duration_since(Instant::now());
        let time = left * weight / self.weight.max(weight);
        self.weight = self.weight.saturating_sub(weight);
        time.max(MIN)
    }
}

/// With less, a case says nothing.
const MIN: Duration = Duration::from_millis(20);

/// Laps of a case, of which the median counts.
pub(crate) const LAPS: u32 = 3;

/// The part of the time of a case that the pilot is meant to take; it finds the size of a lap.
const PILOT: f64 = 0.1;

/// Tasks of a lap at most: their handles are kept, and take 100 to 200 bytes each.
const MAX: f64 = 4e6;

/// A rate and the range of its laps.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rate {
    pub(crate) median: f64,
    pub(crate) range: (f64, f64),
}

impl Rate {
    /// Measures the rate of tasks within `time`. `guess` is the rate that the pilot assumes; `run`
    /// runs a number of tasks, and returns the time for them.
    pub(crate) fn measure(
        time: Duration,
        guess: f64,
        mut run: impl FnMut(u32) -> Outcome<Duration>,
    ) -> Outcome<Self> {
        let seconds = time.as_secs_f64();
        let tasks = |rate: f64, share: f64| count((rate * seconds * share).clamp(FEWEST, MAX));
        let pilot = tasks(guess, PILOT);
        let rate = f64::from(pilot) / run(pilot)?.as_secs_f64();
        let lap = tasks(rate, (1.0 - PILOT) / f64::from(LAPS));
        let mut rate = |_| Ok(f64::from(lap) / run(lap)?.as_secs_f64());
        Self::of_laps((0..LAPS).map(&mut rate).collect::<Outcome<_>>()?)
    }

    /// Returns the rate of laps that were measured.
    pub(crate) fn of_laps(mut rates: Vec<f64>) -> Outcome<Self> {
        rates.sort_by(f64::total_cmp);
        let [lowest, .., highest] = rates.as_slice() else {
            let only = *rates.first().ok_or("nothing was measured")?;
            return Ok(Self { median: only, range: (only, only) });
        };
        Ok(Self { median: rates[rates.len() / 2], range: (*lowest, *highest) })
    }

    /// Returns `case` with this rate.
    pub(crate) fn of(self, case: Case) -> Case {
        Case { per_second: self.median, range: self.range, ..case }
    }
}

const FEWEST: f64 = 64.0;

/// Converts a figure to a whole number.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "saturates, and figures are positive"
)]
pub(crate) fn count(figure: f64) -> u32 {
    figure as u32
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Budget, Rate};

    #[test]
    fn a_rate_fills_its_time_with_a_pilot_and_three_laps() {
        let mut runs = Vec::new();
        let rate = Rate::measure(Duration::from_secs(10), 1000.0, |tasks| {
            runs.push(tasks);
            Ok(Duration::from_secs_f64(f64::from(tasks) / 500.0))
        });
        assert_eq!(runs, [1000, 1500, 1500, 1500]);
        assert!((rate.unwrap().median - 500.0).abs() < 1e-6);
    }

    #[test]
    fn cases_that_take_longer_leave_less_to_the_others() {
        let mut budget = Budget::new(100.0, 4);
        let first = budget.take(1).as_secs_f64();
        assert!((24.0..=25.0).contains(&first), "{first}");
        assert!(budget.take(3).as_secs_f64() > 90.0, "the first case has taken no time");
        let late = Budget::new(0.0, 4).take(1);
        assert!(late > Duration::ZERO);
    }
}
