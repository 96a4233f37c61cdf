//! The command line of `cargo xtask bench`.

use std::path::PathBuf;

use super::target;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Options {
    pub(super) rounds: u32,
    pub(super) idle_seconds: Option<u32>,
    pub(super) quick: bool,
    pub(super) peers: bool,
    pub(super) write: bool,
    /// Names of sections with commas between; `compare` knows which there are.
    pub(super) only: Option<String>,
    pub(super) json: PathBuf,
}

impl Options {
    pub(super) fn parse(arguments: &[String]) -> Result<Self, String> {
        let mut options = Self {
            rounds: 5,
            idle_seconds: None,
            quick: false,
            peers: false,
            write: false,
            only: None,
            json: target().join("bench/figures.json"),
        };
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            let (name, attached) = match argument.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (argument.as_str(), None),
            };
            let mut value = || {
                attached
                    .clone()
                    .or_else(|| arguments.next().cloned())
                    .ok_or_else(|| format!("`{name}` needs a value"))
            };
            match name {
                "--rounds" => {
                    let rounds = value()?.parse().ok().filter(|rounds| *rounds > 0);
                    options.rounds = rounds.ok_or("`--rounds` needs a number from 1 on")?;
                }
                "--idle-seconds" => {
                    let seconds = value()?.parse().ok().filter(|seconds| *seconds > 0);
                    options.idle_seconds =
                        Some(seconds.ok_or("`--idle-seconds` needs a number from 1 on")?);
                }
                "--only" => options.only = Some(value()?),
                "--json" => options.json = value()?.into(),
                "--quick" => options.quick = true,
                "--peers" => options.peers = true,
                "--write" => options.write = true,
                _ => return Err(format!("there is no option `{argument}`")),
            }
        }
        if options.write && options.only.is_some() {
            return Err("`--write` needs the figures of a whole run: leave out `--only`".to_owned());
        }
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use super::Options;

    fn parse(line: &str) -> Result<Options, String> {
        let arguments: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        Options::parse(&arguments)
    }

    #[test]
    fn options_are_taken_in_both_spellings() {
        let expected = parse("--rounds 3 --only work,idle --json a.json --quick --peers").unwrap();
        assert_eq!(
            parse("--peers --quick --json=a.json --only=work,idle --rounds=3").unwrap(),
            expected
        );
        assert_eq!((expected.rounds, expected.quick, expected.write), (3, true, false));
        assert_eq!(parse("").unwrap().rounds, 5);
    }

    #[test]
    fn mistakes_are_named() {
        for (line, word) in [
            ("--round 3", "--round"),
            ("--rounds 0", "--rounds"),
            ("--json", "value"),
            ("--write --only idle", "--only"),
        ] {
            let problem = parse(line).unwrap_err();
            assert!(problem.contains(word), "{line}: {problem}");
        }
    }
}
