//! `rustix::buffer`.

use std::mem::MaybeUninit;

use crate::io::{Errno, Result};

pub trait Buffer<T> {
    type Output;

    /// Puts values there.
    fn fill(self, values: impl Iterator<Item = T>) -> Result<Self::Output>;
}

impl<T, const LENGTH: usize> Buffer<T> for &mut [MaybeUninit<T>; LENGTH] {
    type Output = (Self, Self);

    fn fill(self, _: impl Iterator<Item = T>) -> Result<Self::Output> {
        Err(Errno::NOSYS)
    }
}

pub struct SpareCapacity<'a, T>(&'a mut Vec<T>);

impl<T> Buffer<T> for SpareCapacity<'_, T> {
    type Output = usize;

    fn fill(self, values: impl Iterator<Item = T>) -> Result<usize> {
        let (length, room) = (self.0.len(), self.0.capacity() - self.0.len());
        self.0.extend(values.take(room));
        Ok(self.0.len() - length)
    }
}

pub fn spare_capacity<T>(vec: &mut Vec<T>) -> SpareCapacity<'_, T> {
    SpareCapacity(vec)
}
