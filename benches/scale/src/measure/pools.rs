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
use crate::rate::{Budget, LAPS, Rate};

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

/// Measures streams that one thread keeps full and empties.
pub(super) fn stream(seconds: f64, report: Report<'_>) -> Outcome<()> {
    let workers = machine::cores()?;
    let mut budget = Budget::new(seconds, u32::try_from(3 * FEW_GRAINS.len())?);
    let pool = WarmPool::new(workers)?;
    whole("stream", workers, &FEW_GRAINS, &mut budget, report, |tasks, grain| {
        let stream = pool.0.stream(busy).start()?;
        let (mut sent, mut received) = (0, 0);
        while received < tasks {
            while sent < tasks {
                match stream.try_put(grain) {
                    Ok(_) => sent += 1,
                    Err(full) if full.is_full() => break,
                    Err(error) => return Err(error.to_string().into()),
                }
            }
            stream.recv().ok_or("the stream has ended early")?.result?;
            received += 1;
        }
        Ok(())
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
    let (caller, mut all, mut rates) = (&caller, Vec::new(), Vec::new());
    for _ in 0..LAPS {
        let begin = Instant::now();
        let end = begin + time / LAPS;
        let before = all.len();
        thread::scope(|scope| {
            let run = |index| scope.spawn(move || repeat(end, caller(index)));
            let threads: Vec<_> = (0..usize::try_from(callers)?).map(run).collect();
            for thread in threads {
                all.append(&mut thread.join().map_err(|_| "a caller has panicked")??);
            }
            Ok::<_, Box<dyn std::error::Error>>(())
        })?;
        let calls = f64::from(u32::try_from(all.len() - before)?);
        rates.push(calls / begin.elapsed().as_secs_f64());
    }
    all.sort_by(f64::total_cmp);
    let p99 = all.get(all.len() * 99 / 100).copied().ok_or("no call has ended")?;
    Ok((Rate::of_laps(rates)?, p99))
}

/// Calls until `end`, and returns the seconds of each call. Only the text of an error can leave its
/// thread.
fn repeat(end: Instant, mut call: impl FnMut() -> Outcome<()>) -> Result<Vec<f64>, String> {
    let (mut times, mut begin) = (Vec::new(), Instant::now());
    while begin < end {
        call().map_err(|error| error.to_string())?;
        let done = Instant::now();
        times.push((done - begin).as_secs_f64());
        begin = done;
    }
    Ok(times)
}

/// Measures workers per second, from building a pool until all are ready.
pub(super) fn start(seconds: f64, report: Report<'_>) -> Outcome<()> {
    let workers: Vec<u32> = worker_counts()?.into_iter().chain([CROWD]).collect();
    let mut budget = Budget::new(seconds, u32::try_from(3 * workers.len())?);
    for workers in workers {
        let raw = starts(workers, budget.take(1), || plain::processes(workers))?;
        let rate = starts(workers, budget.take(2), || {
            let begin = Instant::now();
            let pool = WarmPool::new(workers)?;
            let took = begin.elapsed();
            // Ending the pool is not measured.
            drop(pool);
            Ok(took)
        })?;
        let (section, raw_per_second) = ("start".to_owned(), raw.median);
        let case = Case { section, workers, raw_per_second, submitters: 1, ..Case::default() };
        report(Measured::Case(rate.of(case)))?;
    }
    Ok(())
}

/// Returns the workers per second of starts within `time`, at least one.
fn starts(workers: u32, time: Duration, start: impl Fn() -> Outcome<Duration>) -> Outcome<Rate> {
    let (begin, mut rates) = (Instant::now(), Vec::new());
    while rates.is_empty() || begin.elapsed() < time {
        rates.push(f64::from(workers) / start()?.as_secs_f64());
    }
    Rate::of_laps(rates)
}

/// A pool whose workers are killed when it is dropped.
pub(super) struct WarmPool(pub(super) Pool);

impl WarmPool {
    /// Returns a pool whose workers are all ready.
    pub(super) fn new(workers: u32) -> Outcome<Self> {
        let pool = Self(Pool::builder().workers(usize::try_from(workers)?).build()?);
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
