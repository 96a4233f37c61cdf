//! The setters of builders.

/// Implements setters: methods that change one value and return the whole.
///
/// ```
/// #[derive(Default)]
/// struct Builder {
///     workers: Option<usize>,
///     is_pinned: bool,
/// }
///
/// brigade_sys::setters! {
///     impl Builder;
///
///     /// Sets the number of workers.
///     pub fn workers(self, workers: usize) { self.workers = Some(workers) }
///
///     /// Pins workers to cores.
///     pub fn pinned(self) { self.is_pinned = true }
/// }
///
/// let builder = Builder::default().workers(2).pinned();
/// assert!(builder.workers == Some(2) && builder.is_pinned);
/// ```
#[macro_export]
macro_rules! setters {
    (@$(
        $(#[$attribute:meta])*
        $visible:vis fn $name:ident($self:ident $(, $argument:ident: $type:ty)* $(,)?) $body:block
    )+) => {$(
        $(#[$attribute])*
        #[must_use = "returns the changed value"]
        $visible fn $name(mut $self $(, $argument: $type)*) -> Self {
            $body
            $self
        }
    )+};
    (
        impl<$($parameter:ident $(: $bound:ident $(+ $other:ident)*)?),+> $builder:ty;
        $($setters:tt)+
    ) => {
        impl<$($parameter $(: $bound $(+ $other)*)?),+> $builder {
            $crate::setters! { @$($setters)+ }
        }
    };
    (impl $builder:ty; $($setters:tt)+) => {
        impl $builder {
            $crate::setters! { @$($setters)+ }
        }
    };
}
