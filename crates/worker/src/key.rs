//! Functions with a name and a type, for programs that run them elsewhere.

use std::any::type_name;
use std::fmt;
use std::marker::PhantomData;

use brigade_sys::executable::EntryPoint;
use brigade_wire::{codec::Encoded, stable_hash};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::function_of;

/// The key of a task: the name, the types and the function of what is run.
///
/// A key is a static that the programs of both sides share, so they agree on the types. Its name
/// travels, and a hash of the names of its types: if they differ, the task fails with both. The
/// fields of a type are not compared. Change the name with them: by convention it ends with a
/// version.
///
/// ```
/// use brigade_worker::Key;
///
/// fn area((width, height): (u32, u32)) -> u64 {
///     u64::from(width) * u64::from(height)
/// }
///
/// pub static AREA: Key<(u32, u32), u64> = Key::new("area/1", area);
///
/// assert_eq!(AREA.name(), "area/1");
/// ```
pub struct Key<A, R> {
    name: &'static str,
    /// `None` if another program has the function.
    entry: Option<EntryPoint>,
    types: PhantomData<fn(A) -> R>,
}

/// Maximum length of a name.
const NAME_LIMIT: usize = 128;

impl<A, R> Key<A, R> {
    /// Creates the key of a function item, or of a closure that captures nothing.
    ///
    /// # Panics
    /// Panics if the name is empty, is longer than 128 bytes, or contains anything but visible
    /// ASCII characters other than `*` and `>`. In a static, that is an error of the compiler:
    ///
    /// ```compile_fail
    /// # use brigade_worker::Key;
    /// static NOT: Key<bool, bool> = Key::new("not a name", |value: bool| !value);
    /// ```
    pub const fn new<F>(name: &'static str, function: F) -> Self
    where
        F: Fn(A) -> R + Copy + Send + 'static,
        A: DeserializeOwned + 'static,
        R: Serialize + 'static,
    {
        check(name);
        Self { name, entry: Some(function_of(function)), types: PhantomData }
    }

    /// Creates the key of a function that this program does not contain.
    ///
    /// # Panics
    /// As [`new`](Self::new).
    pub const fn named(name: &'static str) -> Self {
        check(name);
        Self { name, entry: None, types: PhantomData }
    }

    /// Creates the key of a function whose name was learned while the program runs. The name is
    /// never freed.
    ///
    /// # Errors
    /// The reason why a function with this name has no key.
    #[doc(hidden)]
    pub fn learned(name: &str) -> Result<Self, &'static str> {
        problem_of_name(name).map_or_else(|| Ok(Self::named(name.to_owned().leak())), Err)
    }

    /// Returns the name.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the key of the same function, for arguments and results that are encoded already.
    ///
    /// A result that contains shared buffers cannot be passed on, and fails with a codec error.
    pub const fn erase(&self) -> Key<Encoded, Encoded> {
        Key { name: self.name, entry: self.entry, types: PhantomData }
    }

    /// Returns the function as workers call it, if this program contains it.
    #[doc(hidden)]
    pub const fn entry(&self) -> Option<EntryPoint> {
        self.entry
    }
}

const fn check(name: &str) {
    if let Some(problem) = problem_of_name(name) {
        panic!("{}", problem);
    }
}

/// Returns the reason why no key can have this name, if there is one.
#[doc(hidden)]
pub const fn problem_of_name(name: &str) -> Option<&'static str> {
    let bytes = name.as_bytes();
    if bytes.is_empty() {
        return Some("the name of a task is empty");
    }
    if bytes.len() > NAME_LIMIT {
        return Some("the name of a task has more than 128 bytes");
    }
    let mut at = 0;
    while at < bytes.len() {
        if !bytes[at].is_ascii_graphic() || bytes[at] == b'*' || bytes[at] == b'>' {
            return Some(
                "the name of a task has a character other than visible ASCII, or `*` or `>`",
            );
        }
        at += 1;
    }
    None
}

impl<A, R> Clone for Key<A, R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<A, R> Copy for Key<A, R> {}

impl<A, R> fmt::Debug for Key<A, R> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Key({:?})", self.name)
    }
}

/// Returns a hash of the types' names, by which two programs notice that their keys differ; 0 if
/// one of them is not known here.
///
/// Only the names count, without the paths of their modules: programs may define a type each. So a
/// struct whose fields differ in two programs is not noticed; change the name of the key with it.
pub fn types_of<A, R>() -> u64 {
    let unknown = type_name::<Encoded>();
    if type_name::<A>() == unknown || type_name::<R>() == unknown {
        return 0;
    }
    // Never 0.
    stable_hash(signature::<A, R>().bytes()) | 1
}

/// Returns the types as people write them.
pub fn signature<A, R>() -> String {
    format!("{} -> {}", without_paths(type_name::<A>()), without_paths(type_name::<R>()))
}

/// Removes the paths of modules: `alloc::vec::Vec<u8>` becomes `Vec<u8>`.
fn without_paths(name: &str) -> String {
    let mut text = String::new();
    let mut word = 0;
    for character in name.chars() {
        text.push(character);
        if text.ends_with("::") {
            text.truncate(word);
        } else if !(character.is_alphanumeric() || character == '_' || character == ':') {
            word = text.len();
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use std::panic::catch_unwind;

    use brigade_sys::executable::Invocation;

    use super::*;

    static DOUBLE: Key<u32, u64> = Key::new("double/1", |number: u32| 2 * u64::from(number));

    #[test]
    fn an_erased_key_calls_the_same_function() {
        let erased = DOUBLE.erase();
        assert_eq!(
            (erased.name(), format!("{erased:?}").as_str()),
            ("double/1", "Key(\"double/1\")")
        );
        let mut result = Vec::new();
        let entry = erased.entry().expect("it is in this program");
        entry(&mut Invocation::new(&[21], &mut result, 9)).expect("a value");
        assert_eq!(result, [42]);
        assert!(Key::<u8, u8>::named("elsewhere").entry().is_none());
    }

    #[test]
    fn a_name_is_short_and_visible_and_not_a_pattern() {
        for name in ["x", "resize/1", "a.b-c_d:e"] {
            assert!(catch_unwind(|| check(name)).is_ok(), "{name:?}");
        }
        for name in ["", "a b", "a\n", "a*", ">", "größe", "\u{a0}", &"x".repeat(129)] {
            assert!(catch_unwind(|| check(name)).is_err(), "{name:?}");
            assert!(Key::<u8, u8>::learned(name).is_err(), "{name:?}");
        }
    }

    #[test]
    fn paths_of_modules_do_not_count() {
        assert_eq!(without_paths("alloc::vec::Vec<(u32, my::own::Type)>"), "Vec<(u32, Type)>");
        assert_eq!(without_paths("[u8; 4]"), "[u8; 4]");
        assert_eq!(signature::<Vec<u8>, Option<String>>(), "Vec<u8> -> Option<String>");
    }

    #[test]
    fn types_with_other_names_have_another_hash() {
        assert_ne!(types_of::<u64, u64>(), types_of::<u64, u32>());
        assert_ne!(types_of::<u64, u64>(), 0);
        assert_eq!(types_of::<Encoded, Encoded>(), 0);
    }
}
