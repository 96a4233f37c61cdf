//! Values in parts against the same values encoded together.

use proptest::prelude::*;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::*;
use crate::packed::{self, Packed};
use crate::{Encoded, chain, encode};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Mixed {
    before: u32,
    #[serde(with = "packed")]
    bytes: Vec<u8>,
    #[serde(with = "packed")]
    floats: Box<[f32]>,
    between: Option<String>,
    list: Vec<(Packed<Vec<u16>>, u8)>,
    end: Result<Packed<Box<[i64]>>, String>,
}

fn mixed() -> impl Strategy<Value = Mixed> {
    let floats = any::<Vec<f32>>().prop_map(Vec::into_boxed_slice);
    let list = proptest::collection::vec(
        (proptest::collection::vec(any::<u16>(), 0..5), any::<u8>()),
        0..80,
    );
    let list = list.prop_map(|list| {
        list.into_iter().map(|(packed, number)| (Packed::new(packed), number)).collect()
    });
    let end = any::<Result<Box<[i64]>, String>>().prop_map(|end| end.map(Packed::new));
    let whole = (any::<u32>(), any::<Vec<u8>>(), floats, any::<Option<String>>(), list, end);
    whole.prop_map(|(before, bytes, floats, between, list, end)| Mixed {
        before,
        bytes,
        floats,
        between,
        list,
        end,
    })
}

const MAX_BYTES: usize = 1000;
const NAMED: (usize, Addresses) = (MAX_BYTES, Addresses::Named);

fn in_parts<T: Serialize + 'static>(value: &T) -> (Vec<u8>, Vec<SharedNumbers>) {
    let (mut encoded, mut parts) = (Vec::new(), Vec::new());
    encode_in_parts(value, &mut encoded, usize::MAX, NAMED, Some(&mut parts)).expect("encodes");
    (encoded, parts)
}

fn together_of<T: Serialize + 'static>(value: &T) -> Vec<u8> {
    let mut encoded = Vec::new();
    encode(value, &mut encoded, usize::MAX).expect("encodes");
    encoded
}

fn copies(parts: &[SharedNumbers]) -> Vec<Numbers> {
    parts.iter().map(|part| Numbers::copy_of(part.as_bytes(), part.unit()).unwrap()).collect()
}

proptest! {
    #[test]
    fn values_in_parts_decode_to_themselves(value in mixed()) {
        let (encoded, parts) = in_parts(&value);
        let together = together_of(&value);
        if parts.is_empty() {
            prop_assert_eq!(encoded, together);
            return Ok(());
        }
        let total: usize = parts.iter().map(|part| part.as_bytes().len()).sum();
        prop_assert!(total <= MAX_BYTES && parts.len() <= scope::MAX_PARTS);
        let table = Table::of(&encoded).expect("a table");
        for (place, part) in table.parts.iter().zip(&parts) {
            let address = part.as_bytes().as_ptr().addr() as u64;
            let (length, unit) = (part.as_bytes().len(), part.unit());
            prop_assert_eq!(*place, Place { address, length, unit, mark: place.mark });
        }
        let joined = table.join(&parts);
        prop_assert_eq!(joined.as_ref(), Some(&together));
        prop_assert_eq!(decode_in_parts::<Mixed>(&encoded, copies(&parts)).unwrap(), value);
        let bytes: Encoded = decode_in_parts(&encoded, copies(&parts)).unwrap();
        prop_assert_eq!(bytes.as_slice(), together);
        // As a liar may send them.
        for cut in (0..encoded.len()).step_by(31) {
            let _ = Table::of(&encoded[..cut]).map(|table| table.join(&parts));
            let _ = decode_in_parts::<Mixed>(&encoded[..cut], copies(&parts));
            let mut changed = encoded.clone();
            changed[cut] ^= 0xff;
            let _ = Table::of(&changed).map(|table| table.join(&parts));
            let _ = decode_in_parts::<Mixed>(&changed, copies(&parts));
        }
    }
}

#[test]
fn a_packed_vector_keeps_its_memory() {
    let packed = Packed::new(vec![1_u64, 2, 3]);
    let address = packed.as_ptr();
    let (encoded, parts) = in_parts(&(7_u8, packed));
    assert_eq!(parts[0].as_bytes().as_ptr(), address.cast());
    let numbers = Numbers::of(vec![1_u64, 2, 3]);
    let arrived = numbers.as_bytes().as_ptr();
    let (_, packed): (u8, Packed<Vec<u64>>) = decode_in_parts(&encoded, vec![numbers]).unwrap();
    let numbers = packed.into_inner();
    assert_eq!((numbers.as_ptr().cast(), numbers), (arrived, vec![1, 2, 3]));
}

#[test]
fn values_in_parts_keep_to_the_limit() {
    let value = ("text".to_owned(), Packed::new(vec![1_u32; 100]));
    let together = together_of(&value).len();
    for limit in [together - 1, together] {
        let (mut encoded, mut parts) = (vec![9], Vec::new());
        let capacity = encoded.capacity();
        let result = encode_in_parts(&value, &mut encoded, limit, NAMED, Some(&mut parts));
        if limit == together {
            result.expect("fits exactly");
            let table = Table::of(&encoded[1..]).expect("a table");
            assert_eq!((parts.len(), table.joined_length()), (1, together));
        } else {
            assert!(matches!(result, Err(CodecError::TooLarge { .. })));
            assert_eq!((&encoded, encoded.capacity(), parts.len()), (&vec![9], capacity, 0));
        }
    }
}

#[test]
fn more_vectors_than_there_may_be_stay_in_the_value() {
    for (count, length, expected) in
        [(1, 2, 0), (64, 3, 64), (70, 3, 64), (2, 500, 2), (2, 501, 1), (1, 1001, 0)]
    {
        let value = vec![Packed::new(vec![7_u8; length]); count];
        let (encoded, parts) = in_parts(&value);
        assert_eq!(parts.len(), expected, "{count} of {length} bytes");
        let decoded: Vec<Packed<Vec<u8>>> = match expected {
            0 => decode(&encoded).unwrap(),
            _ => decode_in_parts(&encoded, copies(&parts)).unwrap(),
        };
        assert_eq!(decoded, value);
    }
}

#[test]
fn addresses_are_hidden_on_demand() {
    let hidden = (MAX_BYTES, Addresses::Hidden);
    let (mut encoded, mut parts) = (Vec::new(), Vec::new());
    let value = (1_u8, Packed::new(vec![1_u8; 100]));
    encode_in_parts(&value, &mut encoded, usize::MAX, hidden, Some(&mut parts)).expect("encodes");
    assert_eq!(Table::of(&encoded).expect("a table").parts[0].address, 0);
}

/// A type without a destructor that has a large vector all the same.
#[derive(Clone, Copy)]
struct Handle;

impl Serialize for Handle {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        packed::serialize(&vec![7_u8; 50], serializer)
    }
}

/// A value whose own code encodes other ones with this codec and with postcard.
struct Nested(Packed<Vec<u16>>);

impl Serialize for Nested {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let inner = (1_u8, self.0.clone());
        let mut bytes = together_of(&inner);
        bytes.extend(postcard::to_extend(&inner, Vec::new()).expect("encodes"));
        let (encoded, parts) = in_parts(&inner);
        assert_eq!(parts.len(), 1);
        bytes.extend(decode_in_parts::<Encoded>(&encoded, copies(&parts)).unwrap().as_slice());
        bytes.extend(together_of(&Handle));
        (bytes, &self.0).serialize(serializer)
    }
}

#[test]
fn a_value_within_another_has_its_own_parts() {
    let value = (String::new(), Nested(Packed::new(vec![7, 8, 9])));
    let mut expected = together_of(&(1_u8, value.1.0.clone())).repeat(3);
    expected.push(50);
    expected.extend([7; 50]);
    let (encoded, parts) = in_parts(&value);
    assert_eq!(parts.len(), 1);
    let (_, (bytes, packed)): (String, (Vec<u8>, Packed<Vec<u16>>)) =
        decode_in_parts(&encoded, copies(&parts)).unwrap();
    assert_eq!((bytes, packed), (expected, value.1.0));
}

/// A value whose own code decodes another one, of these bytes.
#[derive(Debug)]
struct Decodes(Packed<Vec<u8>>);

impl<'de> Deserialize<'de> for Decodes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let bytes = <&[u8]>::deserialize(deserializer)?;
        let (_, inner) = decode::<(u8, _)>(bytes).map_err(D::Error::custom)?;
        Ok(Self(inner))
    }
}

#[test]
fn a_value_within_another_takes_none_of_its_parts() {
    let (encoded, parts) = in_parts(&(vec![0_u8; 18], Packed::new(vec![7_u8; 100])));
    // A liar knows the mark, and sends it as the bytes that the inner value has.
    let table = Table::of(&encoded).expect("a table");
    let mut changed = encoded.clone();
    changed[2] = 16;
    changed[3..19].copy_from_slice(&table.parts[0].mark);
    let (inner, packed): (Decodes, Packed<Vec<u8>>) =
        decode_in_parts(&changed, copies(&parts)).unwrap();
    assert_eq!((inner.0.len(), packed.len()), (16, 100));
}

/// A value that is never decoded.
#[derive(Debug, Serialize)]
struct Odd(u8);

impl<'de> Deserialize<'de> for Odd {
    fn deserialize<D: Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
        Err(D::Error::custom("the number is odd"))
    }
}

#[test]
fn an_error_of_a_type_behind_a_part_is_kept() {
    let (encoded, parts) = in_parts(&(Packed::new(vec![1_u8; 100]), Odd(3)));
    let error = decode_in_parts::<(Packed<Vec<u8>>, Odd)>(&encoded, copies(&parts)).unwrap_err();
    assert!(chain(&error).ends_with("the number is odd"), "{}", chain(&error));
}

#[test]
fn parts_that_no_field_takes_are_an_error() {
    let (encoded, parts) = in_parts(&(String::new(), Packed::new(vec![1_u8; 100])));
    let error = decode_in_parts::<(String, Vec<u8>)>(&encoded, copies(&parts)).unwrap_err();
    assert!(chain(&error).contains("use `packed`"), "{}", chain(&error));
    decode_in_parts::<(String, Packed<Vec<u8>>)>(&encoded, Vec::new()).expect_err("none");
}

#[test]
fn a_part_is_decoded_as_numbers_of_another_size() {
    let (encoded, parts) = in_parts(&(String::new(), Packed::new(vec![0x0101_u16; 50])));
    let (_, bytes): (String, Packed<Vec<u8>>) = decode_in_parts(&encoded, copies(&parts)).unwrap();
    assert_eq!(bytes.into_inner(), [1; 100]);
    decode_in_parts::<(String, Packed<Vec<u64>>)>(&encoded, copies(&parts)).expect_err("12.5");
}

#[test]
fn values_are_encoded_at_the_end_of_a_thread() {
    struct Last;
    impl Drop for Last {
        fn drop(&mut self) {
            let (encoded, parts) = in_parts(&(String::new(), Packed::new(vec![7_u8; 100])));
            let (_, bytes): (String, Packed<Vec<u8>>) =
                decode_in_parts(&encoded, copies(&parts)).unwrap();
            assert_eq!(bytes.into_inner(), [7; 100]);
        }
    }
    thread_local!(static LAST: Last = const { Last });
    let thread = std::thread::spawn(|| {
        LAST.with(|_| ());
        drop(in_parts(&(String::new(), Packed::new(vec![7_u8; 100]))));
    });
    thread.join().unwrap();
}

#[test]
fn impossible_tables_are_no_tables() {
    let table = |count: u64, unit: u64, length: u64| {
        let mut bytes = vec![0; 100 * 40];
        for word in [8, length, unit, 0, 0, count] {
            bytes.extend(u64::to_le_bytes(word));
        }
        Table::of(&bytes).is_some()
    };
    assert!(table(1, 4, 8));
    for (count, unit, length) in
        [(0, 4, 8), (65, 4, 8), (u64::MAX, 4, 8), (1, 3, 9), (1, 0, 8), (1, 4, 7), (1, 260, 8)]
    {
        assert!(!table(count, unit, length), "{count} {unit} {length}");
    }
    assert!(Table::of(&[]).is_none());
}
