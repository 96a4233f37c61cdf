//! A summary of many times.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::seconds;

/// A summary of the times of one kind.
///
/// A quantile `q` of `n` times is number `⌊q·n⌋`, counted from 0 in ascending order: the median of
/// two times is the larger one. The quantiles differ from the exact ones by at most 1 %; count,
/// minimum, mean and maximum are exact. All are zero if there are no times.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Distribution {
    /// Number of times.
    pub count: u64,
    /// The shortest time.
    #[serde(with = "seconds")]
    pub min: Duration,
    /// The arithmetic mean.
    #[serde(with = "seconds")]
    pub mean: Duration,
    /// The median.
    #[serde(with = "seconds")]
    pub p50: Duration,
    /// The time that 10 % of all exceed.
    #[serde(with = "seconds")]
    pub p90: Duration,
    /// The time that 5 % of all exceed.
    #[serde(with = "seconds")]
    pub p95: Duration,
    /// The time that 1 % of all exceed.
    #[serde(with = "seconds")]
    pub p99: Duration,
    /// The longest time.
    #[serde(with = "seconds")]
    pub max: Duration,
}
