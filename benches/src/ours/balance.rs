//! Measures the utilization of workers by tasks that take time.

use std::hint::spin_loop;
use std::time::{Duration, Instant};

use brigade::Link;
use brigade_testkit::{Random, pause};

use super::BenchPool;
use crate::load::Load;
use crate::report::{Outcome, Report};
use crate::sample::{number, timed};

pub(super) fn measure(link: Link, load: &Load, report: &mut Report) {
    report.attempt("even_percent", || even(link, load));
    report.attempt("uneven_excess_percent", || uneven(link, load));
}

pub(super) const EVEN: Duration = Duration::from_millis(10);

/// Returns the ideal time as a percentage of the measured time.
fn even(link: Link, load: &Load) -> Outcome<f64> {
    let pool = BenchPool::warm(link, load.workers)?;
    let (time, ()) = timed(|| {
        let handles = (0..load.even_tasks)
            .map(|_| pool.submit(lasts, EVEN))
            .collect::<Result<Vec<_>, _>>()?;
        for handle in handles {
            handle.wait()?;
        }
        Ok(())
    })?;
    let ideal = EVEN.as_secs_f64() * number(load.even_tasks) / number(load.workers);
    Ok(100.0 * ideal / time.as_secs_f64())
}

/// Takes exactly `time`, mostly asleep. The last part is spent spinning, because the kernel wakes a
/// sleeper up to 0.1 ms late, which would count as the pool's overhead.
pub(super) fn lasts(time: Duration) {
    let begin = Instant::now();
    pause(time.saturating_sub(Duration::from_micros(500)));
    while begin.elapsed() < time {
        spin_loop();
    }
}

/// Returns the percentage by which the run exceeds the best schedule of the same tasks in the same
/// order.
fn uneven(link: Link, load: &Load) -> Outcome<f64> {
    let pool = BenchPool::warm(link, load.workers)?;
    let plan = arrangement(load);
    let (time, durations) = timed(|| {
        let handles =
            plan.iter().map(|time| pool.submit(spins, *time)).collect::<Result<Vec<_>, _>>()?;
        let mut durations = Vec::with_capacity(handles.len());
        for handle in handles {
            durations.push(handle.wait()?);
        }
        Ok(durations)
    })?;
    let best = list_schedule(&durations, load.workers);
    Ok(100.0 * (time.as_secs_f64() / best.as_secs_f64() - 1.0))
}

/// Returns durations of short tasks and, at random positions, one percent of long ones.
fn arrangement(load: &Load) -> Vec<Duration> {
    let mut random = Random::new(load.seed);
    let mut plan = vec![Duration::from_micros(10); load.uneven_tasks];
    let mut long = 0;
    while long < load.uneven_tasks / 100 {
        let position = random.within(0..u64::try_from(load.uneven_tasks).unwrap_or(1));
        let task = &mut plan[usize::try_from(position).unwrap_or(0)];
        if *task < Duration::from_millis(100) {
            *task = Duration::from_millis(100);
            long += 1;
        }
    }
    plan
}

/// Keeps a core busy for at least `time`, and returns the actual duration.
fn spins(time: Duration) -> Duration {
    let begin = Instant::now();
    loop {
        let elapsed = begin.elapsed();
        if elapsed >= time {
            return elapsed;
        }
        spin_loop();
    }
}

/// Returns the end of the last task if each task goes, in order, to the first free worker.
fn list_schedule(durations: &[Duration], workers: usize) -> Duration {
    let mut free = vec![Duration::ZERO; workers];
    for duration in durations {
        if let Some(first) = free.iter_mut().min() {
            *first += *duration;
        }
    }
    free.into_iter().max().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{arrangement, list_schedule};
    use crate::load::Load;

    #[test]
    fn each_task_goes_to_the_first_free_worker() {
        let tasks = [3, 1, 1, 4].map(Duration::from_secs);
        assert_eq!(list_schedule(&tasks, 2), Duration::from_secs(6));
        assert_eq!(list_schedule(&tasks, 1), Duration::from_secs(9));
        assert_eq!(list_schedule(&[], 2), Duration::ZERO);
    }

    #[test]
    fn one_percent_is_long_at_the_same_positions_every_time() {
        let load = Load { uneven_tasks: 2_000, ..Load::new(true) };
        let long = |time: &&Duration| **time > Duration::from_millis(1);
        assert_eq!(arrangement(&load).iter().filter(long).count(), 20);
        assert_eq!(arrangement(&load), arrangement(&load));
    }
}
