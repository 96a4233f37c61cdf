//! `brigade completions`: scripts that complete the command line in shells.

use clap::CommandFactory;
use clap_complete::Shell;

use crate::arguments::Arguments;

/// Completes the command of a job in bash, as clap's script does in the other shells: the words
/// after `--`, and a first word that is neither an option nor a file.
const BASH: &str = r#"
_brigade_job() {
    local i
    if [[ ${COMP_WORDS[1]} == run || ${COMP_WORDS[1]} == parallel ]]; then
        for ((i = 2; i < COMP_CWORD; i++)); do
            [[ ${COMP_WORDS[i]} == -- ]] || continue
            if ((i + 1 == COMP_CWORD)); then
                COMPREPLY=($(compgen -c -- "$2" | sort -u))
            elif declare -F _command_offset > /dev/null; then
                _command_offset $((i + 1))
            else
                COMPREPLY=($(compgen -f -- "$2"))
            fi
            return 0
        done
    fi
    _brigade "$@"
    [[ ${COMP_WORDS[1]} == run || ${COMP_WORDS[1]} == parallel ]] || return 0
    if [[ -n $2 && $2 != -* && $3 != -* && ${#COMPREPLY[@]} == 0 ]]; then
        COMPREPLY=($(compgen -f -c -- "$2" | sort -u))
    fi
}

complete -F _brigade_job -o bashdefault -o default brigade
"#;

/// Returns the script for a shell.
pub(crate) fn script(shell: Shell) -> Vec<u8> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "brigade", &mut script);
    if shell == Shell::Bash {
        script.extend_from_slice(BASH.as_bytes());
    }
    script
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// Returns what bash offers for the last word of a line.
    fn offered(line: &str) -> Vec<String> {
        let folder = tempfile::tempdir().expect("a directory");
        std::fs::write(folder.path().join("list.txt"), "").expect("disk");
        std::fs::write(folder.path().join("script"), script(Shell::Bash)).expect("disk");
        let complete = r#". ./script
            COMP_WORDS=($1); [[ $1 == *' ' ]] && COMP_WORDS+=(''); COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
            [[ $(complete -p brigade) == *'-F '* ]] || exit 1
            function=$(complete -p brigade); function=${function#*-F }; function=${function%% *}
            $function brigade "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
            printf '%s\n' "${COMPREPLY[@]}""#;
        let output = Command::new("bash")
            .args(["--norc", "-c", complete, "bash", line])
            .current_dir(folder.path())
            .output()
            .expect("bash");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
    }

    #[test]
    fn bash_completes_the_command_of_a_job() {
        assert!(offered("brigade run -- slee").contains(&"sleep".to_owned()));
        assert!(offered("brigade run slee").contains(&"sleep".to_owned()));
        assert!(offered("brigade parallel slee").contains(&"sleep".to_owned()));
        assert_eq!(offered("brigade run -- cat li"), ["list.txt"]);
        assert_eq!(offered("brigade run li").iter().filter(|word| *word == "list.txt").count(), 1);
    }

    #[test]
    fn bash_completes_options_and_their_values() {
        assert_eq!(offered("brigade to"), ["topology", "top"]);
        assert_eq!(offered("brigade run --cores-p"), ["--cores-per-job"]);
        assert_eq!(offered("brigade run --policy wh"), ["whole-cores"]);
        assert_eq!(offered("brigade run --joblog li"), ["list.txt"]);
        assert_eq!(offered("brigade run --halt now,f"), ["now,fail=1"]);
    }
}
