//! Tests of `--pipe`: blocks of standard input as the standard input of jobs.

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

use brigade_testkit::processes::are_at_rest;

use crate::common::{TestDir, numbered, until};

fn numbers(last: usize) -> Vec<u8> {
    numbered(last, |number| format!("{number}\n")).into_bytes()
}

/// Returns the output of `brigade run -k --pipe` with these options and arguments.
fn piped(arguments: &[&str], input: &[u8]) -> String {
    let ran = TestDir::new().run_with(&[&["-k", "--pipe"], arguments].concat(), input);
    assert_eq!((ran.status, ran.stderr.as_str()), (0, ""));
    ran.stdout
}

#[test]
fn jobs_get_blocks_of_whole_lines() {
    let input = numbers(1000);
    assert_eq!(piped(&["--block", "1k", "--", "wc", "-l"], &input), "277\n250\n250\n223\n");
    assert_eq!(piped(&["--block", "1K", "wc", "-l"], &input), "283\n256\n256\n205\n");
    assert_eq!(piped(&["--block", "100", "cat"], &input).into_bytes(), input);
    assert_eq!(piped(&["--", "wc", "-l"], &input), "1000\n");
    assert_eq!(piped(&["--", "wc"], b""), "");
}

#[test]
fn jobs_get_a_number_of_records() {
    let input = numbers(1000);
    assert_eq!(piped(&["-N300", "--", "wc", "-l"], &input), "300\n300\n300\n100\n");
    assert_eq!(piped(&["-L3", "--block", "1k", "wc", "-l"], &input), "276\n249\n249\n225\n1\n");
    assert_eq!(piped(&["-L2", "-N2", "sh", "-c", "tr '\\n' ' '"], &numbers(7)), "1 2 3 4 5 6 7 ");
}

#[test]
fn records_end_and_start_with_texts_or_patterns() {
    let fasta = b">a\nAA\n>b\nB\n>c\n";
    let each = ["sh", "-c", "cat; echo ="];
    let records = piped(&[&["--recstart", ">", "-N1"], &each[..]].concat(), fasta);
    assert_eq!(records, ">a\nAA\n=\n>b\nB\n=\n>c\n=\n");
    let both = ["--recend", "\\n", "--recstart", ">", "-N1"];
    assert_eq!(piped(&[&both, &each[..]].concat(), fasta), records);
    let rest = piped(&[&["--recend", ";", "--rrs", "-N2"], &each[..]].concat(), b"a;b;c;d");
    assert_eq!(rest, "ab=\ncd=\n");
    let pattern = ["--regexp", "--recend", "[05]\\n", "--block", "100", "wc", "-l"];
    assert_eq!(piped(&pattern, &numbers(100)), "35\n30\n30\n5\n");
    assert_eq!(
        piped(&["--recend", "", "--block", "2", "sh", "-c", "cat; echo"], b"abc"),
        "ab\nc\n"
    );
}

#[test]
fn each_block_begins_with_the_header() {
    let table = b"a,b\n1,2\n3,4\n";
    assert_eq!(piped(&["--header", ":", "-N1", "cat"], table), "a,b\n1,2\na,b\n3,4\n");
    assert_eq!(piped(&["--header", "2", "-N1", "cat"], b"1\n2\n3\n4\n"), "1\n2\n3\n1\n2\n4\n");
    assert_eq!(
        piped(&["--header", "(#.*\\n)*", "-N1", "cat"], b"#\n#\n1\n2\n"),
        "#\n#\n1\n#\n#\n2\n"
    );
}

#[test]
fn a_record_that_is_longer_than_a_block_stays_whole() {
    let input = ["x".repeat(10_000), "y".repeat(10), String::new()].join("\n");
    assert_eq!(piped(&["--block", "1k", "--", "wc", "-l"], input.as_bytes()), "2\n");
}

#[test]
fn a_block_is_there_for_the_next_attempt() {
    let dir = TestDir::new();
    let job = "wc -l; test -e tried$PARALLEL_SEQ || { : > tried$PARALLEL_SEQ; exit 1; }";
    let options = ["--pipe", "-k", "-N2", "--retries", "1", "--shell", "--", job];
    let ran = dir.run_with(&options, &numbers(5));
    assert_eq!((ran.status, ran.stdout.as_str()), (0, "2\n2\n1\n"));
}

#[test]
fn jobs_need_not_read() {
    let input = numbers(100_000);
    assert_eq!(piped(&["--block", "1k", "--", "true"], &input), "");
    let first = piped(&["--block", "100k", "--", "head", "-n1"], &input);
    assert!(first.starts_with("1\n") && first.lines().count() == 6, "{first}");
}

#[test]
fn a_resumed_run_skips_blocks_that_are_done() {
    let dir = TestDir::new();
    let options = ["--pipe", "-k", "-N2", "--joblog", "log", "--resume", "--shell", "--"];
    let run = |job: &str, input: &[u8]| dir.run_with(&[&options[..], &[job]].concat(), input);
    let job = "read line; echo $line; test -e all -o $line != 3";
    assert_eq!(run(job, b"1\n2\n3\n4\n").status, 1);
    dir.write("all", "");
    let ran = run(job, b"1\n2\n3\n4\n5\n");
    assert_eq!((ran.status, ran.stdout.as_str()), (0, "3\n5\n"));
    let changed = run(job, b"1\n0\n3\n4\n5\n");
    assert_eq!(changed.status, 255);
    assert!(changed.stderr.contains("changed"), "{}", changed.stderr);
}

#[test]
fn records_are_passed_on_as_soon_as_they_arrive() {
    for (header, input) in [(&[][..], "1\n"), (&["--header", ":"], "head\n1\n")] {
        let dir = TestDir::new();
        let options = [&["run", "--pipe", "-N1"], header, &["--", "tee", "first"]].concat();
        let mut command = dir.command(&options);
        command.stdin(Stdio::piped()).stdout(Stdio::null());
        let mut brigade = command.spawn().expect("brigade");
        let mut stdin = brigade.stdin.take().expect("piped");
        stdin.write_all(input.as_bytes()).expect("read");
        until("the first job", || dir.read("first") == input);
        drop(stdin);
        assert!(brigade.wait().expect("own child").success());
    }
}

#[test]
fn a_producer_waits_while_no_job_reads() {
    let dir = TestDir::new();
    // The producer counts its megabytes.
    dir.write(
        "producer",
        "for i in $(seq 64); do head -c 1048576 /dev/zero | tr '\\0' '\\n'; echo $i >> made; done",
    );
    let job = "test $PARALLEL_SEQ != 1 || { : > begun; read line < go; }; cat > /dev/null";
    let go = dir.fifo("go");
    let mut shell = Command::new("sh");
    shell.arg("producer").current_dir(dir.path("")).stdout(Stdio::piped());
    let mut producer = shell.spawn().expect("sh");
    let mut command = dir.command(&["run", "--pipe", "--no-pin", "-j1", "--", "sh", "-c", job]);
    command.stdin(producer.stdout.take().expect("piped"));
    let mut brigade = command.spawn().expect("brigade");
    until("the first job", || dir.path("begun").exists());
    until("rest", || are_at_rest(&[producer.id(), brigade.id()]));
    // One running, eight waiting; one more is in the reader's buffer, and one in the pipe.
    let made = dir.read("made").lines().count();
    assert!((9..=11).contains(&made), "{made} blocks were read ahead");
    fs::write(go, "").expect("a reader");
    assert!(brigade.wait().expect("own child").success());
    assert_eq!(dir.read("made").lines().count(), 64);
    assert!(producer.wait().expect("own child").success());
}

#[test]
fn jobs_get_blocks_as_files() {
    let input = numbers(5);
    for option in ["--cat", "--fifo"] {
        let twice = ["-N2", "--shell", "--", "cat {} - | wc -l; wc -l < {}"];
        assert_eq!(piped(&[&[option], &twice[..]].concat(), &input), "2\n2\n2\n2\n1\n1\n");
        assert_eq!(piped(&[option, "-N3", "--", "cat"], &input).into_bytes(), input);
    }
    let dir = TestDir::new();
    dir.write("n", &input);
    let part = ["--pipe-part", "-a", "n", "--fifo", "-k", "--block", "5", "wc", "-l", "{}"];
    assert_eq!(dir.run(&part).stdout, "3 /dev/fd/3\n2 /dev/fd/3\n");
}

#[test]
fn jobs_take_turns_with_blocks() {
    let turns = ["--round-robin", "--no-pin", "-j4", "-N1"];
    let each = ["--", "sh", "-c", "cat; echo ="];
    let in_turns = piped(&[&turns[..], &each].concat(), &numbers(9));
    assert_eq!(in_turns, "1\n5\n9\n=\n2\n6\n=\n3\n7\n=\n4\n8\n=\n");
    let headed = piped(&[&turns[..], &["--header", ":"], &each].concat(), &numbers(6));
    assert_eq!(headed, "1\n2\n6\n=\n1\n3\n=\n1\n4\n=\n1\n5\n=\n");
    assert_eq!(piped(&[&turns[..], &each].concat(), &numbers(2)), "1\n=\n2\n=\n");
    let dir = TestDir::new();
    let options = ["--pipe", "--round-robin", "--no-pin", "-j2", "--block", "10k", "--"];
    let input = numbers(1_000_000);
    let count = dir.run_with(&[&options[..], &["wc", "-l"]].concat(), &input);
    let lines: Vec<usize> =
        count.lines().iter().map(|line| line.parse().expect("a number")).collect();
    assert_eq!((lines.len(), lines.iter().sum()), (2, 1_000_000));
    // One that does not read keeps only what it has; if all are over, the rest is dropped.
    let one = "if test $PARALLEL_SEQ = 1; then until test -e read; do sleep 0.01; done; exit; fi
        wc -l; touch read";
    let rest = dir.run_with(&[&options[..], &["sh", "-c", one]].concat(), &input);
    assert!(
        rest.stdout.trim().parse::<usize>().is_ok_and(|lines| lines > 700_000),
        "{}",
        rest.stdout
    );
    assert_eq!(dir.run_with(&[&options[..], &["true"]].concat(), &input).status, 0);
}

#[test]
fn no_turn_is_waited_for_whose_job_will_not_start() {
    let dir = TestDir::new();
    // The third job would start after the delay.
    let job = "test $PARALLEL_SEQ != 1 || { until test -e second; do sleep 0.01; done; exit 1; }; \
               : > second; cat";
    let ran = dir.run_with(
        &[
            "--pipe",
            "--round-robin",
            "-k",
            "--no-pin",
            "-j3",
            "-N1",
            "--delay",
            "5",
            "--halt",
            "soon,fail=1",
            "--",
            "sh",
            "-c",
            job,
        ],
        &numbers(9),
    );
    assert_eq!((ran.status, ran.stdout.as_str()), (1, "2\n5\n8\n"), "{}", ran.stderr);
}

#[test]
fn jobs_read_parts_of_files() {
    let dir = TestDir::new();
    dir.write("n", numbers(1000));
    let run = |arguments: &[&str]| {
        let ran = dir.run(&[&["-k", "--pipe-part", "-a", "n"], arguments].concat());
        assert_eq!((ran.status, ran.stderr.as_str()), (0, ""));
        ran.stdout
    };
    assert_eq!(run(&["--block", "1k", "--", "wc", "-c"]), "1004\n1004\n1004\n881\n");
    let two = ["--no-pin", "-j2", "--block"];
    assert_eq!(run(&[&two[..], &["-1", "--", "wc", "-c"]].concat()), "1948\n1945\n");
    assert_eq!(run(&["--no-pin", "-j2", "cat"]).into_bytes(), numbers(1000));
    assert_eq!(run(&["--no-pin", "-j2", "echo", "{#}"]).lines().count(), 20);
    assert_eq!(run(&["--header", "2", "--block", "2k", "head", "-n3"]), "1\n2\n3\n1\n2\n530\n");
    assert_eq!(run(&["-a", "n", "--block", "1G", "wc", "-l"]), "1000\n1000\n");
    let pattern = ["--regexp", "--recend", "[05]\n", "--block", "3k", "wc", "-c"];
    assert_eq!(run(&pattern), "3893\n");
}

#[test]
fn a_part_is_there_for_the_next_attempt() {
    let dir = TestDir::new();
    dir.write("n", "0123456789\n".repeat(400_000));
    let job = "read line; test -e tried$PARALLEL_SEQ || { : > tried$PARALLEL_SEQ; exit 1; }; wc -l";
    let options = ["-k", "--pipe-part", "-a", "n", "--block", "2M", "--retries", "1", "--shell"];
    let ran = dir.run(&[&options[..], &["--", job]].concat());
    // Each shell has read a line of its own.
    assert_eq!((ran.status, ran.stdout.as_str()), (0, "190650\n190650\n18697\n"));
}

#[test]
fn a_job_that_did_not_get_all_of_its_part_is_no_success() {
    let dir = TestDir::new();
    dir.write("n", "0123456789\n".repeat(400_000));
    // The rest is larger than a pipe.
    let job = "read line; : > n; wc -l";
    let options = ["--joblog", "log", "--pipe-part", "-a", "n", "--block", "1G", "--shell", "--"];
    let ran = dir.run(&[&options[..], &[job]].concat());
    assert_eq!(ran.status, 255, "{}", ran.stderr);
    assert!(ran.stderr.contains("cannot read n to its end"), "{}", ran.stderr);
    let log = dir.read("log");
    let exits: Vec<_> = log.lines().skip(1).map(|line| line.split('\t').nth(6)).collect();
    assert_eq!(exits, [Some("-1")], "{log}");
}

#[test]
fn what_makes_no_sense_is_refused() {
    let dir = TestDir::new();
    for (arguments, word) in [
        (&["--pipe", "--block", "-1", "wc"][..], "--pipe-part"),
        (&["--pipe", "--block", "0", "wc"], "at least 1 byte"),
        (&["--pipe", "--regexp", "--recend", "(", "wc"], "--recend"),
        (&["--pipe", "wc", ":::", "a"], "get no arguments"),
        (&["--block", "1M", "--", "wc"], "--pipe"),
        (&["--pipe", "--round-robin", "--retries", "1", "wc"], "--round-robin"),
        (&["--pipe"], "nothing to run"),
        (&["--pipe-part", "wc"], "--arg-file"),
        (&["--pipe-part", "-a", "/dev/null", "wc"], "--pipe and redirect"),
        (&["--pipe-part", "-a", "nosuch", "wc"], "cannot read nosuch"),
        (&["--pipe-part", "-a", "nosuch", "-N2", "wc"], "use --pipe"),
    ] {
        let ran = dir.run_with(arguments, b"1\n");
        assert_eq!(ran.status, 255, "{arguments:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(word), "{arguments:?}: {}", ran.stderr);
    }
}

#[test]
fn each_job_of_a_list_gets_the_whole_input() {
    let input = numbers(300_000);
    let words = ["--tee", "wc", ":::", "-l", "-c", "-w"];
    assert_eq!(piped(&words, &input), format!("300000\n{}\n300000\n", input.len()));
    assert_eq!(piped(&words, b""), "0\n0\n0\n");
    let dir = TestDir::new();
    dir.write("input", &input);
    let file = ["-k", "--pipe-part", "-a", "input", "-j1", "--retries", "1", "--shell", "--tee"];
    let job = "wc {}; test -e again{#} || { : > again{#}; exit 1; }";
    let ran = dir.run(&[&file[..], &["--", job, ":::", "-l", "-w"]].concat());
    assert_eq!((ran.stdout.as_str(), ran.status), ("300000\n300000\n", 0), "{}", ran.stderr);
}

#[test]
fn jobs_that_share_an_input_wait_for_none_that_is_over() {
    let input = numbers(300_000);
    assert_eq!(
        piped(&["--tee", "--shell", "--", "head -n{}", ":::", "1", "2"], &input),
        "1\n1\n2\n"
    );
    let dir = TestDir::new();
    for options in [&["--tee"][..], &["--round-robin"], &["--round-robin", "-k"]] {
        let list: &[&str] = if options == ["--tee"] { &[":::", "-n1", "-n2"] } else { &[] };
        let words = [&["run", "--pipe", "-j2", "--no-pin"], options, &["--", "head"], list];
        let mut command = dir.command(&words.concat());
        let mut endless = Command::new("yes").stdout(Stdio::piped()).spawn().expect("yes");
        command.stdin(endless.stdout.take().expect("piped"));
        let output = command.output().expect("brigade");
        // It has the other end of the pipe.
        drop(command);
        assert!(output.status.success() && output.stdout.starts_with(b"y\n"), "{options:?}");
        assert!(!endless.wait().expect("own child").success());
    }
    // A job that cannot start, and one that will not.
    for (options, words, failed) in [
        (&["--tee"][..], &["{}", ":::", "./missing", "cat"][..], 1),
        (&["--round-robin", "-k"], &["./missing"], 2),
        (&["--round-robin"], &["./missing"], 2),
    ] {
        let options = [&["--pipe", "-j2", "--no-pin"], options, &["--"], words].concat();
        assert_eq!(dir.run_with(&options, &input).status, failed, "{options:?}");
    }
    let halted = ["--pipe", "--tee", "--delay", "1", "--halt", "soon,fail=1", "--shell", "--"];
    let job = "test {} != 2 || exit 3; wc -l";
    let ran = dir.run_with(&[&halted[..], &[job, ":::", "1", "2", "3"]].concat(), &input);
    assert!(ran.status == 3 && ran.stdout.starts_with("300000\n"), "{}", ran.stderr);
}

#[test]
fn an_input_cannot_be_shared_by_jobs_that_do_not_run_at_once() {
    let dir = TestDir::new();
    let refused = |options: &[&str], reason: &str| {
        let ran = dir.run_with(&[&["--pipe", "--tee"], options].concat(), b"a\n");
        assert!(ran.status == 255 && ran.stderr.contains(reason), "{}", ran.stderr);
    };
    refused(&["-j1", "wc", ":::", "-l", "-w"], "--jobs 0");
    refused(&["wc"], "write the arguments of the jobs");
    refused(&["wc", "::::", "-"], "does not come from standard input");
    refused(&["--retries", "1", "wc", ":::", "-l"], "--pipe-part -a FILE");
    refused(&["--cat", "wc", ":::", "-l"], "--cat");
}
