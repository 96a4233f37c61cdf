//! Measures copies of memory, the unit for payloads. Large blocks are written anew before each.
//!
//! A payload is written before it is sent, and replaces one that was used. A copy between two
//! blocks that nobody touches in between may stay in the caches, or not, from one run to the next.

use std::hint::black_box;

use crate::load::Load;
use crate::report::Report;
use crate::sample::{Sample, timed};

pub(super) fn measure(load: &Load, report: &mut Report) {
    for &size in &load.payload_sizes {
        report.attempt(&format!("copy_{size}_seconds"), || {
            let mut from = vec![1_u8; size];
            let mut to = vec![2_u8; size];
            // Reading the clock costs more than a small copy, so several copies are timed together.
            let batch = (SMALL / size).max(1);
            let mut sample = Sample::default();
            for _ in 0..(load.payload_budget / size).clamp(FEWEST, MAX) {
                if size > SMALL {
                    from.fill(3);
                    to.fill(4);
                }
                let (time, ()) = timed(|| {
                    for _ in 0..batch {
                        black_box(&mut to).copy_from_slice(black_box(&from));
                    }
                    Ok(())
                })?;
                sample.add(time / u32::try_from(batch)?);
            }
            sample.median()
        });
    }
}

/// Copies below this size are timed together.
const SMALL: usize = 256 << 10;

/// Bounds of the number of repetitions.
const FEWEST: usize = 5;
const MAX: usize = 500;
