//! Reads the log of an earlier run.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::os::unix::ffi::OsStringExt;

use super::job_hash;
use crate::error::ResumeError;
use crate::job::{Command, Job};

/// The jobs that an earlier run has done. The default is none.
///
/// Jobs are recognized by what they do, wherever they are in the list: it may have grown or
/// shrunk in between. Each success counts for one job.
#[derive(Debug, Clone, Default)]
pub struct Resume {
    rule: Rule,
    /// The hash of each job and its number, sorted. In a log of ours the hash covers everything the
    /// job did, and its lowest bit is set; in one of GNU parallel's it covers the command.
    done: Vec<(u64, u64)>,
    /// `true` if there are hashes of commands alone.
    has_bare: bool,
    /// `true` for those that were found in the list.
    found: Vec<bool>,
    /// The highest number of a job in the list.
    last: u64,
}

/// The jobs of a log that do not run again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Rule {
    /// Those that have succeeded.
    #[default]
    Same,
    /// Those with the number of one that has succeeded, whatever they do.
    SucceededNumbers,
    /// Those with the number of one that is in the log, whatever they do.
    AllNumbers,
}

impl Resume {
    /// Reads a log.
    pub(super) fn read(file: &File, rule: Rule) -> Result<Self, ResumeError> {
        let mut done = Vec::new();
        let mut numbers = BTreeSet::new();
        let mut has_bare = false;
        entries(file, |entry| match rule {
            Rule::Same if entry.is_success => {
                let known = entry.job_hash.map_or_else(|| hash(entry.command), full_hash);
                has_bare |= entry.job_hash.is_none();
                done.push((known, entry.number));
            }
            Rule::Same => {}
            Rule::SucceededNumbers if !entry.is_success => {
                // A failure may come after a success.
                numbers.remove(&entry.number);
            }
            Rule::SucceededNumbers | Rule::AllNumbers => {
                numbers.insert(entry.number);
            }
        })?;
        done.extend(numbers.into_iter().map(|number| (0, number)));
        done.sort_unstable();
        done.dedup();
        done.shrink_to_fit();
        let found = vec![false; done.len()];
        Ok(Self { rule, done, has_bare, found, last: 0 })
    }

    /// Returns the number of jobs that are done.
    pub fn count(&self) -> u64 {
        self.done.len() as u64
    }

    /// Returns the jobs that are not done, each with its number in the list.
    ///
    /// # Errors
    /// Returns an error if another job has taken the place of one that has succeeded.
    pub fn remaining(
        mut self,
        jobs: impl IntoIterator<Item = Job>,
    ) -> Result<Vec<Job>, ResumeError> {
        let mut next = 1;
        let mut remaining = Vec::new();
        for job in jobs {
            let number = job.number.unwrap_or(next);
            next = number.saturating_add(1);
            if !self.has(number, &job) {
                remaining.push(job.number(number));
            }
        }
        self.check().map(|()| remaining)
    }

    /// Returns `true` if this job of the list is done. Call this once for each job, in the order of
    /// the list.
    ///
    /// A command that contains its slot number may differ from run to run, so in a log of GNU
    /// parallel's only its number counts.
    pub fn has(&mut self, number: u64, job: &Job) -> bool {
        self.last = self.last.max(number);
        let index = match (self.rule, job.fixed_command()) {
            (Rule::Same, fixed) => {
                let by_command = || match fixed.filter(|_| self.has_bare) {
                    Some(command) => self.unfound(hash(&logged(command)), number),
                    None if self.has_bare => {
                        self.done.iter().position(|done| done.0 & 1 == 0 && done.1 == number)
                    }
                    None => None,
                };
                self.unfound(full_hash(job_hash(job)), number).or_else(by_command)
            }
            _ => self.done.binary_search(&(0, number)).ok(),
        };
        if let Some(index) = index {
            self.found[index] = true;
        }
        index.is_some()
    }

    /// Returns the position of a job that was not found yet: of the one with this number if there
    /// is one, else of any that does the same.
    fn unfound(&self, hash: u64, number: u64) -> Option<usize> {
        if let Ok(index) = self.done.binary_search(&(hash, number))
            && !self.found[index]
        {
            return Some(index);
        }
        let start = self.done.partition_point(|done| done.0 < hash);
        let mut same = self.done[start..].iter().zip(&self.found[start..]).enumerate();
        same.by_ref()
            .take_while(|(_, (done, _))| done.0 == hash)
            .find(|(_, (_, found))| !**found)
            .map(|(index, _)| start + index)
    }

    /// Checks that no job has taken the place of one that has succeeded, after [`has`](Self::has)
    /// was called for all jobs.
    ///
    /// # Errors
    /// Returns an error that names the first such job.
    pub fn check(&self) -> Result<(), ResumeError> {
        let lost = self.done.iter().zip(&self.found).filter(|(_, found)| !**found);
        let replaced = lost.map(|((_, number), _)| *number).filter(|number| *number <= self.last);
        match replaced.min().filter(|_| self.rule == Rule::Same) {
            Some(number) => Err(ResumeError::Changed { number }),
            None => Ok(()),
        }
    }
}

/// Returns the jobs of a log whose last line is a failure, as lines for a shell.
pub(super) fn failed(file: &File) -> Result<Vec<Job>, ResumeError> {
    let mut failed = BTreeMap::new();
    entries(file, |entry| {
        if entry.is_success {
            failed.remove(&entry.number);
        } else {
            failed.insert(entry.number, entry.command.to_vec());
        }
    })?;
    let job = |(number, mut command): (u64, Vec<u8>)| {
        swap(&mut command, 0, b'\n');
        Job::shell(OsString::from_vec(command)).number(number)
    };
    Ok(failed.into_iter().map(job).collect())
}

/// Passes the entries of a log to `take`.
fn entries(file: &File, mut take: impl FnMut(Entry<'_>)) -> Result<(), ResumeError> {
    let whole = whole_lines(file)?;
    let mut reader = BufReader::new(file);
    reader.rewind()?;
    let mut reader = reader.take(whole);
    let mut bytes = Vec::new();
    for line in 1.. {
        bytes.clear();
        if reader.read_until(b'\n', &mut bytes)? == 0 {
            break;
        }
        let bytes = bytes.trim_ascii_end();
        if line == 1 && bytes.starts_with(b"Seq\t") {
            continue;
        }
        let text = || String::from_utf8_lossy(bytes).chars().take(80).collect();
        let wrong = || ResumeError::Format { line, text: text() };
        take(Entry::parse(bytes).ok_or_else(wrong)?);
    }
    Ok(())
}

/// One line of a log, written by GNU parallel or by us.
struct Entry<'a> {
    number: u64,
    is_success: bool,
    /// Newlines are zeros.
    command: &'a [u8],
    /// The hash of everything the job did; only in our logs.
    job_hash: Option<u64>,
}

impl<'a> Entry<'a> {
    fn parse(line: &'a [u8]) -> Option<Self> {
        const OURS: &[u8] = b"\t# cores=";
        let text = |column: &'a [u8]| std::str::from_utf8(column).ok();
        let mut columns = line.splitn(9, |byte| *byte == b'\t');
        let number = text(columns.next()?)?.parse().ok()?;
        let mut columns = columns.skip(5);
        let exit: i64 = text(columns.next()?)?.parse().ok()?;
        let signal: i64 = text(columns.next()?)?.parse().ok()?;
        let command = columns.next()?;
        let start = command.windows(OURS.len()).rposition(|part| part == OURS);
        let (command, ours) = command.split_at(start.unwrap_or(command.len()));
        let job_hash = text(ours)
            .and_then(|ours| ours.rsplit_once(" deed="))
            .and_then(|(_, hash)| u64::from_str_radix(hash, 16).ok());
        Some(Self { number, is_success: exit == 0 && signal == 0, command, job_hash })
    }
}

/// Returns the length of the complete lines of a log. The rest was cut short when its writer was
/// killed.
pub(super) fn whole_lines(file: &File) -> io::Result<u64> {
    const STEP: u64 = 4096;
    let mut file = file;
    let mut end = file.metadata()?.len();
    let mut piece = Vec::new();
    while end > 0 {
        let start = end.saturating_sub(STEP);
        file.seek(SeekFrom::Start(start))?;
        piece.clear();
        file.take(end - start).read_to_end(&mut piece)?;
        if let Some(last) = piece.iter().rposition(|byte| *byte == b'\n') {
            return Ok(start + last as u64 + 1);
        }
        end = start;
    }
    Ok(0)
}

/// Returns a command as it is in a log.
fn logged(command: &Command) -> Vec<u8> {
    let mut line = command.to_line().into_vec();
    swap(&mut line, b'\n', 0);
    line
}

fn swap(bytes: &mut [u8], from: u8, to: u8) {
    bytes.iter_mut().filter(|byte| **byte == from).for_each(|byte| *byte = to);
}

fn hash(command: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    command.hash(&mut hasher);
    // The lowest bit marks hashes of whole jobs.
    hasher.finish() & !1
}

/// Marks a hash as one that covers a whole job.
fn full_hash(job_hash: u64) -> u64 {
    job_hash | 1
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use proptest::prelude::*;

    use super::*;

    const HEADER: &str = super::super::HEADER;

    fn read(text: &[u8]) -> Result<Resume, ResumeError> {
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        file.write_all(text).expect("disk");
        Resume::read(file.as_file(), Rule::Same)
    }

    #[test]
    fn only_successes_count() {
        let log = format!(
            "{HEADER}1\t:\t1.000\t     0.100\t0\t5\t0\t0\techo a\n\
             2\t:\t1.000\t     0.100\t0\t5\t1\t0\tfalse\n\
             3\t:\t1.000\t     0.100\t0\t5\t0\t9\tsleep 9\n\
             4\thost\t1.000\t     0.100\t0\t5\t0\t0\techo\tb\t# cores=0 attempts=1\n"
        );
        let mut resume = read(log.as_bytes()).expect("valid");
        assert_eq!(resume.count(), 2);
        assert!(resume.has(1, &Job::shell("echo a")));
        assert!(!resume.has(2, &Job::shell("false")));
        assert!(!resume.has(3, &Job::shell("sleep 9")));
        assert!(resume.has(4, &Job::shell("echo\tb")));
        assert!(!resume.has(5, &Job::shell("x")));
        let mut changed = read(log.as_bytes()).expect("valid");
        assert!(!changed.has(1, &Job::shell("echo b")));
        assert!(matches!(changed.check(), Err(ResumeError::Changed { number: 1 })));
    }

    #[test]
    fn jobs_are_found_wherever_they_are() {
        let line = |number, exit: i32, command| {
            format!("{number}\t:\t1.000\t     0.100\t0\t5\t{exit}\t0\techo {command}\n")
        };
        let log = [line(1, 0, "x"), line(2, 0, "y"), line(3, 0, "y"), line(4, 1, "z")].concat();
        let skipped = |list: &[&str]| {
            let mut resume = read(log.as_bytes()).expect("valid");
            let job = |word: &&str| Job::shell(format!("echo {word}"));
            let skipped: Vec<bool> =
                (1..).zip(list).map(|(number, word)| resume.has(number, &job(word))).collect();
            (skipped, resume.check().is_ok())
        };
        let all = skipped(&["new", "x", "y", "z", "y", "y"]);
        assert_eq!(all, (vec![false, true, true, false, true, false], true));
        assert_eq!(skipped(&["y", "x", "y"]), (vec![true; 3], true), "in another order");
        assert_eq!(skipped(&["x"]), (vec![true], true), "shortened");
        assert_eq!(skipped(&["x", "y", "other"]), (vec![true, true, false], false), "replaced");
    }

    #[test]
    fn numbers_may_decide_alone() {
        let log = "1\t:\t1\t1\t0\t5\t0\t0\ta\n2\t:\t1\t1\t0\t5\t1\t0\tb\n";
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        file.write_all(log.as_bytes()).expect("disk");
        for (rule, expected) in [
            (Rule::SucceededNumbers, [true, false, false]),
            (Rule::AllNumbers, [true, true, false]),
        ] {
            let mut resume = Resume::read(file.as_file(), rule).expect("valid");
            let other = Job::shell("other");
            assert_eq!([1, 2, 3].map(|number| resume.has(number, &other)), expected);
            assert!(resume.check().is_ok());
        }
        let failed = failed(file.as_file()).expect("valid");
        assert_eq!(failed, [Job::shell("b").number(2)]);
    }

    #[test]
    fn a_malformed_line_is_an_error_that_shows_it() {
        let error = read(format!("{HEADER}nonsense\n").as_bytes()).expect_err("malformed");
        assert_eq!(error.to_string(), "line 2 is not a joblog line: nonsense");
    }

    #[test]
    fn a_high_number_takes_no_memory() {
        let rest = "1.000\t     0.100\t0\t5\t0\t0\techo a";
        let log = format!("{HEADER}{}\t:\t{rest}\n7\t:\t{rest}\n7\t:\t{rest}\n", u64::MAX);
        let mut resume = read(log.as_bytes()).expect("valid");
        assert_eq!(resume.count(), 2);
        assert!(resume.has(u64::MAX, &Job::shell("echo a")));
    }

    proptest! {
        #[test]
        fn a_log_cut_anywhere_loses_at_most_the_line_that_was_cut(
            codes in prop::collection::vec(0_u8..2, 1..20),
            cut in any::<prop::sample::Index>(),
        ) {
            let mut log = HEADER.as_bytes().to_vec();
            for (number, code) in (1..).zip(&codes) {
                let rest = "1.000\t     0.100\t0\t5";
                writeln!(log, "{number}\t:\t{rest}\t{code}\t0\tcommand {number}").expect("memory");
            }
            let cut = cut.index(log.len() + 1);
            let complete = log[..cut].split(|byte| *byte == b'\n').count().saturating_sub(2);
            let mut resume = read(&log[..cut]).expect("complete lines");
            for (number, code) in (1..).zip(&codes) {
                let expected = number <= complete as u64 && *code == 0;
                let job = Job::shell(format!("command {number}"));
                prop_assert_eq!(resume.has(number, &job), expected);
            }
        }

        #[test]
        fn any_bytes_yield_a_log_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(&bytes);
        }
    }
}
