//! Estimates the remaining time of a run.

use std::num::NonZeroUsize;
use std::time::Duration;

/// Estimates how long the rest of a list will take from the durations of its finished jobs.
#[derive(Debug, Clone)]
pub struct Forecast {
    slots: usize,
    cores: usize,
    finished: u32,
    wall: Duration,
    /// The core counts of all finished jobs, added up.
    widths: u64,
}

/// The minimum number of finished jobs for an estimate. The original runner waits for as many.
pub const MIN_JOBS_FOR_FORECAST: u32 = 5;

impl Forecast {
    /// Creates a forecast for a run with this many slots and cores.
    pub fn new(slots: NonZeroUsize, cores: NonZeroUsize) -> Self {
        let (slots, cores) = (slots.get(), cores.get());
        Self { slots, cores, finished: 0, wall: Duration::ZERO, widths: 0 }
    }

    /// Records a finished job that took `wall` on `cores` cores.
    pub fn finished(&mut self, wall: Duration, cores: usize) {
        self.finished = self.finished.saturating_add(1);
        self.wall += wall;
        self.widths += cores.max(1) as u64;
    }

    /// Returns the estimated time for `waiting` jobs and the running ones, which have run for
    /// `ages` so far. Returns `None` before [`MIN_JOBS_FOR_FORECAST`] jobs have finished.
    #[expect(clippy::cast_precision_loss, reason = "an estimate is good for two digits at most")]
    pub fn rest(&self, waiting: u64, ages: impl IntoIterator<Item = Duration>) -> Option<Duration> {
        if self.finished < MIN_JOBS_FOR_FORECAST {
            return None;
        }
        let mean = self.wall / self.finished;
        let rests: Vec<f64> =
            ages.into_iter().map(|age| mean.saturating_sub(age).as_secs_f64()).collect();
        let mean = mean.as_secs_f64();
        let work = mean * waiting as f64 + rests.iter().sum::<f64>();
        let width = self.widths as f64 / f64::from(self.finished);
        // Narrow jobs are limited by the slots, wide ones by the cores. No job is divided: slots
        // without one do not help at the end.
        let at_once = (self.cores as f64 / width).min(self.slots as f64);
        let at_once = at_once.min(waiting as f64 + rests.len() as f64).max(1.0);
        let longest = rests.into_iter().fold(if waiting > 0 { mean } else { 0.0 }, f64::max);
        Duration::try_from_secs_f64((work / at_once).max(longest)).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(jobs: u32, width: usize) -> Forecast {
        let four = NonZeroUsize::new(4).expect("four");
        let mut forecast = Forecast::new(four, four);
        for _ in 0..jobs {
            forecast.finished(Duration::from_secs(8), width);
        }
        forecast
    }

    #[test]
    fn four_results_are_too_few_for_a_forecast() {
        assert_eq!(after(4, 1).rest(10, []), None);
    }

    #[test]
    fn wide_jobs_take_the_cores_of_others() {
        let seconds = |width| after(5, width).rest(10, []).map(|rest| rest.as_secs());
        assert_eq!(seconds(1), Some(20));
        assert_eq!(seconds(2), Some(40));
        assert_eq!(seconds(4), Some(80));
    }

    #[test]
    fn running_jobs_count_with_their_remaining_time() {
        let ages = [2, 20].map(Duration::from_secs);
        assert_eq!(after(5, 4).rest(0, ages), Some(Duration::from_secs(6)));
    }

    #[test]
    fn the_last_jobs_take_as_long_as_one() {
        let rest = |waiting, ages: &[u64]| {
            let ages = ages.iter().copied().map(Duration::from_secs);
            after(5, 1).rest(waiting, ages).map(|rest| rest.as_secs())
        };
        assert_eq!(rest(0, &[1]), Some(7));
        assert_eq!(rest(0, &[1, 7]), Some(7));
        assert_eq!(rest(1, &[]), Some(8));
        assert_eq!(rest(1, &[7, 7, 7, 7]), Some(8));
    }
}
