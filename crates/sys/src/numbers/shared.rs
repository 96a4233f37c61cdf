//! Numbers with several owners.

use std::any::Any;
use std::sync::Arc;

use super::{Number, Numbers, Unit, as_bytes};

/// Implemented for memory that holds numbers of one size.
///
/// # Safety
/// Both functions return the same as long as the value is not changed through a `&mut`.
pub unsafe trait Memory: Any + Send + Sync {
    /// Returns the bytes of the numbers in memory.
    fn as_bytes(&self) -> &[u8];
    /// Returns the size of a number.
    fn unit(&self) -> Unit;
}

/// Numbers that stay where they are, unchanged, until their last owner has dropped them.
#[derive(Clone)]
pub struct SharedNumbers(Arc<dyn Memory>);

impl SharedNumbers {
    /// Becomes an owner of the memory.
    pub fn of(memory: Arc<impl Memory>) -> Self {
        Self(memory)
    }

    /// Returns the bytes of the numbers in memory.
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }

    /// Returns the size of a number.
    pub fn unit(&self) -> Unit {
        self.0.unit()
    }

    /// Returns the memory, which is copied if it has other owners; `None` unless it is [`Numbers`].
    pub fn into_numbers(self) -> Option<Numbers> {
        let memory: Arc<dyn Any + Send + Sync> = self.0;
        memory.downcast().ok().map(Arc::unwrap_or_clone)
    }
}

impl AsRef<[u8]> for SharedNumbers {
    fn as_ref(&self) -> &[u8] {
        self.as_bytes()
    }
}

// SAFETY: they are those of its elements.
unsafe impl<N: Number> Memory for Vec<N> {
    fn as_bytes(&self) -> &[u8] {
        as_bytes(self)
    }

    fn unit(&self) -> Unit {
        Unit::of::<N>()
    }
}

// SAFETY: they are those of its elements.
unsafe impl<N: Number> Memory for Box<[N]> {
    fn as_bytes(&self) -> &[u8] {
        as_bytes(self)
    }

    fn unit(&self) -> Unit {
        Unit::of::<N>()
    }
}

// SAFETY: they are those of its vector.
unsafe impl Memory for Numbers {
    fn as_bytes(&self) -> &[u8] {
        self.as_bytes()
    }

    fn unit(&self) -> Unit {
        self.unit()
    }
}

// The numbers belong to the user and may be many.
crate::debug_fields! {
    impl SharedNumbers { |it| bytes: it.as_bytes().len() }
}
