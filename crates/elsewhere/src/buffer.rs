//! `rustix::buffer`.

use std::mem::MaybeUninit;

pub trait Buffer<T> {
    type Output;
}

impl<T, const LENGTH: usize> Buffer<T> for &mut [MaybeUninit<T>; LENGTH] {
    type Output = (Self, Self);
}

pub struct SpareCapacity<'a, T>(
    #[expect(dead_code, reason = "nothing is put there")] &'a mut Vec<T>,
);

impl<T> Buffer<T> for SpareCapacity<'_, T> {
    type Output = usize;
}

pub fn spare_capacity<T>(vec: &mut Vec<T>) -> SpareCapacity<'_, T> {
    SpareCapacity(vec)
}
