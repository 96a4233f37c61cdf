//! A buffer as the three numbers that a message has in its place: index, start and length.

use serde::de::{Deserialize, Deserializer, Error as _};
use serde::ser::{Error as _, Serialize, Serializer};

use crate::shared::buf::SharedBuf;
use crate::shared::error::{NO_SUCH_BUFFER, NO_SUCH_RANGE, OUTSIDE};
use crate::shared::scope::{export, imported};

/// The index of the buffer in its message, and the start and length of the part in the whole.
type Reference = (u32, u64, u64);

/// Serializes a reference to the bytes, which only a message of a pool can carry.
impl Serialize for SharedBuf {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let copy = self.copy_for_message();
        let sent = copy.as_ref().unwrap_or(self);
        let index = export(sent).ok_or_else(|| S::Error::custom(OUTSIDE))?;
        let range = sent.range();
        let reference: Reference = (index, range.start as u64, range.len() as u64);
        reference.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for SharedBuf {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let reference = Reference::deserialize(deserializer)?;
        let found = imported(|buffers| find(buffers, reference));
        found.unwrap_or(Err(OUTSIDE)).map_err(D::Error::custom)
    }
}

fn find(
    buffers: &[SharedBuf],
    (index, start, length): Reference,
) -> Result<SharedBuf, &'static str> {
    let index = usize::try_from(index).ok();
    let buffer = index.and_then(|index| buffers.get(index)).ok_or(NO_SUCH_BUFFER)?;
    let start = usize::try_from(start).map_err(|_| NO_SUCH_RANGE)?;
    let end = usize::try_from(length).ok().and_then(|length| start.checked_add(length));
    end.and_then(|end| buffer.part(start, end)).ok_or(NO_SUCH_RANGE)
}

#[cfg(not(loom))]
#[cfg(test)]
mod tests {
    use crate::codec::{decode, encode};

    use super::*;
    use crate::shared::scope::{exporting, importing};

    fn encoded(reference: Reference) -> Vec<u8> {
        let mut bytes = Vec::new();
        encode(&reference, &mut bytes, 100).expect("numbers");
        bytes
    }

    #[test]
    fn a_buffer_arrives_with_its_message() {
        let whole = SharedBuf::from((0..200).collect::<Vec<u8>>());
        let parts = vec![Some(whole.slice(3..90)), None, Some(whole.clone())];
        let mut bytes = Vec::new();
        let (result, buffers) = exporting(|| encode(&parts, &mut bytes, 100));
        result.expect("references");
        assert!(bytes.len() < 20, "no byte of a buffer is encoded");
        let buffers = buffers.expect("one buffer");
        assert_eq!(*buffers, [whole]);
        let decoded: Vec<Option<SharedBuf>> =
            importing(&buffers, || decode(&bytes)).expect("references");
        assert_eq!(decoded, parts);
    }

    #[test]
    fn outside_of_a_message_the_error_says_what_to_do() {
        // The text does not pass through postcard, which has none for errors of a type.
        let error = serde_json::to_string(&SharedBuf::copy_of(b"bytes"));
        assert!(error.expect_err("not in a message").to_string().contains("use to_vec()"));
        let error = serde_json::from_str::<SharedBuf>("[0, 0, 0]");
        assert!(error.expect_err("not in a message").to_string().contains("use to_vec()"));
    }

    #[test]
    fn references_out_of_bounds_are_errors() {
        let buffers = [SharedBuf::copy_of(b"bytes")];
        let arrives = |reference| importing(&buffers, || decode::<SharedBuf>(&encoded(reference)));
        assert_eq!(arrives((0, 5, 0)).expect("inside").len(), 0);
        for reference in [
            (1, 0, 0),
            (u32::MAX, 0, 0),
            (0, 6, 0),
            (0, 0, 6),
            (0, 5, 1),
            (0, 1, u64::MAX),
            (0, u64::MAX, 1),
        ] {
            arrives(reference).expect_err("outside");
        }
        importing(&buffers, || decode::<SharedBuf>(&[0, 0]).expect_err("cut off"));
    }
}
