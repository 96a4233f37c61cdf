//! An argument in sealed memory, which any number of workers read in place.
//!
//! ```text
//! bytes of the buffers, each aligned | encoded argument | list of segments
//! ```
//! The segments are [`Segment::Argument`] at an offset in this memory. The encoding begins where
//! the last buffer ends.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use brigade_sys::sealed::{SealedBytes, SealedView};

use crate::error::MessageError;
use crate::location::Location;
use crate::segments::{self, Segment};
use crate::shared::{ALIGNMENT, SharedBuf};

/// Creates sealed memory with an encoded argument, and copies of the buffers that it refers to.
///
/// # Errors
/// If memory or descriptors run out, or there are too many buffers.
pub fn create(name: &str, encoded: &[u8], buffers: &[SharedBuf]) -> io::Result<SealedBytes> {
    let mut parts: Vec<&[u8]> = Vec::new();
    let (mut end, mut list) = (0_usize, Vec::new());
    for buffer in buffers {
        let gap = end.next_multiple_of(ALIGNMENT) - end;
        parts.extend([&[0; ALIGNMENT][..gap], buffer]);
        list.push(Segment::Argument(Location::of(end + gap, buffer.len())));
        end += gap + buffer.len();
    }
    let mut names = Vec::new();
    segments::append(&mut names, &list, usize::MAX).map_err(io::Error::other)?;
    parts.extend([encoded, &names]);
    SealedBytes::create(name, &parts)
}

/// An argument in the memory of [`create`].
#[derive(Debug)]
pub struct SealedArgument {
    view: Arc<SealedView>,
    encoded: Range<usize>,
    buffers: Vec<SharedBuf>,
}

impl SealedArgument {
    /// Reads the places of the encoding and of the buffers, but none of their bytes.
    ///
    /// # Errors
    /// If the memory has another content.
    pub fn open(view: SealedView) -> Result<Self, MessageError> {
        let view = Arc::new(view);
        let (before, list) = segments::split(view.bytes())?;
        let end = before.len();
        let mut encoded = 0..end;
        let mut buffers = Vec::with_capacity(list.len());
        for segment in list {
            let range = range(&segment).filter(|range| range.end <= end).ok_or(WRONG_PLACE)?;
            encoded.start = encoded.start.max(range.end);
            buffers.push(SharedBuf::in_sealed(&view, range).ok_or(WRONG_PLACE)?);
        }
        Ok(Self { view, encoded, buffers })
    }

    /// Returns the encoding.
    pub fn encoded(&self) -> &[u8] {
        &self.view.bytes()[self.encoded.clone()]
    }

    /// Returns the buffers, which keep the memory.
    pub fn buffers(&self) -> &[SharedBuf] {
        &self.buffers
    }
}

fn range(segment: &Segment<'_>) -> Option<Range<usize>> {
    let Segment::Argument(location) = *segment else { return None };
    let (start, length) = location.in_memory()?;
    Some(start..start.checked_add(length)?)
}

const WRONG_PLACE: MessageError = MessageError::Decode("a shared buffer outside of its argument");

#[cfg(test)]
mod tests {
    use super::*;

    fn opened(encoded: &[u8], buffers: &[SharedBuf]) -> SealedArgument {
        let sealed = create("test", encoded, buffers).expect("memory");
        SealedArgument::open(SealedView::open(&sealed).expect("a view")).expect("an argument")
    }

    #[test]
    fn buffers_lie_aligned_in_the_memory_of_the_argument() {
        let sent = [&b"one"[..], &[2; 100], b"", &[3; ALIGNMENT]].map(SharedBuf::copy_of);
        let argument = opened(b"encoded", &sent);
        assert_eq!(argument.encoded(), b"encoded");
        let (buffers, view) = (argument.buffers().to_vec(), Arc::downgrade(&argument.view));
        assert_eq!(buffers, sent);
        let mapped = argument.view.bytes().as_ptr_range();
        for buffer in &buffers {
            assert!(buffer.as_ptr().addr().is_multiple_of(ALIGNMENT));
            assert!(mapped.contains(&buffer.as_ptr()));
        }
        drop(argument);
        assert_eq!(buffers, sent, "they keep the memory");
        drop(buffers);
        assert_eq!(view.strong_count(), 0);
    }

    #[test]
    fn an_argument_may_have_no_buffers_and_no_bytes() {
        assert_eq!(opened(b"encoded", &[]).encoded(), b"encoded");
        let empty = opened(b"", &[]);
        assert_eq!((empty.encoded(), empty.buffers()), (&b""[..], &[][..]));
    }

    #[test]
    fn buffers_that_exceed_the_memory_are_an_error() {
        for buffer in [
            Segment::Argument(Location { offset: 0, length: 9 }),
            Segment::Argument(Location { offset: u64::MAX, length: 1 }),
            Segment::Result(Location { offset: 0, length: 1 }),
        ] {
            let mut bytes = b"encoded".to_vec();
            segments::append(&mut bytes, &[buffer], usize::MAX).expect("room");
            let sealed = SealedBytes::create("test", &[&bytes]).expect("memory");
            let view = SealedView::open(&sealed).expect("a view");
            assert!(SealedArgument::open(view).is_err(), "{buffer:?}");
        }
    }
}
