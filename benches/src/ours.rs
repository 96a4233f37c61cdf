//! Measures Brigade over one of its links.

mod backlog;
mod balance;
mod batches;
mod callers;
mod cluster;
mod crash;
mod crowd;
mod fallout;
mod flow;
mod fresh;
mod futures;
mod grain;
mod handover;
mod idle;
mod latency;
mod loader;
mod payload;
mod pressure;
mod pump;
mod sandbox;
mod serial;
mod start;
mod throughput;
mod work;

use std::fs;
use std::ops::Deref;
use std::time::Duration;

use brigade::{Link, Pool, Shutdown};

use crate::load::Load;
use crate::report::{Outcome, Report};
use crate::section::Section;
use crate::service;

pub(crate) fn measure(
    link: Link,
    section: Section,
    load: &Load,
    report: &mut Report,
) -> Outcome<()> {
    match section {
        Section::Throughput => {
            throughput::measure(link, load, report);
            Ok(())
        }
        Section::Latency => latency::measure(link, load, report),
        Section::Grain => grain::measure(link, load, report),
        Section::Callers => callers::measure(link, load, report),
        Section::Payload => payload::measure(link, load, report),
        Section::Start => start::measure(link, load, report),
        Section::Crash => crash::measure(link, load, report),
        Section::Fresh => fresh::measure(link, load, report),
        Section::Idle => idle::measure(link, load, report),
        Section::Balance => {
            balance::measure(link, load, report);
            Ok(())
        }
        Section::Serial => {
            serial::measure(link, report);
            Ok(())
        }
        Section::Fallout => fallout::measure(link, load, report),
        Section::Backlog => backlog::measure(link, load, report),
        Section::Crowd => {
            crowd::measure(link, load, report);
            Ok(())
        }
        Section::Pressure => pressure::measure(link, load, report),
        Section::Work => work::measure(link, load, report),
        Section::Handover => handover::measure(link, load, report),
        Section::Batches => batches::measure(link, load, report),
        Section::Flow => {
            flow::measure(link, load, report);
            Ok(())
        }
        Section::Loader => loader::measure(link, load, report),
        Section::Async => futures::measure(link, load, report),
        Section::Cluster => {
            cluster::measure(link, load, report);
            Ok(())
        }
        Section::Sandbox => sandbox::measure(link, load, report),
        Section::ClusterIdle => cluster::measure_idle(link, load, report),
        Section::Service => {
            let link = if matches!(link, Link::Ipc) { "ipc" } else { "ring" };
            service::measure(&[], link, load, report);
            Ok(())
        }
    }
}

fn noop((): ()) {}

/// Returns the resident memory of this process. It includes all memory shared with workers, because
/// the host touches everything that it passes on.
fn resident_kibibytes() -> Outcome<usize> {
    kibibytes("VmRSS:")
}

/// Returns an amount of memory of this process, by its name in `/proc/self/status`.
fn kibibytes(name: &str) -> Outcome<usize> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    Ok(line.ok_or("no such amount of memory")?.trim().trim_end_matches(" kB").parse()?)
}

/// A pool whose workers are killed when it is dropped, so that running tasks do not delay the end.
struct BenchPool(Pool);

impl BenchPool {
    /// Returns a pool that starts its workers with the first tasks.
    fn cold(link: Link, workers: usize) -> Outcome<Self> {
        Ok(Self(Pool::builder().link(link).workers(workers).build()?))
    }

    /// Returns a pool whose workers are all ready and have run tasks.
    fn warm(link: Link, workers: usize) -> Outcome<Self> {
        let pool = Self::cold(link, workers)?;
        pool.warm_up()?;
        let handles =
            (0..100 * workers).map(|_| pool.submit(noop, ())).collect::<Result<Vec<_>, _>>()?;
        for handle in handles {
            handle.wait()?;
        }
        Ok(pool)
    }
}

impl Deref for BenchPool {
    type Target = Pool;

    fn deref(&self) -> &Pool {
        &self.0
    }
}

impl Drop for BenchPool {
    fn drop(&mut self) {
        // The measurement has already reported a broken pool.
        let _ = self.0.shutdown_with(Shutdown::Kill, Duration::from_secs(1));
    }
}
