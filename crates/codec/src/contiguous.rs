//! Types whose encoding ends with their memory: vectors of numbers, `String` and [`Encoded`].

use std::any::{Any, TypeId};

use brigade_sys::numbers::{Numbers, Unit, as_bytes, copied};

use crate::encoded::Encoded;

/// Does something with each type of number.
macro_rules! for_each_number {
    ($with:ident) => {
        $with! { u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize f32 f64 }
    };
}

/// The encoded number of numbers, before their bytes; empty before those of an [`Encoded`].
#[derive(Debug, Clone, Copy)]
pub struct Prefix {
    bytes: [u8; Self::LONGEST],
    length: usize,
}

impl Prefix {
    const NONE: Self = Self { bytes: [0; Self::LONGEST], length: 0 };
    /// The most bytes of a prefix.
    pub(crate) const LONGEST: usize = 10;

    pub(crate) fn of(mut number: usize) -> Self {
        let mut prefix = Self::NONE;
        loop {
            let more = if number >= 0x80 { 0x80 } else { 0 };
            prefix.bytes[prefix.length] = low_seven_bits(number) | more;
            prefix.length += 1;
            number >>= 7;
            if number == 0 {
                return prefix;
            }
        }
    }

    /// Returns the encoded number.
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// Returns the encoded form of a vector of numbers, a `String` or an [`Encoded`] in two parts and
/// without a copy; `None` for other types.
///
/// On a big-endian processor, vectors of numbers of several bytes are other types here.
#[inline]
pub fn contiguous_parts<T: 'static>(value: &T) -> Option<(Prefix, &[u8])> {
    let (form, count, bytes) = memory(value)?;
    match form {
        Form::Numbers(unit) if is_reversed(unit) => None,
        Form::Numbers(_) | Form::Text => Some((Prefix::of(count), bytes)),
        Form::Encoded | Form::Other => Some((Prefix::NONE, bytes)),
    }
}

/// Returns the same for numbers.
pub fn parts_of_numbers(numbers: &Numbers) -> (Prefix, &[u8]) {
    (Prefix::of(numbers.len()), numbers.as_bytes())
}

/// Returns the encoded form of a vector of numbers that this processor stores in big-endian.
#[inline]
pub(crate) fn reversed_parts<T: 'static>(value: &T) -> Option<(Prefix, Numbers)> {
    match memory(value)? {
        (Form::Numbers(unit), count, bytes) if is_reversed(unit) => {
            Some((Prefix::of(count), to_native(Numbers::copy_of(bytes, unit)?)))
        }
        _ => None,
    }
}

/// Returns the memory of a vector of numbers, a `String` or an [`Encoded`]; `None` for other types.
pub fn into_numbers<T: 'static>(value: T) -> Option<Numbers> {
    if size_of::<T>() != size_of::<Vec<u8>>() {
        return None;
    }
    let mut value = Some(value);
    let value: &mut dyn Any = &mut value;
    macro_rules! take {
        ($($number:ty)*) => {
            $(if let Some(numbers) = value.downcast_mut::<Option<Vec<$number>>>() {
                return numbers.take().map(Numbers::of);
            })*
        };
    }
    for_each_number!(take);
    if let Some(encoded) = value.downcast_mut::<Option<Encoded>>() {
        return encoded.take().map(|encoded| Numbers::of(encoded.into_bytes()));
    }
    value.downcast_mut::<Option<String>>()?.take().map(|text| Numbers::of(text.into_bytes()))
}

/// Returns the vector of numbers, `String` or [`Encoded`] whose memory this is.
///
/// # Errors
/// The numbers, for other types and those whose numbers have another size, and for a `String` that
/// would not be UTF-8.
#[inline]
pub fn from_numbers<T: 'static>(numbers: Numbers) -> Result<T, Numbers> {
    let mut value: Option<T> = None;
    let target: &mut dyn Any = &mut value;
    macro_rules! put {
        ($($number:ty)*) => {
            $(if let Some(target) = target.downcast_mut::<Option<Vec<$number>>>() {
                *target = Some(numbers.into_vec()?);
            } else)* if let Some(target) = target.downcast_mut::<Option<String>>() {
                let text = String::from_utf8(numbers.into_vec()?);
                *target = Some(text.map_err(|error| Numbers::of(error.into_bytes()))?);
            } else if let Some(target) = target.downcast_mut::<Option<Encoded>>() {
                *target = Some(Encoded::new(numbers.into_vec()?));
            } else {
                return Err(numbers);
            }
        };
    }
    for_each_number!(put);
    value.ok_or_else(Numbers::default)
}

/// The parts of a type's encoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// The number of numbers, and their bytes.
    Numbers(Unit),
    /// Its length, and UTF-8.
    Text,
    /// Its bytes.
    Encoded,
    /// Serde's parts.
    Other,
}

impl Form {
    #[inline]
    pub(crate) fn of<T: 'static>() -> Self {
        if size_of::<T>() != size_of::<Vec<u8>>() {
            return Self::Other;
        }
        let wanted = TypeId::of::<T>();
        macro_rules! find {
            ($($number:ty)*) => {
                $(if wanted == TypeId::of::<Vec<$number>>() {
                    return Self::Numbers(Unit::of::<$number>());
                })*
            };
        }
        for_each_number!(find);
        if wanted == TypeId::of::<String>() {
            Self::Text
        } else if wanted == TypeId::of::<Encoded>() {
            Self::Encoded
        } else {
            Self::Other
        }
    }

    /// Returns the position from which on an encoded value of this form consists of numbers of a
    /// size. `first` are its first [bytes](Prefix::LONGEST), `length` is the number of all. Returns
    /// `None` for other forms, and unless the number of numbers matches exactly.
    #[inline]
    pub(crate) fn place(self, first: &[u8], length: usize) -> Option<(usize, Unit)> {
        let unit = match self {
            Self::Numbers(unit) => unit,
            Self::Text => Unit::BYTE,
            Self::Encoded => return Some((0, Unit::BYTE)),
            Self::Other => return None,
        };
        let (count, rest) = postcard::take_from_bytes::<usize>(first).ok()?;
        let start = first.len() - rest.len();
        (unit.count(length - start) == Some(count)).then_some((start, unit))
    }
}

/// Returns the value whose encoded numbers have these bytes; `None` if there is none.
#[inline]
pub(crate) fn from_bytes<T: 'static>(bytes: &[u8]) -> Option<T> {
    let mut value: Option<T> = None;
    let target: &mut dyn Any = &mut value;
    macro_rules! copy {
        ($($number:ty)*) => {
            $(if let Some(target) = target.downcast_mut::<Option<Vec<$number>>>() {
                let numbers = copied::<$number>(bytes)?;
                *target = if is_reversed(Unit::of::<$number>()) {
                    to_native(Numbers::of(numbers)).into_vec().ok()
                } else {
                    Some(numbers)
                };
            } else)* if let Some(target) = target.downcast_mut::<Option<String>>() {
                *target = String::from_utf8(copied(bytes)?).ok();
            } else if let Some(target) = target.downcast_mut::<Option<Encoded>>() {
                *target = copied(bytes).map(Encoded::new);
            }
        };
    }
    for_each_number!(copy);
    value
}

/// Returns the value whose encoded numbers these are; `None` if there is none.
#[inline]
pub(crate) fn from_encoded<T: 'static>(numbers: Numbers) -> Option<T> {
    from_numbers(to_native(numbers)).ok()
}

/// Returns numbers that are in little-endian in the order of this processor, or the reverse.
#[inline]
pub(crate) fn to_native(mut numbers: Numbers) -> Numbers {
    if is_reversed(numbers.unit()) {
        numbers.swap_bytes();
    }
    numbers
}

/// Returns the form of a vector of numbers, a `String` or an [`Encoded`], its length, and its
/// memory.
#[inline]
fn memory<T: 'static>(value: &T) -> Option<(Form, usize, &[u8])> {
    if size_of::<T>() != size_of::<Vec<u8>>() {
        return None;
    }
    let value: &dyn Any = value;
    macro_rules! borrow {
        ($($number:ty)*) => {
            $(if let Some(numbers) = value.downcast_ref::<Vec<$number>>() {
                let form = Form::Numbers(Unit::of::<$number>());
                return Some((form, numbers.len(), as_bytes(numbers)));
            })*
        };
    }
    for_each_number!(borrow);
    if let Some(encoded) = value.downcast_ref::<Encoded>() {
        return Some((Form::Encoded, 0, encoded.as_slice()));
    }
    let text = value.downcast_ref::<String>()?;
    Some((Form::Text, text.len(), text.as_bytes()))
}

/// Returns `true` if this processor stores such a number in big-endian.
pub(crate) const fn is_reversed(unit: Unit) -> bool {
    cfg!(target_endian = "big") && unit.get() > 1
}

fn low_seven_bits(number: usize) -> u8 {
    number.to_le_bytes()[0] & 0x7f
}
