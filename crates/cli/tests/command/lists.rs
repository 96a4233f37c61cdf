//! Tests of argument lists. The expected outputs are those of GNU parallel 20221122.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use crate::common::{RunOutput, TestDir};

/// Runs `brigade run -k` with these words, and returns what it prints.
fn printed_from(dir: &TestDir, line: &str, input: &str) -> String {
    let words: Vec<&str> = ["-k"].into_iter().chain(line.split(' ')).collect();
    let ran = dir.run_with(&words, input.as_bytes());
    assert_eq!((ran.status, ran.stderr.as_str()), (0, ""), "{line}");
    ran.stdout
}

fn printed(dir: &TestDir, line: &str) -> String {
    printed_from(dir, line, "")
}

#[test]
fn linked_lists_belong_together() {
    let dir = TestDir::new();
    dir.write("three", "1\n2\n3\n");
    dir.write("two", "x\ny\n");
    for (line, expected) in [
        ("echo {2}{1} ::: a b c :::+ 1 2", "1a\n2b\n"),
        ("echo ::: a b :::+ 1 2 ::: x y", "a 1 x\na 1 y\nb 2 x\nb 2 y\n"),
        ("echo ::: a b :::+ 1 1", "a 1\nb 1\n"),
        ("echo :::: three ::::+ two", "1 x\n2 y\n"),
        ("echo ::: a b c ::::+ three two", "a 1 x\nb 2 y\n"),
        ("--link echo ::: a b c ::: 1 2", "a 1\nb 2\nc 1\n"),
        ("--xapply echo :::: two ::: A", "x A\ny A\n"),
        ("--link echo ::: a b ::: 1 2 3 :::+ x y z", "a 1 x\nb 2 y\na 3 z\n"),
    ] {
        assert_eq!(printed(&dir, line), expected, "{line}");
    }
}

#[test]
fn arguments_come_from_files() {
    let dir = TestDir::new();
    dir.write("three", "1\n2\n3\n");
    dir.write("two", "x\ny\n");
    for (line, expected) in [
        ("-a two echo", "x\ny\n"),
        ("-a two --arg-file three echo", "x 1\nx 2\nx 3\ny 1\ny 2\ny 3\n"),
        ("--link -a three -a two echo", "1 x\n2 y\n3 x\n"),
        ("-a two echo ::: A", "x A\ny A\n"),
        ("echo :::: two", "x\ny\n"),
        ("--skip-first-line echo :::: two three", "y 1\ny 2\ny 3\n"),
        ("--arg-sep ,, echo {} ::: ,, a b ,,+ 1 2", "a 1 :::\nb 2 :::\n"),
        ("--arg-file-sep ,, echo ,, two ,,+ three", "x 1\ny 2\n"),
    ] {
        assert_eq!(printed(&dir, line), expected, "{line}");
    }
    assert_eq!(printed_from(&dir, "-a - -a two echo", "a\n"), "a x\na y\n");
    assert_eq!(printed_from(&dir, "echo :::: -", "a\na\n"), "a\na\n");
}

#[test]
fn lists_end_and_are_delimited_as_asked() {
    let dir = TestDir::new();
    for (line, input, expected) in [
        ("-d : echo", "a:b:c", "a\nb\nc\n"),
        ("-d :: echo", "a::b:c::", "a\nb:c\n"),
        ("-d \\t echo", "a\tb", "a\nb\n"),
        ("-d \\054 echo", "a,b", "a\nb\n"),
        ("-E end echo", "a\n end\nend\nb\n", "a\n end\n"),
        ("--skip-first-line echo", "a\nb\n", "b\n"),
        ("-r echo x", "\n \na\n", "x a\n"),
        ("--no-run-if-empty echo", "", ""),
        ("-d ; -", "echo a;;echo b", "a\nb\n"),
    ] {
        assert_eq!(printed_from(&dir, line, input), expected, "{line}");
    }
    assert_eq!(printed(&dir, "-E b echo ::: a b c ::: 1 2"), "a 1\na 2\n");
    assert_eq!(printed(&dir, "-I ,, echo ,,{} {.} ::: a.b"), "a.b{} a\n");
}

#[test]
fn lines_are_split_into_columns() {
    let dir = TestDir::new();
    dir.write("table", "size,name\n1, a b\n2,c\n");
    for (line, input, expected) in [
        ("--colsep , echo {2} {1}", "a,b\nc,d\n", "b a\nd c\n"),
        ("--colsep , echo", "a,b\nc,d,e\n", "a b\nc d e\n"),
        ("-C [,;]+ echo {2}-{1}", "a,b\nc;;d\n", "b-a\nd-c\n"),
        ("--colsep , printf <%s>", " a , b \n", "<a><b>"),
        ("--colsep , --trim n printf <%s>", " a , b \n", "< a >< b >"),
        ("--trim l printf <%s>", " a \n", "<a >"),
        ("--trim r printf <%s>", " a \n", "< a>"),
        ("--csv printf <%s>", "a,\"b,c \"\"q\"\"\"\n\"x\ny\",z\n", "<a><b,c \"q\"><x\ny><z>"),
        ("--csv --colsep ; printf <%s>", "a;\"b;c\"\n", "<a><b;c>"),
        ("--header : --colsep , echo {name}/{size}", "size,name\n1,a\n", "a/1\n"),
        ("--header : echo {x.} {}", "x\na.b\n", "a a.b\n"),
    ] {
        assert_eq!(printed_from(&dir, line, input), expected, "{line}");
    }
    for (line, expected) in [
        ("--header : --colsep , -a table echo {size}-{name}", "1-a b\n2-c\n"),
        ("--colsep , echo {1}.{2}.{3} ::: a,b ::: c d", "a.b.c\na.b.d\n"),
        ("--colsep , echo {} ::: a,b :::+ c,d", "a b c d\n"),
        ("--header : echo {y/}{x} ::: x 1 2 ::: y d/a", "a1\na2\n"),
        ("--header : echo {x}{z} ::: x 1 2 :::+ z a b", "1a\n2b\n"),
    ] {
        assert_eq!(printed(&dir, line), expected, "{line}");
    }
}

#[test]
fn a_quote_without_a_closing_one_is_refused() {
    let dir = TestDir::new();
    let list = b"a,b\nc,\"d\ne,f\n";
    dir.write("list", list);
    for lists in [&[][..], &["::::", "list"], &["::::", "list", "list"]] {
        let words = [&["--csv", "--allow-duplicates", "--", "echo"], lists].concat();
        let ran = dir.run_with(&words, list);
        assert_eq!(ran.status, 255, "{lists:?}: {}", ran.stdout);
        assert!(ran.stderr.contains("begins on line 2"), "{lists:?}: {}", ran.stderr);
    }
}

#[test]
fn an_error_names_the_list_that_cannot_be_read() {
    let dir = TestDir::new();
    std::fs::create_dir(dir.path("folder")).expect("disk");
    for words in
        [&["--", "echo", "::::", "folder"][..], &["-a", "folder", "--", "echo"], &["folder"]]
    {
        let ran = dir.run(words);
        assert_eq!(ran.status, 255, "{words:?}");
        assert!(ran.stderr.contains("in folder"), "{words:?}: {}", ran.stderr);
    }
    for words in [&["--", "echo"][..], &["--pipe", "--", "wc"]] {
        let mut command = dir.command(&[&["run"], words].concat());
        command.stdin(std::fs::File::open(dir.path("folder")).expect("disk"));
        let ran: RunOutput = command.output().expect("brigade").into();
        assert_eq!(ran.status, 255, "{words:?}");
        assert!(ran.stderr.contains("standard input"), "{words:?}: {}", ran.stderr);
    }
}

#[test]
fn an_error_names_the_report_or_trace_that_cannot_be_written() {
    for (option, what) in [("--report", "report"), ("--trace", "trace")] {
        let ran = TestDir::new().run(&[option, "/dev/full", "--", "true", ":::", "1"]);
        assert_eq!(ran.status, 255);
        let expected = format!("cannot write the {what} /dev/full");
        assert!(ran.stderr.contains(&expected), "{}", ran.stderr);
    }
}

#[test]
fn a_job_gets_several_arguments() {
    let dir = TestDir::new();
    for (line, expected) in [
        ("-N2 echo ::: a b c d e", "a b\nc d\ne\n"),
        ("-N2 echo {2}-{1} ::: a b c", "b-a\n-c\n"),
        ("-N2 echo pre{}post ::: a b c", "preapost prebpost\nprecpost\n"),
        ("-N2 echo x{#}{}y{.} ::: a b c", "x1aya x1byb\nx2cyc\n"),
        ("-N2 echo {1}-{2}-{3}-{4} ::: a b ::: 1 2", "a-1-a-2\nb-1-b-2\n"),
        ("-N0 echo x{}y{1} ::: 1 1 1", "xy\nxy\nxy\n"),
        ("--max-replace-args 2 echo ::: 1 1 1", "1 1\n1\n"),
        ("-n2 echo pre{}post ::: a b c", "prea bpost\nprecpost\n"),
        ("--max-args 2 echo {} end ::: a b c", "a b end\nc end\n"),
        ("-L2 echo x{}y ::: a b c", "xay xby\nxcy\n"),
        ("-m -L2 echo x{}y ::: a b c", "xa by\nxcy\n"),
        ("-j2 --no-pin -X echo x{}y ::: a b c d e", "xay xby xcy\nxdy xey\n"),
        ("-j2 --no-pin -m echo x{}y ::: a b c d e", "xa b cy\nxd ey\n"),
        ("-j2 --no-pin --xargs echo x{}y ::: a b c d e", "xa b c d ey\n"),
        ("-j2 --no-pin --xargs -n2 echo x{}y ::: a b c", "xa by\nxcy\n"),
        ("-j2 --no-pin -X echo ::: a b c ::: 1 2", "a 1 a 2 b 1\nb 2 c 1 c 2\n"),
        ("-j1 -X -n2 echo x{}y z ::: a b c", "xay xby z\nxcy z\n"),
        ("-j1 -X -s 20 echo {} ::: aaaa bbbb cccc dddd eeee", "aaaa bbbb cccc\ndddd eeee\n"),
        ("-j1 -m -s 14 echo ::: aaaa bbbb cccc", "aaaa\nbbbb\ncccc\n"),
        ("-j1 -X -N2 echo {2}{1} ::: a b c", "ba\nc\n"),
        ("--shell -q -N2 echo $x {} ::: a b", "$x a b\n"),
    ] {
        assert_eq!(printed(&dir, line), expected, "{line}");
    }
    let stdin = |line, input, expected| {
        assert_eq!(printed_from(&dir, line, input), expected, "{line}");
    };
    stdin(
        "-j2 --no-pin -X -s 20 echo",
        "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n",
        "1 2 3 4 5 6 7\n8 9\n10\n",
    );
    stdin("-L1 printf <%s>", "a b\nc \n\nd \ne\n", "<a b><c d e>");
    stdin("--colsep , -N2 echo {1}.{2}.{3}.{4}", "a,b\nc,d\ne,f\n", "a.b.c.d\ne.f..\n");
    stdin("--header : -N2 echo {x} {2}", "x\n1\n2\n3\n", "1 2\n3 \n");
}

#[test]
fn a_full_job_starts_before_the_list_ends() {
    let dir = TestDir::new();
    let mut child = dir
        .command(&["run", "-N2", "echo"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("brigade");
    let mut stdin = child.stdin.take().expect("piped");
    stdin.write_all(b"a\nb\nc\n").expect("a reader");
    let mut stdout = BufReader::new(child.stdout.take().expect("piped"));
    let mut line = String::new();
    stdout.read_line(&mut line).expect("output");
    assert_eq!(line, "a b\n");
    drop(stdin);
    stdout.read_line(&mut line).expect("output");
    assert_eq!(line, "a b\nc\n");
    assert!(child.wait().expect("brigade").success());
}

#[test]
fn replacement_strings_have_parts_and_positions() {
    let dir = TestDir::new();
    for (line, expected) in [
        ("echo {-1} {-2} {-1/} ::: a ::: d/1", "d/1 a 1\n"),
        ("--plus echo {..} {+..} {/..} {+/} ::: d/a.tar.gz", "d/a tar.gz a d\n"),
        ("--plus echo {...}:{+...}:{+.} ::: a.b.c.d", "a:b.c.d:d\n"),
        ("--plus -N2 echo {0#}/{##} ::: 1 2 3", "1/2\n2/2\n"),
    ] {
        assert_eq!(printed(&dir, line), expected, "{line}");
    }
    let numbers = printed(&dir, "--plus echo {0#} ::: a b c d e f g h i j");
    assert!(numbers.starts_with("01\n02\n") && numbers.ends_with("10\n"), "{numbers}");
}

#[test]
fn tags_are_made_from_the_arguments() {
    let dir = TestDir::new();
    for (line, expected) in [
        ("--tagstring x{}-{#} echo ::: a b", "xa-1\ta\nxb-2\tb\n"),
        ("--tagstring {2}:{1/.} echo x ::: d/a.b ::: 1", "1:a\tx d/a.b 1\n"),
        ("--tagstring {x} --header : echo ::: x 1", "1\t1\n"),
        ("--tagstring a\\tb echo ::: 1", "a\tb\t1\n"),
        ("-j1 --tagstring {%} echo ::: a", "1\ta\n"),
        ("--tag -N2 echo ::: a b c", "a b\ta b\nc\tc\n"),
        ("--tag -N0 echo x ::: a b", "\tx\n\tx\n"),
        ("--tag --colsep , echo ::: a,b", "a b\ta b\n"),
        // Without a terminal there are no colors.
        ("--ctag echo ::: a", "a\ta\n"),
        ("--ctagstring t{} echo ::: a", "ta\ta\n"),
    ] {
        assert_eq!(printed(&dir, line), expected, "{line}");
    }
    let lines = dir.run(&["--tag", "-j1", "printf", "x\ny\n{#}", ":::", "a\nb"]);
    assert_eq!(lines.stdout, "a b\tx\na b\ty\na b\t1");
    let live = dir.run(&["--line-buffer", "-j1", "--tagstring", "{%}{}", "echo", ":::", "a", "b"]);
    assert_eq!(live.stdout, "1a\ta\n1b\tb\n");
    assert_eq!(printed_from(&dir, "--pipe -N1 --tagstring {#} cat", "a\nb\n"), "1\ta\n2\tb\n");
}

#[test]
fn jobs_have_directories_variables_and_shells_of_their_own() {
    let dir = TestDir::new();
    let root = dir.path("").canonicalize().expect("exists");
    let root = root.to_str().expect("UTF-8");
    let in_folder = printed(&dir, "--wd new/{} sh -c pwd ::: a b");
    assert_eq!(in_folder, format!("{root}/new/a\n{root}/new/b\n"));
    let of_names = printed(&dir, "--header : --workdir {x} sh -c pwd ::: x new");
    assert_eq!(of_names, format!("{root}/new\n"));
    assert!(printed(&dir, "--dry-run --wd not-made true ::: a").contains("true a"));
    assert!(!dir.path("not-made").exists());
    let variables = ["--env", "PATH", "--env", "S={}-{#}", "--env", "T=x=y"];
    let command = ["--shell", "--", "echo $S $T; true", ":::", "a"];
    assert_eq!(dir.run(&[&variables[..], &command].concat()).stdout, "a-1 x=y\n");
    let bash = ["-k", "--shell=bash", "--", "[[ {} == a* ]] && echo $0 {}", ":::", "ab", "ac"];
    assert_eq!(dir.run(&bash).stdout, "bash ab\nbash ac\n");
    let other = ["--shell=nosuch", "--", "true {}", ":::", "a"];
    assert_eq!(dir.run(&other).status, 1);
}
