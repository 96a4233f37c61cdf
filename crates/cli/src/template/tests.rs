//! Tests of commands with replacement strings.

use proptest::prelude::*;

use super::*;

fn words(texts: &[&str]) -> Vec<OsString> {
    texts.iter().map(OsString::from).collect()
}

fn grammar(is_shell: bool, arguments: usize) -> Grammar {
    Grammar { is_shell, arguments: Some(arguments), ..Grammar::default() }
}

fn filled(command: &[&str], arguments: &[&str], is_shell: bool) -> String {
    filled_by(&grammar(is_shell, arguments.len()), command, arguments).expect("valid")
}

fn filled_by(
    grammar: &Grammar,
    command: &[&str],
    arguments: &[&str],
) -> Result<String, TemplateError> {
    let template = Template::parse(&words(command), grammar)?;
    Ok(template.job(7, &words(arguments))?.command_on(2).to_string())
}

#[test]
fn replacement_strings_are_those_of_gnu_parallel() {
    let argument = ["/dir.d/sub/file.tar.gz"];
    for (replacement, expected) in [
        ("{}", "/dir.d/sub/file.tar.gz"),
        ("{.}", "/dir.d/sub/file.tar"),
        ("{/}", "file.tar.gz"),
        ("{//}", "/dir.d/sub"),
        ("{/.}", "file.tar"),
        ("{1}", "/dir.d/sub/file.tar.gz"),
        ("{1/.}", "file.tar"),
        ("x{#}-{%}y", "x7-2y"),
        ("{x}{", "'{x}{'"),
    ] {
        let command = filled(&["echo", replacement, "{}"], &argument, false);
        assert_eq!(command, format!("echo {expected} {}", argument[0]), "{replacement}");
    }
}

#[test]
fn directories_and_extensions_of_unusual_paths() {
    for (path, folder, stem) in
        [("a", ".", "a"), ("/a", "/", "/a"), ("d.x/a", "d.x", "d.x/a"), ("a/", "a", "a/")]
    {
        assert_eq!(filled(&["x", "{//}"], &[path], false), format!("x {folder}"), "{path}");
        assert_eq!(filled(&["x", "{.}"], &[path], false), format!("x {stem}"), "{path}");
    }
}

#[test]
fn arguments_are_appended_to_a_command_without_a_replacement() {
    assert_eq!(filled(&["echo", "-n"], &["a b"], false), "echo -n 'a b'");
    assert_eq!(filled(&["echo", "{#}"], &["a"], false), "echo 7");
    assert_eq!(filled(&["echo", "{%}"], &["a"], false), "echo 2");
    assert_eq!(filled(&["echo"], &["a b", "c"], false), "echo 'a b' c");
    assert_eq!(filled(&["echo", "{/}", "x{}"], &["d/a", "b"], false), "echo a b 'xd/a b'");
    assert_eq!(filled(&["echo"], &[], false), "echo");
}

#[test]
fn a_list_that_does_not_exist_is_an_error() {
    let error = Template::parse(&words(&["echo", "{3}"]), &grammar(false, 2)).expect_err("two");
    assert_eq!(error.to_string(), "`{3}` refers to argument 3, but each job has only 2");
    assert!(Template::parse(&words(&["echo", "{0}"]), &grammar(false, 2)).is_err());
}

#[test]
fn a_column_that_a_line_does_not_have_is_an_error() {
    let error = filled_by(&Grammar::default(), &["echo", "{2}"], &["a"]).expect_err("one column");
    assert_eq!(error.to_string(), "job 7 has 1 arguments, but the command contains `{2}`");
    assert_eq!(filled_by(&Grammar::default(), &["echo"], &["a", "b"]), Ok("echo a b".to_owned()));
}

#[test]
fn arguments_may_have_names() {
    let names = words(&["x", "x.y", "size", "2"]);
    let grammar = Grammar { names, ..grammar(false, 4) };
    let filled = |word| filled_by(&grammar, &["echo", word], &["d/a.b", "B", "C", "D"]);
    for (word, expected) in [
        ("{x}", "d/a.b"),
        ("{x/.}-{size}", "a-C"),
        ("{x.y}{x.}", "Bd/a"),
        ("{2}{1}", "Dd/a.b"),
        ("{z}{xx}", "'{z}{xx}' d/a.b B C D"),
    ] {
        assert_eq!(filled(word), Ok(format!("echo {expected}")), "{word}");
    }
}

#[test]
fn another_string_may_stand_for_the_argument() {
    let grammar = Grammar { whole: Some(",,".into()), ..grammar(false, 1) };
    let filled = |word| filled_by(&grammar, &["echo", word], &["a.b"]);
    assert_eq!(filled("x,,{}{.}"), Ok("echo 'xa.b{}a'".to_owned()));
    assert_eq!(filled("{1}"), Ok("echo '{1}' a.b".to_owned()));
}

#[test]
fn replacement_strings_that_only_gnu_parallel_has_are_refused() {
    for word in ["{-1}", "a{..}", "{= $_++ =}", "{+/}"] {
        let error = Template::parse(&words(&["echo", word]), &grammar(false, 1)).expect_err(word);
        assert!(error.to_string().contains("is not available in brigade"), "{error}");
    }
    assert_eq!(filled(&["awk", "{print $1}", "{}"], &["a"], false), "awk '{print $1}' a");
    assert_eq!(filled(&["bash", "-c", "echo {1..5}"], &["a"], false), "bash -c 'echo {1..5}' a");
}

#[test]
fn arguments_are_quoted_for_the_shell() {
    assert_eq!(
        filled(&["echo {} | wc -c"], &["a; rm -rf 'x'"], true),
        r"echo 'a; rm -rf '\''x'\''' | wc -c"
    );
    assert_eq!(filled(&["echo", "{2}{1}"], &["a", "b c"], true), "echo 'b c'a");
}

#[test]
fn bytes_that_are_not_utf8_stay_unchanged() {
    let argument = [OsString::from_vec(vec![b'a', 0xff, b'\''])];
    for is_shell in [false, true] {
        let command = words(&["printf", "%s", "{}"]);
        let template = Template::parse(&command, &grammar(is_shell, 1)).expect("valid");
        let job = template.job(1, &argument).expect("one argument");
        let mut printed = Vec::new();
        brigade::runner::Runner::builder()
            .build()
            .expect("a runner")
            .run([job], |event| {
                if let brigade::runner::Event::Finished(outcome) = event {
                    printed = outcome.stdout.tail(10).expect("memory");
                }
            })
            .expect("a run");
        assert_eq!(printed, argument[0].as_bytes());
    }
}

proptest! {
    #[test]
    fn any_text_is_a_valid_template_or_an_error(word in "[{}/.#%0-9a]{0,12}", argument in "[^\0]{0,8}") {
        if let Ok(template) = Template::parse(&words(&["x", &word]), &grammar(false, 1)) {
            let _ = template.job(1, &words(&[&argument]));
        }
    }

    #[test]
    fn an_argument_stays_one_word(argument in "[^\0]*") {
        let template = Template::parse(&words(&["x", "{}"]), &grammar(false, 1)).expect("valid");
        let expected = Job::new("x").arg(&argument).number(1);
        prop_assert_eq!(template.job(1, &words(&[&argument])), Ok(expected));
    }
}
