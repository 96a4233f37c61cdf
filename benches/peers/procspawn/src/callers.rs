//! Threads that each spawn a no-op, wait for it, and repeat.

use std::thread;
use std::time::{Duration, Instant};

use procspawn::Pool;

use crate::sections::per_mille;
use crate::{Load, Outcome, Report, tasks};

pub(crate) fn measure(pool: &Pool, load: &Load, report: &mut Report) -> Outcome<()> {
    for &callers in &load.callers {
        let mut laps: [Vec<f64>; FIGURES.len()] = Default::default();
        for _ in 0..load.laps {
            let begin = Instant::now();
            let end = begin + Duration::from_secs_f64(load.caller_seconds);
            let mut times = all_calls(pool, callers, end)?;
            laps[0].push(times.len() as f64 / begin.elapsed().as_secs_f64());
            for (lap, share) in laps[1..].iter_mut().zip([500, 990, 999]) {
                lap.push(per_mille(&mut times, share)?);
            }
        }
        for (name, lap) in FIGURES.iter().zip(&mut laps) {
            report.figures.insert(format!("callers_{callers}_{name}"), per_mille(lap, 500)?);
        }
    }
    Ok(())
}

const FIGURES: [&str; 4] = ["per_second", "p50_seconds", "p99_seconds", "p999_seconds"];

fn all_calls(pool: &Pool, callers: usize, end: Instant) -> Outcome<Vec<f64>> {
    let repeat = || -> Result<Vec<f64>, String> {
        let mut times = Vec::new();
        let mut begin = Instant::now();
        loop {
            pool.spawn((), tasks::noop).join().map_err(|error| error.to_string())?;
            let done = Instant::now();
            times.push((done - begin).as_secs_f64());
            if done >= end {
                return Ok(times);
            }
            begin = done;
        }
    };
    let mut all = Vec::new();
    thread::scope(|scope| {
        let threads: Vec<_> = (0..callers).map(|_| scope.spawn(repeat)).collect();
        for thread in threads {
            all.extend(thread.join().map_err(|_| "a caller has panicked")??);
        }
        Ok(all)
    })
}
