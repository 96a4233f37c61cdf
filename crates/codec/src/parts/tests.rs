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

fn in_parts<T: Serialize + 'static>(value: &T) -> (Vec<u8>, Vec<(Mark, SharedNumbers)>) {
    let (mut encoded, mut parts) = (Vec::new(), Vec::new());
    encode_in_parts(value, &mut encoded, usize::MAX, MAX_BYTES, Some(&mut parts)).expect("encodes");
    (encoded, parts)
}

fn together_of<T: Serialize + 'static>(value: &T) -> Vec<u8> {
    let mut encoded = Vec::new();
    encode(value, &mut encoded, usize::MAX).expect("encodes");
    encoded
}

fn copies(parts: &[(Mark, SharedNumbers)]) -> Vec<(Mark, Numbers)> {
    let copy = |part: &SharedNumbers| Numbers::copy_of(part.as_bytes(), part.unit()).unwrap();
    parts.iter().map(|(mark, part)| (*mark, copy(part))).collect()
}

fn lengths(
    parts: &[(Mark, SharedNumbers)],
) -> impl ExactSizeIterator<Item = (Mark, usize)> + Clone + '_ {
    parts.iter().map(|(mark, part)| (*mark, part.as_bytes().len()))
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
        let total: usize = lengths(&parts).map(|(_, length)| length).sum();
        prop_assert!(total <= MAX_BYTES && parts.len() <= MAX_PARTS);
        prop_assert_eq!(joined_length(encoded.len(), lengths(&parts)), together.len());
        prop_assert_eq!(&*join(&encoded, &parts, "").unwrap(), &together);
        prop_assert_eq!(decode_in_parts::<Mixed>(&encoded, copies(&parts)).unwrap(), value);
        let bytes: Encoded = decode_in_parts(&encoded, copies(&parts)).unwrap();
        prop_assert_eq!(bytes.as_slice(), together);
        // As a liar may send them.
        for cut in (0..encoded.len()).step_by(31) {
            let mut changed = encoded.clone();
            changed[cut] ^= 0xff;
            for lie in [&encoded[..cut], &changed] {
                let _ = joined_length(lie.len(), lengths(&parts));
                let _ = join(lie, &parts, "");
                let _ = decode_in_parts::<Mixed>(lie, copies(&parts));
                let whole = vec![(MARK_OF_END, Numbers::of(lie.to_vec()))];
                let _ = decode_in_parts::<Mixed>(&[], whole);
            }
        }
    }
}

#[test]
fn a_packed_vector_keeps_its_memory() {
    let packed = Packed::new(vec![1_u64, 2, 3]);
    let address = packed.as_ptr();
    let (encoded, parts) = in_parts(&(7_u8, packed));
    assert_eq!(parts[0].1.as_bytes().as_ptr(), address.cast());
    let numbers = Numbers::of(vec![1_u64, 2, 3]);
    let arrived = numbers.as_bytes().as_ptr();
    let (_, packed): (u8, Packed<Vec<u64>>) =
        decode_in_parts(&encoded, vec![(parts[0].0, numbers)]).unwrap();
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
        let result = encode_in_parts(&value, &mut encoded, limit, MAX_BYTES, Some(&mut parts));
        if limit == together {
            result.expect("fits exactly");
            let length = joined_length(encoded.len() - 1, lengths(&parts));
            assert_eq!((parts.len(), length), (1, together));
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
    let mut changed = encoded.clone();
    changed[2] = 16;
    changed[3..19].copy_from_slice(&parts[0].0);
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

/// Decodes numbers that follow a head, as the value that keeps their memory and as any other.
fn decode_whole<R: DeserializeOwned + 'static>(
    head: &[u8],
    numbers: Numbers,
) -> Result<R, CodecError> {
    decode_in_parts(head, vec![(MARK_OF_END, numbers)])
}

#[test]
fn counted_bytes_are_a_vector_a_text_or_encoded() {
    let bytes = |text: &str| Numbers::of(text.as_bytes().to_vec());
    assert_eq!(decode_whole::<Vec<u8>>(&[4], bytes("text")).unwrap(), b"text");
    assert_eq!(decode_whole::<Vec<i8>>(&[2], bytes("\u{ff}")).unwrap(), [-61, -65]);
    assert_eq!(decode_whole::<String>(&[4], bytes("text")).unwrap(), "text");
    assert_eq!(decode_whole::<Encoded>(&[4], bytes("text")).unwrap().as_slice(), b"\x04text");
    assert!(decode_whole::<String>(&[1], Numbers::of(vec![0xff_u8])).is_err());
}

#[test]
fn counted_numbers_are_vectors_of_their_size_or_encoded() {
    let numbers = || Numbers::of(vec![1.0_f32, 0.0]);
    assert_eq!(decode_whole::<Vec<f32>>(&[2], numbers()).unwrap(), [1.0, 0.0]);
    assert_eq!(decode_whole::<Vec<u32>>(&[2], numbers()).unwrap(), [0x3f80_0000, 0]);
    let encoded = decode_whole::<Encoded>(&[2], numbers()).unwrap();
    assert_eq!(decode::<Vec<f32>>(encoded.as_slice()).unwrap(), [1.0, 0.0]);
    // As a liar may claim.
    assert!(decode_whole::<Vec<u8>>(&[2], numbers()).is_err());
    assert!(decode_whole::<Vec<u64>>(&[2], numbers()).is_err());
    assert!(decode_whole::<String>(&[2], numbers()).is_err());
    assert!(decode_whole::<(String, Vec<f32>)>(&[2], numbers()).is_err());
}

#[test]
fn bytes_without_a_head_are_the_encoded_value() {
    let decode = |bytes: &[u8]| decode_whole::<(u8, String)>(&[], Numbers::of(bytes.to_vec()));
    assert_eq!(decode(b"\x07\x02ab").unwrap(), (7, "ab".to_owned()));
    assert!(decode(b"\x07\x02a").is_err());
    let encoded: Encoded = decode_whole(&[], Numbers::of(vec![7_u8])).unwrap();
    assert_eq!(encoded.as_slice(), [7]);
}

#[test]
fn the_memory_of_a_part_becomes_that_of_the_vector() {
    let bytes = vec![7_u8; 100];
    let address = bytes.as_ptr();
    let decoded: Vec<u8> = decode_whole(&[100], Numbers::of(bytes)).unwrap();
    assert_eq!(decoded.as_ptr(), address);
}
