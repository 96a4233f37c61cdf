//! Measures the transport of bytes into and out of a worker.
//!
//! Only the transport is timed: the argument is created before the clock starts, and the value is
//! prepared in the worker. There is one worker and one call at a time, so nothing else runs.

use std::sync::{Mutex, PoisonError};

use brigade::Link;
use brigade::packed::Packed;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::BenchPool;
use crate::load::Load;
use crate::report::{Outcome, Report};
use crate::sample::{Sample, timed};

pub(super) fn measure(link: Link, load: &Load, report: &mut Report) -> Outcome<()> {
    let pool = BenchPool::warm(link, 1)?;
    for &size in &load.payload_sizes {
        let repetitions = (load.payload_budget / size).clamp(FEWEST, MAX);
        report.attempt(&format!("in_{size}_seconds"), || {
            bytes_in::<Vec<u8>>(&pool, size, repetitions)
        });
        report.attempt(&format!("out_{size}_seconds"), || {
            bytes_out::<Vec<u8>>(&pool, size, repetitions)
        });
        report.attempt(&format!("struct_in_{size}_seconds"), || {
            bytes_in::<Picture>(&pool, size, repetitions)
        });
        report.attempt(&format!("struct_out_{size}_seconds"), || {
            bytes_out::<Picture>(&pool, size, repetitions)
        });
    }
    Ok(())
}

/// A value that consists of bytes, or has them.
trait Payload: From<Vec<u8>> + Serialize + DeserializeOwned + 'static {
    fn length(&self) -> usize;
}

impl Payload for Vec<u8> {
    fn length(&self) -> usize {
        self.len()
    }
}

#[derive(Serialize, Deserialize)]
struct Picture {
    name: String,
    pixels: Packed<Vec<u8>>,
}

impl From<Vec<u8>> for Picture {
    fn from(pixels: Vec<u8>) -> Self {
        Self { name: "sea".to_owned(), pixels: pixels.into() }
    }
}

impl Payload for Picture {
    fn length(&self) -> usize {
        self.pixels.len()
    }
}

/// Bounds of the number of repetitions; the first one, with cold memory, does not count.
const FEWEST: usize = 4;
const MAX: usize = 200;

fn bytes_in<P: Payload>(pool: &BenchPool, size: usize, repetitions: usize) -> Outcome<f64> {
    let mut sample = Sample::default();
    for repetition in 0..=repetitions {
        let payload = P::from(vec![1_u8; size]);
        let (time, length) = timed(|| Ok(pool.submit(|it: P| it.length(), payload)?.wait()?))?;
        if length != size {
            return Err(format!("the worker received {length} of {size} bytes").into());
        }
        if repetition > 0 {
            sample.add(time);
        }
    }
    sample.median()
}

fn bytes_out<P: Payload>(pool: &BenchPool, size: usize, repetitions: usize) -> Outcome<f64> {
    let mut sample = Sample::default();
    for repetition in 0..=repetitions {
        pool.submit(prepare, size)?.wait()?;
        let (time, payload) = timed(|| Ok(pool.submit(hand_over::<P>, ())?.wait()?))?;
        if payload.length() != size {
            return Err(format!("the host received {} of {size} bytes", payload.length()).into());
        }
        if repetition > 0 {
            sample.add(time);
        }
    }
    sample.median()
}

/// The value for the next call of [`hand_over`].
static READY: Mutex<Vec<u8>> = Mutex::new(Vec::new());

fn prepare(size: usize) {
    *READY.lock().unwrap_or_else(PoisonError::into_inner) = vec![1; size];
}

fn hand_over<P: Payload>((): ()) -> P {
    std::mem::take(&mut *READY.lock().unwrap_or_else(PoisonError::into_inner)).into()
}
