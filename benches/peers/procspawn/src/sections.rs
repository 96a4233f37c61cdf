//! The measurements of each section.

use std::collections::BTreeSet;
use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant};

use procspawn::{JoinHandle, Pool};
use rustix::process::{Pid, Signal, kill_process};
use sha2::{Digest, Sha256};
use tokio::runtime::Builder;
use tokio::task::spawn_blocking;

use crate::meeting::Meeting;
use crate::{Load, Outcome, Report, callers, tasks};

pub(crate) fn measure(section: &str, load: &Load, report: &mut Report) -> Outcome<()> {
    match section {
        "throughput" => throughput(load, report),
        "latency" => latency(load, report),
        "grain" => grain(load, report),
        "callers" => callers::measure(&warm(load.workers)?, load, report),
        "payload" => payload(load, report),
        "start" => start(load, report),
        "crash" => crash(load, report),
        "fresh" => fresh(load, report),
        "work" => work(load, report),
        "async" => awaiting(load, report),
        _ => Err("not measured for procspawn".into()),
    }
}

/// A process for each call, as `procspawn::spawn` has it. It has no pool for that, so two threads
/// call.
fn fresh(load: &Load, report: &mut Report) -> Outcome<()> {
    let one = || -> Outcome<()> { Ok(procspawn::spawn((), tasks::noop).join()?) };
    let count = load.fresh_tasks / load.workers;
    let call = || (0..count).try_for_each(|_| one().map_err(|error| error.to_string()));
    let all = || {
        std::thread::scope(|scope| -> Outcome<()> {
            let threads: Vec<_> = (0..load.workers).map(|_| scope.spawn(call)).collect();
            for thread in threads {
                thread.join().map_err(|_| "a caller panicked")??;
            }
            Ok(())
        })
    };
    let mut laps = Vec::new();
    for _ in 0..load.laps {
        laps.push(timed(all)?.0);
    }
    let rate = load.fresh_tasks as f64 / percentile(&mut laps, 50)?;
    report.figures.insert("tasks_per_second".to_owned(), rate);
    let mut trips = Vec::new();
    for _ in 0..load.fresh_tasks / 4 {
        trips.push(timed(one)?.0);
    }
    report.figures.insert("one_p50_seconds".to_owned(), percentile(&mut trips, 50)?);
    Ok(())
}

/// Maximum number of outstanding tasks. Each of them holds descriptors, which would run out.
const WINDOW: usize = 2_000;

/// Items per task of a map; procspawn does not form chunks itself.
const CHUNK: usize = 1_000;

fn throughput(load: &Load, report: &mut Report) -> Outcome<()> {
    let pool = warm(load.workers)?;
    let each = rate(load, |count| windowed(count, || pool.spawn((), tasks::noop)).map(drop))?;
    report.figures.insert("each_per_second".to_owned(), each);
    let map = rate(load, |count| {
        let numbers: Vec<u64> = (0..count as u64).collect();
        let mut chunks = numbers.chunks(CHUNK).map(<[u64]>::to_vec);
        let next = || pool.spawn(chunks.next().unwrap_or_default(), tasks::nothing);
        windowed(count.div_ceil(CHUNK), next).map(drop)
    })?;
    report.figures.insert("map_per_second".to_owned(), map);
    Ok(())
}

fn windowed<R>(count: usize, mut next: impl FnMut() -> JoinHandle<R>) -> Outcome<Vec<R>>
where
    R: serde::Serialize + serde::de::DeserializeOwned,
{
    let mut results = Vec::with_capacity(count);
    let mut left = count;
    while left > 0 {
        let handles: Vec<_> = (0..left.min(WINDOW)).map(|_| next()).collect();
        left -= handles.len();
        for handle in handles {
            results.push(handle.join()?);
        }
    }
    Ok(results)
}

/// Forms chunks as Python's pools do: a quarter of each worker's share.
fn grain(load: &Load, report: &mut Report) -> Outcome<()> {
    let pool = warm(load.workers)?;
    for &micros in &load.grain_micros {
        let pilot = (20_000 / micros as usize * load.workers).clamp(20, 2_000);
        let percent = 100.0 * micros as f64 * 1e-6 / load.workers as f64;
        let each = rate_of(load, load.grain_seconds, pilot, |count| {
            windowed(count, || pool.spawn(micros, tasks::busy)).map(drop)
        })?;
        report.figures.insert(format!("each_{micros}_us_percent"), percent * each);
        let map = rate_of(load, load.grain_seconds, pilot, |count| {
            let all = vec![micros; count];
            let size = count.div_ceil(4 * load.workers);
            let mut chunks = all.chunks(size).map(<[u64]>::to_vec);
            let next = || pool.spawn(chunks.next().unwrap_or_default(), tasks::busy_all);
            windowed(count.div_ceil(size), next).map(drop)
        })?;
        report.figures.insert(format!("map_{micros}_us_percent"), percent * map);
    }
    Ok(())
}

fn rate(load: &Load, run: impl FnMut(usize) -> Outcome<()>) -> Outcome<f64> {
    rate_of(load, load.throughput_seconds, 2_000, run)
}

fn rate_of(
    load: &Load,
    seconds: f64,
    pilot: usize,
    mut run: impl FnMut(usize) -> Outcome<()>,
) -> Outcome<f64> {
    let begin = Instant::now();
    run(pilot)?;
    let fitting = pilot as f64 * seconds / begin.elapsed().as_secs_f64();
    let count = (fitting as usize).max(pilot);
    let mut laps = Vec::new();
    for _ in 0..load.laps {
        laps.push(timed(|| run(count))?.0);
    }
    Ok(count as f64 / percentile(&mut laps, 50)?)
}

fn latency(load: &Load, report: &mut Report) -> Outcome<()> {
    let pool = warm(1)?;
    let mut times = Vec::new();
    let begin = Instant::now();
    while times.len() < load.trips && begin.elapsed().as_secs_f64() < load.trip_seconds {
        times.push(timed(|| Ok(pool.spawn((), tasks::noop).join()?))?.0);
    }
    report.figures.insert("round_trip_p50_seconds".to_owned(), percentile(&mut times, 50)?);
    report.figures.insert("round_trip_p99_seconds".to_owned(), percentile(&mut times, 99)?);
    Ok(())
}

fn payload(load: &Load, report: &mut Report) -> Outcome<()> {
    let pool = warm(1)?;
    let size = load.peer_payload;
    let (mut inwards, mut outwards) = (Vec::new(), Vec::new());
    for repetition in 0..=(load.payload_budget / size).clamp(4, 10) {
        let argument = vec![1_u8; size];
        let (into, _) = timed(|| Ok(pool.spawn(argument, tasks::length).join()?))?;
        pool.spawn(size, tasks::prepare).join()?;
        let (out, _) = timed(|| Ok(pool.spawn((), tasks::hand_over).join()?))?;
        if repetition > 0 {
            inwards.push(into);
            outwards.push(out);
        }
    }
    report.figures.insert(format!("in_{size}_seconds"), percentile(&mut inwards, 50)?);
    report.figures.insert(format!("out_{size}_seconds"), percentile(&mut outwards, 50)?);
    Ok(())
}

fn start(load: &Load, report: &mut Report) -> Outcome<()> {
    for workers in [2, 16] {
        let mut times = Vec::new();
        for _ in 0..load.starts {
            let meeting = Meeting::of(workers)?;
            let (time, (pool, pids)) = timed(|| {
                let pool = Pool::new(workers)?;
                let handles: Vec<_> = (0..workers)
                    .map(|_| pool.spawn(meeting.address.clone(), tasks::meet))
                    .collect();
                let mut pids = BTreeSet::new();
                for handle in handles {
                    pids.insert(handle.join()??);
                }
                Ok((pool, pids))
            })?;
            drop(pool);
            if pids.len() != workers {
                return Err(format!("{} of {workers} workers answered", pids.len()).into());
            }
            times.push(time);
        }
        let name = format!("first_results_{workers}_seconds");
        report.figures.insert(name, percentile(&mut times, 50)?);
    }
    Ok(())
}

/// Both times are counted from just before the kill, as Brigade's are.
fn crash(load: &Load, report: &mut Report) -> Outcome<()> {
    let pool = warm(1)?;
    let (mut learned, mut recovered) = (Vec::new(), Vec::new());
    for _ in 0..load.crashes {
        let meeting = Meeting::of(1)?;
        let mut victim = pool.spawn(meeting.address.clone(), tasks::hang);
        let pid = meeting.wait()?[0];
        let target = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or("no pid")?;
        let begin = Instant::now();
        kill_process(target, Signal::KILL)?;
        match victim.join_timeout(TIMEOUT) {
            Ok(_) => return Err("a killed task returned a value".into()),
            Err(error) if error.is_timeout() => {
                let reason = "the caller does not learn of it".to_owned();
                report.missing.insert("learned_p50_seconds".to_owned(), reason);
                return Ok(());
            }
            Err(_) => learned.push(begin.elapsed().as_secs_f64()),
        }
        match pool.spawn((), tasks::pid).join_timeout(TIMEOUT) {
            Ok(after) if after != pid => recovered.push(begin.elapsed().as_secs_f64()),
            Ok(_) => return Err("the dead worker ran a task".into()),
            Err(error) => {
                let reason = format!("does not survive ({error})");
                report.missing.insert("recovered_p50_seconds".to_owned(), reason);
                return Ok(());
            }
        }
    }
    report.figures.insert("learned_p50_seconds".to_owned(), percentile(&mut learned, 50)?);
    report.figures.insert("recovered_p50_seconds".to_owned(), percentile(&mut recovered, 50)?);
    Ok(())
}

const TIMEOUT: Duration = Duration::from_secs(3);

/// Tasks of one path each would take five times as long, so a user would form chunks.
fn work(load: &Load, report: &mut Report) -> Outcome<()> {
    let list = fs::read_to_string(&load.list)?;
    let paths: Vec<String> = list.lines().map(str::to_owned).collect();
    let pool = warm(load.workers)?;
    let (time, digests) = timed(|| {
        let mut chunks = paths.chunks(64).map(<[String]>::to_vec);
        let next = || pool.spawn(chunks.next().unwrap_or_default(), tasks::digests);
        let mut digests = Vec::with_capacity(paths.len());
        for chunk in windowed(paths.len().div_ceil(64), next)? {
            digests.extend(chunk?);
        }
        Ok(digests)
    })?;
    report.figures.insert("files_seconds".to_owned(), time);
    let checksum = Sha256::digest(digests.as_flattened());
    report.checksum = Some(checksum.iter().map(|byte| format!("{byte:02x}")).collect());
    Ok(())
}

/// A handle is no future, so an async program waits for it in a thread for blocking code.
fn awaiting(load: &Load, report: &mut Report) -> Outcome<()> {
    let call = |pool: Arc<Pool>| async move {
        let wait = move || pool.spawn((), tasks::noop).join().map_err(|error| error.to_string());
        spawn_blocking(wait).await.map_err(|error| error.to_string())?
    };
    let current = Builder::new_current_thread().build()?;
    let pool = Arc::new(warm(1)?);
    let mut times = Vec::new();
    current.block_on(async {
        let begin = Instant::now();
        while times.len() < load.trips && begin.elapsed().as_secs_f64() < load.trip_seconds {
            let begin = Instant::now();
            call(Arc::clone(&pool)).await?;
            times.push(begin.elapsed().as_secs_f64());
        }
        Ok::<(), String>(())
    })?;
    report.figures.insert("await_p50_seconds".to_owned(), percentile(&mut times, 50)?);
    report.figures.insert("await_p99_seconds".to_owned(), percentile(&mut times, 99)?);
    let pool = Arc::new(warm(load.workers)?);
    let threads = Builder::new_multi_thread().worker_threads(load.workers).build()?;
    for (name, runtime) in
        [("await_256_per_second", current), ("await_256_threads_per_second", threads)]
    {
        let rate = rate(load, |count| {
            let tasks: Vec<_> = (0..256)
                .map(|task| {
                    let (pool, calls) = (Arc::clone(&pool), (count + task) / 256);
                    runtime.spawn(async move {
                        for _ in 0..calls {
                            call(Arc::clone(&pool)).await?;
                        }
                        Ok::<(), String>(())
                    })
                })
                .collect();
            for task in tasks {
                runtime.block_on(task)??;
            }
            Ok(())
        })?;
        report.figures.insert(name.to_owned(), rate);
    }
    Ok(())
}

fn warm(workers: usize) -> Outcome<Pool> {
    let pool = Pool::new(workers)?;
    windowed(100, || pool.spawn((), tasks::noop))?;
    Ok(pool)
}

fn timed<T>(call: impl FnOnce() -> Outcome<T>) -> Outcome<(f64, T)> {
    let begin = Instant::now();
    let value = call()?;
    Ok((begin.elapsed().as_secs_f64(), value))
}

fn percentile(times: &mut [f64], percent: usize) -> Outcome<f64> {
    per_mille(times, 10 * percent)
}

pub(crate) fn per_mille(times: &mut [f64], share: usize) -> Outcome<f64> {
    times.sort_by(f64::total_cmp);
    let last = times.len().checked_sub(1).ok_or("nothing was measured")?;
    Ok(times[(times.len() * share / 1_000).min(last)])
}
