//! Measures pools, and beside each case plain threads.

use std::hint::spin_loop;
use std::iter::repeat_n;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use brigade::{Pool, Shutdown};

use super::plain::{self, Source};
use super::section::Report;
use crate::figures::{Case, Measured, Outcome};
use crate::machine;
use crate::rate::{Budget, Rate};

/// Times of a task, in microseconds.
const GRAINS: [u32; 6] = [0, 1, 3, 10, 30, 100];

const SUBMITTERS: [u32; 4] = [1, 2, 4, 8];

const CALLERS: [u32; 7] = [1, 2, 4, 8, 16, 32, 64];

/// Numbers of tasks that streams and crowds are measured with.
const FEW_GRAINS: [u32; 4] = [0, 1, 10, 100];

/// Workers of a crowd, at least; and at least two for each core.
const CROWD: u32 = 256;

/// Measures tasks that threads submit one by one, and then wait for.
pub(super) fn each(seconds: f64, report: Report<'_>) -> Outcome<()> {
    let workers = worker_counts()?;
    let cases = workers.len() * GRAINS.len() * (2 * SUBMITTERS.len() + 1);
    let mut budget = Budget::new(seconds, u32::try_from(cases)?);
    for workers in workers {
        submitted("each", workers, &GRAINS, &SUBMITTERS, &mut budget, report)?;
    }
    Ok(())
}

/// Measures many more workers than cores.
pub(super) fn crowd(seconds: f64, report: Report<'_>) -> Outcome<()> {
    let mut budget = Budget::new(seconds, u32::try_from(3 * FEW_GRAINS.len())?);
    let workers = CROWD.max(2 * machine::cores()?);
    submitted("crowd", workers, &FEW_GRAINS, &[1], &mut budget, report)
}

fn submitted(
    section: &str,
    workers: u32,
    grains: &[u32],
    submitters: &[u32],
    budget: &mut Budget,
    report: Report<'_>,
) -> Outcome<()> {
    let pool = WarmPool::new(workers)?;
    for &micros in grains {
        let grain = Duration::from_micros(micros.into());
        let raw_per_second = plain::tasks(Source::Counter, workers, grain, budget.take(1))?;
        for &submitters in submitters {
            let guess = guess(workers, grain);
            let rate = Rate::measure(budget.take(2), guess, |tasks| {
                submit_and_wait(&pool.0, submitters, tasks, grain)
            })?;
            let section = section.to_owned();
            let case =
                Case { section, workers, submitters, micros, raw_per_second, ..Case::default() };
            report(Measured::Case(rate.of(case)))?;
        }
    }
    Ok(())
}

/// Returns the time until all threads have all their outcomes.
fn submit_and_wait(pool: &Pool, threads: u32, tasks: u32, grain: Duration) -> Outcome<Duration> {
    let work = || -> Result<(), String> {
        let submit = |_| match grain {
            Duration::ZERO => pool.submit(noop, ()).map_err(|error| error.to_string()),
            _ => pool.submit(busy, grain).map_err(|error| error.to_string()),
        };
        let handles = (0..tasks / threads).map(submit).collect::<Result<Vec<_>, _>>()?;
        for handle in handles {
            handle.wait().map_err(|error| error.to_string())?;
        }
        Ok(())
    };
    if threads == 1 {
        let begin = Instant::now();
        work()?;
        return Ok(begin.elapsed());
    }
    let start = Barrier::new(usize::try_from(threads)? + 1);
    thread::scope(|scope| {
        let run = |_| {
            scope.spawn(|| {
                start.wait();
                work()
            })
        };
        let threads: Vec<_> = (0..threads).map(run).collect();
        start.wait();
        let begin = Instant::now();
        for thread in threads {
            thread.join().map_err(|_| "a submitting thread has panicked")??;
        }
        Ok(begin.elapsed())
    })
}

/// Measures maps.
pub(super) fn map(seconds: f64, report: Report<'_>) -> Outcome<()> {
    let workers = worker_counts()?;
    let mut budget = Budget::new(seconds, u32::try_from(3 * workers.len() * GRAINS.len())?);
    for workers in workers {
        let pool = WarmPool::new(workers)?;
        whole("map", workers, &GRAINS, &mut budget, report, |tasks, grain| {
            for result in pool.0.map(busy, repeat_n(grain, tasks)) {
                result?;
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// Measures streams that are kept full by one thread and emptied by another.
pub(super) fn stream(seconds: f64, report: Report<'_>) -> Outcome<()> {
    let workers = machine::cores()?;
    let mut budget = Budget::new(seconds, u32::try_from(3 * FEW_GRAINS.len())?);
    let pool = WarmPool::new(workers)?;
    whole("stream", workers, &FEW_GRAINS, &mut budget, report, |tasks, grain| {
        let stream = pool.0.stream(busy).start()?;
        let received = thread::scope(|scope| {
            scope.spawn(|| {
                // A stream that ends early yields fewer items, which is an error below.
                let _ = repeat_n(grain, tasks).try_for_each(|grain| stream.put(grain).map(drop));
                stream.finish();
            });
            std::iter::from_fn(|| stream.recv()).filter(|item| item.result.is_ok()).count()
        });
        let lost = || format!("{received} of {tasks} items were received").into();
        if received == tasks { Ok(()) } else { Err(lost()) }
    })
}

/// Measures `run`, which runs a number of tasks, for all grains, and plain threads beside it.
fn whole(
    section: &str,
    workers: u32,
    grains: &[u32],
    budget: &mut Budget,
    report: Report<'_>,
    mut run: impl FnMut(usize, Duration) -> Outcome<()>,
) -> Outcome<()> {
    for &micros in grains {
        let grain = Duration::from_micros(micros.into());
        let raw_per_second = plain::tasks(Source::Part, workers, grain, budget.take(1))?;
        let rate = Rate::measure(budget.take(2), guess(workers, grain), |tasks| {
            let tasks = usize::try_from(tasks)?;
            let begin = Instant::now();
            run(tasks, grain)?;
            Ok(begin.elapsed())
        })?;
        let section = section.to_owned();
        let case =
            Case { section, workers, submitters: 1, micros, raw_per_second, ..Case::default() };
        report(Measured::Case(rate.of(case)))?;
    }
    Ok(())
}

/// Measures closed loops, with as many workers as cores.
pub(super) fn callers(seconds: f64, report: Report<'_>) -> Outcome<()> {
    let workers = machine::cores()?;
    let pool = WarmPool::new(workers)?;
    let mut budget = Budget::new(seconds, u32::try_from(3 * CALLERS.len())?);
    for submitters in CALLERS {
        let raw_per_second = plain::calls(workers, submitters, budget.take(1))?;
        let (rate, p99) = closed_loops(submitters, budget.take(2), |_| {
            || Ok(pool.0.submit(noop, ())?.wait()?)
        })?;
        let section = "callers".to_owned();
        let p99_micros = Some(p99 * 1e6);
        let case =
            Case { section, workers, submitters, raw_per_second, p99_micros, ..Case::default() };
        report(Measured::Case(rate.of(case)))?;
    }
    Ok(())
}

/// Returns the rate of threads that repeat a call within `time`, and the 99th percentile of the
/// seconds that a call takes. `caller` returns the call of the thread with this index.
pub(super) fn closed_loops<C>(
    callers: u32,
    time: Duration,
    caller: impl Fn(usize) -> C + Sync,
) -> Outcome<(Rate, f64)>
where
    C: FnMut() -> Outcome<()>,
{
    let mut all: Vec<f64> = Vec::new();
    let (caller, most) = (&caller, usize::try_from(MOST_CALLS / callers)?);
    let rate = Rate::measure(time, GUESSED_CALLS, |calls| {
        let calls = usize::try_from(calls / callers)?.clamp(1, most);
        let begin = Instant::now();
        let times = thread::scope(|scope| {
            let run = |index| scope.spawn(move || repeat(calls, caller(index)));
            let threads: Vec<_> = (0..usize::try_from(callers)?).map(run).collect();
            let mut times = Vec::new();
            for thread in threads {
                times.append(&mut thread.join().map_err(|_| "a caller has panicked")??);
            }
            Ok::<_, Box<dyn std::error::Error>>(times)
        })?;
        // Calls are rounded to the number of callers.
        let share = f64::from(u32::try_from(times.len())?);
        let elapsed = begin.elapsed();
        all = times;
        Ok(elapsed.mul_f64(share.recip()).mul_f64(f64::from(u32::try_from(calls)? * callers)))
    })?;
    all.sort_by(f64::total_cmp);
    let p99 = all.get(all.len() * 99 / 100).copied().ok_or("no call has ended")?;
    Ok((rate, p99))
}

/// Calls whose times are kept.
const MOST_CALLS: u32 = 2_000_000;

/// Calls per second that a pilot assumes.
const GUESSED_CALLS: f64 = 200_000.0;

/// Returns the seconds of each call. Only the text of an error can leave its thread.
fn repeat(calls: usize, mut call: impl FnMut() -> Outcome<()>) -> Result<Vec<f64>, String> {
    let mut times = Vec::with_capacity(calls);
    let mut begin = Instant::now();
    for _ in 0..calls {
        call().map_err(|error| error.to_string())?;
        let done = Instant::now();
        times.push((done - begin).as_secs_f64());
        begin = done;
    }
    Ok(times)
}

/// Measures workers per second, from building a pool until all are ready.
pub(super) fn start(seconds: f64, report: Report<'_>) -> Outcome<()> {
    let workers = worker_counts()?.into_iter().chain([CROWD]);
    let workers: Vec<u32> = workers.collect();
    let mut budget = Budget::new(seconds, u32::try_from(3 * workers.len())?);
    for workers in workers {
        let starts = |time, start: &dyn Fn() -> Outcome<Duration>| {
            // A start measures all its workers at once.
            Rate::measure(time, f64::from(workers) / GUESSED_START, |tasks| {
                let mut all = Duration::ZERO;
                let starts = (tasks / workers).max(1);
                for _ in 0..starts {
                    all += start()?;
                }
                Ok(all.mul_f64(f64::from(tasks) / f64::from(starts * workers)))
            })
        };
        let raw_per_second = starts(budget.take(1), &|| plain::processes(workers))?.median;
        let rate = starts(budget.take(2), &|| {
            let begin = Instant::now();
            let pool = WarmPool::cold(workers)?;
            pool.0.warm_up()?;
            // Ending the pool is not measured.
            Ok(begin.elapsed())
        })?;
        let section = "start".to_owned();
        let case = Case { section, workers, raw_per_second, submitters: 1, ..Case::default() };
        report(Measured::Case(rate.of(case)))?;
    }
    Ok(())
}

/// Seconds of a start that a pilot assumes.
const GUESSED_START: f64 = 0.02;

/// A pool whose workers are killed when it is dropped.
pub(super) struct WarmPool(pub(super) Pool);

impl WarmPool {
    pub(super) fn cold(workers: u32) -> Outcome<Self> {
        Ok(Self(Pool::builder().workers(usize::try_from(workers)?).build()?))
    }

    /// Returns a pool whose workers are all ready.
    pub(super) fn new(workers: u32) -> Outcome<Self> {
        let pool = Self::cold(workers)?;
        pool.0.warm_up()?;
        Ok(pool)
    }
}

impl Drop for WarmPool {
    fn drop(&mut self) {
        // The measurement has already reported a broken pool.
        let _ = self.0.shutdown_with(Shutdown::Kill, Duration::from_secs(1));
    }
}

pub(super) fn noop((): ()) {}

/// Keeps a core busy for at least `time`.
#[inline(never)]
pub(super) fn busy(time: Duration) {
    let begin = Instant::now();
    while begin.elapsed() < time {
        spin_loop();
    }
}

/// Returns the powers of two up to the number of cores, and that number.
fn worker_counts() -> Outcome<Vec<u32>> {
    let cores = machine::cores()?;
    let powers = (0..u32::BITS).map(|power| 1 << power).take_while(|&workers| workers < cores);
    Ok(powers.chain([cores]).collect())
}

/// Returns a rate that a pilot assumes.
fn guess(workers: u32, grain: Duration) -> f64 {
    (f64::from(workers) / grain.as_secs_f64().max(1e-9)).min(GUESSED_TASKS)
}

const GUESSED_TASKS: f64 = 1e6;
