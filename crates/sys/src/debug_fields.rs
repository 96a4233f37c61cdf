//! `Debug` of types that cannot derive it, or have fields that nobody wants to see.

/// Implements `Debug` by some of the fields, or by values that have names of their own.
///
/// ```
/// struct Window<T> {
///     size: usize,
///     waiting: Vec<T>,
/// }
///
/// brigade_sys::debug_fields!(impl<T> Window<T> { size });
///
/// struct Line(Vec<u8>);
///
/// brigade_sys::debug_fields!(impl Line { |it| length: it.0.len() });
///
/// let window = Window { size: 1, waiting: vec![|| ()] };
/// assert_eq!(format!("{window:?}"), "Window { size: 1, .. }");
/// assert_eq!(format!("{:?}", Line(vec![7])), "Line { length: 1, .. }");
/// ```
#[macro_export]
macro_rules! debug_fields {
    (
        impl $(<$($parameter:ident $(: $bound:path)?),+>)? $name:ident $(<$($argument:tt),+>)? {
            |$this:ident| $($field:ident: $value:expr),*
        }
    ) => {
        impl $(<$($parameter $(: $bound)?),+>)? ::std::fmt::Debug for $name $(<$($argument),+>)? {
            fn fmt(&self, out: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                let $this = self;
                let mut out = out.debug_struct(stringify!($name));
                out$(.field(stringify!($field), &$value))*.finish_non_exhaustive()
            }
        }
    };
    (
        impl $(<$($parameter:ident $(: $bound:path)?),+>)? $name:ident $(<$($argument:tt),+>)? {
            $($field:ident),*
        }
    ) => {
        $crate::debug_fields! {
            impl $(<$($parameter $(: $bound)?),+>)? $name $(<$($argument),+>)? {
                |_this| $($field: _this.$field),*
            }
        }
    };
}
