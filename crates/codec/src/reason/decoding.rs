//! A deserializer that leaves single values to postcard and keeps the texts of errors.

use serde::de::value::U32Deserializer;
use serde::de::{
    Deserialize, DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, IntoDeserializer,
    MapAccess, SeqAccess, VariantAccess, Visitor,
};

use super::TextError;

/// Returns the error of `Deserialize`; `None` if it does not fail this time.
pub(super) fn reason<T: DeserializeOwned>(bytes: &[u8]) -> Option<TextError> {
    T::deserialize(&mut Rest(bytes)).err()
}

/// The bytes that are left.
struct Rest<'de>(&'de [u8]);

impl<'de> Rest<'de> {
    fn take<T: Deserialize<'de>>(&mut self) -> Result<T, TextError> {
        let (value, rest) = postcard::take_from_bytes(self.0)?;
        self.0 = rest;
        Ok(value)
    }

    /// Decodes a number of elements, or of keys and values.
    fn parts(&mut self, left: usize) -> Parts<'_, 'de> {
        Parts { rest: self, left }
    }
}

macro_rules! values {
    ($($method:ident $visit:ident $of:ty),*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TextError> {
            visitor.$visit(self.take::<$of>()?)
        })*
    };
}

macro_rules! unknown {
    ($($method:ident)*) => {
        $(fn $method<V: Visitor<'de>>(self, _: V) -> Result<V::Value, TextError> {
            Err(postcard::Error::WontImplement.into())
        })*
    };
}

impl<'de> Deserializer<'de> for &mut Rest<'de> {
    type Error = TextError;

    values! {
        deserialize_bool visit_bool bool, deserialize_char visit_char char,
        deserialize_f32 visit_f32 f32, deserialize_f64 visit_f64 f64,
        deserialize_i8 visit_i8 i8, deserialize_i16 visit_i16 i16,
        deserialize_i32 visit_i32 i32, deserialize_i64 visit_i64 i64,
        deserialize_i128 visit_i128 i128, deserialize_u8 visit_u8 u8,
        deserialize_u16 visit_u16 u16, deserialize_u32 visit_u32 u32,
        deserialize_u64 visit_u64 u64, deserialize_u128 visit_u128 u128,
        deserialize_str visit_borrowed_str &'de str, deserialize_string visit_borrowed_str &'de str,
        deserialize_bytes visit_borrowed_bytes &'de [u8],
        deserialize_byte_buf visit_borrowed_bytes &'de [u8]
    }

    unknown! { deserialize_any deserialize_identifier deserialize_ignored_any }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TextError> {
        if self.take::<bool>()? { visitor.visit_some(self) } else { visitor.visit_none() }
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TextError> {
        visitor.visit_unit()
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, TextError> {
        visitor.visit_unit()
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, TextError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TextError> {
        let length = self.take()?;
        visitor.visit_seq(self.parts(length))
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TextError> {
        let length = self.take()?;
        visitor.visit_map(self.parts(length))
    }

    fn deserialize_tuple<V: Visitor<'de>>(
        self,
        length: usize,
        visitor: V,
    ) -> Result<V::Value, TextError> {
        visitor.visit_seq(self.parts(length))
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        length: usize,
        visitor: V,
    ) -> Result<V::Value, TextError> {
        visitor.visit_seq(self.parts(length))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, TextError> {
        visitor.visit_seq(self.parts(fields.len()))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, TextError> {
        visitor.visit_enum(self)
    }

    fn is_human_readable(&self) -> bool {
        false
    }
}

struct Parts<'a, 'de> {
    rest: &'a mut Rest<'de>,
    left: usize,
}

impl<'de> SeqAccess<'de> for Parts<'_, 'de> {
    type Error = TextError;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, TextError> {
        let Some(left) = self.left.checked_sub(1) else { return Ok(None) };
        self.left = left;
        seed.deserialize(&mut *self.rest).map(Some)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.left)
    }
}

impl<'de> MapAccess<'de> for Parts<'_, 'de> {
    type Error = TextError;

    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, TextError> {
        self.next_element_seed(seed)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, TextError> {
        seed.deserialize(&mut *self.rest)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.left)
    }
}

impl<'de> EnumAccess<'de> for &mut Rest<'de> {
    type Error = TextError;
    type Variant = Self;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Self), TextError> {
        let variant: U32Deserializer<TextError> = self.take::<u32>()?.into_deserializer();
        Ok((seed.deserialize(variant)?, self))
    }
}

impl<'de> VariantAccess<'de> for &mut Rest<'de> {
    type Error = TextError;

    fn unit_variant(self) -> Result<(), TextError> {
        Ok(())
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, TextError> {
        seed.deserialize(self)
    }

    fn tuple_variant<V: Visitor<'de>>(
        self,
        length: usize,
        visitor: V,
    ) -> Result<V::Value, TextError> {
        visitor.visit_seq(self.parts(length))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, TextError> {
        visitor.visit_seq(self.parts(fields.len()))
    }
}
