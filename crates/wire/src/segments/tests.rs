//! Lists of segments against the lists that they were made from, and malformed ones.

use proptest::prelude::*;

use super::*;

fn locations() -> impl Strategy<Value = Location> {
    any::<(u64, u64)>().prop_map(|(offset, length)| Location { offset, length })
}

fn aparts() -> impl Strategy<Value = Apart> {
    let units = (0..5_u32).prop_map(|power| Unit::new(1 << power).expect("a unit"));
    (any::<(Mark, u64)>(), 0..1_usize << 50, units).prop_map(|((mark, address), count, unit)| {
        Apart { mark, address, length: count * usize::from(unit.get()), unit }
    })
}

/// The segments of a list, with their inline bytes.
#[derive(Debug, Clone)]
enum Owned {
    Inline(Vec<u8>),
    Other(Segment<'static>),
}

impl Owned {
    fn as_segment(&self) -> Segment<'_> {
        match self {
            Self::Inline(bytes) => Segment::Inline(bytes),
            Self::Other(segment) => *segment,
        }
    }
}

fn segments() -> impl Strategy<Value = Owned> {
    prop_oneof![
        any::<Vec<u8>>().prop_map(Owned::Inline),
        locations().prop_map(|it| Owned::Other(Segment::Argument(it))),
        locations().prop_map(|it| Owned::Other(Segment::Result(it))),
        (any::<(u64, u64)>(), locations()).prop_map(|((inode, length), it)| {
            Owned::Other(Segment::Foreign(ArenaRef { inode, length }, it))
        }),
        aparts().prop_map(|it| Owned::Other(Segment::Apart(it))),
    ]
}

proptest! {
    #[test]
    fn split_lists_are_the_appended_ones_and_truncated_ones_less(
        encoded: Vec<u8>, list in proptest::collection::vec(segments(), 0..8),
    ) {
        let list: Vec<_> = list.iter().map(Owned::as_segment).collect();
        let mut bytes = encoded.clone();
        append(&mut bytes, &list, usize::MAX).expect("room");
        let size = bytes.len() - encoded.len();
        let mut bounded = encoded.clone();
        prop_assert!(append(&mut bounded, &list, size - 1).is_err());
        prop_assert_eq!(&bounded, &encoded);
        prop_assert_eq!(append(&mut bounded, &list, size), Ok(()));
        prop_assert_eq!(&bounded, &bytes);

        let (split_off, found) = split(&bytes).expect("a list");
        prop_assert_eq!(split_off, encoded);
        prop_assert_eq!(found.len(), list.len());
        prop_assert_eq!(found.collect::<Vec<_>>(), list);
        for cut in 0..bytes.len() {
            if let Ok((encoded, found)) = split(&bytes[..cut]) {
                prop_assert!(encoded.len() + found.map(size_of_inline).sum::<usize>() < cut);
            }
        }
    }

    #[test]
    fn random_lists_hold_no_more_than_their_bytes(
        mut bytes: Vec<u8>, entries in proptest::collection::vec(any::<[u64; 5]>(), 0..4),
        kinds in proptest::collection::vec(0..6_u64, 4), spoil in any::<bool>(),
    ) {
        for (mut entry, kind) in entries.iter().copied().zip(&kinds) {
            entry[0] = if spoil { entry[0] } else { *kind };
            bytes.extend(entry.iter().flat_map(|word| word.to_le_bytes()));
        }
        bytes.extend((entries.len() as u64).to_le_bytes());
        if let Ok((encoded, found)) = split(&bytes) {
            prop_assert_eq!(found.len(), entries.len());
            prop_assert!(encoded.len() + found.map(size_of_inline).sum::<usize>() < bytes.len());
        }
    }
}

fn size_of_inline(segment: Segment<'_>) -> usize {
    if let Segment::Inline(bytes) = segment { bytes.len() } else { 0 }
}

#[test]
fn lengths_that_overflow_are_an_error() {
    let mut bytes = Vec::new();
    for length in [u64::MAX, 2] {
        bytes.extend([INLINE, 0, length, 0, 0].iter().flat_map(|word| word.to_le_bytes()));
    }
    bytes.extend(2_u64.to_le_bytes());
    assert!(split(&bytes).is_err());
}

#[test]
fn too_many_segments_are_neither_sent_nor_received() {
    let mut bytes = Vec::new();
    append(&mut bytes, &vec![Segment::Inline(&[]); MAX], usize::MAX).expect("room");
    assert_eq!(split(&bytes).map(|(_, found)| found.len()), Ok(MAX));
    let mut more = Vec::new();
    let error = append(&mut more, &vec![Segment::Inline(&[]); MAX + 1], usize::MAX).unwrap_err();
    assert!(error.to_string().contains("4096"), "{error}");
    let mut lie = vec![0; (MAX + 1) * ENTRY];
    lie.extend((MAX as u64 + 1).to_le_bytes());
    assert!(split(&lie).is_err());
    assert!(split(&u64::MAX.to_le_bytes()).is_err());
}

#[test]
fn numbers_that_are_not_whole_are_no_segment() {
    let arrives = |kind: u64, unit: u64, length: u64| {
        let words = [kind | unit << UNIT_SHIFT, 8, length, 0, 0, 1];
        split(&words.map(u64::to_le_bytes).concat()).is_ok()
    };
    assert!(arrives(APART, 4, 8));
    for (kind, unit, length) in
        [(APART, 3, 9), (APART, 0, 8), (APART, 4, 7), (APART, 260, 8), (6, 4, 8)]
    {
        assert!(!arrives(kind, unit, length), "{kind} {unit} {length}");
    }
}

#[test]
fn segments_are_put_into_the_payload_one_by_one() {
    let mark = [7; 16];
    let apart = Apart { mark, address: 8, length: 4, unit: Unit::BYTE };
    let location = Location { offset: 1, length: 2 };
    let list = [Segment::Apart(apart), Segment::Argument(location), Segment::Inline(b"in")];
    let mut payload = [&b"x\x10"[..], &mark, b"y"].concat();
    append(&mut payload, &list, usize::MAX).expect("room");

    let numbers = |segment: &Segment<'_>| segment.apart().map(|_| &b"1234"[..]);
    let mut joined = vec![9];
    assert_eq!(put_in(&payload, numbers, &mut joined, usize::MAX), Ok(()));
    let (encoded, left) = split(&joined).expect("a list");
    assert_eq!((encoded, left.collect()), (&b"\x09x\x041234y"[..], list[1..].to_vec()));
    let buffers = |segment: &Segment<'_>| segment.apart().is_none().then_some(&b"12"[..]);
    let mut inline = Vec::new();
    assert_eq!(put_in(&payload, buffers, &mut inline, usize::MAX), Ok(()));
    let (_, left) = split(&inline).expect("a list");
    assert_eq!(left.collect::<Vec<_>>()[1], Segment::Inline(b"12"));
    assert!(put_in(&payload, buffers, &mut Vec::new(), inline.len() - 1).is_err());

    let mut alone = [&b"x\x10"[..], &mark].concat();
    append(&mut alone, &list[..1], usize::MAX).expect("room");
    let mut joined = Vec::new();
    assert_eq!(put_in(&alone, numbers, &mut joined, 0), Ok(()));
    assert_eq!(joined, [&b"x\x041234"[..], &[0; WORD]].concat());
    assert!(put_in(&alone[1..], |_| Some(b"1"), &mut Vec::new(), 0).is_ok());
    assert!(put_in(&alone[2..], |_| Some(b"1"), &mut Vec::new(), 0).is_err());
}
