//! A vector whose values keep their indices; a freed index is used again.

use std::ops::{Index, IndexMut};

#[derive(Debug)]
pub(crate) struct Slab<T> {
    entries: Vec<Option<T>>,
    /// The indices without a value. The one that was freed last is used first.
    free: Vec<usize>,
}

impl<T> Slab<T> {
    pub(crate) const fn new() -> Self {
        Self { entries: Vec::new(), free: Vec::new() }
    }

    /// Returns the index of the new value.
    #[inline]
    pub(crate) fn insert(&mut self, value: T) -> usize {
        if let Some(index) = self.free.pop() {
            self.entries[index] = Some(value);
            return index;
        }
        self.entries.push(Some(value));
        self.entries.len() - 1
    }

    /// Removes a value.
    ///
    /// # Panics
    /// If there is none at this index.
    #[inline]
    #[track_caller]
    pub(crate) fn remove(&mut self, index: usize) -> T {
        let Some(value) = self.entries[index].take() else { vacant(index) };
        self.free.push(index);
        value
    }

    #[inline]
    pub(crate) fn get(&self, index: usize) -> Option<&T> {
        self.entries.get(index)?.as_ref()
    }

    /// Returns all values with their indices.
    pub(crate) fn all(&self) -> impl Iterator<Item = (usize, &T)> {
        self.entries.iter().enumerate().filter_map(|(index, entry)| Some((index, entry.as_ref()?)))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.len() == self.free.len()
    }
}

impl<T> Index<usize> for Slab<T> {
    type Output = T;

    #[inline]
    #[track_caller]
    fn index(&self, index: usize) -> &T {
        let Some(value) = &self.entries[index] else { vacant(index) };
        value
    }
}

impl<T> IndexMut<usize> for Slab<T> {
    #[inline]
    #[track_caller]
    fn index_mut(&mut self, index: usize) -> &mut T {
        let Some(value) = &mut self.entries[index] else { vacant(index) };
        value
    }
}

#[cold]
#[track_caller]
fn vacant(index: usize) -> ! {
    panic!("index {index} is vacant")
}

#[cfg(test)]
impl<T> Slab<T> {
    pub(crate) fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.entries.iter().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::Slab;

    #[test]
    fn values_keep_their_indices_and_freed_ones_are_used_again() {
        let mut slab = Slab::new();
        let indices: Vec<usize> = (0..4).map(|value| slab.insert(value)).collect();
        assert_eq!(indices, [0, 1, 2, 3]);
        assert_eq!((slab.remove(1), slab.remove(3)), (1, 3));
        assert_eq!((slab.get(1), slab.get(2), slab.get(9)), (None, Some(&2), None));
        assert_eq!((slab.insert(30), slab.insert(10), slab.insert(40)), (3, 1, 4));
        slab[2] += 18;
        assert_eq!(slab.iter().copied().collect::<Vec<_>>(), [0, 10, 20, 30, 40]);
        assert_eq!((slab.len(), slab.is_empty()), (5, false));
    }

    #[test]
    #[should_panic(expected = "index 0 is vacant")]
    fn a_removed_value_is_not_removed_again() {
        let mut slab = Slab::new();
        slab.insert(());
        slab.remove(0);
        slab.remove(0);
    }
}
