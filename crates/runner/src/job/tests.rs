//! Tests of jobs.

use proptest::prelude::*;

use super::*;

#[test]
fn a_job_is_shown_as_its_label_or_its_command() {
    let job = Job::new("cc").args(["-o", "a b", "it's", ""]);
    assert_eq!(job.to_string(), r"cc -o 'a b' 'it'\''s' ''");
    assert_eq!(job.label("compile").to_string(), "compile");
    assert_eq!(Job::shell("a | b").to_string(), "a | b");
}

#[test]
fn arguments_of_a_shell_line_are_its_parameters() {
    let job = Job::shell("echo \"$1\"").arg("a b");
    assert_eq!(job.words_on(1), ["/bin/sh", "-c", "echo \"$1\"", "sh", "a b"]);
}

#[test]
fn a_line_runs_in_the_shell_of_its_job() {
    let job = Job::shell("echo").in_shell("bash");
    assert_eq!(job.words_on(1), ["bash", "-c", "echo"]);
    assert_ne!(job.context_bytes(), Job::shell("echo").context_bytes());
    assert_eq!(job.arg("a").words_on(1), ["bash", "-c", "echo", "sh", "a"]);
}

#[test]
fn the_slot_marker_is_replaced_with_the_slots_number() {
    let job = Job::new("a").args(["x%y%", "z"]).slot_marker("%");
    assert_eq!(job.words_on(12), ["a", "x12y12", "z"]);
}

proptest! {
    #[test]
    fn a_shell_reads_back_a_quoted_word(words in prop::collection::vec("[^\0]*", 1..4)) {
        let line: Vec<_> = words.iter().map(|word| quote(word.as_ref())).collect();
        let line = line.join(OsStr::new(" "));
        let line = line.to_str().expect("UTF-8");
        let output = std::process::Command::new("sh")
            .args(["-c", &format!("printf '%s\\0' {line}")])
            .output()
            .expect("sh");
        let expected: String = words.iter().flat_map(|word| [word.as_str(), "\0"]).collect();
        prop_assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
    }
}
