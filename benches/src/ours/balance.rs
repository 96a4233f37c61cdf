//! Tasks that take time: how well they fill the workers.

use std::hint::spin_loop;
use std::time::{Duration, Instant};

use brigade::Link;
use brigade_testkit::{Random, pause};

use super::Crew;
use crate::load::Load;
use crate::report::{Outcome, Report};
use crate::sample::{number, timed};

pub(super) fn measure(link: Link, load: &Load, report: &mut Report) {
    report.attempt("even_percent", || even(link, load));
    report.attempt("uneven_excess_percent", || uneven(link, load));
}

const EVEN: Duration = Duration::from_millis(10);

/// The time in which the workers could have done it, as a share of the time that they took.
fn even(link: Link, load: &Load) -> Outcome<f64> {
    let crew = Crew::warm(link, load.workers)?;
    let (time, ()) = timed(|| {
        let handles = (0..load.even_tasks)
            .map(|_| crew.submit(lasts, EVEN))
            .collect::<Result<Vec<_>, _>>()?;
        for handle in handles {
            handle.wait()?;
        }
        Ok(())
    })?;
    let ideal = EVEN.as_secs_f64() * number(load.even_tasks) / number(load.workers);
    Ok(100.0 * ideal / time.as_secs_f64())
}

/// Lasts exactly so long, mostly asleep: the kernel wakes a sleeper up to 0.1 ms late, which would
/// otherwise be counted as the pool's.
fn lasts(time: Duration) {
    let begin = Instant::now();
    pause(time.saturating_sub(Duration::from_micros(500)));
    while begin.elapsed() < time {
        spin_loop();
    }
}

/// How much longer the run took than the best schedule of the same tasks in the same order.
fn uneven(link: Link, load: &Load) -> Outcome<f64> {
    let crew = Crew::warm(link, load.workers)?;
    let plan = arrangement(load);
    let (time, durations) = timed(|| {
        let handles =
            plan.iter().map(|time| crew.submit(spins, *time)).collect::<Result<Vec<_>, _>>()?;
        let mut durations = Vec::with_capacity(handles.len());
        for handle in handles {
            durations.push(handle.wait()?);
        }
        Ok(durations)
    })?;
    let best = list_schedule(&durations, load.workers);
    Ok(100.0 * (time.as_secs_f64() / best.as_secs_f64() - 1.0))
}

/// Short tasks and, at random places, one in a hundred that is long.
fn arrangement(load: &Load) -> Vec<Duration> {
    let mut random = Random::new(load.seed);
    let mut plan = vec![Duration::from_micros(10); load.uneven_tasks];
    let mut long = 0;
    while long < load.uneven_tasks / 100 {
        let place = random.within(0..u64::try_from(load.uneven_tasks).unwrap_or(1));
        let task = &mut plan[usize::try_from(place).unwrap_or(0)];
        if *task < Duration::from_millis(100) {
            *task = Duration::from_millis(100);
            long += 1;
        }
    }
    plan
}

/// Uses a core for so long, and returns how long it really was.
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

/// The end of the last task when each goes, in order, to the worker that is free first.
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
    fn each_task_goes_to_the_worker_that_is_free_first() {
        let tasks = [3, 1, 1, 4].map(Duration::from_secs);
        assert_eq!(list_schedule(&tasks, 2), Duration::from_secs(6));
        assert_eq!(list_schedule(&tasks, 1), Duration::from_secs(9));
        assert_eq!(list_schedule(&[], 2), Duration::ZERO);
    }

    #[test]
    fn one_in_a_hundred_is_long_and_always_the_same_one() {
        let load = Load { uneven_tasks: 2_000, ..Load::new(true) };
        let long = |time: &&Duration| **time > Duration::from_millis(1);
        assert_eq!(arrangement(&load).iter().filter(long).count(), 20);
        assert_eq!(arrangement(&load), arrangement(&load));
    }
}
