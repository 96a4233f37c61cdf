//! Tests of argument lists. The expected outputs are those of GNU parallel 20221122.

use crate::common::TestDir;

/// Runs `brigade run -k OPTIONS echo`, where the options end before `echo`.
fn stdout(dir: &TestDir, arguments: &[&str]) -> String {
    let ran = dir.run(&[&["-k"], arguments].concat());
    assert_eq!((ran.status, ran.stderr.as_str()), (0, ""), "{arguments:?}");
    ran.stdout
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
        let arguments: Vec<&str> = line.split(' ').collect();
        assert_eq!(stdout(&dir, &arguments), expected, "{line}");
    }
}
