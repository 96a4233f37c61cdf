//! The table of all metrics: names, help texts and values.

use std::collections::{BTreeMap, BTreeSet};

use super::family::Value::{self, Count, Number, Times};
use super::family::{Family, Labels};
use crate::{LabelSnapshot, PoolSnapshot, PoolState, WorkerSnapshot, WorkerState};

/// Returns the families of metrics of these pools. Pools with the same number must not occur twice.
pub(super) fn families(pools: &[PoolSnapshot]) -> Vec<Family> {
    let mut families = Vec::new();
    let mut add = |name, help, samples: &dyn Fn(&PoolSnapshot) -> Vec<(Labels, Value)>| {
        let samples = pools.iter().flat_map(|pool| {
            samples(pool).into_iter().map(|(labels, value)| {
                let all = of_pool(pool).into_iter().chain(labels).collect();
                (all, value)
            })
        });
        families.push(Family { name, help, samples: samples.collect() });
    };
    for (name, help, value) in POOL {
        add(name, help, &|pool| vec![(Vec::new(), value(pool))]);
    }
    add("brigade_pool_info", "Name of the pool.", &|pool| {
        vec![(vec![("name", bounded(&pool.name))], Count(1))]
    });
    add("brigade_pool_state", "1 for the present state of the pool.", &states);
    add("brigade_tasks_finished_total", "Tasks that finished, by outcome.", &outcomes);
    add("brigade_workers", "Workers by state.", &worker_states);
    for (name, help, value) in WORKER {
        add(name, help, &|pool| {
            pool.workers.iter().map(|worker| (vec![slot(worker)], value(worker))).collect()
        });
    }
    let help = "Share of each phase in the time in which the slot had a process.";
    add("brigade_worker_phase_ratio", help, &shares);
    let names: BTreeMap<_, _> = pools.iter().map(|it| (it.pool, label_names(it))).collect();
    for (name, help, value) in LABEL {
        add(name, help, &|pool| {
            let labels = pool.labels.iter().zip(&names[&pool.pool]);
            labels.map(|(label, name)| (vec![("label", name.clone())], value(label))).collect()
        });
    }
    families.retain(|family| !family.samples.is_empty());
    families
}

/// Name, help text and value.
type TextRow<T> = (&'static str, &'static str, fn(&T) -> Value);

const POOL: &[TextRow<PoolSnapshot>] = &[
    ("brigade_pool_age_seconds", "Time since the pool was built.", |it| {
        Number(it.age.as_secs_f64())
    }),
    ("brigade_tasks_enqueued_total", "Tasks that were accepted.", |it| Count(it.enqueued)),
    ("brigade_tasks_cancelled_total", "Tasks cancelled before a start.", |it| Count(it.cancelled)),
    ("brigade_attempts_total", "Attempts that ended, retries included.", |it| Count(it.attempts)),
    ("brigade_tasks_queued", "Tasks that no worker has begun.", |it| Count(it.queued)),
    ("brigade_tasks_queued_max", "Most tasks queued at once so far.", |it| {
        Count(it.max_queue_depth)
    }),
    ("brigade_tasks_running", "Tasks that workers have begun.", |it| Count(it.running)),
    ("brigade_argument_bytes_total", "Bytes sent to workers.", |it| Count(it.bytes_in)),
    ("brigade_result_bytes_total", "Bytes received from workers.", |it| Count(it.bytes_out)),
    ("brigade_worker_restarts_total", "Replaced worker processes.", |it| Count(it.restarts)),
    ("brigade_workers_executed_total", "Workers started by executing a program.", |it| {
        Count(it.executed)
    }),
    ("brigade_workers_forked_total", "Workers forked from a server of the pool.", |it| {
        Count(it.forked)
    }),
    ("brigade_worker_deaths_total", "Worker processes that died.", |it| Count(it.deaths)),
    ("brigade_task_queue_seconds", "Times from submission until a worker began the task.", |it| {
        Times(it.queue_time)
    }),
    ("brigade_task_run_seconds", "Times for which tasks ran.", |it| Times(it.run_time)),
    (
        "brigade_task_delivery_seconds",
        "Times from the end of a task until the host had its outcome.",
        |it| Times(it.delivery_time),
    ),
    (
        "brigade_worker_start_seconds",
        "Times from the start of a process until it was ready.",
        |it| Times(it.start_time),
    ),
];

const WORKER: &[TextRow<WorkerSnapshot>] = &[
    ("brigade_worker_tasks_total", "Tasks finished by slot.", |it| Count(it.tasks)),
    ("brigade_worker_failures_total", "Tasks failed by slot.", |it| Count(it.failures)),
];

const LABEL: &[TextRow<LabelSnapshot>] = &[
    ("brigade_label_finished_total", "Tasks finished by label.", |it| Count(it.finished)),
    ("brigade_label_failed_total", "Tasks failed by label.", |it| Count(it.failed)),
    ("brigade_label_run_seconds", "Run times by label.", |it| Times(it.run_time)),
    ("brigade_label_queue_seconds", "Queue times by label.", |it| Times(it.queue_time)),
];

fn of_pool(pool: &PoolSnapshot) -> Labels {
    let node = pool.node.as_ref().map(|node| ("node", bounded(node)));
    node.into_iter().chain([("pool", pool.pool.to_string())]).collect()
}

fn slot(worker: &WorkerSnapshot) -> (&'static str, String) {
    ("slot", worker.slot.to_string())
}

fn states(pool: &PoolSnapshot) -> Vec<(Labels, Value)> {
    let state = match &pool.state {
        PoolState::Open => "open",
        PoolState::ShuttingDown => "shutting_down",
        PoolState::Ended => "ended",
        PoolState::Broken { .. } => "broken",
    };
    ["open", "shutting_down", "ended", "broken"]
        .map(|name| (vec![("state", name.to_owned())], Count((name == state).into())))
        .into()
}

fn outcomes(pool: &PoolSnapshot) -> Vec<(Labels, Value)> {
    let failures = pool.failures.iter().map(|(kind, count)| (kind.name(), *count));
    std::iter::once(("succeeded", pool.succeeded))
        .chain(failures)
        .map(|(outcome, count)| (vec![("outcome", outcome.to_owned())], Count(count)))
        .collect()
}

fn worker_states(pool: &PoolSnapshot) -> Vec<(Labels, Value)> {
    use WorkerState::{Busy, Idle, Starting, Stopping, Vacant};
    let count = |state: WorkerState| {
        let count = pool.workers.iter().filter(|worker| worker.state == state).count();
        (vec![("state", state.name().to_owned())], Count(count as u64))
    };
    [Vacant, Starting, Idle, Busy, Stopping].map(count).into()
}

fn shares(pool: &PoolSnapshot) -> Vec<(Labels, Value)> {
    let phases = |worker: &WorkerSnapshot| {
        let (slot, shares) = (slot(worker), worker.shares);
        [
            ("start", shares.start),
            ("initialize", shares.initialize),
            ("wait", shares.wait),
            ("run", shares.run),
            ("exit", shares.exit),
        ]
        .map(|(phase, share)| (vec![slot.clone(), ("phase", phase.to_owned())], Number(share)))
    };
    pool.workers.iter().flat_map(phases).collect()
}

/// The largest number of characters in the value of a label.
const CHARACTERS: usize = 120;

fn bounded(text: &str) -> String {
    text.chars().take(CHARACTERS).collect()
}

/// Returns a different name for each label. Two that differ only beyond the bound get numbers: one
/// duplicate would make the reader refuse everything.
fn label_names(pool: &PoolSnapshot) -> Vec<String> {
    let mut used = BTreeSet::new();
    let mut unused = |label: &LabelSnapshot| {
        let name = bounded(&label.label);
        let numbered = (2..).map(|number| format!("{name} ({number})"));
        std::iter::once(name.clone()).chain(numbered).find(|name| used.insert(name.clone()))
    };
    pool.labels.iter().filter_map(&mut unused).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::example;

    #[test]
    fn no_metric_occurs_twice() {
        let mut pool = example(3);
        for end in ["a", "b", ""] {
            let label = "x".repeat(CHARACTERS) + end;
            pool.labels.push(LabelSnapshot { label, ..LabelSnapshot::default() });
        }
        let second = PoolSnapshot { pool: 2, ..pool.clone() };
        let mut seen = BTreeSet::new();
        for family in families(&[pool, second]) {
            assert!(seen.insert(family.name.to_owned()), "{}", family.name);
            for (labels, _) in family.samples {
                assert!(seen.insert(format!("{}{labels:?}", family.name)), "{labels:?}");
            }
        }
    }

    #[test]
    fn names_follow_the_conventions() {
        for family in families(&[example(1)]) {
            let ending = match family.samples[0].1 {
                Times(_) => "_seconds",
                Count(_) | Number(_) => "",
            };
            assert!(family.name.ends_with(ending), "{}", family.name);
        }
    }

    #[test]
    fn the_outcomes_add_up_to_the_finished_tasks() {
        let pool = example(1);
        let count = |(_, value): &(Labels, Value)| match value {
            Count(count) => *count,
            _ => 0,
        };
        assert_eq!(outcomes(&pool).iter().map(count).sum::<u64>(), pool.finished);
    }
}
