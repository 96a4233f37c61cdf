//! Reads job files in TOML and JSON lines.

use std::path::Path;

use brigade::runner::Job;
use clap::ValueEnum;
use miette::{LabeledSpan, NamedSource, Report, miette};
use serde::Deserialize;
use toml::Spanned;

use super::{Specification, plain};
use crate::confine::Confining;

/// The format of a job file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// One shell command per line
    Lines,
    /// A table `[[job]]` for each job
    Toml,
    /// One JSON object per line
    Jsonl,
}

impl Format {
    /// Returns the format that a file's extension suggests.
    pub(crate) fn of(path: &Path) -> Self {
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("toml") => Self::Toml,
            Some("jsonl" | "ndjson") => Self::Jsonl,
            _ => Self::Lines,
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Jobs {
    defaults: Option<Spanned<Specification>>,
    #[serde(default)]
    job: Vec<Spanned<Specification>>,
}

/// Reads the jobs of a TOML file, for a command. Errors show the offending lines.
pub(crate) fn jobs_of_toml(
    name: &str,
    text: &str,
    command: &Confining,
) -> Result<Vec<Job>, Report> {
    let source = || NamedSource::new(name, text.to_owned()).with_language("TOML");
    let at = |message: String, span: std::ops::Range<usize>| {
        miette!(labels = here(span), "{message}").with_source_code(source())
    };
    let jobs: Jobs = toml::from_str(text).map_err(|error| {
        let help =
            "a job file is a list of tables: [[job]] with command = [\"program\", \"argument\"]";
        let labels = here(error.span().unwrap_or_default());
        miette!(labels = labels, help = help, "{}", plain::message(error.message()))
            .with_source_code(source())
    })?;
    let defaults = match jobs.defaults {
        None => Specification::default(),
        Some(defaults) => {
            if let Err(field) = defaults.get_ref().check_defaults() {
                let message =
                    format!("`{field}` is not allowed in `[defaults]`; set it for each job");
                return Err(at(message, defaults.span()));
            }
            defaults.into_inner()
        }
    };
    jobs.job
        .into_iter()
        .map(|job| {
            let span = job.span();
            job.into_inner().into_job(&defaults, command).map_err(|message| at(message, span))
        })
        .collect()
}

/// Returns the mark of a place.
fn here(span: std::ops::Range<usize>) -> Vec<LabeledSpan> {
    vec![LabeledSpan::new_primary_with_span(Some("here".to_owned()), span)]
}

/// Reads a job from a line of JSON, whose number is `number`, for a command.
pub(crate) fn jobs_of_json_line(
    number: u64,
    line: &[u8],
    command: &Confining,
) -> Result<Job, JsonError> {
    let wrong = |message: String, column| JsonError {
        number,
        // The place is shown in another way.
        message: plain::message(message.split(" at line 1 column").next().unwrap_or_default()),
        column,
        line: String::from_utf8_lossy(line).into_owned(),
    };
    if line.trim_ascii_start().first().is_some_and(|byte| *byte != b'{') {
        let example = r#"{"command": ["program", "argument"]}"#;
        return Err(wrong(format!("expected an object, such as {example}"), None));
    }
    let specification: Specification = serde_json::from_slice(line)
        .map_err(|error| wrong(error.to_string(), error.column().checked_sub(1)))?;
    let job = specification.into_job(&Specification::default(), command);
    job.map_err(|message| wrong(message, None))
}

/// A line that does not describe a job.
#[derive(Debug, thiserror::Error)]
#[error("line {number} is not a job: {message}")]
pub(crate) struct JsonError {
    number: u64,
    message: String,
    /// The place in the line, if it is known.
    column: Option<usize>,
    line: String,
}

impl JsonError {
    /// Returns an error that shows the line.
    pub(crate) fn into_report(self, file: &str) -> Report {
        let last = self.line.len().saturating_sub(1);
        let span = match self.column {
            Some(column) => column.min(last)..last.max(column.min(last)),
            None => 0..self.line.len(),
        };
        let message = self.to_string();
        let source = NamedSource::new(file, self.line).with_language("JSON");
        miette!(labels = here(span), "{message}").with_source_code(source)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    fn error(text: &str) -> String {
        let report = jobs_of_toml("jobs.toml", text, &Confining::default()).expect_err("wrong");
        format!("{report}")
    }

    /// Returns all parts of a job.
    fn text_of(job: &Job) -> String {
        format!("{job:?}")
    }

    #[test]
    fn a_job_takes_missing_fields_from_the_defaults() {
        let text = r#"
            [defaults]
            cores = 2
            timeout = "1m 30s"
            env = { A = "1", B = "2" }

            [[job]]
            command = ["cc", "-c", "a.c"]
            env = { B = "3" }

            [[job]]
            shell = "a | b"
            label = "pipe"
            timeout = 2.5
        "#;
        let jobs = jobs_of_toml("jobs.toml", text, &Confining::default()).expect("valid");
        let first = Job::new("cc").args(["-c", "a.c"]).cores(2).env("A", "1").env("B", "3");
        assert_eq!(text_of(&jobs[0]), text_of(&first.deadline(Duration::from_secs(90))));
        let second = Job::shell("a | b").label("pipe").cores(2).env("A", "1").env("B", "2");
        assert_eq!(text_of(&jobs[1]), text_of(&second.deadline(Duration::from_millis(2500))));
    }

    #[test]
    fn errors_name_the_field_that_is_wrong() {
        assert!(error("[[job]]\ncomand = []").contains("unknown field `comand`"));
        assert_eq!(error("[[job]]\ncommand = []"), "`command` must name a program");
        assert!(error("[[job]]\n").contains("expected `command"));
        assert!(error("[[job]]\ncommand = ['a']\nshell = 'b'").contains("cannot be used together"));
        assert!(error("[[job]]\ncommand = ['a']\ntimeout = 'soon'").contains("`soon`"));
        assert!(
            error("[defaults]\nlabel = 'x'").contains("`label` is not allowed in `[defaults]`")
        );
        assert!(error("[[job]]\ncommand = ['a']\nenv = { 'A=' = 'b' }").contains("`A=`"));
    }

    #[test]
    fn a_line_of_json_is_a_job() {
        let job = jobs_of_json_line(
            1,
            br#"{"command": ["a", "b c"], "retries": 2}"#,
            &Confining::default(),
        )
        .expect("valid");
        assert_eq!(text_of(&job), text_of(&Job::new("a").arg("b c").retries(2)));
        let error = jobs_of_json_line(4, b"{", &Confining::default()).expect_err("cut");
        assert!(
            error.to_string().starts_with("line 4 is not a job: the line ends within an object"),
            "{error}"
        );
    }

    proptest! {
        #[test]
        fn any_text_yields_jobs_or_an_error(text in "\\PC*", bytes in prop::collection::vec(any::<u8>(), 0..50)) {
            let _ = jobs_of_toml("jobs.toml", &text, &Confining::default());
            let _ = jobs_of_json_line(1, &bytes, &Confining::default());
        }

        #[test]
        fn commands_are_read_unchanged(words in prop::collection::vec("[^\0]{1,8}", 1..5)) {
            let mut rest = words.iter();
            let expected = text_of(&Job::new(rest.next().expect("one")).args(rest));
            let json = serde_json::json!({ "command": words }).to_string();
            prop_assert_eq!(text_of(&jobs_of_json_line(1, json.as_bytes(), &Confining::default()).expect("valid")), expected.as_str());
            let text = toml::to_string(&serde_json::json!({ "job": [{ "command": words }] })).expect("valid");
            prop_assert_eq!(text_of(&jobs_of_toml("jobs.toml", &text, &Confining::default()).expect("valid")[0]), expected);
        }
    }
}
