//! Families of metrics, independent of any format.

use crate::Distribution;

/// Metrics that differ only in their labels.
#[derive(Debug)]
pub(super) struct Family {
    /// Name with its unit and, for a counter, with `_total`.
    pub(super) name: &'static str,
    pub(super) help: &'static str,
    pub(super) samples: Vec<(Labels, Value)>,
}

impl Family {
    /// Returns the kind, which the name of a counter and the values of a summary tell.
    pub(super) fn kind(&self) -> Kind {
        match self.samples.first() {
            Some((_, Value::Times(_))) => Kind::Summary,
            _ if self.name.ends_with("_total") => Kind::Counter,
            _ => Kind::Gauge,
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    Counter,
    Gauge,
    Summary,
}

pub(super) type Labels = Vec<(&'static str, String)>;

#[derive(Debug, Clone, Copy)]
pub(super) enum Value {
    Count(u64),
    Number(f64),
    Times(Distribution),
}

/// Returns the quantiles of a summary, with the names that Prometheus expects.
pub(super) fn quantiles(times: &Distribution) -> [(&'static str, f64); 6] {
    [
        ("0", times.min),
        ("0.5", times.p50),
        ("0.9", times.p90),
        ("0.95", times.p95),
        ("0.99", times.p99),
        ("1", times.max),
    ]
    .map(|(quantile, time)| (quantile, time.as_secs_f64()))
}

/// Returns the sum of the times of a summary, in seconds.
#[expect(clippy::cast_precision_loss, reason = "the mean is rounded as well")]
pub(super) fn sum(times: &Distribution) -> f64 {
    (times.mean.as_nanos() * u128::from(times.count)) as f64 / 1e9
}
