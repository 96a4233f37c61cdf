//! What an earlier run has done, read from its log.

use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use brigade::runner::Job;

use super::deed;

/// Which jobs have succeeded, by their numbers.
#[derive(Debug, Default)]
pub(crate) struct Resume {
    /// For each number the hash of what it did, or zero: eight bytes a job. In a log of ours that is all that the job did,
    /// and the lowest bit is set; in one of GNU parallel's it is the command.
    succeeded: Vec<u64>,
    count: u64,
}

/// A log that cannot be gone on with.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ResumeError {
    #[error("cannot read it")]
    Read(#[from] io::Error),
    #[error("line {line} is no line of a joblog: {text}")]
    Format { line: usize, text: String },
    #[error(
        "job {number} is not the one that the log says has succeeded: the list has changed since. Give another log, or \
         run without --resume"
    )]
    Changed { number: u64 },
}

/// Numbers beyond this come from no list that anybody has run; a broken line must not take all memory.
const HIGHEST: u64 = 1 << 32;

impl Resume {
    /// Reads a log. One that does not exist is empty.
    pub(crate) fn read(path: &Path) -> Result<Self, ResumeError> {
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(error.into()),
        };
        let whole = whole_lines(&file)?;
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
                resume.note(entry.number, entry.deed.map_or_else(|| hash(entry.command), whole));
            }
        }
        Ok(resume)
    }

    fn note(&mut self, number: u64, known: u64) {
        let Ok(index) = usize::try_from(number) else { return };
        if self.succeeded.len() <= index {
            self.succeeded.resize(index + 1, 0);
        }
        self.count += u64::from(self.succeeded[index] == 0);
        self.succeeded[index] = known;
    }

    /// How many jobs have succeeded.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Whether this job has succeeded.
    ///
    /// A slot's number in the command may differ from run to run, so a command with one is not compared to that in a log of
    /// GNU parallel's.
    pub(crate) fn has(&self, number: u64, job: &Job) -> Result<bool, ResumeError> {
        let index = usize::try_from(number).unwrap_or(usize::MAX);
        match self.succeeded.get(index) {
            None | Some(0) => Ok(false),
            Some(known) if known & 1 == 1 => is_same(number, *known == whole(deed(job))),
            Some(known) => match job.fixed_command() {
                Some(command) => {
                    let command = command.to_string().replace('\n', "\0");
                    is_same(number, *known == hash(&command))
                }
                None => Ok(true),
            },
        }
    }
}

/// One line of a log, as GNU parallel or we have written it.
struct Entry<'a> {
    number: u64,
    is_success: bool,
    command: &'a str,
    /// The hash of all that the job did.
    deed: Option<u64>,
}

impl<'a> Entry<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let mut columns = line.splitn(9, '\t');
        let number = columns.next()?.parse().ok().filter(|number| *number <= HIGHEST)?;
        let mut columns = columns.skip(5);
        let exit: i64 = columns.next()?.parse().ok()?;
        let signal: i64 = columns.next()?.parse().ok()?;
        let command = columns.next()?;
        let (command, ours) = command.rsplit_once("\t# cores=").unwrap_or((command, ""));
        let deed =
            ours.rsplit_once(" deed=").and_then(|(_, deed)| u64::from_str_radix(deed, 16).ok());
        Some(Self { number, is_success: exit == 0 && signal == 0, command, deed })
    }
}

/// How much of a log is lines that have an end. The rest was cut short when its writer was killed.
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
    // Zero means that there is none.
    (hasher.finish() & !1).max(2)
}

/// The hash of all that a job did, as it is kept.
fn whole(deed: u64) -> u64 {
    deed | 1
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
        Resume::read(file.path())
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
    fn a_line_that_is_none_is_named() {
        let error = read(format!("{HEADER}nonsense\n").as_bytes()).expect_err("no line");
        assert_eq!(error.to_string(), "line 2 is no line of a joblog: nonsense");
    }

    #[test]
    fn a_log_that_does_not_exist_is_empty() {
        assert_eq!(Resume::read(Path::new("/no/such/log")).expect("empty").count(), 0);
    }

    proptest! {
        #[test]
        fn a_log_that_is_cut_anywhere_loses_at_most_the_line_that_was_cut(
            codes in prop::collection::vec(0_u8..2, 1..20),
            cut in any::<prop::sample::Index>(),
        ) {
            let mut log = HEADER.as_bytes().to_vec();
            for (number, code) in (1..).zip(&codes) {
                let rest = "1.000\t     0.100\t0\t5";
                writeln!(log, "{number}\t:\t{rest}\t{code}\t0\tcommand {number}").expect("memory");
            }
            let cut = cut.index(log.len() + 1);
            let whole = log[..cut].split(|byte| *byte == b'\n').count().saturating_sub(2);
            let resume = read(&log[..cut]).expect("whole lines");
            for (number, code) in (1..).zip(&codes) {
                let expected = number <= whole as u64 && *code == 0;
                let job = Job::shell(format!("command {number}"));
                prop_assert_eq!(resume.has(number, &job).expect("the same"), expected);
            }
        }

        #[test]
        fn any_bytes_are_a_log_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(&bytes);
        }
    }
}
