//! The items of a stream as an iterator.

use serde::de::DeserializeOwned;

use super::{Item, Stream};

/// Iterator over the items of a stream; returned by [`Stream::iter`].
#[derive(Debug)]
#[must_use = "an iterator does nothing until it is used"]
pub struct Iter<'a, A, R> {
    stream: &'a Stream<A, R>,
}

impl<A, R: DeserializeOwned + 'static> Stream<A, R> {
    /// Returns an iterator that [receives](Self::recv) items until the stream ends.
    pub fn iter(&self) -> Iter<'_, A, R> {
        Iter { stream: self }
    }
}

impl<A, R: DeserializeOwned + 'static> Iterator for Iter<'_, A, R> {
    type Item = Item<R>;

    fn next(&mut self) -> Option<Item<R>> {
        self.stream.recv()
    }
}

impl<'a, A, R: DeserializeOwned + 'static> IntoIterator for &'a Stream<A, R> {
    type Item = Item<R>;
    type IntoIter = Iter<'a, A, R>;

    fn into_iter(self) -> Iter<'a, A, R> {
        self.iter()
    }
}
