//! The options of `--pipe` and `--pipe-part`.

use std::str::FromStr;

use clap::{ArgGroup, Args};

use super::values::parse_number;

/// The options of `--pipe` and `--pipe-part`.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each option is a field of the same name")]
#[command(next_help_heading = "Pipe", group = ArgGroup::new("blocks").multiple(true))]
pub(crate) struct PipeOptions {
    /// Cut standard input into blocks of whole records, by default lines, and give each job a block
    /// as its standard input
    #[arg(
        long,
        alias = "spreadstdin",
        group = "blocks",
        conflicts_with_all = ["file", "shuffle"],
    )]
    pub(crate) pipe: bool,

    /// Like --pipe for files, which -a names: jobs read their parts of them directly
    #[arg(
        long,
        alias = "pipepart",
        group = "blocks",
        requires = "arg_file",
        conflicts_with_all = ["file", "shuffle"]
    )]
    pub(crate) pipe_part: bool,

    /// Give each job its block as a file, whose name stands for {} or is appended to COMMAND
    #[arg(long, requires = "blocks")]
    pub(crate) cat: bool,

    /// Same as --cat, for compatibility with GNU parallel
    #[arg(long, requires = "blocks")]
    pub(crate) fifo: bool,

    /// Run only as many jobs as run at once, and give each block to the next one that has room;
    /// with --keep-order in turns
    #[arg(long, aliases = ["roundrobin", "round"], requires = "pipe", conflicts_with = "pipe_part")]
    pub(crate) round_robin: bool,

    /// Give each job of a list the whole input: all of them run at once
    #[arg(long, requires = "blocks", conflicts_with_all = ["cat", "fifo", "round_robin"])]
    pub(crate) tee: bool,

    /// Size of a block, such as 500k or 10M; longer if a record is longer. With --pipe-part, -N is
    /// a number of blocks for each job slot [default: 1M; with --pipe-part -10]
    #[arg(
        long,
        aliases = ["block-size", "blocksize"],
        value_name = "SIZE",
        allow_hyphen_values = true,
        requires = "blocks",
    )]
    pub(crate) block: Option<BlockSize>,

    /// Text that a record ends with, such as '\n' or ';' [default: \n without --recstart]
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true, requires = "blocks")]
    pub(crate) recend: Option<String>,

    /// Text that a record starts with
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true, requires = "blocks")]
    pub(crate) recstart: Option<String>,

    /// The texts of --recend and --recstart are regular expressions
    #[arg(long, alias = "regex", requires = "blocks")]
    pub(crate) regexp: bool,

    /// Remove the texts of --recend and --recstart from the blocks
    #[arg(long, aliases = ["removerecsep", "rrs"], requires = "blocks")]
    pub(crate) remove_rec_sep: bool,

    /// Give each job N records; without --pipe, N arguments of each list: {1} to {N}. A word with
    /// {} is repeated for each. With 0, jobs get no arguments
    #[arg(short = 'N', long = "max-replace-args", value_name = "N", value_parser = parse_number::<usize>, requires = "command")]
    pub(crate) records: Option<usize>,

    /// A record has N lines; without --pipe, give each job N arguments, as -N does. A line that
    /// ends with a blank continues on the next one
    #[arg(
        short = 'L',
        long = "max-lines",
        value_name = "N",
        value_parser = super::parse_count,
        requires = "command",
    )]
    pub(crate) lines: Option<std::num::NonZeroUsize>,
}

/// The size of a block.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum BlockSize {
    Bytes(usize),
    /// `-N`: this number of blocks for each slot.
    PerSlot(f64),
}

impl FromStr for BlockSize {
    type Err = String;

    /// Parses a size with GNU parallel's units: `k` is 1,000, and `K` is 1,024.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "expected a size of at least 1 byte, such as 500k or 10M".to_owned();
        let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
        let power = match &text[digits.len()..] {
            "" => 0,
            "k" | "K" => 1,
            "m" | "M" => 2,
            "g" | "G" => 3,
            "t" | "T" => 4,
            _ => return Err(wrong()),
        };
        let is_binary = text.ends_with(|unit: char| unit.is_ascii_uppercase());
        let unit: f64 = if is_binary { 1024.0 } else { 1000.0 };
        let number = digits.parse::<f64>().map_err(|_| wrong())? * unit.powi(power);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "checked to be positive and small enough"
        )]
        match number {
            1.0..1e18 => Ok(Self::Bytes(number as usize)),
            -1e9..0.0 => Ok(Self::PerSlot(-number)),
            _ => Err(wrong()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_gnu_parallels_units() {
        let parsed = |text: &str| text.parse::<BlockSize>().ok();
        for (text, bytes) in [("1", 1), ("2k", 2000), ("2K", 2048), ("1.5M", 3 << 19)] {
            assert_eq!(parsed(text), Some(BlockSize::Bytes(bytes)), "{text}");
        }
        assert_eq!(parsed("-2"), Some(BlockSize::PerSlot(2.0)));
        for text in ["", "0", "x", "1x", "k", "0.1", "inf", "-0", "NaN"] {
            assert_eq!(parsed(text), None, "{text}");
        }
    }
}
