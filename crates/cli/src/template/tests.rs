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
    assert_eq!(
        error.to_string(),
        "`{3}` refers to an argument that does not exist: each job has only 2"
    );
    assert!(Template::parse(&words(&["echo", "{0}"]), &grammar(false, 2)).is_err());
}

#[test]
fn a_column_that_a_line_does_not_have_is_an_error() {
    let error = filled_by(&Grammar::default(), &["echo", "{2}"], &["a"]).expect_err("one column");
    assert_eq!(error.to_string(), "job 7 has only 1 arguments, but the command contains `{2}`");
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
    for word in ["a{..}", "{= $_++ =}", "{+/}", "{0%}", "{##}"] {
        let error = Template::parse(&words(&["echo", word]), &grammar(false, 1)).expect_err(word);
        assert!(error.to_string().contains("is not available in brigade"), "{error}");
    }
    assert_eq!(filled(&["awk", "{print $1}", "{}"], &["a"], false), "awk '{print $1}' a");
    assert_eq!(filled(&["bash", "-c", "echo {1..5}"], &["a"], false), "bash -c 'echo {1..5}' a");
}

#[test]
fn positions_may_be_counted_from_the_last() {
    assert_eq!(filled(&["echo", "{-1}{-2/}"], &["d/a", "b"], false), "echo ba");
    let error = Template::parse(&words(&["echo", "{-3}"]), &grammar(false, 2)).expect_err("two");
    assert!(error.to_string().starts_with("`{-3}` refers to an argument"), "{error}");
}

#[test]
fn more_parts_are_there_with_plus() {
    let grammar = Grammar { has_plus: true, ..grammar(false, 2) };
    for (word, expected) in [
        ("{..}", "d.d/a.b k"),
        ("{...}", "d.d/a k"),
        ("{1/..}", "a.b"),
        ("{-2/...}", "a"),
        ("{1+/}", "d.d"),
        ("{+/}", "d.d ''"),
        ("{1+.}-{1+..}-{1+...}", "d-c.d-b.c.d"),
        ("{2+..}{2+/}{2..}", "k"),
        ("{slot}", "2"),
    ] {
        let filled = filled_by(&grammar, &["echo", word], &["d.d/a.b.c.d", "k"]);
        assert_eq!(filled, Ok(format!("echo {expected}")), "{word}");
    }
    let error = filled_by(&grammar, &["echo", "{:3}"], &["a", "b"]).expect_err("bash");
    assert!(error.to_string().contains("`{:3}` is not available"), "{error}");
}

#[test]
fn numbers_are_padded_to_the_width_of_the_last() {
    let grammar = Grammar { has_plus: true, ..grammar(false, 1) };
    let mut template = Template::parse(&words(&["x", "{0#}/{##}"]), &grammar).expect("valid");
    assert!(template.needs_total());
    template.total = 100;
    let job = template.job(7, &words(&["a"])).expect("one argument");
    assert_eq!(job.to_string(), "x 007/100");
}

#[test]
fn several_arguments_are_joined_as_asked() {
    for (joining, is_shell, expected) in [
        (Joining::Spaces, false, "x 'pa b c-aq' a b c"),
        (Joining::Words, false, "x pa b c-aq a b c"),
        (Joining::Repeated, false, "x pa-aq pb-aq pc-aq a b c"),
        (Joining::Spaces, true, "x pa b c-aq a b c"),
        (Joining::Words, true, "x pa b c-aq a b c"),
        (Joining::Repeated, true, "x pa-aq pb-aq pc-aq a b c"),
    ] {
        let grammar = Grammar { joining, ..grammar(is_shell, 3) };
        let filled = filled_by(&grammar, &["x", "p{}-{1}q", "{}"], &["a", "b", "c"]);
        assert_eq!(filled, Ok(expected.to_owned()), "{joining:?} {is_shell}");
    }
    let grammar = Grammar { joining: Joining::Repeated, ..grammar(true, 2) };
    let filled = filled_by(&grammar, &["echo  \"x {} y{}z\";", "{#}"], &["a", "b"]);
    assert_eq!(filled, Ok("echo  \"x a b yaz\"; ybz\"; 7".to_owned()));
}

#[test]
fn a_job_without_arguments_has_no_word_for_them() {
    for joining in [Joining::Words, Joining::Repeated] {
        let grammar = Grammar { joining, has_incomplete_jobs: true, ..grammar(false, 0) };
        assert_eq!(filled_by(&grammar, &["x", "{}", "a{}{1}b"], &[]), Ok("x ab".to_owned()));
        assert_eq!(filled_by(&grammar, &["x"], &[]), Ok("x".to_owned()));
    }
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

/// Writes a word as it is parsed.
fn spelled(segments: &[Segment]) -> String {
    let part = |part: Part| match part {
        Part::Whole => String::new(),
        Part::Stem(count) => ".".repeat(count),
        Part::Name => "/".to_owned(),
        Part::Folder => "//".to_owned(),
        Part::NameStem(count) => format!("/{}", ".".repeat(count)),
        Part::PlainFolder => "+/".to_owned(),
        Part::Extension(count) => format!("+{}", ".".repeat(count)),
    };
    let segment = |segment: &Segment| match segment {
        Segment::Text(text) => String::from_utf8_lossy(text).into_owned(),
        Segment::Number => "{#}".to_owned(),
        Segment::PaddedNumber => "{0#}".to_owned(),
        Segment::Total => "{##}".to_owned(),
        Segment::Slot => "{%}".to_owned(),
        Segment::Argument(position, of) => {
            format!("{{{position}{}}}", part(*of))
        }
    };
    segments.iter().map(segment).collect()
}

proptest! {
    #[test]
    fn a_parsed_word_is_spelled_as_it_was(word in "([{}/.#%a+-]|\\{-?[12]?[/.+]{0,4}\\}){0,8}") {
        let grammar = Grammar { has_plus: true, ..Grammar::default() };
        if let Ok(segments) = grammar.segments(word.as_bytes()) {
            prop_assert_eq!(spelled(&segments), word.as_str());
            let texts = segments.windows(2).filter(|pair| pair.iter().all(|segment| !segment.is_replacement()));
            prop_assert_eq!(texts.count(), 0, "text is one segment");
        }
    }

    #[test]
    fn the_estimated_length_is_that_of_the_command(
        words_of_command in prop::collection::vec("[ab]{1,3}|[ab]?(\\{\\}|\\{\\.\\})[ab]?", 1..4),
        arguments in prop::collection::vec("[a.]{1,4}", 1..5),
        is_shell in any::<bool>(),
        repeats in any::<bool>(),
    ) {
        let joining = if repeats { Joining::Repeated } else { Joining::Words };
        let grammar = Grammar { joining, ..grammar(is_shell, arguments.len()) };
        let command: Vec<OsString> = words_of_command.iter().map(OsString::from).collect();
        let template = Template::parse(&command, &grammar).expect("valid");
        let arguments: Vec<OsString> = arguments.iter().map(OsString::from).collect();
        let added = arguments.iter().enumerate().map(|(index, argument)| template.length_of(argument, index));
        let length = template.base_length(1) + added.sum::<usize>().cast_signed();
        let words = template.filled(1, &arguments).expect("enough");
        let line = if is_shell { words.concat() } else { words.join(&b' ') };
        prop_assert_eq!(length, line.len().cast_signed());
    }

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
        let job = template.job(1, &words(&[&argument])).expect("enough arguments");
        prop_assert_eq!(format!("{job:?}"), format!("{expected:?}"));
    }
}
