//! Enumerations whose values have names.

/// Defines an enumeration with a name for each value, and implements `Display` by it.
///
/// ```
/// brigade_sys::named! {
///     /// The size of a shirt.
///     #[derive(Clone, Copy)]
///     enum Size, fn name {
///         /// For most people.
///         Medium = "medium",
///         /// For others.
///         ExtraLarge = "extra large",
///     }
/// }
///
/// assert_eq!(Size::ExtraLarge.name(), "extra large");
/// assert_eq!(Size::Medium.to_string(), "medium");
/// ```
#[macro_export]
macro_rules! named {
    ($(#[$attribute:meta])* $visible:vis enum $type:ident, $name_visible:vis fn $name:ident {
        $($(#[$of_value:meta])* $value:ident = $text:literal,)+
    }) => {
        $(#[$attribute])*
        $visible enum $type { $($(#[$of_value])* $value,)+ }

        impl $type {
            /// Returns the name.
            $name_visible const fn $name(self) -> &'static str {
                match self { $(Self::$value => $text,)+ }
            }
        }

        impl ::std::fmt::Display for $type {
            fn fmt(&self, out: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                out.pad(self.$name())
            }
        }
    };
}
