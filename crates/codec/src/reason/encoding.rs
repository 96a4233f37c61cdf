//! A serializer that writes nothing.

use serde::ser::{self, Serialize};

use super::TextError;

/// Returns the error of the value's `Serialize`; `None` if it does not fail this time within
/// `room` bytes.
pub(super) fn reason<T: Serialize>(value: &T, room: &mut usize) -> Option<TextError> {
    let mut nothing = Nothing { room, is_full: false };
    let result = value.serialize(&mut nothing);
    result.err().filter(|_| !nothing.is_full)
}

struct Nothing<'a> {
    /// Bytes that may still be encoded. A number counts as one.
    room: &'a mut usize,
    is_full: bool,
}

impl Nothing<'_> {
    fn put(&mut self, bytes: usize) -> Result<(), TextError> {
        let left = self.room.checked_sub(bytes);
        self.is_full |= left.is_none();
        *self.room = left.ok_or(postcard::Error::SerializeBufferFull)?;
        Ok(())
    }
}

macro_rules! values {
    ($($method:ident $of:ty),*) => {
        $(fn $method(self, _: $of) -> Result<(), TextError> {
            self.put(1)
        })*
    };
}

macro_rules! compounds {
    ($($method:ident($($of:ty),*) $compound:ident),*) => {
        $(fn $method(self, $(_: $of),*) -> Result<Self, TextError> {
            Ok(self)
        })*
        $(type $compound = Self;)*
    };
}

impl ser::Serializer for &mut Nothing<'_> {
    type Ok = ();
    type Error = TextError;

    values! {
        serialize_bool bool, serialize_char char, serialize_f32 f32, serialize_f64 f64,
        serialize_i8 i8, serialize_i16 i16, serialize_i32 i32, serialize_i64 i64,
        serialize_i128 i128, serialize_u8 u8, serialize_u16 u16, serialize_u32 u32,
        serialize_u64 u64, serialize_u128 u128
    }

    compounds! {
        serialize_seq(Option<usize>) SerializeSeq,
        serialize_map(Option<usize>) SerializeMap,
        serialize_tuple(usize) SerializeTuple,
        serialize_tuple_struct(&'static str, usize) SerializeTupleStruct,
        serialize_struct(&'static str, usize) SerializeStruct,
        serialize_tuple_variant(&'static str, u32, &'static str, usize) SerializeTupleVariant,
        serialize_struct_variant(&'static str, u32, &'static str, usize) SerializeStructVariant
    }

    fn serialize_str(self, text: &str) -> Result<(), TextError> {
        self.put(text.len())
    }

    fn serialize_bytes(self, bytes: &[u8]) -> Result<(), TextError> {
        self.put(bytes.len())
    }

    fn serialize_none(self) -> Result<(), TextError> {
        self.put(1)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), TextError> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), TextError> {
        Ok(())
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<(), TextError> {
        Ok(())
    }

    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
    ) -> Result<(), TextError> {
        self.put(1)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<(), TextError> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        value: &T,
    ) -> Result<(), TextError> {
        value.serialize(self)
    }

    fn is_human_readable(&self) -> bool {
        false
    }
}

macro_rules! parts {
    ($($compound:ident: $($method:ident($($key:ty)?)),*;)*) => {
        $(impl ser::$compound for &mut Nothing<'_> {
            type Ok = ();
            type Error = TextError;

            $(fn $method<T: Serialize + ?Sized>(
                &mut self,
                $(_: $key,)?
                value: &T,
            ) -> Result<(), TextError> {
                value.serialize(&mut **self)
            })*

            fn end(self) -> Result<(), TextError> {
                Ok(())
            }
        })*
    };
}

parts! {
    SerializeSeq: serialize_element();
    SerializeTuple: serialize_element();
    SerializeTupleStruct: serialize_field();
    SerializeTupleVariant: serialize_field();
    SerializeStruct: serialize_field(&'static str);
    SerializeStructVariant: serialize_field(&'static str);
    SerializeMap: serialize_key(), serialize_value();
}
