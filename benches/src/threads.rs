//! Measures the same work on the threads of one process, the baseline for the cost of isolation.

use std::sync::mpsc::sync_channel;
use std::thread;

use brigade_sys::clock::now;
use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::grain::{busy, grains};
use crate::load::Load;
use crate::report::{Outcome, Report};
use crate::sample::{Sample, number, time_to_read, timed};
use crate::section::Section;
use crate::tree;
use crate::{callers, images};

pub(crate) fn measure(section: Section, load: &Load, report: &mut Report) -> Outcome<()> {
    let pool = ThreadPoolBuilder::new().num_threads(load.workers).build()?;
    // Start the threads before the clock, as the workers of all pools are.
    pool.broadcast(|_| ());
    match section {
        Section::Grain => {
            short_tasks(&pool, load, report);
            Ok(())
        }
        Section::Callers => {
            callers::measure(load, report, |_| {
                || {
                    pool.install(|| ());
                    Ok(())
                }
            });
            Ok(())
        }
        Section::Work => files(&pool, load, report),
        Section::Loader => pictures(&pool, load, report),
        _ => Err("not measured for threads".into()),
    }
}

fn short_tasks(pool: &ThreadPool, load: &Load, report: &mut Report) {
    for grain in grains(load) {
        grain.measure(load, report, "each", |tasks| {
            pool.in_place_scope(|scope| {
                for _ in 0..tasks {
                    scope.spawn(move |_| busy(grain.time));
                }
            });
            Ok(())
        });
        grain.measure(load, report, "map", |tasks| {
            pool.install(|| (0..tasks).into_par_iter().for_each(|_| busy(grain.time)));
            Ok(())
        });
    }
}

fn files(pool: &ThreadPool, load: &Load, report: &mut Report) -> Outcome<()> {
    let paths = tree::paths(&load.list)?;
    let (time, digests) = timed(|| {
        let digests: Result<Vec<_>, _> =
            pool.install(|| paths.into_par_iter().map(tree::digest).collect());
        Ok(digests?)
    })?;
    report.record("files_seconds", time.as_secs_f64());
    report.checksum = Some(tree::checksum(&digests));
    Ok(())
}

/// The batches go through a channel as long as a stream's output.
fn pictures(pool: &ThreadPool, load: &Load, report: &mut Report) -> Outcome<()> {
    let batches = images::batches(load)?;
    let load_batch = |paths: &Vec<String>| -> Result<(u64, Vec<u8>), String> {
        let size = images::size(paths.len(), load.picture_side).map_err(|e| e.to_string())?;
        let mut batch = vec![0; size];
        images::load_all(paths, load.picture_side, &mut batch)?;
        Ok((now().as_nanos(), batch))
    };
    let mut handed_over = Sample::default();
    let (time, ()) = timed(|| {
        let (sender, receiver) = sync_channel(3);
        thread::scope(|scope| {
            scope.spawn(|| {
                pool.install(|| {
                    // A closed channel means that the consumer has failed and reports that.
                    let _ = batches
                        .par_iter()
                        .map(load_batch)
                        .try_for_each_with(sender, |sender, batch| sender.send(batch));
                });
            });
            for batch in receiver {
                let (sent, batch) = batch?;
                handed_over.add(time_to_read(sent, &batch)?);
            }
            Ok(())
        })
    })?;
    report.record("images_per_second", number(load.picture_count) / time.as_secs_f64());
    report.record("hand_over_p50_seconds", handed_over.median()?);
    Ok(())
}
