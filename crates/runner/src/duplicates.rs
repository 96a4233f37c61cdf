//! Finds duplicates in numbered lists, such as two jobs that are the same.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ffi::OsString;
use std::hash::Hash;
use std::path::PathBuf;

use crate::error::RunnerError;
use crate::job::{Command, Job, Stdin};

/// Finds keys that occur more than once in a numbered list, which it takes entry by entry.
///
/// ```
/// use brigade::runner::Duplicates;
///
/// let mut duplicates = Duplicates::default();
/// assert_eq!(duplicates.add("a", 1), None);
/// assert_eq!(duplicates.add("b", 2), None);
/// assert_eq!(duplicates.add("a", 3), Some(1));
/// ```
#[derive(Debug)]
pub struct Duplicates<K> {
    /// The number of the first entry with a key.
    first: HashMap<K, u64>,
}

impl<K> Default for Duplicates<K> {
    fn default() -> Self {
        Self { first: HashMap::new() }
    }
}

impl<K: Eq + Hash> Duplicates<K> {
    /// Adds an entry. Returns the number of the first entry with the same key, if there is one.
    #[must_use]
    pub fn add(&mut self, key: K, number: u64) -> Option<u64> {
        match self.first.entry(key) {
            Entry::Vacant(entry) => {
                entry.insert(number);
                None
            }
            Entry::Occupied(entry) => Some(*entry.get()),
        }
    }
}

/// The properties that distinguish jobs.
#[derive(Debug, PartialEq, Eq, Hash)]
enum JobIdentity<'a> {
    Label(&'a str),
    Definition(
        &'a Command,
        &'a Option<PathBuf>,
        &'a [(OsString, OsString)],
        &'a Stdin,
        &'a Option<String>,
    ),
}

/// Checks that no two jobs are the same.
///
/// # Errors
/// Returns [`RunnerError::Duplicate`], which names both jobs.
pub fn check_duplicates<'a>(jobs: impl IntoIterator<Item = &'a Job>) -> Result<(), RunnerError> {
    let mut duplicates = Duplicates::default();
    let mut next = 1;
    for job in jobs {
        let second = job.number.unwrap_or(next);
        next = second + 1;
        if let Some(first) = duplicates.add(identity(job), second) {
            return Err(RunnerError::Duplicate { first, second, job: job.to_string() });
        }
    }
    Ok(())
}

fn identity(job: &Job) -> JobIdentity<'_> {
    match &job.label {
        Some(label) => JobIdentity::Label(label),
        None => JobIdentity::Definition(
            &job.command,
            &job.folder,
            &job.environment,
            &job.stdin,
            &job.prelude,
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(jobs: &[Job]) -> Option<String> {
        check_duplicates(jobs).err().map(|error| error.to_string())
    }

    #[test]
    fn the_error_names_both_jobs() {
        let jobs = [Job::new("a"), Job::new("b"), Job::new("a")];
        let text = error(&jobs).expect("two are the same");
        assert!(text.starts_with("job 3 is the same as job 1: a"), "{text}");
    }

    #[test]
    fn labels_decide_if_jobs_have_them() {
        assert_eq!(error(&[Job::new("a").label("x"), Job::new("a").label("y")]), None);
        assert!(error(&[Job::new("a").label("x"), Job::new("b").label("x")]).is_some());
        assert_eq!(error(&[Job::new("a"), Job::new("a").folder("/")]), None);
    }
}
