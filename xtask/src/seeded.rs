//! `cargo xtask stress` and `cargo xtask fuzz`: build and run the program of that name in
//! crates/integration.
//!
//! Arguments are passed through, with a random seed if they have none. The command that repeats the
//! run is printed before it begins, so that it is not lost if the run ends the terminal.

use std::hash::{BuildHasher, RandomState};
use std::process::ExitCode;

use crate::checkout::target_folder;
use crate::invocation::Invocation;

/// A program whose random choices depend only on a seed.
#[derive(Clone, Copy)]
pub(crate) struct Seeded(&'static str);

/// Injects random faults into real processes.
pub(crate) const STRESS: Seeded = Seeded("stress");

/// Runs tasks that overwrite everything their workers can reach.
pub(crate) const FUZZ: Seeded = Seeded("fuzz");

impl Seeded {
    /// Builds the program and runs it.
    pub(crate) fn run(self, arguments: &[String]) -> Result<ExitCode, String> {
        let Self(program) = self;
        Invocation::cargo(&format!("build --quiet --bin {program}")).run()?;
        self.check(&with_seed(arguments))?;
        Ok(ExitCode::SUCCESS)
    }

    /// Runs the program, as it was built before, with arguments that already contain a seed.
    pub(crate) fn check(self, arguments: &[String]) -> Result<(), String> {
        let repeat = self.repeat_line(arguments);
        if let Some(seed) = seed(arguments) {
            println!("seed {seed}");
        }
        println!("repeat with: {repeat}");
        let Self(program) = self;
        // The program counts leftover files, so it needs a folder that no other process writes to.
        // The name is short because the paths of sockets in it have a length limit.
        let folder = std::env::temp_dir().join(format!("bt{}", std::process::id()));
        std::fs::create_dir_all(&folder)
            .map_err(|error| format!("cannot create {}: {error}", folder.display()))?;
        let outcome = Invocation::program(&target_folder().join("debug").join(program))
            .arguments(arguments.iter().cloned())
            .variable("TMPDIR", &folder.to_string_lossy())
            .run()
            .map_err(|failure| format!("{failure}\nrepeat with: {repeat}"));
        // A leftover folder does no harm.
        let _ = std::fs::remove_dir_all(&folder);
        outcome
    }

    /// Returns the command that repeats a run with these arguments.
    pub(crate) fn repeat_line(self, arguments: &[String]) -> String {
        let Self(program) = self;
        Invocation::cargo(&format!("xtask {program}"))
            .arguments(arguments.iter().cloned())
            .to_string()
    }
}

/// Puts a random `--seed` first unless the arguments contain one.
pub(crate) fn with_seed(arguments: &[String]) -> Vec<String> {
    let mut seeded = Vec::new();
    if seed(arguments).is_none() {
        // The system's random generator provides the keys of the standard library's hasher.
        let random = RandomState::new().hash_one("seed");
        seeded.extend(["--seed".to_owned(), random.to_string()]);
    }
    seeded.extend(arguments.iter().cloned());
    seeded
}

fn seed(arguments: &[String]) -> Option<&str> {
    value(arguments, "--seed")
}

/// Returns the value of an option.
pub(crate) fn value<'a>(arguments: &'a [String], option: &str) -> Option<&'a str> {
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        if argument == option {
            return arguments.next().map(String::as_str);
        }
        if let Some(value) = argument.strip_prefix(option).and_then(|rest| rest.strip_prefix('=')) {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::{STRESS, seed, with_seed};

    fn owned(arguments: &[&str]) -> Vec<String> {
        arguments.iter().map(|&argument| argument.to_owned()).collect()
    }

    #[test]
    fn a_given_seed_is_kept() {
        for arguments in [owned(&["--seconds", "5", "--seed", "7"]), owned(&["--seed=7"])] {
            assert_eq!(with_seed(&arguments), arguments);
            assert_eq!(seed(&arguments), Some("7"));
        }
    }

    #[test]
    fn a_missing_seed_is_added_and_differs_each_time() {
        let (one, two) = (with_seed(&owned(&["--seconds", "5"])), with_seed(&[]));
        assert_eq!(one[2..], owned(&["--seconds", "5"]));
        assert_ne!(seed(&one).unwrap(), seed(&two).unwrap());
    }

    #[test]
    fn the_repeat_line_has_the_same_arguments() {
        let arguments = with_seed(&owned(&["--seconds", "5"]));
        let line = STRESS.repeat_line(&arguments);
        let typed = owned(&line.split(' ').skip(3).collect::<Vec<_>>());
        assert_eq!(with_seed(&typed), arguments);
    }
}
