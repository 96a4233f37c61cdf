//! Vectors of numbers, as the bytes that another process copies.
//!
//! A vector frees its memory with the alignment of its elements. So the memory of bytes can never
//! become that of a `Vec<f32>`, and whoever allocates has to know the size of a number.

mod shared;

use std::io;
use std::mem::{ManuallyDrop, MaybeUninit};

use crate::copy::copy;
use crate::memory::{try_vec_with_capacity, vec_with_capacity};
pub use shared::{Memory, SharedNumbers};

/// A number: a type whose values are all patterns of its bits.
///
/// # Safety
/// The type has no padding, each pattern of its bits is a value, and it has the size and alignment
/// of an unsigned integer.
pub unsafe trait Number: Copy + Send + Sync + 'static {}

macro_rules! numbers {
    ($($number:ty)*) => {
        // SAFETY: it is an integer or a float, whose size and alignment are those of the unsigned
        // integer with as many bits.
        $(unsafe impl Number for $number {})*
    };
}

numbers! { u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize f32 f64 }

/// Returns numbers as their bytes in memory.
pub fn as_bytes<N: Number>(numbers: &[N]) -> &[u8] {
    // SAFETY: the slice has these bytes, and a `Number` has no padding among them.
    unsafe { std::slice::from_raw_parts(numbers.as_ptr().cast(), size_of_val(numbers)) }
}

/// Returns the numbers that have these bytes, in huge pages if they are large; `None` if the last
/// one would not be whole.
#[inline]
pub fn copied<N: Number>(bytes: &[u8]) -> Option<Vec<N>> {
    let count = Unit::of::<N>().count(bytes.len())?;
    let mut numbers: Vec<N> = vec_with_capacity(count);
    // SAFETY: the vector has room for the bytes, is no part of them, and is empty; each pattern of
    // bits is an `N`.
    unsafe {
        copy(bytes.as_ptr(), numbers.as_mut_ptr().cast(), bytes.len());
        numbers.set_len(count);
    }
    Some(numbers)
}

/// The bytes that stand in an encoding for numbers that are apart from it.
pub type Mark = [u8; 16];

/// The size of a number in bytes: 1, 2, 4, 8 or 16.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unit(u8);

impl Unit {
    /// That of bytes.
    pub const BYTE: Self = Self(1);

    /// Returns `None` for a size that no number has.
    pub const fn new(bytes: u8) -> Option<Self> {
        if matches!(bytes, 1 | 2 | 4 | 8 | 16) { Some(Self(bytes)) } else { None }
    }

    /// Returns the size of a type.
    pub const fn of<N: Number>() -> Self {
        Self(match size_of::<N>() {
            1 => 1,
            2 => 2,
            4 => 4,
            8 => 8,
            _ => 16,
        })
    }

    /// Returns the size in bytes.
    pub const fn get(self) -> u8 {
        self.0
    }

    /// Returns how many numbers have `length` bytes; `None` if that is no whole number.
    #[inline]
    pub fn count(self, length: usize) -> Option<usize> {
        // A division by what the compiler does not know takes as long as the rest of a small value.
        let count = length >> self.0.trailing_zeros();
        (count << self.0.trailing_zeros() == length).then_some(count)
    }
}

/// A vector of numbers of one size.
#[derive(Clone)]
pub enum Numbers {
    /// Of one byte, and text.
    U8(Vec<u8>),
    /// Of two bytes.
    U16(Vec<u16>),
    /// Of four bytes.
    U32(Vec<u32>),
    /// Of eight bytes.
    U64(Vec<u64>),
    /// Of 16 bytes.
    U128(Vec<u128>),
}

macro_rules! each {
    ($of:expr, $numbers:ident => $do:expr) => {
        match $of {
            Numbers::U8($numbers) => $do,
            Numbers::U16($numbers) => $do,
            Numbers::U32($numbers) => $do,
            Numbers::U64($numbers) => $do,
            Numbers::U128($numbers) => $do,
        }
    };
}

macro_rules! of_unit {
    ($unit:expr, $numbers:expr) => {
        match $unit.get() {
            1 => Self::U8($numbers),
            2 => Self::U16($numbers),
            4 => Self::U32($numbers),
            8 => Self::U64($numbers),
            _ => Self::U128($numbers),
        }
    };
}

impl Numbers {
    /// Takes the memory of a vector.
    #[inline]
    pub fn of<N: Number>(numbers: Vec<N>) -> Self {
        of_unit!(Unit::of::<N>(), cast(numbers))
    }

    /// Returns the memory as a vector of another type.
    ///
    /// # Errors
    /// These numbers, if they have another size.
    #[inline]
    pub fn into_vec<N: Number>(self) -> Result<Vec<N>, Self> {
        if self.unit() != Unit::of::<N>() {
            return Err(self);
        }
        Ok(each!(self, numbers => cast(numbers)))
    }

    /// Returns a copy of bytes, as [`copied`] does.
    pub fn copy_of(bytes: &[u8], unit: Unit) -> Option<Self> {
        Some(of_unit!(unit, copied(bytes)?))
    }

    /// Returns the size of a number.
    #[inline]
    pub fn unit(&self) -> Unit {
        each!(self, numbers => unit_of(numbers))
    }

    /// Returns how many numbers there are.
    pub fn len(&self) -> usize {
        each!(self, numbers => numbers.len())
    }

    /// Returns `true` if there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns their bytes in memory.
    pub fn as_bytes(&self) -> &[u8] {
        each!(self, numbers => as_bytes(numbers))
    }

    /// Returns the size of their memory in bytes, used or not.
    pub fn capacity(&self) -> usize {
        each!(self, numbers => numbers.capacity()) * usize::from(self.unit().get())
    }

    /// Reverses the bytes of each number.
    pub fn swap_bytes(&mut self) {
        each!(self, numbers => numbers.iter_mut().for_each(|number| *number = number.swap_bytes()));
    }

    /// Returns an empty vector with room for `count` numbers, in huge pages if it is large.
    #[inline]
    pub(crate) fn with_capacity(unit: Unit, count: usize) -> Self {
        of_unit!(unit, vec_with_capacity(count))
    }

    /// Returns an empty vector with room for `length` bytes.
    ///
    /// # Errors
    /// `OutOfMemory` if there is no room for as much; `InvalidInput` if the last number would not
    /// be whole.
    pub(crate) fn try_with_room(unit: Unit, length: usize) -> io::Result<Self> {
        let count = unit.count(length).ok_or(io::ErrorKind::InvalidInput)?;
        Ok(of_unit!(unit, try_vec_with_capacity(count)?))
    }

    /// Returns the memory behind the numbers.
    pub(crate) fn spare(&mut self) -> &mut [MaybeUninit<u8>] {
        each!(self, numbers => {
            let spare = numbers.spare_capacity_mut();
            // SAFETY: it is the same memory, and each element of it may be uninitialized.
            unsafe { std::slice::from_raw_parts_mut(spare.as_mut_ptr().cast(), size_of_val(spare)) }
        })
    }

    /// Sets the length to that of whole numbers in `length` bytes.
    ///
    /// # Safety
    /// The memory has that capacity, and as many bytes of it are initialized.
    #[inline]
    pub(crate) unsafe fn set_byte_len(&mut self, length: usize) {
        let count = length >> self.unit().0.trailing_zeros();
        // SAFETY: the caller vouches for the numbers, and each pattern of bits is one.
        each!(self, numbers => unsafe { numbers.set_len(count) });
    }
}

fn unit_of<N: Number>(_: &[N]) -> Unit {
    Unit::of::<N>()
}

/// Returns a vector with the same memory.
///
/// # Panics
/// If their numbers have different sizes.
fn cast<A: Number, B: Number>(numbers: Vec<A>) -> Vec<B> {
    assert!(size_of::<A>() == size_of::<B>() && align_of::<A>() == align_of::<B>());
    let mut numbers = ManuallyDrop::new(numbers);
    let (length, capacity) = (numbers.len(), numbers.capacity());
    // SAFETY: the memory is a vector's that is not dropped, sizes and alignments are the same, and
    // each pattern of bits is a `B`.
    unsafe { Vec::from_raw_parts(numbers.as_mut_ptr().cast(), length, capacity) }
}

impl AsRef<[u8]> for Numbers {
    fn as_ref(&self) -> &[u8] {
        self.as_bytes()
    }
}

impl Default for Numbers {
    fn default() -> Self {
        Self::U8(Vec::new())
    }
}

// The numbers belong to the user and may be many.
crate::debug_fields! {
    impl Numbers { |it| len: it.len(), unit: it.unit().get() }
}

#[cfg(test)]
mod tests {
    use std::fmt;

    use super::*;

    /// Checks that the memory becomes numbers and a vector again, without a copy.
    fn check<N: Number + PartialEq + fmt::Debug>(numbers: &[N]) {
        let mut vector = Vec::with_capacity(numbers.len() + 3);
        vector.extend_from_slice(numbers);
        let address = vector.as_ptr();
        let memory = Numbers::of(vector);
        assert_eq!(memory.as_bytes(), as_bytes(numbers));
        assert_eq!((memory.len(), memory.is_empty()), (numbers.len(), numbers.is_empty()));
        assert_eq!(memory.capacity(), (numbers.len() + 3) * size_of::<N>());
        let copy = Numbers::copy_of(memory.as_bytes(), memory.unit()).unwrap();
        assert_eq!(copy.into_vec::<N>().unwrap(), numbers);
        let again: Vec<N> = memory.into_vec().unwrap();
        assert_eq!((again.as_slice(), again.as_ptr()), (numbers, address));
    }

    #[test]
    fn numbers_of_all_types_keep_their_memory() {
        check(&[1_u8, 255]);
        check(&[-1_i8, 3]);
        check(&[1_u16, u16::MAX, 7]);
        check(&[i16::MIN]);
        check(&[1_u32, 0x0102_0304]);
        check(&[i32::MIN, 5]);
        check(&[-0.5_f32, f32::INFINITY]);
        check(&[1_u64, u64::MAX]);
        check::<i64>(&[]);
        check(&[0.1_f64]);
        check(&[u128::MAX, 1]);
        check(&[i128::MIN]);
        check(&[usize::MAX]);
        check(&[isize::MIN]);
    }

    #[test]
    fn numbers_of_another_size_stay_as_they_are() {
        let numbers = Numbers::of(vec![1_u32, 2]).into_vec::<u64>().unwrap_err();
        assert_eq!(numbers.into_vec::<f32>().unwrap().len(), 2);
    }

    #[test]
    fn the_last_number_is_whole() {
        for (bytes, unit) in [(7, 2), (7, 4), (12, 8), (24, 16)] {
            let unit = Unit::new(unit).unwrap();
            assert!(Numbers::copy_of(&vec![1; bytes], unit).is_none());
            let error = Numbers::try_with_room(unit, bytes).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        }
        assert!([0, 3, 5, 6, 7, 9, 15, 17, 32, 255].into_iter().all(|it| Unit::new(it).is_none()));
    }

    #[test]
    fn bytes_of_numbers_are_reversed() {
        let mut numbers = Numbers::of(vec![0x0102_i16, 3]);
        numbers.swap_bytes();
        assert_eq!(numbers.into_vec::<u16>().unwrap(), [0x0201, 0x0300]);
    }
}
