//! Tasks that keep a core busy for a short time, and their share of what the cores do at best.

use std::hint::spin_loop;
use std::time::{Duration, Instant};

use crate::load::Load;
use crate::report::{Outcome, Report};
use crate::sample::{number, rate};

/// The duration of a task.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Grain {
    micros: u64,
    pub(crate) time: Duration,
}

/// Returns all durations to measure.
pub(crate) fn grains(load: &Load) -> impl Iterator<Item = Grain> {
    load.grain_micros.iter().map(|&micros| Grain { micros, time: Duration::from_micros(micros) })
}

impl Grain {
    /// Records the ideal time of the tasks on as many cores as there are workers, as a percentage
    /// of the measured time.
    pub(crate) fn measure(
        self,
        load: &Load,
        report: &mut Report,
        way: &str,
        run: impl FnMut(usize) -> Outcome<()>,
    ) {
        report.attempt(&format!("{way}_{}_us_percent", self.micros), || {
            let ideal = number(load.workers) / self.time.as_secs_f64();
            let fewest = pilot_tasks(load, self.micros);
            let tasks = fewest..=load.most_submitted;
            Ok(100.0 * rate(load.laps, load.grain_seconds, tasks, run)? / ideal)
        });
    }
}

/// Returns the number of tasks of a pilot: short ones for about 20 ms, but not many more than the
/// slowest contestants finish in a lap.
fn pilot_tasks(load: &Load, micros: u64) -> usize {
    let fitting = usize::try_from(20_000 / micros).unwrap_or(usize::MAX);
    (fitting * load.workers).clamp(20, 2_000)
}

/// Keeps a core busy for at least `time`.
///
/// It ends up to one reading of the clock later, about 43 ns. How much later depends on single
/// instructions, so all contestants of this program share one copy.
#[inline(never)]
pub(crate) fn busy(time: Duration) {
    let begin = Instant::now();
    while begin.elapsed() < time {
        spin_loop();
    }
}
