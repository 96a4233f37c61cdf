//! Bytes in, and bytes out.
//!
//! Only the way is timed: the argument is made before the clock runs, and the result lies ready in
//! the worker. One worker and one call at a time, so nothing else goes on.

use std::sync::{Mutex, PoisonError};

use brigade::Link;

use super::Crew;
use crate::load::Load;
use crate::report::{Outcome, Report};
use crate::sample::{Sample, timed};

pub(super) fn measure(link: Link, load: &Load, report: &mut Report) -> Outcome<()> {
    let crew = Crew::warm(link, 1)?;
    for &size in &load.payload_sizes {
        let repetitions = (load.payload_budget / size).clamp(FEWEST, MOST);
        report.attempt(&format!("in_{size}_seconds"), || bytes_in(&crew, size, repetitions));
        report.attempt(&format!("out_{size}_seconds"), || bytes_out(&crew, size, repetitions));
    }
    Ok(())
}

/// Bounds of repetitions; the first one, which meets cold memory, is not counted.
const FEWEST: usize = 4;
const MOST: usize = 200;

fn bytes_in(crew: &Crew, size: usize, repetitions: usize) -> Outcome<f64> {
    let mut sample = Sample::default();
    for repetition in 0..=repetitions {
        let payload = vec![1_u8; size];
        let (time, length) = timed(|| Ok(crew.submit(length, payload)?.wait()?))?;
        if length != size {
            return Err(format!("{length} bytes of {size} came in").into());
        }
        if repetition > 0 {
            sample.add(time);
        }
    }
    sample.median()
}

fn bytes_out(crew: &Crew, size: usize, repetitions: usize) -> Outcome<f64> {
    let mut sample = Sample::default();
    for repetition in 0..=repetitions {
        crew.submit(prepare, size)?.wait()?;
        let (time, payload) = timed(|| Ok(crew.submit(hand_over, ())?.wait()?))?;
        if payload.len() != size {
            return Err(format!("{} bytes of {size} came out", payload.len()).into());
        }
        if repetition > 0 {
            sample.add(time);
        }
    }
    sample.median()
}

fn length(payload: Vec<u8>) -> usize {
    payload.len()
}

/// What the next call hands over.
static READY: Mutex<Vec<u8>> = Mutex::new(Vec::new());

fn prepare(size: usize) {
    *READY.lock().unwrap_or_else(PoisonError::into_inner) = vec![1; size];
}

fn hand_over((): ()) -> Vec<u8> {
    std::mem::take(&mut READY.lock().unwrap_or_else(PoisonError::into_inner))
}
