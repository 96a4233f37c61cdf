//! Stands in for `cores` in a build without the feature: no worker is pinned.
//!
//! The types have no values, so the rest of the crate needs no conditions, and the compiler drops
//! what it would do with a lease.

use std::io;
use std::sync::Arc;

use crate::error::PoolError;

#[derive(Debug)]
pub(crate) enum CorePool {}

#[derive(Debug)]
pub(crate) enum CoreLease {}

#[derive(Debug)]
pub(crate) enum SlotCores {}

pub(crate) type Unneeded = Vec<Arc<CoreLease>>;

#[expect(clippy::unnecessary_wraps, reason = "the signatures are those of `cores`")]
impl SlotCores {
    pub(crate) fn new(
        _pool: Option<CorePool>,
        _per_worker: Option<usize>,
    ) -> Result<Option<Self>, PoolError> {
        Ok(None)
    }

    pub(crate) fn workers(&self) -> usize {
        match *self {}
    }

    pub(crate) fn reserve(&self, _workers: usize, _field: &'static str) -> Result<(), PoolError> {
        match *self {}
    }

    pub(crate) fn of(&self, _slot: u32) -> Option<Arc<CoreLease>> {
        match *self {}
    }

    pub(crate) fn keep(&self, _wanted: usize, _has_process: impl Fn(usize) -> bool) -> Unneeded {
        match *self {}
    }

    pub(crate) fn release(&self, _slot: u32) -> Option<Arc<CoreLease>> {
        match *self {}
    }
}

pub(crate) fn start_pinned<P>(
    lease: &CoreLease,
    _on_fewer: impl FnOnce(String, String),
    _start: impl FnOnce(usize) -> io::Result<P>,
) -> io::Result<P> {
    match *lease {}
}
