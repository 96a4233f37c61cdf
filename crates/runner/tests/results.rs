//! Tests of the directory of results and of the report.

#![cfg(feature = "report")]

use std::ffi::OsString;
use std::fs;
use std::io;

use brigade_runner::{About, Event, Job, Output, Report, Results, Runner};

#[test]
fn results_are_stored_by_the_jobs_or_from_their_outcomes() -> io::Result<()> {
    let folder = tempfile::tempdir()?;
    let results = Results::new(folder.path().join("results"));
    let arguments = |words: [&str; 2]| words.map(OsString::from);
    let (first, second) = (arguments(["a/b", ""]), arguments(["c", "d"]));
    let job = |number: u64| Job::shell(format!("echo out{number}; echo err{number} >&2"));
    let jobs = [job(1).output(results.prepare(1, &first)?), job(2).output(Output::Whole)];
    let outcomes = Runner::builder().unpinned().build().expect("valid").run_all(jobs);
    let outcomes = outcomes.expect("possible");
    assert_eq!(outcomes[0].stdout()?, b"out1\n");
    results.write(&outcomes[1], &second)?;
    let read = |path: &str| fs::read_to_string(results.path().join(path)).expect(path);
    for (path, number) in [(r"1/a\_b/2/\e", "1"), ("1/c/2/d", "2")] {
        assert_eq!(read(&format!("{path}/seq")), number);
        assert_eq!(read(&format!("{path}/stdout")), format!("out{number}\n"));
        assert_eq!(read(&format!("{path}/stderr")), format!("err{number}\n"));
    }
    Ok(())
}

#[test]
fn a_report_has_every_attempt_and_cannot_be_broken_by_a_command() -> io::Result<()> {
    let jobs = [Job::new("true").label("</script>"), Job::shell("exit 5").retries(1)];
    let runner = Runner::builder().unpinned().build().expect("valid");
    let mut report = Report::new(&runner)?;
    let mut events = 0;
    let summary = runner.run(jobs, |event| {
        events += usize::from(matches!(event, Event::Finished(_) | Event::Retrying(_)));
        report.note(&event).expect("disk");
    });
    assert_eq!((summary.expect("possible").failed, events), (1, 3));
    let (mut page, mut trace) = (Vec::new(), Vec::new());
    let about = About { command: "</script>".to_owned(), ..About::default() };
    report.page(&mut page, &about)?;
    report.trace(&mut trace)?;
    let page = String::from_utf8(page).expect("UTF-8");
    assert_eq!(page.matches("</script>").count(), 1);
    assert_eq!(page.matches("exit code 5").count(), 2);
    let trace: serde_json::Value = serde_json::from_slice(&trace)?;
    let events = trace["traceEvents"].as_array().expect("a list");
    assert_eq!(events.iter().filter(|event| event["ph"] == "X").count(), 3);
    Ok(())
}
