//! The clock of the machines, and waiting for it.

pub(crate) use brigade_sys::clock::{Monotonic, now};

/// Waits until this time, or forever if there is none.
pub(crate) async fn sleep_until(time: Option<Monotonic>) {
    match time {
        Some(time) => tokio::time::sleep(time.saturating_since(now())).await,
        None => std::future::pending().await,
    }
}
