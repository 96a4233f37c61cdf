//! Shared values that have an identity.

/// Makes values equal if they share the same content in an `Arc`, their only field.
macro_rules! equal_if_same {
    ($shared:ident) => {
        impl PartialEq for $shared {
            fn eq(&self, other: &Self) -> bool {
                std::sync::Arc::ptr_eq(&self.0, &other.0)
            }
        }

        impl Eq for $shared {}

        impl std::hash::Hash for $shared {
            fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
                std::sync::Arc::as_ptr(&self.0).hash(state);
            }
        }
    };
}

pub(crate) use equal_if_same;
