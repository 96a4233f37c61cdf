//! The values of options: numbers of jobs, durations, sizes, policies.

use std::ffi::OsStr;
use std::num::NonZeroUsize;
use std::str::FromStr;
use std::time::Duration;

use brigade::runner::{Halt, Limit, MAX_JOBS, Resource, Retry};
use clap::builder::{PossibleValue, TypedValueParser};

/// The number of jobs at once, written as for GNU parallel.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum JobCount {
    Exactly(NonZeroUsize),
    /// `0`
    Unlimited,
    /// `+N`
    More(usize),
    /// `-N`
    Fewer(usize),
    /// `N%`
    Percent(f64),
}

impl JobCount {
    /// Returns the number on a machine with this many usable cores.
    pub(crate) fn of(self, cores: usize) -> NonZeroUsize {
        let count = match self {
            Self::Exactly(count) => count.get(),
            Self::Unlimited => MAX_JOBS,
            Self::More(more) => cores.saturating_add(more),
            Self::Fewer(fewer) => cores.saturating_sub(fewer),
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                clippy::cast_precision_loss,
                reason = "neither is negative; what is too large for the run is refused there"
            )]
            Self::Percent(percent) => (cores as f64 * percent / 100.0) as usize,
        };
        NonZeroUsize::new(count).unwrap_or(NonZeroUsize::MIN)
    }
}

impl FromStr for JobCount {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "expected a number of jobs, such as 8, 50%, +2, -1, or 0".to_owned();
        let number = |digits: &str| {
            let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
            digits.parse::<usize>().ok().filter(|_| is_number).ok_or_else(wrong)
        };
        if let Some(more) = text.strip_prefix('+') {
            return number(more).map(Self::More);
        }
        if let Some(fewer) = text.strip_prefix('-') {
            return number(fewer).map(Self::Fewer);
        }
        if let Some(percent) = text.strip_suffix('%') {
            let percent: f64 = percent.parse().map_err(|_| wrong())?;
            let is_sound = percent > 0.0 && percent.is_finite();
            return if is_sound { Ok(Self::Percent(percent)) } else { Err(wrong()) };
        }
        Ok(NonZeroUsize::new(number(text)?).map_or(Self::Unlimited, Self::Exactly))
    }
}

/// A load of the machine, in threads.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Load {
    Threads(f64),
    /// Of the usable cores.
    Percent(f64),
}

impl Load {
    /// Returns the number of threads on a machine with this many usable cores.
    pub(crate) fn of(self, cores: usize) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "no machine has 2^53 cores")]
        let cores = cores as f64;
        match self {
            Self::Threads(threads) => threads,
            Self::Percent(percent) => cores * percent / 100.0,
        }
    }
}

impl FromStr for Load {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (digits, is_percent) =
            text.strip_suffix('%').map_or((text, false), |digits| (digits, true));
        let load = digits.parse().ok().filter(|load: &f64| *load > 0.0 && load.is_finite());
        let load = load.ok_or(
            "expected a number of threads, or a percentage of the cores, such as 4 or 100%",
        )?;
        Ok(if is_percent { Self::Percent(load) } else { Self::Threads(load) })
    }
}

/// Parses a number of at least 1.
pub(super) fn parse_count(text: &str) -> Result<NonZeroUsize, String> {
    text.parse().map_err(|_| "expected a number of at least 1".to_owned())
}

/// A halt policy; `None` for `never`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct HaltPolicy(pub(crate) Option<Halt>);

/// Parses halt policies. Shells complete to common ones.
#[derive(Debug, Clone)]
pub(super) struct HaltParser;

impl TypedValueParser for HaltParser {
    type Value = HaltPolicy;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<HaltPolicy, clap::Error> {
        parse_halt.parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let common =
            ["never", "soon,fail=1", "now,fail=1", "soon,fail=10%", "now,success=1", "now,done=1"];
        Some(Box::new(common.into_iter().map(PossibleValue::new)))
    }
}

/// Parses a policy. GNU parallel's numbers and bare percentages stand for policies, too.
fn parse_halt(text: &str) -> Result<HaltPolicy, String> {
    let policy = match text {
        "never" | "0" => return Ok(HaltPolicy(None)),
        "1" => "soon,fail=1".parse(),
        "2" => "now,fail=1".parse(),
        "-1" => "soon,success=1".parse(),
        "-2" => "now,success=1".parse(),
        part if part.ends_with('%') && !part.contains(',') => format!("soon,fail={part}").parse(),
        policy => policy.parse(),
    };
    policy.map(|halt| HaltPolicy(Some(halt))).map_err(|_| {
        "expected now or soon, a comma, fail, success or done, and = with a number or a percentage, such as \
         now,fail=1 or soon,done=10%"
            .to_owned()
    })
}

pub(super) fn parse_limit(text: &str) -> Result<Limit, String> {
    let wrong =
        |_| "expected seconds, a duration such as 10m, or a percentage such as 300%".to_owned();
    match parse_duration(text) {
        Some(limit) if !limit.is_zero() => Ok(Limit::Fixed(limit)),
        _ => text.parse().map_err(wrong),
    }
}

/// Parses a whole number.
pub(super) fn parse_number<N: FromStr>(text: &str) -> Result<N, String> {
    text.parse().map_err(|_| "expected a whole number".to_owned())
}

/// Parses seconds, or a duration with units.
pub(super) fn parse_seconds(text: &str) -> Result<Duration, String> {
    let wrong = || "expected seconds or a duration, such as 0.5 or 1m30s".to_owned();
    match text.parse() {
        Ok(seconds) => Duration::try_from_secs_f64(seconds).map_err(|_| wrong()),
        Err(_) => parse_duration(text).ok_or_else(wrong),
    }
}

/// Parses the first pause between attempts, and how the others differ from it:
/// `2s,factor=3,max=5m,jitter=0.5`.
pub(super) fn parse_retry(text: &str) -> Result<Retry, String> {
    let mut parts = text.split(',');
    let first = parse_seconds(parts.next().unwrap_or_default())?;
    parts.try_fold(Retry::new().delay(first), |retry, part| match part.split_once('=') {
        Some(("factor", factor)) => match factor.parse() {
            Ok(factor) if (1.0..f64::INFINITY).contains(&factor) => Ok(retry.factor(factor)),
            _ => Err("expected factor= with a number of at least 1".to_owned()),
        },
        Some(("max", most)) => Ok(retry.max_delay(parse_seconds(most)?)),
        Some(("jitter", share)) => match share.parse() {
            Ok(share) if (0.0..=1.0).contains(&share) => Ok(retry.jitter(share)),
            _ => Err("expected jitter= with a number from 0 to 1".to_owned()),
        },
        _ => Err("expected a duration, such as 2s, and behind commas factor=N, max=DURATION or \
                  jitter=SHARE"
            .to_owned()),
    })
}

/// Parses a duration with units, or one with a single unit and a fraction: `1.5h`.
fn parse_duration(text: &str) -> Option<Duration> {
    let fraction = || {
        let unit = text.find(|character: char| character.is_ascii_alphabetic())?;
        let number: f64 = text[..unit].parse().ok()?;
        let unit = humantime::parse_duration(&format!("1{}", &text[unit..])).ok()?;
        Duration::try_from_secs_f64(number * unit.as_secs_f64()).ok()
    };
    humantime::parse_duration(text).ok().or_else(fraction)
}

/// Parses a size whose unit is a power of 1024, as GNU parallel does.
pub(crate) fn parse_size(text: &str) -> Result<u64, String> {
    let wrong = || "expected a number of bytes, such as 500M, 2G or 1.5G".to_owned();
    let digits = text.trim_end_matches(|character: char| character.is_ascii_alphabetic());
    let factor: f64 = match text[digits.len()..].to_ascii_uppercase().as_str() {
        "" | "B" => 1.0,
        "K" | "KB" | "KIB" => 1024.0,
        "M" | "MB" | "MIB" => 1024.0 * 1024.0,
        "G" | "GB" | "GIB" => 1024.0 * 1024.0 * 1024.0,
        "T" | "TB" | "TIB" => 1024.0 * 1024.0 * 1024.0 * 1024.0,
        _ => return Err(wrong()),
    };
    let number: f64 = digits.parse().map_err(|_| wrong())?;
    if !(0.0..1e9).contains(&number) {
        return Err(wrong());
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked above")]
    Ok((number * factor) as u64)
}

/// Reads name and amount of a resource: a count is one of numbered pieces, and a size with a unit
/// can be divided.
pub(crate) fn parse_resource(text: &str) -> Result<(String, Resource), String> {
    let wrong = || "expected a name and an amount, such as gpu=4 or memory=16G".to_owned();
    let (name, amount) = text.split_once('=').ok_or_else(wrong)?;
    let resource = match amount.parse() {
        Ok(pieces) => Resource::Indexed(pieces),
        Err(_) => Resource::Sum(parse_size(amount).map_err(|_| wrong())?),
    };
    Ok((name.to_owned(), resource))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_of_jobs_may_be_relative_to_the_cores() {
        let of = |text: &str| text.parse().map(|jobs: JobCount| jobs.of(4).get());
        for (text, expected) in [
            ("3", 3),
            ("+1", 5),
            ("-1", 3),
            ("-9", 1),
            ("50%", 2),
            ("200%", 8),
            ("1%", 1),
            ("0", MAX_JOBS),
        ] {
            assert_eq!(of(text), Ok(expected), "{text}");
        }
        for wrong in ["", "x", "+", "++1", "-0x1", "0%", "-5%", "nan%", "inf%", "1.5"] {
            assert!(of(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn pauses_have_a_first_one_a_factor_a_maximum_and_jitter() {
        let of = |text: &str| parse_retry(text).map(|retry| [1, 2, 3].map(|it| retry.pause(it, 0)));
        let seconds = |all: [f64; 3]| Ok(all.map(Duration::from_secs_f64));
        assert_eq!(of("2"), seconds([2.0, 4.0, 8.0]));
        assert_eq!(of("500ms,factor=3"), seconds([0.5, 1.5, 4.5]));
        assert_eq!(of("1m,max=90s"), seconds([60.0, 90.0, 90.0]));
        let jittered = of("1,factor=1,jitter=0.5").expect("pauses");
        assert!(jittered.iter().all(|it| (0.5..=1.0).contains(&it.as_secs_f64())), "{jittered:?}");
        for wrong in ["", "x", "-1", "1,", "1,factor=0.5", "1,factor=inf", "1,jitter=2", "1,max=x"]
        {
            assert!(of(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_load_may_be_relative_to_the_cores() {
        let of = |text: &str| text.parse().map(|load: Load| load.of(4).to_string());
        assert_eq!(of("1.5"), Ok("1.5".to_owned()));
        assert_eq!(of("50%"), Ok("2".to_owned()));
        for wrong in ["", "%", "-1", "0", "x", "inf"] {
            assert!(of(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn halt_policies_have_short_forms() {
        for (short, long) in
            [("1", "soon,fail=1"), ("-2", "now,success=1"), ("10%", "soon,fail=10%")]
        {
            assert_eq!(parse_halt(short), parse_halt(long), "{short}");
        }
        assert_eq!(parse_halt("0"), Ok(HaltPolicy(None)));
        for wrong in ["3", "x%", "", "now"] {
            assert!(parse_halt(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn durations_are_seconds_or_have_units() {
        assert_eq!(parse_seconds("1m30s"), Ok(Duration::from_secs(90)));
        assert_eq!(parse_seconds("0.5"), Ok(Duration::from_millis(500)));
        assert_eq!(parse_seconds("0.5m"), Ok(Duration::from_secs(30)));
        let minutes = |count: u64| Ok(Limit::Fixed(Duration::from_secs(60 * count)));
        assert_eq!(parse_limit("10m"), minutes(10));
        assert_eq!(parse_limit("60"), minutes(1));
        assert_eq!(parse_limit("300%"), Ok(Limit::OfMedian(3.0)));
        for wrong in ["", "m", "-1", "1 parsec", "inf"] {
            assert!(parse_seconds(wrong).is_err() && parse_limit(wrong).is_err(), "{wrong}");
        }
        assert!(parse_limit("0s").is_err() && parse_limit("0").is_err());
    }

    #[test]
    fn sizes_accept_units_of_1024() {
        assert_eq!(parse_size("10"), Ok(10));
        assert_eq!(parse_size("1.5K"), Ok(1536));
        assert_eq!(parse_size("2gb"), Ok(2 << 30));
        for wrong in ["", "K", "-1", "1X", "nan", "1e12"] {
            assert!(parse_size(wrong).is_err(), "{wrong}");
        }
    }
}
