//! Looks up the functions that this worker can call.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use brigade_sys::executable::{
    BuildIdentity, EntryPoint, FunctionOffset, SameBuild, build_identity,
};
use brigade_wire::Function;

use crate::bounded::bounded;
use crate::key::{Key, signature, types_of};

/// Unknown names, and the list of known ones, are truncated to this size in errors.
const NAMES_LIMIT: usize = 4 * 1024;

/// The names that this program's server has registered.
pub(crate) static NAMES: OnceLock<Vec<String>> = OnceLock::new();

/// Returns the names that the worker program has registered, in order. Each server has it.
pub static FUNCTIONS: Key<(), Vec<String>> =
    Key::new("brigade.functions/1", |()| NAMES.get().cloned().unwrap_or_default());

/// The functions of this program, found by name or by offset.
///
/// An offset is meaningful in one build only. From a host of another build, only names are
/// accepted.
#[derive(Debug)]
pub(crate) struct Functions {
    named: Named,
    host: BuildIdentity,
    /// `None` if the host is another build.
    same_build: Option<SameBuild>,
}

/// Functions by their registered names.
pub(crate) type Named = BTreeMap<String, Registered>;

/// A function that is called by its name.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Registered {
    entry: EntryPoint,
    types: u64,
    signature: fn() -> String,
}

impl Registered {
    /// Notes the types of a function.
    pub(crate) fn new<A, R>(entry: EntryPoint) -> Self {
        Self { entry, types: types_of::<A, R>(), signature: signature::<A, R> }
    }
}

impl Functions {
    /// Returns the functions for a host of the build `host`.
    pub(crate) fn new(named: Named, host: BuildIdentity) -> Self {
        Self { named, host, same_build: host.same_build() }
    }

    /// Returns the function to call, or the reason why it cannot be called.
    pub(crate) fn find(&self, function: &Function<'_>) -> Result<EntryPoint, String> {
        match function {
            Function::Offset(offset) => self.at(*offset),
            Function::Name { name, types } => self.named(name, *types),
        }
    }

    fn named(&self, name: &str, types: u64) -> Result<EntryPoint, String> {
        let Some(registered) = self.named.get(name) else {
            let name = bounded(&format_args!("{name:?}"), NAMES_LIMIT);
            return Err(format!("unknown function {name}: {}", self.known()));
        };
        let is_known = types != 0 && registered.types != 0;
        if is_known && types != registered.types {
            return Err(format!(
                "{name:?} has other types in the worker's program, {}: use the same key in both \
                 programs, or another name for other types",
                (registered.signature)()
            ));
        }
        Ok(registered.entry)
    }

    /// Returns the function at an offset in the host's program, which must be this same build.
    pub(crate) fn at(&self, offset: u64) -> Result<EntryPoint, String> {
        let Some(same_build) = self.same_build else {
            let host = self.host;
            return Err(format!(
                "the worker is another program (build {}) than its host (build {host}), so it accepts tasks by name only, \
                 such as `pool.submit(\"name\", argument)`: {}",
                build_identity(),
                self.known()
            ));
        };
        FunctionOffset::from_raw(offset).resolve(same_build).map_err(|error| error.to_string())
    }

    fn known(&self) -> String {
        let own = |name: &&String| *name != FUNCTIONS.name();
        let names: Vec<String> =
            self.named.keys().filter(own).map(|name| format!("{name:?}")).collect();
        if names.is_empty() {
            return "the worker has registered no function by name; its program does that with \
                    `brigade::worker::Server`"
                .to_owned();
        }
        bounded(&format_args!("the worker knows {}", names.join(", ")), NAMES_LIMIT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::function_of;

    fn server() -> Named {
        let sum = Registered::new::<(u8, u8), u8>(function_of(|(a, b): (u8, u8)| a + b));
        let not = Registered::new::<bool, bool>(function_of(|a: bool| !a));
        [("sum", sum), ("not", not)].map(|(name, entry)| (name.to_owned(), entry)).into()
    }

    fn offset() -> u64 {
        FunctionOffset::of(server()["sum"].entry).expect("ours").raw()
    }

    #[test]
    fn a_host_of_our_build_may_use_offsets_and_names() {
        let functions = Functions::new(server(), build_identity());
        assert!(functions.find(&Function::Offset(offset())).is_ok());
        assert!(functions.find(&Function::Name { name: "sum", types: 0 }).is_ok());
    }

    #[test]
    fn a_host_of_another_build_may_use_names_only() {
        let functions = Functions::new(server(), BuildIdentity::from_bytes([7; 32]));
        assert!(functions.find(&Function::Name { name: "sum", types: 0 }).is_ok());
        let reason = functions.find(&Function::Offset(offset())).expect_err("another build");
        for part in ["0707", "by name only", "\"not\", \"sum\""] {
            assert!(reason.contains(part), "{part:?} is missing in {reason:?}");
        }
    }

    #[test]
    fn a_key_with_other_types_is_refused() {
        let functions = Functions::new(server(), build_identity());
        let find = |types| functions.find(&Function::Name { name: "sum", types });
        assert!(find(types_of::<(u8, u8), u8>()).is_ok());
        let reason = find(types_of::<(u8, u8), u16>()).expect_err("other types");
        assert!(reason.contains("\"sum\" has other types"), "{reason}");
        assert!(reason.contains("(u8, u8) -> u8"), "{reason}");
    }

    #[test]
    fn an_unknown_name_is_reported_with_the_known_ones() {
        let functions = Functions::new(server(), build_identity());
        let reason =
            functions.find(&Function::Name { name: "su", types: 0 }).expect_err("no such name");
        assert_eq!(reason, r#"unknown function "su": the worker knows "not", "sum""#);
        let functions = Functions::new(Named::new(), build_identity());
        let reason =
            functions.find(&Function::Name { name: "su", types: 0 }).expect_err("no names");
        assert!(reason.contains("worker::Server"), "{reason}");
        let reason = functions
            .find(&Function::Name { name: &"s".repeat(60_000), types: 0 })
            .expect_err("too long");
        assert!(reason.len() < 5_000, "{}", reason.len());
    }
}
