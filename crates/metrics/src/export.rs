//! Snapshots for monitoring systems.
//!
//! All of them get the same families of metrics, with the same names and labels. The quantiles
//! cover the whole life of a pool: to see the present, compare counters.
//!
//! - [`prometheus_text`] writes them as Prometheus reads them.
//! - `publish` (feature `metrics`) passes them to the recorder of the crate `metrics`.

#[cfg(feature = "metrics")]
mod facade;
mod family;
mod table;
mod text;

#[cfg(feature = "metrics")]
pub use facade::publish;
pub use text::{PROMETHEUS_MEDIA_TYPE, prometheus_text};
