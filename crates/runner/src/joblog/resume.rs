//! Reads the log of an earlier run.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::File;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::io::{BufRead, BufReader, Seek};
use std::os::unix::ffi::OsStringExt;

use super::{BATCH, job_hash};
use crate::error::ResumeError;
use crate::job::{Command, Job};

/// The jobs that an earlier run has done. The default is none.
///
/// Jobs are recognized by what they do, wherever they are in the list: it may have grown or
/// shrunk in between. Each success counts for one job.
#[derive(Debug, Clone, Default)]
pub struct Resume {
    rule: ResumeRule,
    /// The hash of each job and its number, sorted. In a log of ours the hash covers everything the
    /// job did, and its lowest bit is set; in one of GNU parallel's it covers the command.
    done: Vec<(u64, u64)>,
    /// `true` if there are hashes of commands alone.
    has_bare: bool,
    /// `true` for those that were found in the list.
    found: Vec<bool>,
    /// The highest number of a job in the list.
    last: u64,
    /// The name of the batch in which the jobs ran on a cluster.
    pub batch: Option<String>,
    /// The number of failures of each job that has failed, by the number of the job.
    pub failures: BTreeMap<u64, u32>,
    /// `true` if it was read from the log of an earlier run.
    pub is_continued: bool,
}

/// The jobs of a log that do not run again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ResumeRule {
    /// Those that have succeeded, recognized by what they do.
    #[default]
    Same,
    /// Those with the number of one that has succeeded, whatever they do, as with GNU parallel's
    /// `--resume-failed`.
    SucceededNumbers,
    /// Those with the number of one that is in the log, whatever they do, as with GNU parallel's
    /// `--resume`.
    AllNumbers,
}

impl Resume {
    /// Reads a log. Also returns the length of its complete lines.
    pub(super) fn read(file: &File, rule: ResumeRule) -> Result<(Self, u64), ResumeError> {
        let mut done = Vec::new();
        let mut numbers = BTreeSet::new();
        let mut has_bare = false;
        let mut failures: BTreeMap<u64, u32> = BTreeMap::new();
        let (batch, length) = entries(file, |entry| {
            if !entry.is_success {
                *failures.entry(entry.number).or_default() += 1;
            }
            match rule {
                ResumeRule::Same if entry.is_success => {
                    let known = entry.job_hash.map_or_else(|| hash(entry.command), full_hash);
                    has_bare |= entry.job_hash.is_none();
                    done.push((known, entry.number));
                }
                ResumeRule::Same => {}
                ResumeRule::SucceededNumbers if !entry.is_success => {
                    // A failure may come after a success.
                    numbers.remove(&entry.number);
                }
                ResumeRule::SucceededNumbers | ResumeRule::AllNumbers => {
                    numbers.insert(entry.number);
                }
            }
        })?;
        done.extend(numbers.into_iter().map(|number| (0, number)));
        done.sort_unstable();
        done.dedup();
        done.shrink_to_fit();
        let found = vec![false; done.len()];
        let is_continued = true;
        let resume = Self { rule, done, has_bare, found, last: 0, batch, failures, is_continued };
        Ok((resume, length))
    }

    /// Returns the number of jobs that are done.
    pub fn count(&self) -> u64 {
        self.done.len() as u64
    }

    /// Forgets which jobs are done.
    #[must_use]
    pub fn redo(self) -> Self {
        let Self { batch, failures, is_continued, .. } = self;
        Self { batch, failures, is_continued, ..Self::default() }
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
        let index = match self.rule {
            ResumeRule::Same => {
                let by_command = || match &job.slot_marker {
                    _ if !self.has_bare => None,
                    None => self.unfound(hash(&logged(&job.command)), number),
                    Some(_) => {
                        self.done.iter().position(|done| done.0 & 1 == 0 && done.1 == number)
                    }
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
        match replaced.min().filter(|_| self.rule == ResumeRule::Same) {
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

/// Passes the entries of a log to `take`. Returns the batch that the header names, and the length
/// of the complete lines. The rest was cut short when its writer was killed.
fn entries(
    file: &File,
    mut take: impl FnMut(Entry<'_>),
) -> Result<(Option<String>, u64), ResumeError> {
    let (mut batch, mut length) = (None, 0);
    let mut reader = BufReader::new(file);
    reader.rewind()?;
    let mut bytes = Vec::new();
    for line in 1.. {
        bytes.clear();
        let read = reader.read_until(b'\n', &mut bytes)?;
        if !bytes.ends_with(b"\n") {
            break;
        }
        length += read as u64;
        let bytes = bytes.trim_ascii_end();
        if line == 1 && bytes.starts_with(b"Seq\t") {
            let header = String::from_utf8_lossy(bytes);
            batch = header.split_once(BATCH).map(|(_, batch)| batch.to_owned());
            continue;
        }
        let text = || String::from_utf8_lossy(bytes).chars().take(80).collect();
        let wrong = || ResumeError::Format { line, text: text() };
        take(Entry::parse(bytes).ok_or_else(wrong)?);
    }
    Ok((batch, length))
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
            // Logs of earlier builds call it a deed.
            .and_then(|ours| ours.rsplit_once(" job=").or_else(|| ours.rsplit_once(" deed=")))
            .and_then(|(_, hash)| u64::from_str_radix(hash, 16).ok());
        Some(Self { number, is_success: exit == 0 && signal == 0, command, job_hash })
    }
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
    // The lowest bit marks hashes of whole jobs.
    BuildHasherDefault::<DefaultHasher>::default().hash_one(command) & !1
}

/// Marks a hash as one that covers a whole job.
fn full_hash(job_hash: u64) -> u64 {
    job_hash | 1
}

#[cfg(test)]
mod tests;
