//! Tests of input, output and exit status.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use crate::common::{TestDir, numbered};

#[test]
fn an_argument_stays_one_word() {
    let ran = TestDir::new()
        .run(&["-k", "--", "printf", "<%s>\n", "{}", ":::", "a b", "$HOME", "*", "'"]);
    assert_eq!(ran.stdout, "<a b>\n<$HOME>\n<*>\n<'>\n");
    assert_eq!(ran.status, 0);
}

#[test]
fn arguments_of_a_shell_line_are_quoted() {
    let ran =
        TestDir::new().run(&["-k", "--shell", "--", "echo {} | tr a b", ":::", "a; a", "$(a)"]);
    assert_eq!(ran.stdout, "b; b\n$(b)\n");
}

#[test]
fn lines_of_standard_input_are_arguments_or_commands() {
    let dir = TestDir::new();
    assert_eq!(dir.run_with(&["--", "echo", "x"], b"1\n2 3").lines(), ["x 1", "x 2 3"]);
    assert_eq!(dir.run_with(&["-"], b"echo 1\n\necho 2 | cat\n").lines(), ["1", "2"]);
    assert_eq!(dir.run_with(&["-0", "--", "printf", "%s."], b"a\nb\0c").stdout.len(), 6);
}

#[test]
fn jobs_come_from_toml_and_json_lines() {
    let dir = TestDir::new();
    dir.write(
        "jobs.toml",
        "[defaults]\nenv = { WHO = 'you' }\n[[job]]\nshell = 'echo $WHO'\n[[job]]\ncommand = ['cat']\ninput = 'me'\n",
    );
    assert_eq!(dir.run(&["-k", "jobs.toml"]).stdout, "you\nme");
    dir.write("jobs.jsonl", "{\"command\":[\"echo\",\"a b\"]}\n{\"shell\":\"exit 3\"}\n");
    let ran = dir.run(&["jobs.jsonl"]);
    assert_eq!((ran.stdout.as_str(), ran.status), ("a b\n", 1));
}

#[test]
fn outputs_are_printed_in_order_tagged_and_whole() {
    let dir = TestDir::new();
    // The second one is over before the first one prints anything.
    let script = "if [ $0 = 2 ]; then echo $$ > pid; else
        until [ -s pid ] && ! kill -0 $(cat pid) 2> /dev/null; do sleep 0.01; done; fi
        echo a$0; echo b$0";
    let options = ["-k", "--tag", "--no-pin", "-j2", "--", "sh", "-c", script, "{}"];
    let ran = dir.run(&[&options[..], &[":::", "1", "2"]].concat());
    assert_eq!(ran.stdout, "1\ta1\n1\tb1\n2\ta2\n2\tb2\n");
}

#[test]
fn a_command_needs_no_separator() {
    let dir = TestDir::new();
    assert_eq!(dir.run(&["-k", "echo", "-n", "{},", ":::", "a", "b"]).stdout, "a,b,");
    assert_eq!(dir.run_with(&["-k", "-j", "1", "wc", "-c"], b"list\n").status, 1);
    assert_eq!(dir.run_with(&["echo"], b"a\n").stdout, "a\n");
    dir.write("echo", "printf from-the-file\n");
    assert_eq!(dir.run(&["echo", "-k"]).stdout, "from-the-file");
}

#[test]
fn several_arguments_become_several_words() {
    let dir = TestDir::new();
    let print = ["-k", "--", "printf", "<%s>"];
    let lists = [":::", "a b", ":::", "1", "2"];
    assert_eq!(dir.run(&[&print[..], &lists].concat()).stdout, "<a b><1><a b><2>");
    assert_eq!(dir.run(&[&print[..], &["{}"], &lists].concat()).stdout, "<a b><1><a b><2>");
    assert_eq!(dir.run(&[&print[..], &["{#}"], &lists].concat()).stdout, "<1><2>");
}

#[test]
fn the_exit_status_counts_failures() {
    let dir = TestDir::new();
    assert_eq!(dir.run(&["--", "sh", "-c", "exit {}", ":::", "0", "1", "2"]).status, 2);
    let many = numbered(150, |number| format!("exit 1 # {number}\n"));
    assert_eq!(dir.run_with(&["-"], many.as_bytes()).status, 101);
    let halted = dir.run(&[
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
fn invalid_input_is_reported_before_anything_runs() {
    let dir = TestDir::new();
    dir.write("jobs.toml", "[[job]]\ncommand = ['touch', 'ran']\n[[job]]\ncomand = ['a']\n");
    dir.write("twice.txt", "touch ran\ntrue\ntouch ran\n");
    dir.write(
        "wide.toml",
        "[[job]]\ncommand = ['touch', 'ran']\n[[job]]\ncommand = ['true']\ncores = 4096\n",
    );
    let first = "{\"command\":[\"touch\",\"ran\"]}\n";
    dir.write("jobs.jsonl", format!("{first}\n{{\"comand\":1}}\n"));
    dir.write("wide.jsonl", format!("{first}{{\"command\":[\"true\"],\"cores\":4096}}\n"));
    dir.write("file", "");
    dir.write("ragged", "ran,ran\nran\n");
    dir.write("same", "a\nb\na\n");
    dir.write("script", "#!/bin/sh\nD=x\ntouch ran\n");
    dir.write("executable", "touch ran\n");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(dir.path("executable"), mode).expect("own file");
    for (arguments, message) in [
        (&["jobs.toml"][..], "unknown field `comand`"),
        (&["wide.toml"], "job 2 (true) can never run"),
        (&["wide.jsonl"], "job 2 (true) can never run"),
        (&["jobs.jsonl"], "line 3 is not a job: unknown field `comand`"),
        (&["jobs.jsonl"], r#"{"comand":1}"#),
        (&["--report", "no/r", "--", "touch", ":::", "ran"], "cannot write the report no/r"),
        (&["--trace", "no/t", "--", "touch", ":::", "ran"], "cannot write the trace no/t"),
        (
            &["--results", "file", "--", "touch", ":::", "ran"],
            "cannot write to the results directory file",
        ),
        (&["twice.txt"], "job 3 is the same as job 1: touch ran"),
        (&["missing.txt"], "cannot read the jobs in missing.txt"),
        (
            &["--", "touch", "ran", ":::", "a", "a"],
            "argument 2 of list 1 is the same as argument 1",
        ),
        (&["--", "touch ran", ":::", "a"], "is a single word, and no such program"),
        (&["--", "touch", "{3}", ":::", "a"], "`{3}` refers to an argument"),
        (&["--colsep", ",", "touch", "{3}", ":::", "ran,a"], "each job has only 2"),
        (&["-C", ",", "-a", "ragged", "touch", "{2}"], "job 2 has only 1 arguments"),
        (&["-C", "(", "touch", ":::", "ran"], "not a regular expression: unclosed group"),
        (&["--csv", "-C", "ab", "touch", ":::", "ran"], "--colsep must be a single character"),
        (&["--header", "2", "touch", ":::", "ran"], "only `--header :`"),
        (&["-a", "missing", "touch", "ran"], "cannot read the arguments in missing"),
        (&["-a", "same", "touch", "ran"], "argument 3 of list 1 is the same as argument 1: a"),
        (&["-d", "", "touch", ":::", "ran"], "a delimiter has at least one character"),
        (&["touch", "{-2}", ":::", "ran"], "`{-2}` refers to an argument that does not exist"),
        (&["touch", "{..}", ":::", "ran"], "GNU parallel's `{..}` is not available"),
        (&["--plus", "touch", "{%.gz}", ":::", "ran"], "`{%.gz}` is not available"),
        (&["--tagstring", "{2}", "touch", ":::", "ran"], "`{2}` refers to an argument"),
        (&["--wd", "{%}", "touch", ":::", "ran"], "--wd cannot contain {%}"),
        (&["--env", "=x", "touch", ":::", "ran"], "has no name before the `=`"),
        (&["--wd", "file/x", "touch", ":::", "ran"], "cannot create the directory file/x"),
        (&["-N2", "touch", "{3}", ":::", "ran"], "each job has only 2"),
        (&["-X", "touch", "{1}", ":::", "ran"], "`{1}` cannot be used with -X"),
        (&["-s", "9", "touch", ":::", "ran"], "would have 9 bytes, and at most 8 are allowed"),
        (&["--pipe", "touch", ":::", "ran"], "get no arguments"),
        (&["-Shost", "touch", ":::", "ran"], "GNU parallel's `-S` is not available"),
        (&["--results", "{%}", "touch", ":::", "ran"], "--results cannot contain {%}"),
        (&["--results", "{2}", "touch", ":::", "ran"], "`{2}` refers to an argument"),
        (&["--results", "file/{}", "touch", ":::", "ran"], "cannot store the results of job 1"),
        (&["--results", "no/x.csv", "touch", ":::", "ran"], "cannot write the table no/x.csv"),
        (
            &["--results", "x.csv", "--joblog", "l", "--resume", "touch", ":::", "ran"],
            "a table of results cannot be continued",
        ),
        (&["--files", "--tmpdir", "no", "touch", ":::", "ran"], "temporary directory no"),
        (&["./script"], "to run the program itself: brigade run -- ./script; if"),
        (&["executable"], "executable is a program, not a job file"),
        (&["--halt", "later", "--", "touch", "ran"], "expected now or soon"),
        (&["--timeout", "soon", "--", "touch", "ran"], "expected seconds, a duration"),
        (&["--jobs", "x", "--", "touch", "ran"], "expected a number of jobs"),
        (&["-c", "0", "--", "touch", "ran"], "expected a number of at least 1"),
        (&["-c", "4096", "--", "touch", ":::", "ran"], "a job cannot get 4096 cores"),
        (&[], "nothing to run"),
    ] {
        let ran = dir.run(arguments);
        let said: Vec<&str> = ran.stderr.split_whitespace().collect();
        assert_eq!(ran.status, 255, "{arguments:?}: {}", ran.stderr);
        assert!(said.join(" ").contains(message), "{arguments:?}: {}", ran.stderr);
    }
    assert!(!dir.path("ran").exists());
}

#[test]
fn a_dry_run_prints_commands_for_a_shell() {
    let ran = TestDir::new().run(&["--dry-run", "--", "touch", "{}", ":::", "a b", "it's"]);
    assert_eq!(ran.stdout, "touch 'a b'\ntouch 'it'\\''s'\n");
}

#[test]
fn events_are_printed_as_json_lines() {
    let ran = TestDir::new().run(&["--json", "--", "sh", "-c", "echo {}; exit 3", ":::", "x"]);
    let events: Vec<serde_json::Value> =
        ran.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(events[0]["event"], "started");
    let end = events.last().expect("some");
    assert_eq!((end["event"].as_str(), end["status"].as_u64()), (Some("end"), Some(1)));
    let last = &events[events.len() - 2];
    assert_eq!((last["exit_code"].as_i64(), last["stdout"].as_str()), (Some(3), Some("x\n")));
}

#[test]
fn the_same_seed_gives_the_same_order() {
    let dir = TestDir::new();
    let order = |seed| {
        let arguments = ["-j1", "--shuffle", "--seed", seed, "--", "echo", ":::"];
        let letters = ["a", "b", "c", "d", "e", "f", "g", "h"];
        dir.run(&[&arguments[..], &letters].concat()).stdout
    };
    assert_eq!(order("1"), order("1"));
    assert_ne!(order("1"), order("2"));
}

#[test]
fn no_job_runs_after_a_failed_canary() {
    let dir = TestDir::new();
    let ran = dir.run(&["--canary", "echo sick; exit 1", "--", "touch", ":::", "ran"]);
    assert_eq!(ran.status, 255);
    assert!(ran.stderr.contains("canary failed") && ran.stderr.contains("sick"), "{}", ran.stderr);
    let ran = dir.run(&["--canary", "exit 1", "--", "true", ":::", "1"]);
    assert!(ran.stderr.contains("it printed nothing"), "{}", ran.stderr);
    assert!(!dir.path("ran").exists());
}

#[test]
fn results_are_stored_where_gnu_parallel_puts_them() {
    let dir = TestDir::new();
    for options in [&["--results", "out"][..], &["--results", "live", "--line-buffer"]] {
        let folder = options[1];
        let command = ["--", "sh", "-c", "echo $0; echo $1 >&2", ":::", "a/b", ":::", "x y"];
        let words = ["{1}", "{2}"];
        let command = [&command[..4], &words, &command[4..]].concat();
        assert_eq!(dir.run(&[options, &command].concat()).stdout, "a/b\n");
        let read = |name| dir.read(&format!("{folder}/1/a\\_b/2/x y/{name}"));
        assert_eq!(
            (read("seq"), read("stdout"), read("stderr")),
            ("1".into(), "a/b\n".into(), "x y\n".into())
        );
    }
}

#[test]
fn a_report_and_a_trace_are_written() {
    let dir = TestDir::new();
    let files = ["--report", "r.html", "--trace", "t.json"];
    let job = ["--", "sh", "-c", "echo it is $0 >&2; exit $0", "{}", ":::", "0", "1"];
    assert_eq!(dir.run(&[&files[..], &job].concat()).status, 1);
    let page = dir.read("r.html");
    for text in ["exit code 1", "run --report r.html", "\"status\":1", "\"host\":", "\"it is 1\""] {
        assert!(page.contains(text), "{text}");
    }
    assert!(!page.contains("\"it is 0\""), "only failures are quoted");
    let trace: serde_json::Value = serde_json::from_str(&dir.read("t.json")).expect("JSON");
    let events = trace.as_array().expect("a list");
    assert_eq!(events.iter().filter(|event| event["ph"] == "X").count(), 2);
    assert_eq!(events.iter().filter(|event| event["cname"] == "terrible").count(), 1);
    assert_eq!(events.iter().filter(|event| event["name"] == "running jobs").count(), 4);
}

#[test]
fn failed_attempts_are_in_the_figures_the_report_and_the_trace() {
    let dir = TestDir::new();
    let options = ["--json", "--bar", "--retries", "3", "-j1"];
    let files = ["--report", "r.html", "--trace", "t.json", "--", "false", ":::", "1"];
    let ran = dir.run(&[&options[..], &files].concat());
    let used = ran.stderr.lines().find_map(|line| line.strip_prefix("1 core: ")).expect("figures");
    let percent: f64 = used.split(' ').next().and_then(|used| used.parse().ok()).expect("a number");
    let walls = ran.stdout.lines().filter_map(|line| {
        let event: serde_json::Value = serde_json::from_str(line).expect("JSON");
        event["wall"].as_f64()
    });
    let walls: Vec<f64> = walls.collect();
    let [attempts @ .., whole] = walls.as_slice() else { panic!("no events") };
    // The whole lasts until it is printed, a moment longer than in the figures.
    let least = attempts.iter().sum::<f64>() / whole * 100.0 - 1.0;
    assert!(attempts.len() == 4 && percent >= least, "{least} {}", ran.stderr);
    let trace: serde_json::Value = serde_json::from_str(&dir.read("t.json")).expect("JSON");
    let attempts = trace.as_array().expect("a list").iter();
    assert_eq!(attempts.filter(|event| event["ph"] == "X").count(), 4);
    assert_eq!(dir.read("r.html").matches("\"retry\",").count(), 3);
}

#[test]
fn a_memory_that_is_not_known_is_not_reported() {
    let dir = TestDir::new();
    let large = "perl -e '$x = q(a) x 100_000_000'";
    dir.write("jobs", format!("true\n{large}\n"));
    let ran = dir.run(&["-j1", "--json", "--joblog", "log", "jobs"]);
    let memory: Vec<Option<u64>> = ran
        .stdout
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON"))
        .filter(|event| event["event"] == "finished")
        .map(|event| event["peak_memory"].as_u64())
        .collect();
    assert_eq!(memory[0], None, "less than that of the run itself");
    assert!(memory[1].is_some_and(|bytes| bytes > 100_000_000), "{memory:?}");
    assert!(dir.read("log").contains(" memory=- "), "{}", dir.read("log"));
}

#[test]
fn a_large_process_that_starts_the_command_hides_no_memory() {
    let dir = TestDir::new();
    // The kernel's count of the command begins with it.
    let ballast = std::hint::black_box(vec![1_u8; 256 << 20]);
    dir.write("jobs", "perl -e '$x = q(a) x 100_000_000'\n");
    let ran = dir.run(&["-j1", "--json", "jobs"]);
    drop(ballast);
    let finished = ran.stdout.lines().find(|line| line.contains("finished")).expect("an event");
    let event: serde_json::Value = serde_json::from_str(finished).expect("JSON");
    assert!(event["peak_memory"].as_u64().is_some_and(|it| it > 100_000_000), "{finished}");
}

#[test]
fn jobs_run_on_the_cores_in_their_environment() {
    let dir = TestDir::new();
    let script = "echo $BRIGADE_CORES=$(grep Cpus_allowed_list /proc/self/status | cut -f2)";
    let ran = dir.run(&["--shell", "--", script, "# {}", ":::", "1", "2", "3", "4"]);
    assert_eq!(ran.stdout.lines().count(), 4);
    for line in ran.stdout.lines() {
        let (told, found) = line.split_once('=').expect("both");
        assert_eq!(told, found);
    }
}

#[test]
fn manual_completions_and_topology_are_printed() {
    let dir = TestDir::new();
    for (arguments, text) in [
        (&["man"][..], "--resume"),
        (&["completions", "bash"], "_brigade"),
        (&["topology"], "jobs can be pinned to"),
        (&["run", "--help"], "Exit status"),
    ] {
        let output = dir.command(arguments).output().expect("brigade");
        let stdout = String::from_utf8_lossy(&output.stdout).replace("\\-", "-");
        assert!(output.status.success() && stdout.contains(text), "{arguments:?}: {stdout}");
    }
}

#[test]
fn options_that_scripts_for_gnu_parallel_have_are_accepted() {
    let dir = TestDir::new();
    let options = ["--will-cite", "--silent", "-r", "--group", "--halt", "never", "--progress"];
    let more = ["-P1", "--linebuffer", "--timeout", "1m", "--delay", "1ms", "echo", ":::", "a"];
    let ran = dir.run(&[&options[..], &more].concat());
    assert_eq!((ran.stdout.as_str(), ran.status), ("a\n", 0), "{}", ran.stderr);
}

#[test]
fn an_option_may_be_given_twice() {
    let ran = TestDir::new().run(&["-k", "-k", "-j1", "-j2", "--", "echo", ":::", "a"]);
    assert_eq!((ran.stdout.as_str(), ran.status), ("a\n", 0), "{}", ran.stderr);
}

#[test]
fn bytes_that_are_not_utf8_are_logged_and_shown_unchanged() {
    let dir = TestDir::new();
    let word = OsStr::from_bytes(b"a\xffb");
    let run = |options: &[&str]| {
        let mut command = dir.command(&[&["run"], options, &["--", "echo", ":::"]].concat());
        command.arg(word).output().expect("brigade").stdout
    };
    assert_eq!(run(&["--dry-run"]), b"echo 'a\xffb'\n");
    assert_eq!(run(&["--joblog", "log"]), b"a\xffb\n");
    let log = std::fs::read(dir.path("log")).expect("a log");
    assert!(log.windows(11).any(|part| part == b"\techo 'a\xffb'"));
    assert_eq!(run(&["--joblog", "log", "--resume"]), b"");
}

#[test]
fn a_failure_is_shown_after_the_output_and_is_short() {
    let dir = TestDir::new();
    let long = "x".repeat(100_000);
    let ran = dir.run(&["--", "sh", "-c", "echo oops >&2; exit 3", "sh", ":::", &long]);
    assert!(ran.stderr.starts_with("oops\nbrigade: job 1 failed (exit code 3)"), "{}", ran.stderr);
    assert!(ran.stderr.len() < 2000, "{} bytes", ran.stderr.len());
    let ran = dir.run(&["--", "touch", ":::", &long, &long]);
    assert!(ran.status == 255 && ran.stderr.len() < 2000, "{} bytes", ran.stderr.len());
}

#[test]
fn only_the_last_line_of_each_job_is_printed_if_that_is_wanted() {
    let dir = TestDir::new();
    let job = "case {} in 1) echo a; echo b; echo e >&2;; 2) printf 'c\nd';; 3) echo f >&2;; esac";
    let options = ["-k", "--tag", "--latest-line", "--joblog", "log", "--shell", "--", job];
    let ran = dir.run(&[&options[..], &[":::", "1", "2", "3", "4"]].concat());
    assert_eq!((ran.stdout.as_str(), ran.status), ("1\tb\n2\td\n3\tf\n", 0), "{}", ran.stderr);
    let shown = dir.run(&["--ll", "--results", "out", "--", "seq", ":::", "3"]);
    assert_eq!((shown.stdout.as_str(), dir.read("out/1/3/stdout").as_str()), ("3\n", "1\n2\n3\n"));
    // The progress shows a line before its job ends.
    let job = "echo early; until grep -q \"  early\" shown; do sleep 0.01; done; echo late";
    dir.write("job", job);
    let shown =
        dir.show(&format!("{} run -j1 --ll -- sh job ::: 1", env!("CARGO_BIN_EXE_brigade")));
    let (area, end) = shown.rsplit_once("late\r\n").expect("the last line");
    assert!(area.contains("  early") && !end.contains("early"), "{}", shown.escape_debug());
}
