//! `cargo xtask stress` and `cargo xtask fuzz`: build and run the program of that name in
//! crates/integration, which does the work.
//!
//! Arguments are passed through; a seed is made when none is given, and the line that repeats the
//! run is printed before it begins, so that it is there even when the run takes the terminal with
//! it.

use std::hash::{BuildHasher, RandomState};
use std::process::ExitCode;

use crate::invocation::Invocation;

/// A program whose choices a seed repeats.
#[derive(Clone, Copy)]
pub(crate) struct Seeded(&'static str);

/// Random faults in real processes.
pub(crate) const STRESS: Seeded = Seeded("stress");

/// Tasks that scribble over what their workers can reach.
pub(crate) const FUZZ: Seeded = Seeded("fuzz");

impl Seeded {
    pub(crate) fn run(self, arguments: &[String]) -> Result<ExitCode, String> {
        self.check(&with_seed(arguments))?;
        Ok(ExitCode::SUCCESS)
    }

    /// Runs with arguments that already name a seed.
    pub(crate) fn check(self, arguments: &[String]) -> Result<(), String> {
        let repeat = self.repeat_line(arguments);
        if let Some(seed) = seed(arguments) {
            println!("seed {seed}");
        }
        println!("repeat with: {repeat}");
        let Self(program) = self;
        // What others leave in the folder of all would count. A short name, as sockets in it have short paths.
        let folder = std::env::temp_dir().join(format!("bt{}", std::process::id()));
        std::fs::create_dir_all(&folder).map_err(|error| format!("no folder: {error}"))?;
        let outcome =
            Invocation::cargo(&format!("run --quiet -p brigade-integration --bin {program} --"))
                .arguments(arguments.iter().cloned())
                .variable("TMPDIR", &folder.to_string_lossy())
                .run()
                .map_err(|failure| format!("{failure}\nrepeat with: {repeat}"));
        // What is left is in nobody's way.
        let _ = std::fs::remove_dir_all(&folder);
        outcome
    }

    pub(crate) fn repeat_line(self, arguments: &[String]) -> String {
        let Self(program) = self;
        Invocation::cargo(&format!("xtask {program}"))
            .arguments(arguments.iter().cloned())
            .to_string()
    }
}

/// Puts a random `--seed` in front unless the arguments have one.
pub(crate) fn with_seed(arguments: &[String]) -> Vec<String> {
    let mut seeded = Vec::new();
    if seed(arguments).is_none() {
        // The standard library's hasher is keyed by the system's generator: random enough, and no
        // dependency.
        let random = RandomState::new().hash_one("seed");
        seeded.extend(["--seed".to_owned(), random.to_string()]);
    }
    seeded.extend(arguments.iter().cloned());
    seeded
}

fn seed(arguments: &[String]) -> Option<&str> {
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        if argument == "--seed" {
            return arguments.next().map(String::as_str);
        }
        if let Some(seed) = argument.strip_prefix("--seed=") {
            return Some(seed);
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
    fn a_missing_seed_is_made_and_differs_each_time() {
        let (one, two) = (with_seed(&owned(&["--seconds", "5"])), with_seed(&[]));
        assert_eq!(one[2..], owned(&["--seconds", "5"]));
        assert_ne!(seed(&one).unwrap(), seed(&two).unwrap());
    }

    #[test]
    fn the_repeat_line_repeats_the_same_run() {
        let arguments = with_seed(&owned(&["--seconds", "5"]));
        let line = STRESS.repeat_line(&arguments);
        let typed = owned(&line.split(' ').skip(3).collect::<Vec<_>>());
        assert_eq!(with_seed(&typed), arguments);
    }
}
