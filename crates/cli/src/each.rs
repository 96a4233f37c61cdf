//! Options in the calls of a builder: those that may be missing, and those that may be repeated.

/// Calls a method of a builder for each of some values.
pub(crate) trait Each: Sized {
    /// Calls `set` with each value: with none if an option is missing.
    #[must_use]
    fn each<V>(
        self,
        values: impl IntoIterator<Item = V>,
        set: impl FnMut(Self, V) -> Self,
    ) -> Self {
        values.into_iter().fold(self, set)
    }
}

impl<B> Each for B {}
