//! Snapshots for the recorder of the crate `metrics`.

use metrics::{counter, describe_counter, describe_gauge, gauge};

use super::family::{Kind, Labels, Value, quantiles};
use super::table::families;
use crate::PoolSnapshot;

/// Passes the metrics of these pools to the recorder of the crate `metrics` that is installed.
///
/// Call it whenever the recorder should have new values, for example before a scrape: nothing is
/// published in between. A summary becomes a gauge with the label `quantile`, and a counter of the
/// times, whose name ends in `_count`.
///
/// ```
/// use brigade_metrics::{PoolSnapshot, export};
///
/// export::publish(&[PoolSnapshot::default()]);
/// ```
pub fn publish(pools: &[PoolSnapshot]) {
    for family in families(pools) {
        let kind = family.kind();
        match kind {
            Kind::Counter => describe_counter!(family.name, family.help),
            Kind::Gauge | Kind::Summary => describe_gauge!(family.name, family.help),
        }
        for (labels, value) in family.samples {
            set(family.name, kind, labels, value);
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "gauges of this crate are floating")]
fn set(name: &'static str, kind: Kind, labels: Labels, value: Value) {
    match (kind, value) {
        (Kind::Counter, Value::Count(count)) => counter!(name, &labels).absolute(count),
        (_, Value::Count(count)) => gauge!(name, &labels).set(count as f64),
        (_, Value::Number(number)) => gauge!(name, &labels).set(number),
        (_, Value::Times(times)) => {
            counter!(format!("{name}_count"), &labels).absolute(times.count);
            for (quantile, seconds) in quantiles(&times) {
                let mut labels = labels.clone();
                labels.push(("quantile", quantile.to_owned()));
                gauge!(name, &labels).set(seconds);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::{Arc, Mutex};

    use metrics::{
        Counter, CounterFn, Gauge, GaugeFn, Histogram, Key, KeyName, Metadata, Recorder,
        SharedString, Unit,
    };

    use super::*;
    use crate::tests::example;

    /// Values by name and labels.
    #[derive(Clone, Default)]
    struct Record(Arc<Mutex<BTreeMap<String, f64>>>);

    struct Entry(Record, String);

    impl Record {
        fn entry(&self, key: &Key) -> Arc<Entry> {
            let labels: Vec<_> =
                key.labels().map(|label| format!("{}={}", label.key(), label.value())).collect();
            Arc::new(Entry(self.clone(), format!("{}{labels:?}", key.name())))
        }

        fn value(&self, name: &str) -> Option<f64> {
            self.0.lock().unwrap().get(name).copied()
        }
    }

    impl Entry {
        fn set(&self, value: f64) {
            self.0.0.lock().unwrap().insert(self.1.clone(), value);
        }
    }

    impl CounterFn for Entry {
        fn increment(&self, _: u64) {}

        fn absolute(&self, value: u64) {
            self.set(f64::from(u32::try_from(value).unwrap_or(u32::MAX)));
        }
    }

    impl GaugeFn for Entry {
        fn increment(&self, _: f64) {}

        fn decrement(&self, _: f64) {}

        fn set(&self, value: f64) {
            Entry::set(self, value);
        }
    }

    impl Recorder for Record {
        fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

        fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

        fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

        fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
            Counter::from_arc(self.entry(key))
        }

        fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
            Gauge::from_arc(self.entry(key))
        }

        fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
            Histogram::noop()
        }
    }

    #[test]
    fn the_recorder_receives_the_values_of_the_snapshot() {
        let record = Record::default();
        metrics::with_local_recorder(&record, || publish(&[example(2)]));
        for (name, value) in [
            ("brigade_tasks_queued[\"pool=1\"]", 300.0),
            ("brigade_tasks_finished_total[\"pool=1\", \"outcome=panicked\"]", 2.0),
            ("brigade_worker_tasks_total[\"pool=1\", \"slot=1\"]", 3000.0),
            ("brigade_task_run_seconds_count[\"pool=1\"]", 12_000.0),
            ("brigade_task_run_seconds[\"pool=1\", \"quantile=0.5\"]", 0.0009),
        ] {
            assert_eq!(record.value(name), Some(value), "{name}");
        }
    }
}
