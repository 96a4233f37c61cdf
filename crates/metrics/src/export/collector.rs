//! Snapshots in a registry of the crate `prometheus-client`.

use std::fmt;

use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

use super::family::{Family, Kind, Labels, Value, quantiles, sum};
use super::table::families;
use crate::{Distribution, PoolSnapshot};

/// Adds the metrics of pools to a registry of the crate `prometheus-client`, which writes
/// the format `OpenMetrics`.
///
/// It takes new snapshots for each scrape. That crate has no summaries: each becomes a gauge with
/// the label `q`, and counters of the times and of their sum.
///
/// ```
/// use brigade_metrics::PoolSnapshot;
/// use brigade_metrics::export::Collector;
/// use prometheus_client::{encoding::text, registry::Registry};
///
/// let mut registry = Registry::default();
/// registry.register_collector(Box::new(Collector::new(|| vec![PoolSnapshot::example(2)])));
/// let mut page = String::new();
/// text::encode(&mut page, &registry)?;
/// assert!(page.contains("brigade_task_run_seconds_quantile{pool=\"1\",q=\"0.5\"} 0.0009\n"));
/// # Ok::<(), std::fmt::Error>(())
/// ```
pub struct Collector<F>(F);

impl<F> Collector<F>
where
    F: Fn() -> Vec<PoolSnapshot> + Send + Sync + 'static,
{
    /// Creates a collector of the snapshots that `snapshots` returns.
    pub fn new(snapshots: F) -> Self {
        Self(snapshots)
    }
}

impl<F> fmt::Debug for Collector<F> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Collector").finish_non_exhaustive()
    }
}

impl<F> prometheus_client::collector::Collector for Collector<F>
where
    F: Fn() -> Vec<PoolSnapshot> + Send + Sync + 'static,
{
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        for family in families(&(self.0)()) {
            encode(&mut encoder, &family)?;
        }
        Ok(())
    }
}

fn encode(encoder: &mut DescriptorEncoder<'_>, family: &Family) -> fmt::Result {
    let Family { name, help, kind, samples } = family;
    // The encoder adds the suffix, and a full stop to the text.
    let help = help.trim_end_matches('.');
    match kind {
        Kind::Counter => {
            let name = name.trim_end_matches("_total");
            let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            for (labels, value) in samples {
                counter(metric.encode_family(&Set(labels, None))?, *value)?;
            }
        }
        Kind::Gauge => {
            let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            for (labels, value) in samples {
                gauge(metric.encode_family(&Set(labels, None))?, *value)?;
            }
        }
        Kind::Summary => {
            let times = || {
                samples.iter().filter_map(|(labels, value)| match value {
                    Value::Times(times) => Some((labels, times)),
                    _ => None,
                })
            };
            let gauge_name = format!("{name}_quantile");
            let mut metric =
                encoder.encode_descriptor(&gauge_name, help, None, MetricType::Gauge)?;
            for (labels, times) in times() {
                for (quantile, seconds) in quantiles(times) {
                    let set = Set(labels, Some(quantile));
                    gauge(metric.encode_family(&set)?, Value::Number(seconds))?;
                }
            }
            for (suffix, value) in SUMS {
                let name = format!("{name}{suffix}");
                let mut metric =
                    encoder.encode_descriptor(&name, help, None, MetricType::Counter)?;
                for (labels, times) in times() {
                    counter(metric.encode_family(&Set(labels, None))?, value(times))?;
                }
            }
        }
    }
    Ok(())
}

type Counter = (&'static str, fn(&Distribution) -> Value);

/// The counters of a summary. `_sum` and `_count` are reserved for summaries.
const SUMS: [Counter; 2] =
    [("", |times| Value::Number(sum(times))), ("_samples", |times| Value::Count(times.count))];

fn counter(encoder: MetricEncoder<'_>, value: Value) -> fmt::Result {
    match value {
        Value::Count(count) => ConstCounter::new(count).encode(encoder),
        Value::Number(number) => ConstCounter::new(number).encode(encoder),
        Value::Times(_) => Ok(()),
    }
}

#[expect(clippy::cast_precision_loss, reason = "gauges of this crate are signed or floating")]
fn gauge(encoder: MetricEncoder<'_>, value: Value) -> fmt::Result {
    match value {
        Value::Count(count) => ConstGauge::new(count as f64).encode(encoder),
        Value::Number(number) => ConstGauge::new(number).encode(encoder),
        Value::Times(_) => Ok(()),
    }
}

/// The labels of a sample, and its quantile.
#[derive(Debug)]
struct Set<'a>(&'a Labels, Option<&'static str>);

impl prometheus_client::encoding::EncodeLabelSet for Set<'_> {
    fn encode(
        &self,
        encoder: &mut prometheus_client::encoding::LabelSetEncoder<'_>,
    ) -> fmt::Result {
        use prometheus_client::encoding::EncodeLabel;
        let labels = self.0.iter().map(|(name, value)| (*name, value.as_str()));
        for label in labels.chain(self.1.map(|quantile| ("q", quantile))) {
            label.encode(encoder.encode_label())?;
        }
        Ok(())
    }
}
