//! Measures short tasks on two plain threads: what is left to a pool at best.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::grain::{busy, grains};
use crate::load::Load;
use crate::report::Report;

/// One by one, the threads take each task from a counter that they share. In a map, each thread has
/// a part of its own.
pub(super) fn measure(load: &Load, report: &mut Report) {
    for grain in grains(load) {
        grain.measure(load, report, "each", |tasks| {
            let taken = AtomicUsize::new(0);
            on_threads(load, || {
                while taken.fetch_add(1, Ordering::Relaxed) < tasks {
                    busy(grain.time);
                }
            });
            Ok(())
        });
        grain.measure(load, report, "map", |tasks| {
            on_threads(load, || {
                for _ in 0..tasks.div_ceil(load.workers) {
                    busy(grain.time);
                }
            });
            Ok(())
        });
    }
}

fn on_threads(load: &Load, work: impl Fn() + Sync) {
    thread::scope(|scope| {
        for _ in 0..load.workers {
            scope.spawn(&work);
        }
    });
}
