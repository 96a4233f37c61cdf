//! Names of the types of a function, by which two programs notice that their keys differ.
//!
//! Only the names count, without the paths of their modules: programs may define a type each. So a
//! struct whose fields differ in two programs is not noticed; change the name of the key with it.

use std::any::type_name;

use brigade_wire::{codec::Encoded, stable_hash};

/// Returns a hash of the types' names; 0 if one of them is not known here.
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
    use super::*;

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
