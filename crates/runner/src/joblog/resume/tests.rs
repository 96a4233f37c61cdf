//! Logs that are whole, cut short, or no logs.

use std::io::Write;

use proptest::prelude::*;

use super::*;

const HEADER: &str = super::super::HEADER;

fn read(text: &[u8]) -> Result<Resume, ResumeError> {
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    file.write_all(text).expect("disk");
    Resume::read(file.as_file(), ResumeRule::Same).map(|(resume, _)| resume)
}

#[test]
fn only_successes_count() {
    let log = format!(
        "{HEADER}1\t:\t1.000\t     0.100\t0\t5\t0\t0\techo a\n\
         2\t:\t1.000\t     0.100\t0\t5\t1\t0\tfalse\n\
         3\t:\t1.000\t     0.100\t0\t5\t0\t9\tkill -9 $$\n\
         4\thost\t1.000\t     0.100\t0\t5\t0\t0\techo\tb\t# cores=0 attempts=1\n"
    );
    let mut resume = read(log.as_bytes()).expect("valid");
    assert_eq!(resume.count(), 2);
    assert!(resume.has(1, &Job::shell("echo a")));
    assert!(!resume.has(2, &Job::shell("false")));
    assert!(!resume.has(3, &Job::shell("kill -9 $$")));
    assert!(resume.has(4, &Job::shell("echo\tb")));
    assert!(!resume.has(5, &Job::shell("x")));
    let mut changed = read(log.as_bytes()).expect("valid");
    assert!(!changed.has(1, &Job::shell("echo b")));
    assert!(matches!(changed.check(), Err(ResumeError::Changed { number: 1 })));
}

#[test]
fn a_log_tells_jobs_apart_that_differ_in_more_than_the_command() {
    let job = |folder: &str| Job::shell("echo a").folder(folder);
    let hash = job_hash(&job("/x"));
    for key in ["job", "deed"] {
        let line = "1\t:\t1.000\t     0.100\t0\t5\t0\t0\techo a\t# cores=- attempts=1";
        let log = format!("{HEADER}{line} {key}={hash:016x}\n");
        assert!(read(log.as_bytes()).expect("valid").has(1, &job("/x")), "{key}");
        assert!(!read(log.as_bytes()).expect("valid").has(1, &job("/y")), "{key}");
    }
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
fn a_log_names_its_batch_and_counts_failures() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    drop(super::super::Joblog::create(file.path(), Some("run-7")).expect("disk"));
    let mut log = std::fs::read(file.path()).expect("disk");
    for exit in [1, 0, 2] {
        writeln!(log, "4\ta\t1.000\t0.1\t0\t5\t{exit}\t0\techo b").expect("memory");
    }
    let resume = read(&log).expect("valid");
    assert_eq!((resume.batch.as_deref(), resume.count()), (Some("run-7"), 1));
    assert_eq!(resume.failures, BTreeMap::from([(4, 2)]));
    let redo = resume.redo();
    assert_eq!((redo.batch.as_deref(), redo.count(), redo.is_continued), (Some("run-7"), 0, true));
    assert_eq!(read(HEADER.as_bytes()).expect("valid").batch, None);
}

#[test]
fn numbers_may_decide_alone() {
    let log = "1\t:\t1\t1\t0\t5\t0\t0\ta\n2\t:\t1\t1\t0\t5\t1\t0\tb\n";
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    file.write_all(log.as_bytes()).expect("disk");
    for (rule, expected) in [
        (ResumeRule::SucceededNumbers, [true, false, false]),
        (ResumeRule::AllNumbers, [true, true, false]),
    ] {
        let (mut resume, _) = Resume::read(file.as_file(), rule).expect("valid");
        let other = Job::shell("other");
        assert_eq!([1, 2, 3].map(|number| resume.has(number, &other)), expected);
        assert!(resume.check().is_ok());
    }
    let failed = failed(file.as_file()).expect("valid");
    assert_eq!(format!("{failed:?}"), format!("{:?}", [Job::shell("b").number(2)]));
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
