//! The cores of a run: the one place that knows whose they are and how they are leased.

use std::cell::RefCell;
use std::num::NonZeroUsize;
use std::rc::Rc;

use crate::error::RunnerError;

/// The cores that jobs are pinned to.
#[derive(Debug)]
pub(crate) struct Cores {
    usable: usize,
    free: Rc<RefCell<Vec<u32>>>,
}

/// The cores of one attempt. Dropping it gives them back.
#[derive(Debug)]
pub(crate) struct Lease {
    cpus: Vec<u32>,
    mask: Vec<u64>,
    free: Rc<RefCell<Vec<u32>>>,
}

impl Cores {
    pub(crate) fn discover() -> Result<Self, RunnerError> {
        let set = rustix::thread::sched_getaffinity(None)
            .map_err(|error| RunnerError::Cores(Box::new(error)))?;
        let usable: Vec<u32> = (0..1024).filter(|cpu| set.is_set(*cpu as usize)).collect();
        Ok(Self { usable: usable.len(), free: Rc::new(RefCell::new(usable)) })
    }

    pub(crate) fn usable(&self) -> NonZeroUsize {
        NonZeroUsize::new(self.usable).unwrap_or(NonZeroUsize::MIN)
    }

    pub(crate) fn try_reserve(&self, count: NonZeroUsize) -> Option<Lease> {
        let mut free = self.free.borrow_mut();
        if free.len() < count.get() {
            return None;
        }
        let cpus: Vec<u32> = free.drain(..count.get()).collect();
        let mut mask = vec![0; 16];
        for cpu in &cpus {
            mask[*cpu as usize / 64] |= 1 << (cpu % 64);
        }
        Some(Lease { cpus, mask, free: Rc::clone(&self.free) })
    }
}

impl Lease {
    pub(crate) fn cpus(&self) -> &[u32] {
        &self.cpus
    }

    pub(crate) fn mask(&self) -> &[u64] {
        &self.mask
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.free.borrow_mut().append(&mut self.cpus);
    }
}
