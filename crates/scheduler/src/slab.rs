//! A vector whose values keep their indices; a freed index is used again. The list of free indices
//! is in their entries.

use std::mem;
use std::ops::{Index, IndexMut};

#[derive(Debug)]
pub(crate) struct Slab<T> {
    entries: Vec<Entry<T>>,
    /// Number of values.
    len: usize,
    /// The index that was freed last, or the length of `entries` if all are in use.
    next: usize,
}

#[derive(Debug)]
enum Entry<T> {
    Value(T),
    /// The index to use after this one.
    Free(usize),
}

impl<T> Slab<T> {
    pub(crate) const fn new() -> Self {
        Self { entries: Vec::new(), len: 0, next: 0 }
    }

    /// Returns the index of the new value.
    #[inline]
    pub(crate) fn insert(&mut self, value: T) -> usize {
        let index = self.next;
        if let Some(entry) = self.entries.get_mut(index) {
            if let Entry::Free(next) = mem::replace(entry, Entry::Value(value)) {
                self.next = next;
            }
        } else {
            self.entries.push(Entry::Value(value));
            self.next = self.entries.len();
        }
        self.len += 1;
        index
    }

    /// Removes a value.
    ///
    /// # Panics
    /// If there is none at this index.
    #[inline]
    #[track_caller]
    pub(crate) fn remove(&mut self, index: usize) -> T {
        match mem::replace(&mut self.entries[index], Entry::Free(self.next)) {
            Entry::Value(value) => {
                self.next = index;
                self.len -= 1;
                value
            }
            free @ Entry::Free(_) => {
                self.entries[index] = free;
                vacant(index)
            }
        }
    }

    #[inline]
    pub(crate) fn get(&self, index: usize) -> Option<&T> {
        match self.entries.get(index)? {
            Entry::Value(value) => Some(value),
            Entry::Free(_) => None,
        }
    }

    /// Returns all values with their indices.
    pub(crate) fn all(&self) -> impl Iterator<Item = (usize, &T)> {
        self.entries.iter().enumerate().filter_map(|(index, entry)| match entry {
            Entry::Value(value) => Some((index, value)),
            Entry::Free(_) => None,
        })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl<T> Index<usize> for Slab<T> {
    type Output = T;

    #[inline]
    #[track_caller]
    fn index(&self, index: usize) -> &T {
        match &self.entries[index] {
            Entry::Value(value) => value,
            Entry::Free(_) => vacant(index),
        }
    }
}

impl<T> IndexMut<usize> for Slab<T> {
    #[inline]
    #[track_caller]
    fn index_mut(&mut self, index: usize) -> &mut T {
        match &mut self.entries[index] {
            Entry::Value(value) => value,
            Entry::Free(_) => vacant(index),
        }
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
        self.len
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.entries.iter().filter_map(|entry| match entry {
            Entry::Value(value) => Some(value),
            Entry::Free(_) => None,
        })
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
