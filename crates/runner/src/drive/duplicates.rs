//! Finding two jobs that are the same.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ffi::OsString;
use std::path::PathBuf;

use crate::error::RunnerError;
use crate::job::{Command, Job, Stdin};

/// What makes two jobs the same.
#[derive(Debug, PartialEq, Eq, Hash)]
enum Identity<'a> {
    Label(&'a str),
    Deed(
        &'a Command,
        &'a Option<PathBuf>,
        &'a [(OsString, OsString)],
        &'a Stdin,
        &'a Option<String>,
    ),
}

/// Finds two jobs that are the same.
///
/// # Errors
/// [`RunnerError::Duplicate`] names both.
pub fn check<'a>(jobs: impl IntoIterator<Item = &'a Job>) -> Result<(), RunnerError> {
    let mut seen = HashMap::new();
    let mut next = 1;
    for job in jobs {
        let second = job.number.unwrap_or(next);
        next = second + 1;
        match seen.entry(identity(job)) {
            Entry::Vacant(entry) => {
                entry.insert(second);
            }
            Entry::Occupied(entry) => {
                let first = *entry.get();
                return Err(RunnerError::Duplicate { first, second, job: job.to_string() });
            }
        }
    }
    Ok(())
}

fn identity(job: &Job) -> Identity<'_> {
    match &job.label {
        Some(label) => Identity::Label(label),
        None => {
            Identity::Deed(&job.command, &job.folder, &job.environment, &job.stdin, &job.prelude)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(jobs: &[Job]) -> Option<String> {
        check(jobs).err().map(|error| error.to_string())
    }

    #[test]
    fn the_error_names_both() {
        let jobs = [Job::new("a"), Job::new("b"), Job::new("a")];
        let text = error(&jobs).expect("two are the same");
        assert!(text.starts_with("job 3 is the same as job 1: a"), "{text}");
    }

    #[test]
    fn labels_decide_where_there_are_any() {
        assert_eq!(error(&[Job::new("a").label("x"), Job::new("a").label("y")]), None);
        assert!(error(&[Job::new("a").label("x"), Job::new("b").label("x")]).is_some());
        assert_eq!(error(&[Job::new("a"), Job::new("a").folder("/")]), None);
    }
}
