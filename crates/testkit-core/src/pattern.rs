//! Large values for tests.

/// Returns `length` values that repeat those of `period`.
///
/// They are copied as memory is. An iterator of a debug build takes a hundred times as long, for
/// values of which tests make gigabytes.
///
/// ```
/// assert_eq!(brigade_testkit_core::repeated(&[1, 2, 3], 5), [1, 2, 3, 1, 2]);
/// ```
///
/// # Panics
/// Panics if `period` is empty.
pub fn repeated<T: Copy>(period: &[T], length: usize) -> Vec<T> {
    let mut values = period.repeat(length.div_ceil(period.len()));
    values.truncate(length);
    values
}

/// Returns `length` bytes that differ from other payloads, those with another `number` below 251,
/// and from a shifted copy of themselves.
pub fn payload(number: usize, length: usize) -> Vec<u8> {
    let bytes: Vec<u8> = (0..=250).collect();
    let count = bytes.len();
    let period: Vec<u8> = (0..count).map(|index| bytes[(index * 31 + number) % count]).collect();
    repeated(&period, length)
}
