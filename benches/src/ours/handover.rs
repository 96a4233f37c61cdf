//! Measures the hand-over of one result: from just before the worker returns it until the host has
//! read its first and last byte.
//!
//! An earlier task prepares the value, so that the worker and the host are equally awake whatever
//! its size.

use std::ops::Deref;
use std::sync::{Mutex, PoisonError};

use brigade::Link;
use brigade_sys::clock::now;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::BenchPool;
use crate::load::Load;
use crate::report::{Outcome, Report};
use crate::sample::{Sample, time_to_read};

pub(super) fn measure(link: Link, load: &Load, report: &mut Report) -> Outcome<()> {
    let pool = BenchPool::warm(link, 1)?;
    for &size in &load.handover_sizes {
        let repetitions = (load.payload_budget / size).clamp(FEWEST, MOST);
        report.attempt(&format!("vec_{size}_seconds"), || {
            median(&pool, size, repetitions, prepare_vec, hand_over_vec)
        });
    }
    Ok(())
}

/// Bounds of the number of repetitions.
const FEWEST: usize = 3;
const MOST: usize = 100;

/// Repetitions that do not count: their memory was not used before, in one process or the other.
const COLD: usize = 2;

/// Returns the median time of `hand_over`, which returns a value of `size` bytes.
fn median<V, P, H>(
    pool: &BenchPool,
    size: usize,
    repetitions: usize,
    prepare: P,
    hand_over: H,
) -> Outcome<f64>
where
    V: Deref<Target = [u8]> + Serialize + DeserializeOwned + Send + 'static,
    P: Fn(usize) -> Result<(), String> + Copy + Send + 'static,
    H: Fn(()) -> (u64, V) + Copy + Send + 'static,
{
    let mut sample = Sample::default();
    for repetition in 0..COLD + repetitions {
        pool.submit(prepare, size)?.wait()??;
        let (sent, value) = pool.submit(hand_over, ())?.wait()?;
        let time = time_to_read(sent, &value)?;
        if repetition < COLD {
            // Touch all pages, so that none is new to the host.
            if value.len() != size || value.iter().any(|&byte| byte != 1) {
                return Err("the host received other bytes than the worker wrote".into());
            }
        } else {
            sample.add(time);
        }
    }
    sample.median()
}

/// The value for the next call of [`hand_over_vec`].
static VEC: Mutex<Vec<u8>> = Mutex::new(Vec::new());

#[expect(clippy::unnecessary_wraps, reason = "the type of every preparation")]
fn prepare_vec(size: usize) -> Result<(), String> {
    *VEC.lock().unwrap_or_else(PoisonError::into_inner) = vec![1; size];
    Ok(())
}

fn hand_over_vec((): ()) -> (u64, Vec<u8>) {
    let value = std::mem::take(&mut *VEC.lock().unwrap_or_else(PoisonError::into_inner));
    (now().as_nanos(), value)
}
