//! Measures calls that tasks of a tokio runtime await: those of one task, one after the other, and
//! those of many tasks.

use std::future::Future;
use std::time::Instant;

use tokio::runtime::{Builder, Runtime};

use crate::load::Load;
use crate::report::{Outcome, Report};
use crate::sample::{Sample, record_trips, throughput};

/// Tasks that await calls at the same time.
const TASKS: usize = 256;

/// Measures one task on the thread that has the runtime, without anything else to do.
pub(crate) fn one_task<C: Future<Output = Outcome<()>>>(
    load: &Load,
    report: &mut Report,
    call: impl Fn() -> C,
) {
    let trips = current_thread().and_then(|runtime| {
        runtime.block_on(async {
            let mut sample = Sample::default();
            let begin = Instant::now();
            while sample.len() < load.trips && begin.elapsed().as_secs_f64() < load.trip_seconds {
                let begin = Instant::now();
                call().await?;
                sample.add(begin.elapsed());
            }
            Ok(sample)
        })
    });
    record_trips(report, "await", trips);
}

/// Measures many tasks, on a runtime of one thread and on one of as many as there are workers.
pub(crate) fn many_tasks<C>(
    load: &Load,
    report: &mut Report,
    call: impl Fn() -> C + Clone + Send + 'static,
) where
    C: Future<Output = Outcome<()>> + Send,
{
    report.attempt("await_256_per_second", || rate(load, &current_thread()?, &call));
    report.attempt("await_256_threads_per_second", || {
        let runtime = Builder::new_multi_thread().worker_threads(load.workers).build()?;
        rate(load, &runtime, &call)
    });
}

fn current_thread() -> Outcome<Runtime> {
    Ok(Builder::new_current_thread().build()?)
}

fn rate<C>(
    load: &Load,
    runtime: &Runtime,
    call: &(impl Fn() -> C + Clone + Send + 'static),
) -> Outcome<f64>
where
    C: Future<Output = Outcome<()>> + Send,
{
    throughput(load, load.most_submitted, |count| {
        let tasks: Vec<_> = (0..TASKS)
            .map(|task| {
                let (call, calls) = (call.clone(), (count + task) / TASKS);
                runtime.spawn(async move {
                    for _ in 0..calls {
                        call().await.map_err(|error| error.to_string())?;
                    }
                    Ok::<(), String>(())
                })
            })
            .collect();
        runtime.block_on(async {
            for task in tasks {
                task.await??;
            }
            Ok(())
        })
    })
}
