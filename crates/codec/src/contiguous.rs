//! Types whose encoding ends with their memory: vectors of numbers, `String` and [`Encoded`].

use std::any::{Any, TypeId};

use brigade_sys::numbers::{Number, Numbers, Unit, as_bytes, copied};

use crate::encoded::Encoded;

/// The encoded number of numbers, before their bytes; empty before those of an [`Encoded`].
#[derive(Debug, Clone, Copy)]
pub struct Prefix {
    bytes: [u8; Self::MAX],
    length: usize,
}

impl Prefix {
    const NONE: Self = Self { bytes: [0; Self::MAX], length: 0 };
    /// The most bytes of a prefix.
    pub(crate) const MAX: usize = 10;

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
#[inline]
pub fn into_numbers<T: 'static>(value: T) -> Option<Numbers> {
    let class = Class::of::<T>()?;
    (class.take)(&mut Some(value))
}

/// Returns the vector of numbers, `String` or [`Encoded`] whose memory this is.
///
/// # Errors
/// The numbers, for other types and those whose numbers have another size, and for a `String` that
/// would not be UTF-8.
#[inline]
pub fn from_numbers<T: 'static>(numbers: Numbers) -> Result<T, Numbers> {
    let Some(class) = Class::of::<T>() else { return Err(numbers) };
    let mut value = None;
    (class.put)(&mut value, numbers)?;
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
        Class::of::<T>().map_or(Self::Other, |class| class.form)
    }

    /// Returns the position from which on an encoded value of this form consists of numbers of a
    /// size. `first` are its first [bytes](Prefix::MAX), `length` is the number of all. Returns
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

/// The length of a value, and its memory.
type Memory<'a> = (usize, &'a [u8]);

/// A type of another form than [`Form::Other`], by functions for any type. So the code that is
/// compiled for each type of a program is short.
struct Class {
    form: Form,
    memory: fn(&dyn Any) -> Option<Memory<'_>>,
    /// Takes the memory of an `Option` of a value.
    take: fn(&mut dyn Any) -> Option<Numbers>,
    /// Sets an `Option` of a value.
    put: fn(&mut dyn Any, Numbers) -> Result<(), Numbers>,
    /// Sets an `Option` of a value, unless no value has these bytes.
    copy: fn(&mut dyn Any, &[u8]) -> Option<()>,
}

impl Class {
    #[inline]
    fn of<T: 'static>() -> Option<&'static Self> {
        // Also without optimization, the rest is not compiled for types of another size.
        if const { size_of::<T>() != size_of::<Vec<u8>>() } {
            return None;
        }
        let id = TypeId::of::<T>();
        macro_rules! find {
            ($($class:ty)*) => {
                $(if id == TypeId::of::<$class>() {
                    return Some(&<$class>::CLASS);
                })*
            };
        }
        find! { String Vec<u8> Vec<f32> Vec<f64> Vec<u16> Vec<u32> Vec<u64> Vec<u128> Vec<usize> }
        find! { Vec<i8> Vec<i16> Vec<i32> Vec<i64> Vec<i128> Vec<isize> Encoded }
        None
    }
}

trait Contiguous: Sized + 'static {
    const FORM: Form;

    const CLASS: Class = Class {
        form: Self::FORM,
        memory: |value| value.downcast_ref().map(Self::memory),
        take: |value| value.downcast_mut::<Option<Self>>()?.take().map(Self::into_numbers),
        put: |value, numbers| match value.downcast_mut() {
            Some(value) => {
                *value = Some(Self::from_numbers(numbers)?);
                Ok(())
            }
            None => Err(numbers),
        },
        copy: |value, bytes| {
            *value.downcast_mut()? = Some(Self::from_bytes(bytes)?);
            Some(())
        },
    };

    fn memory(&self) -> Memory<'_>;

    fn into_numbers(self) -> Numbers;

    fn from_numbers(numbers: Numbers) -> Result<Self, Numbers>;

    #[inline]
    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        Self::from_numbers(Numbers::U8(copied(bytes)?)).ok()
    }
}

impl<N: Number> Contiguous for Vec<N> {
    const FORM: Form = Form::Numbers(Unit::of::<N>());

    #[inline]
    fn memory(&self) -> Memory<'_> {
        (self.len(), as_bytes(self))
    }

    #[inline]
    fn into_numbers(self) -> Numbers {
        Numbers::of(self)
    }

    #[inline]
    fn from_numbers(numbers: Numbers) -> Result<Self, Numbers> {
        numbers.into_vec()
    }

    #[inline]
    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let numbers = copied(bytes)?;
        if !is_reversed(Unit::of::<N>()) {
            return Some(numbers);
        }
        to_native(Numbers::of(numbers)).into_vec().ok()
    }
}

impl Contiguous for String {
    const FORM: Form = Form::Text;

    #[inline]
    fn memory(&self) -> Memory<'_> {
        (self.len(), self.as_bytes())
    }

    #[inline]
    fn into_numbers(self) -> Numbers {
        Numbers::of(self.into_bytes())
    }

    #[inline]
    fn from_numbers(numbers: Numbers) -> Result<Self, Numbers> {
        Self::from_utf8(numbers.into_vec()?).map_err(|error| Numbers::of(error.into_bytes()))
    }
}

impl Contiguous for Encoded {
    const FORM: Form = Form::Encoded;

    #[inline]
    fn memory(&self) -> Memory<'_> {
        (0, self.as_slice())
    }

    #[inline]
    fn into_numbers(self) -> Numbers {
        Numbers::of(self.into_bytes())
    }

    #[inline]
    fn from_numbers(numbers: Numbers) -> Result<Self, Numbers> {
        numbers.into_vec().map(Self::new)
    }
}

/// Returns the value whose encoded numbers have these bytes; `None` if there is none.
#[inline]
pub(crate) fn from_bytes<T: 'static>(bytes: &[u8]) -> Option<T> {
    let mut value = None;
    (Class::of::<T>()?.copy)(&mut value, bytes)?;
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
    let class = Class::of::<T>()?;
    let (count, bytes) = (class.memory)(value)?;
    Some((class.form, count, bytes))
}

/// Returns `true` if this processor stores such a number in big-endian.
pub(crate) const fn is_reversed(unit: Unit) -> bool {
    cfg!(target_endian = "big") && unit.get() > 1
}

fn low_seven_bits(number: usize) -> u8 {
    number.to_le_bytes()[0] & 0x7f
}
