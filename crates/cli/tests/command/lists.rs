//! Tests of argument lists. The expected outputs are those of GNU parallel 20221122.

use crate::common::TestDir;

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
