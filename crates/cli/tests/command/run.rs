//! What the command runs, prints and answers.

use crate::common::{Place, pieces};

#[test]
fn an_argument_is_one_word_whatever_is_in_it() {
    let ran =
        Place::new().run(&["-k", "--", "printf", "<%s>\n", "{}", ":::", "a b", "$HOME", "*", "'"]);
    assert_eq!(ran.stdout, "<a b>\n<$HOME>\n<*>\n<'>\n");
    assert_eq!(ran.status, 0);
}

#[test]
fn a_shell_line_gets_its_arguments_quoted() {
    let ran = Place::new().run(&["-k", "--shell", "--", "echo {} | tr a b", ":::", "a; a", "$(a)"]);
    assert_eq!(ran.stdout, "b; b\n$(b)\n");
}

#[test]
fn lines_of_standard_input_are_arguments_of_a_command_or_commands() {
    let place = Place::new();
    assert_eq!(place.run_with(&["--", "echo", "x"], b"1\n2 3").lines(), ["x 1", "x 2 3"]);
    assert_eq!(place.run_with(&["-"], b"echo 1\n\necho 2 | cat\n").lines(), ["1", "2"]);
    assert_eq!(place.run_with(&["-0", "--", "printf", "%s."], b"a\nb\0c").stdout.len(), 6);
}

#[test]
fn jobs_come_from_toml_and_json_lines() {
    let place = Place::new();
    place.write(
        "jobs.toml",
        "[defaults]\nenv = { WHO = 'you' }\n[[job]]\nshell = 'echo $WHO'\n[[job]]\ncommand = ['cat']\ninput = 'me'\n",
    );
    assert_eq!(place.run(&["-k", "jobs.toml"]).stdout, "you\nme");
    place.write("jobs.jsonl", "{\"command\":[\"echo\",\"a b\"]}\n{\"shell\":\"exit 3\"}\n");
    let ran = place.run(&["jobs.jsonl"]);
    assert_eq!((ran.stdout.as_str(), ran.status), ("a b\n", 1));
}

#[test]
fn outputs_come_in_order_tagged_and_whole() {
    let place = Place::new();
    let script = "[ $0 = 1 ] && sleep 0.3; echo a$0; echo b$0";
    let ran = place.run(&["-k", "--tag", "--", "sh", "-c", script, "{}", ":::", "1", "2"]);
    assert_eq!(ran.stdout, "1\ta1\n1\tb1\n2\ta2\n2\tb2\n");
}

#[test]
fn the_exit_status_counts_failures() {
    let place = Place::new();
    assert_eq!(place.run(&["--", "sh", "-c", "exit {}", ":::", "0", "1", "2"]).status, 2);
    let many = pieces(150, |number| format!("exit 1 # {number}\n"));
    assert_eq!(place.run_with(&["-"], many.as_bytes()).status, 101);
    let halted = place.run(&[
        "-j1",
        "--halt",
        "now,fail=1",
        "--",
        "sh",
        "-c",
        "exit {}",
        ":::",
        "0",
        "7",
        "1",
    ]);
    assert_eq!(halted.status, 7);
}

#[test]
fn input_that_makes_no_sense_is_said_before_anything_runs() {
    let place = Place::new();
    place.write("jobs.toml", "[[job]]\ncommand = ['touch', 'ran']\n[[job]]\ncomand = ['a']\n");
    place.write("twice.txt", "touch ran\ntrue\ntouch ran\n");
    for (arguments, message) in [
        (&["jobs.toml"][..], "unknown field `comand`"),
        (&["twice.txt"], "job 3 is the same as job 1: touch ran"),
        (&["missing.txt"], "cannot read the jobs in missing.txt"),
        (
            &["--", "touch", "ran", ":::", "a", "a"],
            "argument 2 of list 1 is the same as argument 1",
        ),
        (&["--", "touch ran", ":::", "a"], "is one word, and no program"),
        (&["--", "touch", "{3}", ":::", "a"], "`{3}` names argument 3"),
        (&["--halt", "later", "--", "touch", "ran"], "is no halt policy"),
        (&["--timeout", "soon", "--", "touch", "ran"], "is no time limit"),
        (&["-c", "4096", "--", "touch", ":::", "ran"], "can never be had"),
        (&[], "there is nothing to run"),
    ] {
        let ran = place.run(arguments);
        let said: Vec<&str> = ran.stderr.split_whitespace().collect();
        assert_eq!(ran.status, 255, "{arguments:?}: {}", ran.stderr);
        assert!(said.join(" ").contains(message), "{arguments:?}: {}", ran.stderr);
    }
    assert!(!place.path("ran").exists());
}

#[test]
fn a_dry_run_prints_commands_that_a_shell_understands() {
    let ran = Place::new().run(&["--dry-run", "--", "touch", "{}", ":::", "a b", "it's"]);
    assert_eq!(ran.stdout, "touch 'a b'\ntouch 'it'\\''s'\n");
}

#[test]
fn events_are_json_lines() {
    let ran = Place::new().run(&["--json", "--", "sh", "-c", "echo {}; exit 3", ":::", "x"]);
    let events: Vec<serde_json::Value> =
        ran.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(events[0]["event"], "started");
    let last = events.last().expect("some");
    assert_eq!((last["exit_code"].as_i64(), last["stdout"].as_str()), (Some(3), Some("x\n")));
}

#[test]
fn the_same_seed_gives_the_same_order() {
    let place = Place::new();
    let order = |seed| {
        let arguments = ["-j1", "--shuffle", "--seed", seed, "--", "echo", ":::"];
        let letters = ["a", "b", "c", "d", "e", "f", "g", "h"];
        place.run(&[&arguments[..], &letters].concat()).stdout
    };
    assert_eq!(order("1"), order("1"));
    assert_ne!(order("1"), order("2"));
}

#[test]
fn no_job_runs_if_the_canary_fails() {
    let place = Place::new();
    let ran = place.run(&["--canary", "echo sick; exit 1", "--", "touch", ":::", "ran"]);
    assert_eq!(ran.status, 255);
    assert!(ran.stderr.contains("canary failed") && ran.stderr.contains("sick"), "{}", ran.stderr);
    assert!(!place.path("ran").exists());
}

#[test]
fn results_lie_where_gnu_parallel_puts_them() {
    let place = Place::new();
    for options in [&["--results", "out"][..], &["--results", "live", "--line-buffer"]] {
        let folder = options[1];
        let command = ["--", "sh", "-c", "echo $0; echo $1 >&2", ":::", "a/b", ":::", "x y"];
        let words = ["{1}", "{2}"];
        let command = [&command[..4], &words, &command[4..]].concat();
        assert_eq!(place.run(&[options, &command].concat()).stdout, "a/b\n");
        let read = |name| place.read(&format!("{folder}/1/a\\_b/2/x y/{name}"));
        assert_eq!(
            (read("seq"), read("stdout"), read("stderr")),
            ("1".into(), "a/b\n".into(), "x y\n".into())
        );
    }
}

#[test]
fn a_report_and_a_trace_are_written() {
    let place = Place::new();
    let options =
        ["--report", "r.html", "--trace", "t.json", "--", "sh", "-c", "exit {}", ":::", "0", "1"];
    assert_eq!(place.run(&options).status, 1);
    assert!(place.read("r.html").contains("exit code 1"));
    let trace: serde_json::Value = serde_json::from_str(&place.read("t.json")).expect("JSON");
    let events = trace["traceEvents"].as_array().expect("a list");
    assert_eq!(events.iter().filter(|event| event["ph"] == "X").count(), 2);
}

#[test]
fn jobs_run_on_the_cores_that_they_are_told() {
    let place = Place::new();
    let script = "echo $BRIGADE_CORES=$(grep Cpus_allowed_list /proc/self/status | cut -f2)";
    let ran = place.run(&["--shell", "--", script, "# {}", ":::", "1", "2", "3", "4"]);
    assert_eq!(ran.stdout.lines().count(), 4);
    for line in ran.stdout.lines() {
        let (told, found) = line.split_once('=').expect("both");
        assert_eq!(told, found);
    }
}

#[test]
fn manual_completions_and_topology_come_from_the_same_program() {
    let place = Place::new();
    for (arguments, text) in [
        (&["man"][..], "--resume"),
        (&["completions", "bash"], "_brigade"),
        (&["topology"], "jobs can be pinned to"),
        (&["run", "--help"], "exit status"),
    ] {
        let output = place.command(arguments).output().expect("brigade");
        let stdout = String::from_utf8_lossy(&output.stdout).replace("\\-", "-");
        assert!(output.status.success() && stdout.contains(text), "{arguments:?}: {stdout}");
    }
}
