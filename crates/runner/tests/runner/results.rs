//! Tests of the directory of results and of the report.

use std::ffi::OsString;
use std::fs;
use std::io;

use brigade_runner::{
    About, Event, Job, Output, Report, ResultFiles, ResultTable, Results, Runner, TableFormat,
};

#[test]
fn results_are_stored_by_the_jobs_or_from_their_outcomes() -> io::Result<()> {
    let folder = tempfile::tempdir()?;
    let results = Results::new(folder.path().join("results"));
    let arguments = |words: [&str; 2]| words.map(OsString::from);
    let (first, second) = (arguments(["a/b", ""]), arguments(["c", "d"]));
    let job = |number: u64| Job::shell(format!("echo out{number}; echo err{number} >&2"));
    let jobs = [job(1).output(results.files(&first).prepare(1)?), job(2).output(Output::Whole)];
    let outcomes = Runner::builder().unpinned().build().expect("valid").run_all(jobs);
    let outcomes = outcomes.expect("possible");
    assert_eq!(outcomes[0].stdout()?, b"out1\n");
    results.files(&second).write(&outcomes[1])?;
    let read =
        |path: &str| fs::read_to_string(folder.path().join("results").join(path)).expect(path);
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
    let events: Vec<serde_json::Value> = serde_json::from_slice(&trace)?;
    assert_eq!(events.iter().filter(|event| event["ph"] == "X").count(), 3);
    Ok(())
}

#[test]
fn a_name_is_a_file_or_a_directory() -> io::Result<()> {
    let folder = tempfile::tempdir()?;
    let names = ["a/one.txt", "b/two/"].map(|name| ResultFiles::named(&folder.path().join(name)));
    let job = |number: u64| Job::shell(format!("echo out{number}; echo err{number} >&2"));
    let jobs = [job(1).output(names[0].prepare(1)?), job(2).output(names[1].prepare(2)?)];
    Runner::builder().unpinned().build().expect("valid").run_all(jobs).expect("possible");
    for (path, text) in [
        ("a/one.txt", "out1\n"),
        ("a/one.txt.err", "err1\n"),
        ("a/one.txt.seq", "1"),
        ("b/two/stdout", "out2\n"),
        ("b/two/stderr", "err2\n"),
        ("b/two/seq", "2"),
    ] {
        assert_eq!(fs::read_to_string(folder.path().join(path))?, text, "{path}");
    }
    Ok(())
}

#[test]
fn a_table_has_a_row_for_each_job_in_any_format() -> io::Result<()> {
    let folder = tempfile::tempdir()?;
    let jobs = [Job::shell("echo 'a \"b\"'; printf x >&2"), Job::shell("printf '\\377'; exit 3")];
    let outcomes = Runner::builder().unpinned().build().expect("valid").run_all(jobs);
    let outcomes = outcomes.expect("possible");
    let arguments = [vec!["1,2".into(), "é".into()], vec!["b".into()]];
    for (format, expected) in [
        (TableFormat::Csv, "x,V2,Stdout,Stderr\n\"1,2\",é,\"a \"\"b\"\"\n\",x\nb,,\u{fffd},\n"),
        (
            TableFormat::Tsv,
            "x\tV2\tStdout\tStderr\n1,2\té\t\"a \"\"b\"\"\n\"\tx\nb\t\t\u{fffd}\t\n",
        ),
        (
            TableFormat::JsonLines,
            "[ \"1,2\",\"é\" ], \"Stdout\": \"a \\\"b\\\"\\u000a\", \"Stderr\": \"x\" }\n\
             [ \"b\" ], \"Stdout\": \"\u{fffd}\", \"Stderr\": \"\" }\n",
        ),
    ] {
        let path = folder.path().join("table");
        // A longer table of an earlier run is removed.
        fs::write(&path, "old\n".repeat(1000))?;
        let mut table = ResultTable::create(&path, format)?.names(vec!["x".into()]);
        let in_use = ResultTable::create(&path, format).expect_err("locked");
        assert!(in_use.to_string().contains("in use"), "{in_use}");
        for (outcome, arguments) in outcomes.iter().zip(&arguments) {
            table.write(outcome, arguments)?;
        }
        let text = String::from_utf8_lossy(&fs::read(&path)?).into_owned();
        // The columns before the arguments have times.
        let ends =
            ["\"V\": ", "Command,", "Command\t", "exit 3\",", "exit 3\"\t", ">&2\",", ">&2\"\t"];
        let rows = text.split_inclusive('\n').map(|line| {
            let cut = ends.iter().find_map(|end| line.split_once(end).map(|(_, rest)| rest));
            cut.unwrap_or(line)
        });
        assert_eq!(rows.collect::<String>(), expected, "{text}");
    }
    Ok(())
}
