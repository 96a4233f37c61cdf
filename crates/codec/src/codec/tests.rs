//! Encoded values decode to themselves within the limit; anything else is an error that names the
//! type.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serializer};

use super::*;
use crate::chain;
use crate::contiguous::{from_numbers, into_numbers};
use crate::encoded::Encoded;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
enum Shape {
    Nothing,
    Text(String, Option<i64>),
    Many { values: Vec<(u8, f64)>, name: Box<Shape> },
}

fn shapes() -> impl Strategy<Value = Shape> {
    let leaf = prop_oneof![
        Just(Shape::Nothing),
        (any::<String>(), any::<Option<i64>>())
            .prop_map(|(text, number)| Shape::Text(text, number))
    ];
    leaf.prop_recursive(3, 16, 2, |inner| {
        (proptest::collection::vec((any::<u8>(), -1e9..1e9), 0..5), inner)
            .prop_map(|(values, name)| Shape::Many { values, name: Box::new(name) })
    })
}

/// Numbers of all lengths, from one to ten bytes, and a text that may be longer.
fn numbers() -> impl Strategy<Value = (u64, i128, String)> {
    let bits = 0_u32..64;
    (bits.prop_flat_map(|bits| 0..=u64::MAX >> bits), any::<i128>(), any::<String>())
}

fn encoded<T: Serialize + 'static>(value: &T) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(value, &mut bytes, usize::MAX).expect("encodes");
    bytes
}

proptest! {
    #[test]
    fn encoded_values_decode_to_themselves(value in shapes()) {
        prop_assert_eq!(decode::<Shape>(&encoded(&value)).expect("decodes"), value);
    }

    #[test]
    fn values_are_encoded_as_postcard_does_behind_what_was_there(
        value in (any::<Vec<(u64, u16, i32)>>(), proptest::collection::vec(numbers(), 0..100), shapes()),
        before in proptest::collection::vec(any::<u8>(), 0..40),
        room in 0_usize..80,
    ) {
        let expected = postcard::to_stdvec(&value).expect("encodes");
        let mut into = Vec::with_capacity(before.len() + room);
        into.extend_from_slice(&before);
        encode(&value, &mut into, expected.len()).expect("fits exactly");
        prop_assert_eq!(into.split_at(before.len()), (before.as_slice(), expected.as_slice()));
    }

    #[test]
    fn bytes_and_text_are_encoded_as_postcard_does(bytes in any::<Vec<u8>>(), text in any::<String>()) {
        prop_assert_eq!(encoded(&bytes), postcard::to_stdvec(&bytes).expect("encodes"));
        prop_assert_eq!(encoded(&text), postcard::to_stdvec(&text).expect("encodes"));
        prop_assert_eq!(decode::<Vec<u8>>(&encoded(&bytes)).expect("decodes"), bytes);
        prop_assert_eq!(decode::<String>(&encoded(&text)).expect("decodes"), text);
    }

    #[test]
    fn encoded_bytes_stay_as_they_are(value in shapes(), text in any::<String>()) {
        for bytes in [encoded(&value), encoded(&text)] {
            let again: Encoded = decode(&bytes).expect("any bytes are encoded");
            prop_assert_eq!(again.as_slice(), &bytes);
            prop_assert_eq!(encoded(&again), bytes.clone());
            let (prefix, part) = contiguous_parts(&again).expect("contiguous");
            prop_assert_eq!((prefix.as_slice(), part), (&[][..], &bytes[..]));
            prop_assert_eq!(decode_from::<Encoded>(&Elsewhere(bytes.clone())).expect("decodes"), again.clone());
            let memory = into_numbers(again).expect("its bytes");
            prop_assert_eq!(memory.as_bytes(), bytes);
        }
    }

    #[test]
    fn truncated_or_random_bytes_never_panic(
        value in shapes(), garbage in any::<Vec<u8>>()
    ) {
        let bytes = encoded(&value);
        for cut in 0..bytes.len() {
            prop_assert!(decode::<Shape>(&bytes[..cut]).is_err());
        }
        let _ = decode::<Shape>(&garbage);
        let _ = decode::<Vec<u8>>(&garbage);
        let _ = decode::<String>(&garbage);
    }

    #[test]
    fn a_value_above_the_limit_leaves_the_buffer_unchanged(value in shapes(), cut in any::<prop::sample::Index>()) {
        let length = encoded(&value).len();
        let mut into = vec![1, 2, 3];
        let error = encode(&value, &mut into, cut.index(length)).expect_err("too large");
        prop_assert!(matches!(error, CodecError::TooLarge { .. }), "{}", error);
        prop_assert_eq!(&into, &[1, 2, 3]);
        encode(&value, &mut into, length).expect("fits exactly");
    }
}

struct Elsewhere(Vec<u8>);

impl Source for Elsewhere {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn copy(&self, at: usize, length: usize, unit: Unit) -> Option<Numbers> {
        Numbers::copy_of(&self.0[at..at + length], unit)
    }
}

/// Checks the encoding of a vector of numbers that have these bytes in memory, and what is near it.
fn check_numbers<N>(numbers: Vec<N>, in_memory: &[u8])
where
    N: Copy + Serialize + DeserializeOwned + 'static,
{
    let mut expected = postcard::to_stdvec(&numbers.len()).expect("encodes");
    expected.extend(in_memory);
    assert_eq!(encoded(&numbers), expected);
    assert!(encode(&numbers, &mut Vec::new(), expected.len() - 1).is_err());

    let address = numbers.as_ptr();
    let memory = into_numbers(numbers).expect("numbers");
    assert_eq!(memory.as_bytes(), in_memory);
    let again: Vec<N> = from_numbers(memory).expect("the same");
    assert_eq!(again.as_ptr(), address);

    let memory_of = |numbers: Result<Vec<N>, CodecError>| into_numbers(numbers.ok()?);
    let of_slice = |bytes: &[u8]| memory_of(decode(bytes));
    let of_source = |bytes: &[u8]| memory_of(decode_from(&Elsewhere(bytes.to_vec())));
    check_decoding(&expected, in_memory, &of_slice, &of_source);
}

/// Checks how numbers are decoded, the same code for all types.
fn check_decoding(
    bytes: &[u8],
    in_memory: &[u8],
    of_slice: &dyn Fn(&[u8]) -> Option<Numbers>,
    of_source: &dyn Fn(&[u8]) -> Option<Numbers>,
) {
    for shift in 0..3 {
        let shifted = [&vec![9; shift], bytes].concat();
        assert_eq!(of_slice(&shifted[shift..]).expect("decodes").as_bytes(), in_memory);
    }
    assert_eq!(of_source(bytes).expect("decodes").as_bytes(), in_memory);
    let again: Encoded = decode(bytes).expect("any bytes are encoded");
    assert_eq!(encoded(&again), bytes);

    let last = bytes.len() - 1;
    let wrong = [&bytes[..last], &[bytes, &[0]].concat(), &[&[bytes[0] ^ 1], &bytes[1..]].concat()];
    for wrong in wrong {
        assert!(of_slice(wrong).is_none() && of_source(wrong).is_none());
    }
}

proptest! {
    #[test]
    fn vectors_of_numbers(bits in proptest::collection::vec(any::<u128>(), 0..300)) {
        macro_rules! check {
            ($($number:ty)*) => {
                $({
                    let bytes = bits.iter().map(|it| *it.to_le_bytes().first_chunk().expect("short"));
                    let numbers = bytes.clone().map(<$number>::from_le_bytes).collect();
                    check_numbers::<$number>(numbers, &bytes.flatten().collect::<Vec<_>>());
                })*
            };
        }
        check!(u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize f32 f64);
    }
}

#[test]
fn vectors_inside_a_value_are_encoded_as_postcard_does() {
    let value = (vec![1_u32, 300], Ok::<_, String>(vec![0.5_f32]));
    assert_eq!(encoded(&value), postcard::to_stdvec(&value).expect("encodes"));
    assert!(contiguous_parts(&value).is_none() && into_numbers(value).is_none());
    assert!(contiguous_parts(&vec![true]).is_none() && contiguous_parts(&vec!['x']).is_none());
}

#[test]
fn bytes_of_other_numbers_are_an_error_that_says_so() {
    // Postcard would read three numbers.
    let error = decode::<Vec<u32>>(&[3, 1, 2, 3]).expect_err("no vector");
    assert!(chain(&error).contains("Vec<u32>") && chain(&error).contains("4 bytes"), "{error:?}");
}

#[test]
fn encoded_bytes_within_another_value_are_an_error_that_says_so() {
    let error = encode(&(1_u8, Encoded::default()), &mut Vec::new(), 10).expect_err("a part");
    assert!(chain(&error).contains("the whole argument"), "{}", chain(&error));
    let error = decode::<Option<Encoded>>(&[1, 2]).expect_err("a part");
    assert!(chain(&error).contains("the whole argument"), "{}", chain(&error));
    let error = decode::<Shape>(&[9]).expect_err("no such variant");
    assert!(!chain(&error).contains("the whole argument"), "{}", chain(&error));
    let error = encode(&Encoded::new(vec![0; 11]), &mut Vec::new(), 10).expect_err("too large");
    assert!(matches!(error, CodecError::TooLarge { limit: 10, .. }), "{error}");
}

/// An odd number, whose `Serialize` and `Deserialize` refuse an even one.
#[derive(Debug)]
struct Odd(u32);

impl Odd {
    fn check(number: u32) -> Result<Self, String> {
        if number % 2 == 1 { Ok(Self(number)) } else { Err(format!("{number} is even")) }
    }
}

impl Serialize for Odd {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Self::check(self.0).map_err(S::Error::custom)?.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Odd {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::check(u32::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

/// A type of every kind that serde knows, around a number.
#[derive(Debug, Serialize, Deserialize)]
enum Around<N> {
    Unit,
    New(N),
    Tuple(char, N),
    Struct {
        text: String,
        bytes: (i128, f32, bool),
        map: BTreeMap<String, Option<N>>,
        none: Option<N>,
    },
    List(Vec<((), Nothing, New<N>, u64, i8)>),
}

#[derive(Debug, Serialize, Deserialize)]
struct Nothing;

#[derive(Debug, Serialize, Deserialize)]
struct New<N>(N);

fn around<N>(number: impl Fn() -> N) -> [Around<N>; 5] {
    let map = || ["one", "two"].map(|key| (key.to_owned(), Some(number()))).into();
    [
        Around::Unit,
        Around::New(number()),
        Around::Tuple('x', number()),
        Around::Struct { text: "text".into(), bytes: (-1, 0.5, true), map: map(), none: None },
        Around::List(vec![((), Nothing, New(number()), 1 << 40, -7)]),
    ]
}

#[test]
fn errors_of_a_type_keep_their_text_wherever_they_are() {
    for (value, bytes) in around(|| Odd(4)).iter().zip(around(|| 4_u32).iter().map(encoded)) {
        if matches!(value, Around::Unit) {
            decode::<Around<Odd>>(&bytes).expect("no number");
            continue;
        }
        let error = encode(value, &mut Vec::new(), 1000).expect_err("an even number");
        assert!(chain(&error).ends_with("cannot be encoded: 4 is even"), "{error:?}");
        let error = decode::<Around<Odd>>(&bytes).expect_err("an even number");
        assert!(chain(&error).ends_with("cannot be decoded: 4 is even"), "{error:?}");
    }
    for (value, bytes) in around(|| Odd(3)).iter().zip(around(|| 3_u32).iter().map(encoded)) {
        assert_eq!(encoded(value), bytes);
        decode::<Around<Odd>>(&bytes).expect("an odd number");
    }
    let error = decode::<Shape>(&[9]).expect_err("no such variant");
    assert!(chain(&error).contains("integer `9`"), "{error:?}");
}

/// Hides that a value does not fit behind an error of its own.
struct Hides;

impl Serialize for Hides {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Endless.serialize(serializer).map_err(|_| S::Error::custom("hidden"))
    }
}

#[test]
fn the_search_for_a_text_ends_at_the_limit() {
    let error = encode(&Hides, &mut Vec::new(), 1000).expect_err("too large");
    assert!(chain(&error).contains("Hides"), "{error:?}");
}

/// Claims to be ten billion numbers.
struct Endless;

impl Serialize for Endless {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(EndlessNumbers(10_000_000_000))
    }
}

#[derive(Clone)]
struct EndlessNumbers(usize);

impl Iterator for EndlessNumbers {
    type Item = u8;

    fn next(&mut self) -> Option<u8> {
        self.0 = self.0.checked_sub(1)?;
        Some(0)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.0, Some(self.0))
    }
}

#[test]
fn encoding_stops_at_the_limit_and_takes_no_more_memory() {
    let limits = [0, 1, 31, 32, 63, 1000, 100_000];
    for (limit, is_empty) in limits.into_iter().flat_map(|it| [(it, true), (it, false)]) {
        let mut into = Vec::new();
        let mut bounded = &mut BoundedVec::new(&mut into, limit, is_empty);
        while bounded.try_push(7).is_ok() {}
        assert!(bounded.finalize().is_err());
        assert_eq!((into.len(), into.capacity()), (limit, limit));

        let mut into = vec![1, 2, 3];
        let before = into.capacity();
        let error = encode(&Endless, &mut into, limit).expect_err("too large");
        assert!(matches!(error, CodecError::TooLarge { .. }), "{error}");
        assert_eq!((into.as_slice(), into.capacity()), (&[1, 2, 3][..], before));
    }
}

#[test]
fn bytes_above_the_limit_are_not_copied() {
    let mut into = Vec::new();
    let bytes = vec![0_u8; 200];
    let error = encode(&bytes, &mut into, 201).expect_err("the length takes two bytes");
    assert!(matches!(error, CodecError::TooLarge { limit: 201, .. }), "{error}");
    assert_eq!(into.capacity(), 0);
    encode(&bytes, &mut into, 202).expect("fits exactly");
    assert_eq!(into.capacity(), 202);
}

/// Ignores that an element did not fit.
struct Careless;

impl Serialize for Careless {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeTuple;
        let mut tuple = serializer.serialize_tuple(2)?;
        let _ = tuple.serialize_element("longer than the limit");
        let _ = tuple.serialize_element(&1_u8);
        tuple.end()
    }
}

#[test]
fn an_ignored_overflow_is_still_an_error() {
    let mut into = Vec::new();
    let error = encode(&Careless, &mut into, 10).expect_err("too large");
    assert!(matches!(error, CodecError::TooLarge { .. }), "{error}");
    assert!(into.is_empty());
}

#[test]
fn a_false_length_does_not_allocate_memory() {
    let mut bytes = postcard::to_stdvec(&u64::MAX).expect("encodes");
    bytes.extend([1; 20]);
    assert!(decode::<Vec<u8>>(&bytes).is_err());
    assert!(decode::<Vec<u64>>(&bytes).is_err());
    assert!(decode::<Vec<f32>>(&bytes).is_err());
    assert!(decode::<String>(&bytes).is_err());
    assert!(decode::<Vec<String>>(&bytes).is_err());
    assert!(decode::<std::collections::HashMap<u64, String>>(&bytes).is_err());
}

struct Refuses;

impl Serialize for Refuses {
    fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        Err(S::Error::custom("no"))
    }
}

#[test]
fn errors_name_the_type_and_their_chain_names_the_cause() {
    let told = |error: CodecError| (error.to_string(), chain(&error));
    let (what, _) = told(encode(&Refuses, &mut Vec::new(), 10).expect_err("refuses"));
    assert!(what.contains("Refuses"), "{what}");
    let (what, _) = told(encode(&Endless, &mut Vec::new(), 10).expect_err("too large"));
    assert!(what.contains("Endless") && what.contains("10 bytes"), "{what}");
    let (what, why) = told(decode::<Shape>(&[9]).expect_err("no such variant"));
    assert!(what.contains("Shape"), "{what}");
    assert!(why.len() > what.len(), "{why}");
    let (what, why) = told(decode::<u8>(&[1, 2]).expect_err("one too many"));
    assert!(what.contains("u8"), "{what}");
    assert!(why.contains("1 bytes are left over") && !what.contains("left over"), "{why}");
    let (what, _) = told(decode::<String>(&[2, 0xff, 0xff]).expect_err("not UTF-8"));
    assert!(what.contains("String"), "{what}");
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum Untagged {
    Number(u32),
}

#[derive(Debug, Serialize, Deserialize)]
struct Flat {
    #[serde(flatten)]
    inner: Sparse,
}

#[derive(Debug, Serialize, Deserialize)]
struct Sparse {
    #[serde(skip_serializing_if = "Option::is_none")]
    first: Option<u32>,
    second: u32,
}

#[test]
fn errors_name_the_attributes_of_serde_that_do_not_work() {
    let mut bytes = Vec::new();
    encode(&Untagged::Number(1), &mut bytes, 10).expect("encodes as a number");
    let why = chain(&decode::<Untagged>(&bytes).expect_err("no type is written"));
    assert!(why.contains("`untagged`") && why.contains("send it as text"), "{why}");

    let sparse = || Sparse { first: None, second: 3 };
    let flat = Flat { inner: sparse() };
    let why = chain(&encode(&flat, &mut Vec::new(), 10).expect_err("no names are written"));
    assert!(why.contains("`flatten`"), "{why}");

    bytes.clear();
    encode(&sparse(), &mut bytes, 10).expect("encodes one field of two");
    let why = chain(&decode::<Sparse>(&bytes).expect_err("a field is missing"));
    assert!(why.contains("without `skip_serializing_if`"), "{why}");
}

#[test]
fn a_cause_that_an_error_quotes_is_not_repeated() {
    #[derive(Debug, thiserror::Error)]
    #[error("IO error: {0}")]
    struct Quotes(#[source] std::fmt::Error);
    let cause = std::fmt::Error;
    assert_eq!(chain(&Quotes(cause)), format!("IO error: {cause}"));
}
