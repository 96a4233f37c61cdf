//! Reads the log of an earlier run.

use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};

use super::job_hash;
use crate::error::ResumeError;
use crate::job::Job;

/// The jobs that have succeeded in an earlier run. The default is none.
#[derive(Debug, Default)]
pub struct Resume {
    /// The number of each job with a hash, by number. In a log of ours the hash covers everything
    /// the job did, and its lowest bit is set; in one of GNU parallel's it covers the command.
    succeeded: Vec<(u64, u64)>,
}

impl Resume {
    /// Reads a log.
    pub(super) fn read(file: &File) -> Result<Self, ResumeError> {
        let whole = whole_lines(file)?;
        let mut reader = BufReader::new(file);
        reader.rewind()?;
        Self::parse(reader.take(whole))
    }

    fn parse(mut reader: impl BufRead) -> Result<Self, ResumeError> {
        let mut resume = Self::default();
        let mut bytes = Vec::new();
        for line in 1.. {
            bytes.clear();
            if reader.read_until(b'\n', &mut bytes)? == 0 {
                break;
            }
            let text = String::from_utf8_lossy(bytes.trim_ascii_end());
            if line == 1 && text.starts_with("Seq\t") {
                continue;
            }
            let entry = Entry::parse(&text).ok_or_else(|| ResumeError::Format {
                line,
                text: text.chars().take(80).collect(),
            })?;
            if entry.is_success {
                let known = entry.job_hash.map_or_else(|| hash(entry.command), full_hash);
                resume.succeeded.push((entry.number, known));
            }
        }
        // Of several lines for a job, the last one counts.
        resume.succeeded.reverse();
        resume.succeeded.sort_by_key(|(number, _)| *number);
        resume.succeeded.dedup_by_key(|(number, _)| *number);
        resume.succeeded.shrink_to_fit();
        Ok(resume)
    }

    /// Returns the number of jobs that have succeeded.
    pub fn count(&self) -> u64 {
        self.succeeded.len() as u64
    }

    /// Returns the jobs that have not succeeded, each with its number in the list.
    ///
    /// # Errors
    /// Returns an error if one of the jobs differs from that of the earlier run with this number.
    pub fn remaining(&self, jobs: impl IntoIterator<Item = Job>) -> Result<Vec<Job>, ResumeError> {
        let mut next = 1;
        let mut remaining = Vec::new();
        for job in jobs {
            let number = job.number.unwrap_or(next);
            next = number.saturating_add(1);
            if !self.has(number, &job)? {
                remaining.push(job.number(number));
            }
        }
        Ok(remaining)
    }

    /// Returns `true` if this job has succeeded.
    ///
    /// A command that contains its slot number may differ from run to run, so it is not compared
    /// with a log of GNU parallel's.
    ///
    /// # Errors
    /// Returns an error if the job differs from that of the earlier run with this number.
    pub fn has(&self, number: u64, job: &Job) -> Result<bool, ResumeError> {
        let Ok(index) = self.succeeded.binary_search_by_key(&number, |(number, _)| *number) else {
            return Ok(false);
        };
        match self.succeeded[index].1 {
            known if known & 1 == 1 => is_same(number, known == full_hash(job_hash(job))),
            known => match job.fixed_command() {
                Some(command) => {
                    let command = command.to_string().replace('\n', "\0");
                    is_same(number, known == hash(&command))
                }
                None => Ok(true),
            },
        }
    }
}

/// One line of a log, written by GNU parallel or by us.
struct Entry<'a> {
    number: u64,
    is_success: bool,
    command: &'a str,
    /// The hash of everything the job did; only in our logs.
    job_hash: Option<u64>,
}

impl<'a> Entry<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let mut columns = line.splitn(9, '\t');
        let number = columns.next()?.parse().ok()?;
        let mut columns = columns.skip(5);
        let exit: i64 = columns.next()?.parse().ok()?;
        let signal: i64 = columns.next()?.parse().ok()?;
        let command = columns.next()?;
        let (command, ours) = command.rsplit_once("\t# cores=").unwrap_or((command, ""));
        let job_hash =
            ours.rsplit_once(" deed=").and_then(|(_, hash)| u64::from_str_radix(hash, 16).ok());
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

fn hash(command: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    command.hash(&mut hasher);
    // The lowest bit marks hashes of whole jobs.
    hasher.finish() & !1
}

/// Marks a hash as one that covers a whole job.
fn full_hash(job_hash: u64) -> u64 {
    job_hash | 1
}

fn is_same(number: u64, is_same: bool) -> Result<bool, ResumeError> {
    if is_same { Ok(true) } else { Err(ResumeError::Changed { number }) }
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
        Resume::read(file.as_file())
    }

    #[test]
    fn only_successes_count() {
        let log = format!(
            "{HEADER}1\t:\t1.000\t     0.100\t0\t5\t0\t0\techo a\n\
             2\t:\t1.000\t     0.100\t0\t5\t1\t0\tfalse\n\
             3\t:\t1.000\t     0.100\t0\t5\t0\t9\tsleep 9\n\
             4\thost\t1.000\t     0.100\t0\t5\t0\t0\techo\tb\t# cores=0 attempts=1\n"
        );
        let resume = read(log.as_bytes()).expect("valid");
        assert_eq!(resume.count(), 2);
        assert!(resume.has(1, &Job::shell("echo a")).expect("same"));
        assert!(!resume.has(2, &Job::shell("false")).expect("same"));
        assert!(!resume.has(3, &Job::shell("sleep 9")).expect("same"));
        assert!(resume.has(4, &Job::shell("echo\tb")).expect("same"));
        assert!(!resume.has(5, &Job::shell("x")).expect("same"));
        assert!(matches!(
            resume.has(1, &Job::shell("echo b")),
            Err(ResumeError::Changed { number: 1 })
        ));
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
        let resume = read(log.as_bytes()).expect("valid");
        assert_eq!(resume.count(), 2);
        assert!(resume.has(u64::MAX, &Job::shell("echo a")).expect("same"));
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
            let resume = read(&log[..cut]).expect("complete lines");
            for (number, code) in (1..).zip(&codes) {
                let expected = number <= complete as u64 && *code == 0;
                let job = Job::shell(format!("command {number}"));
                prop_assert_eq!(resume.has(number, &job).expect("the same"), expected);
            }
        }

        #[test]
        fn any_bytes_yield_a_log_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(&bytes);
        }
    }
}
