//! Measures the hand-over of one result: from just before the worker returns it until the host has
//! read its first and last byte.
//!
//! An earlier task prepares the value. Small values of the same kind follow it, so that both
//! processes are awake and their code is in the caches, whatever the size.

use std::hint::black_box;
use std::ops::Deref;
use std::sync::{Mutex, PoisonError};

use brigade::{Link, Pool, Protection, SharedBuf, SharedBufMut};
use brigade_sys::clock::now;
use serde::{Deserialize, Serialize};

use super::BenchPool;
use crate::load::Load;
use crate::report::{Outcome, Report};
use crate::sample::{Sample, time_to_read};

pub(super) fn measure(link: Link, load: &Load, report: &mut Report) -> Outcome<()> {
    for (level, protection) in LEVELS {
        let pool = Pool::builder().link(link).workers(1).buffer_protection(protection).build()?;
        let pool = BenchPool(pool);
        for &size in &load.handover_sizes {
            report.attempt(&format!("{level}_{size}_seconds"), || {
                median(repetitions(load, size).max(FEWEST), size, || next_buffer(&pool, size))
            });
        }
    }
    let spread = spread(report, load);
    report.attempt("trusted_spread_times", || spread);
    // One of the sizes is the default limit.
    let pool = Pool::builder().link(link).workers(1).message_limit(2 << 30).build()?;
    let pool = BenchPool(pool);
    for &size in &load.handover_sizes {
        report.attempt(&format!("vec_{size}_seconds"), || {
            median(repetitions(load, size), size, || next_vec(&pool, size))
        });
    }
    Ok(())
}

const LEVELS: [(&str, Protection); 3] = [
    ("trusted", Protection::Trusted),
    ("read_only", Protection::ReadOnly),
    ("copied", Protection::Copied),
];

/// Returns the slowest time over the fastest, for sizes from 64 KiB.
fn spread(report: &Report, load: &Load) -> Outcome<f64> {
    let large = load.handover_sizes.iter().filter(|&&size| size >= 64 << 10);
    let times: Option<Vec<f64>> =
        large.map(|size| report.figures.get(&format!("trusted_{size}_seconds")).copied()).collect();
    let times = times.ok_or("not all sizes were measured")?;
    let fastest = times.iter().copied().min_by(f64::total_cmp).ok_or("no size")?;
    Ok(times.iter().copied().fold(fastest, f64::max) / fastest)
}

/// Returns the number of repetitions of what takes longer for a larger size.
fn repetitions(load: &Load, size: usize) -> usize {
    (load.payload_budget / size).clamp(3, 100)
}

/// Repetitions of what takes as long for any size.
const FEWEST: usize = 11;

/// Repetitions that do not count: their memory was not used before, in one process or the other.
const COLD: usize = 2;

/// Returns the median time to read values of `size` bytes, which `next` returns together with the
/// worker's clock.
fn median<V: Deref<Target = [u8]>>(
    repetitions: usize,
    size: usize,
    next: impl Fn() -> Outcome<(u64, V)>,
) -> Outcome<f64> {
    let mut sample = Sample::default();
    for repetition in 0..COLD + repetitions {
        let (sent, value) = next()?;
        let time = time_to_read(sent, &value)?;
        if value.len() != size || value.last() != Some(&1) {
            return Err("the host received other bytes than the worker wrote".into());
        }
        if repetition < COLD {
            // Touch all pages, so that none is new to the host.
            black_box(value.iter().fold(0, |one: u8, other| one ^ other));
        } else {
            sample.add(time);
        }
    }
    sample.median()
}

/// Small values that are handed over before each one that counts.
const WARM: usize = 100;

/// Size of such a value.
const SMALL: usize = 64;

fn next_buffer(pool: &BenchPool, size: usize) -> Outcome<(u64, SharedBuf)> {
    pool.submit(prepare_buffer, size)?.wait()??;
    let next =
        |which| -> Outcome<(u64, SharedBuf)> { Ok(pool.submit(hand_over_buffer, which)?.wait()??) };
    for _ in 0..WARM {
        let (sent, buffer) = next(Which::Small)?;
        time_to_read(sent, &buffer)?;
    }
    next(Which::Prepared)
}

fn next_vec(pool: &BenchPool, size: usize) -> Outcome<(u64, Vec<u8>)> {
    pool.submit(prepare_vec, size)?.wait()?;
    let next = |which| -> Outcome<Vec<u8>> { Ok(pool.submit(hand_over_vec, which)?.wait()?) };
    for _ in 0..WARM {
        black_box(next(Which::Small)?);
    }
    let value = next(Which::Prepared)?;
    let sent = value.first_chunk().ok_or("the result is too short")?;
    Ok((u64::from_le_bytes(*sent), value))
}

/// The value that a task hands over. One function does both, so that its code is warm when it
/// counts.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
enum Which {
    Small,
    Prepared,
}

/// The buffer for the next call of [`hand_over_buffer`].
static BUFFER: Mutex<Option<SharedBufMut>> = Mutex::new(None);

fn prepare_buffer(size: usize) -> Result<(), String> {
    *BUFFER.lock().unwrap_or_else(PoisonError::into_inner) = Some(written(size)?);
    Ok(())
}

fn written(size: usize) -> Result<SharedBufMut, String> {
    let mut buffer = brigade::worker::alloc(size).map_err(|error| error.to_string())?;
    buffer.fill(1);
    Ok(buffer)
}

/// At the level that makes the worker's mapping read-only, `freeze` does that.
fn hand_over_buffer(which: Which) -> Result<(u64, SharedBuf), String> {
    let buffer = match which {
        Which::Small => written(SMALL)?,
        Which::Prepared => {
            let prepared = BUFFER.lock().unwrap_or_else(PoisonError::into_inner).take();
            prepared.ok_or("no buffer was prepared")?
        }
    };
    Ok((now().as_nanos(), buffer.freeze()))
}

/// The value for the next call of [`hand_over_vec`].
static VEC: Mutex<Vec<u8>> = Mutex::new(Vec::new());

fn prepare_vec(size: usize) {
    *VEC.lock().unwrap_or_else(PoisonError::into_inner) = vec![1; size];
}

/// Returns nothing but the bytes, because a vector in another type is encoded byte by byte. Its
/// first bytes are the time.
fn hand_over_vec(which: Which) -> Vec<u8> {
    let mut value = match which {
        Which::Small => vec![1; SMALL],
        Which::Prepared => std::mem::take(&mut *VEC.lock().unwrap_or_else(PoisonError::into_inner)),
    };
    if let Some(sent) = value.first_chunk_mut() {
        *sent = now().as_nanos().to_le_bytes();
    }
    value
}
