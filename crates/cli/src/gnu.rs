//! Syntax of GNU parallel that `brigade run` does not have. It is refused by name, with what to
//! write instead; as text in a command it would do something else without a word.

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Groups of options, separated by spaces, and the advice for each group.
const OPTIONS: &[(&str, &str)] = &[
    (
        "--shard --bin --group-by --groupby --block-timeout --blocktimeout",
        "use --pipe with --block, -N or -L, or split the input into files and run a job for each",
    ),
    ("-l", "use -L N, which always has a number"),
    ("-x --exit", "a command that is too long is an error anyway"),
    (
        "-i -U --rpl --parens -J --profile --extensionreplace --er --basenamereplace --bnr \
         --dirnamereplace --dnr --basenameextensionreplace --bner --seqreplace --slotreplace",
        "replacement strings are fixed except for `{}`, which -I changes; see brigade run --help",
    ),
    ("--color", "use --ctag, which colors the tags of lines"),
    (
        "--memsuspend --noswap --limit",
        "use --memfree to wait for memory, and --jobs and --delay to start fewer jobs",
    ),
    ("--compress --compress-program --decompress-program", "temporary files are not compressed"),
    ("--record-env", "jobs inherit the whole environment"),
    ("--semaphore --id --semaphore-timeout --st --fg --bg --wait", "use brigade sem"),
    (
        "-S --sshlogin --slf --sshloginfile --transfer --transferfile --tf --return \
         --basefile --bf --cleanup --nonall --onall --controlmaster -M --ssh --sshdelay \
         --filter-hosts --hostgroups --hgrp",
        "use `brigade run --cluster`, which runs jobs on the nodes of a cluster",
    ),
    (
        "--sql --sqlmaster --sqlworker --sqlandworker",
        "use --joblog, or --json for a program that writes to a database",
    ),
    ("--shebang --hashbang --shebang-wrap", "write a script that calls it"),
    ("-p --interactive --tmux --tmuxpane --fg --tty -o --open-tty", "jobs have no terminal"),
    (
        "--filter --template --tmpl --termseq --trc --shellquote --color-failed --show-limits \
         --total-jobs --eof -e",
        "it has no such option; see brigade run --help",
    ),
];

/// Replaces clap's error about an unknown option by one that says what to write instead, if the
/// option is one of GNU parallel's.
pub(crate) fn explain(error: clap::Error, command: &clap::Command) -> clap::Error {
    let Some(ContextValue::String(option)) = error.get(ContextKind::InvalidArg) else {
        return error;
    };
    let (ErrorKind::UnknownArgument, Some(advice)) = (error.kind(), advice(option)) else {
        return error;
    };
    let text = format!("GNU parallel's `{option}` is not available in brigade: {advice}\n");
    clap::Error::raw(ErrorKind::UnknownArgument, text).with_cmd(command)
}

/// Returns the advice about an option that only GNU parallel has.
pub(crate) fn advice(option: &str) -> Option<&'static str> {
    let has_it = |names: &str| names.split(' ').any(|name| name == option);
    OPTIONS.iter().find(|(names, _)| has_it(names)).map(|(_, advice)| *advice)
}

/// Returns the advice if the text between two braces is a replacement string of GNU parallel's;
/// some of them it has with `--plus` only.
pub(crate) fn replacement(inner: &[u8], has_plus: bool) -> Option<&'static str> {
    let number = inner.strip_prefix(b"-").unwrap_or(inner);
    let digits = number.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (number, part) = number.split_at(digits);
    let is_padded = !number.is_empty() && number.iter().all(|digit| *digit == b'0');
    match part {
        b".." | b"..." | b"/.." | b"/..." | b"+/" | b"+." | b"+.." | b"+..." | b"##" => {
            Some("it needs --plus")
        }
        b"#" if number == b"0" => Some("it needs --plus"),
        b"#" | b"%" if is_padded => Some("use {#} or {%}, and `printf` for leading zeros"),
        [b'=', .., b'='] if digits == 0 => {
            Some("there are no Perl expressions: let a shell or a script convert the argument")
        }
        b"choose_k" | b"uniq" if has_plus => Some("leave such combinations out of the list"),
        b"sshlogin" | b"host" | b"agrp" | b"hgrp" if has_plus => {
            Some("use `brigade run --cluster`, which runs jobs on the nodes of a cluster")
        }
        [b':' | b'#' | b'%' | b'/' | b'^' | b',', ..] if has_plus && part.len() > 1 => {
            Some("let a shell cut the argument, as with `${x#prefix}`")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replacement_strings_of_gnu_parallel_are_recognized() {
        for inner in ["..", "/..", "+/", "2..", "= s/a/b/ =", "==", "##", "0#", "00%"] {
            assert!(replacement(inner.as_bytes(), false).is_some(), "{inner}");
        }
        for inner in ["", "a", "1", "1..5", "print $1", "a,b", " echo; ", "\"a\":1", "-", "#", "1#"]
        {
            assert_eq!(replacement(inner.as_bytes(), false), None, "{inner}");
        }
        for inner in [":3", "#a", "%.gz", "/a/b", "^a", ",,A", "uniq", "host"] {
            assert_eq!(replacement(inner.as_bytes(), false), None, "{inner}");
            assert!(replacement(inner.as_bytes(), true).is_some(), "{inner}");
        }
    }

    #[test]
    fn no_option_of_ours_is_called_unavailable() {
        let command = <crate::arguments::Arguments as clap::CommandFactory>::command();
        let run = command.find_subcommand("run").expect("defined");
        for argument in run.get_arguments() {
            let long = argument.get_long_and_visible_aliases().unwrap_or_default();
            let short = argument.get_short_and_visible_aliases().unwrap_or_default();
            let names = long.iter().map(|name| format!("--{name}"));
            for name in names.chain(short.iter().map(|name| format!("-{name}"))) {
                assert_eq!(advice(&name), None, "{name}");
            }
        }
    }
}
