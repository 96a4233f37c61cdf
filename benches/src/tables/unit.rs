//! Formats figures by their unit, which is the end of a figure's name.

use crate::results::Summary;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Seconds,
    PerSecond,
    Percent,
    Count,
    /// A ratio.
    Times,
}

const SUFFIXES: &[(&str, Unit)] = &[
    // Before any shorter suffix that it ends with.
    ("_per_second", Unit::PerSecond),
    ("_seconds", Unit::Seconds),
    ("_percent", Unit::Percent),
    ("_count", Unit::Count),
    ("_times", Unit::Times),
];

/// Splits a figure's name into readable words and the unit: `in_16777216_seconds` becomes
/// `in 16 MiB` and seconds.
pub(super) fn split(name: &str) -> (String, Unit) {
    let found = SUFFIXES.iter().find_map(|(suffix, unit)| Some((name.strip_suffix(suffix)?, unit)));
    let (words, unit) = found.map_or((name, Unit::Count), |(words, unit)| (words, *unit));
    let words: Vec<String> = words.split('_').map(word).collect();
    (words.join(" "), unit)
}

/// Formats a number of at least 1,024 as a size; returns other words unchanged.
fn word(word: &str) -> String {
    match word.parse::<u64>() {
        Ok(bytes) if bytes >= 1 << 30 => format!("{} GiB", bytes >> 30),
        Ok(bytes) if bytes >= 1 << 20 => format!("{} MiB", bytes >> 20),
        Ok(bytes) if bytes >= 1 << 10 => format!("{} KiB", bytes >> 10),
        _ => word.to_owned(),
    }
}

impl Unit {
    pub(super) fn value(self, value: f64) -> String {
        match self {
            Self::PerSecond => format!("{}/s", grouped(value)),
            Self::Percent => format!("{value:.1} %"),
            Self::Count => grouped(value),
            Self::Times => format!("{}x", three_digits(value)),
            Self::Seconds => {
                let (factor, name) = match value {
                    _ if value >= 1.0 => (1.0, "s"),
                    _ if value >= 1e-3 => (1e3, "ms"),
                    _ if value >= 1e-6 => (1e6, "µs"),
                    _ => (1e9, "ns"),
                };
                format!("{} {name}", three_digits(value * factor))
            }
        }
    }

    /// Returns the median, with the range if there were several rounds.
    pub(super) fn summary(self, summary: Summary) -> String {
        let median = self.value(summary.median);
        if summary.lowest.total_cmp(&summary.highest).is_eq() {
            return median;
        }
        format!("{median} ({} to {})", self.value(summary.lowest), self.value(summary.highest))
    }
}

fn three_digits(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => grouped(value),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// Formats a number without decimals and with commas between thousands.
fn grouped(value: f64) -> String {
    let digits = format!("{value:.0}");
    let (sign, digits) = digits.strip_prefix('-').map_or(("", digits.as_str()), |rest| ("-", rest));
    let mut text = sign.to_owned();
    for (index, digit) in digits.char_indices() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{Unit, split};
    use crate::results::Summary;

    #[test]
    fn names_end_with_their_unit() {
        assert_eq!(split("in_16777216_seconds"), ("in 16 MiB".to_owned(), Unit::Seconds));
        assert_eq!(split("copy_1024_seconds"), ("copy 1 KiB".to_owned(), Unit::Seconds));
        assert_eq!(split("vec_1073741824_seconds"), ("vec 1 GiB".to_owned(), Unit::Seconds));
        assert_eq!(split("each_per_second"), ("each".to_owned(), Unit::PerSecond));
        assert_eq!(split("spawn_16_seconds"), ("spawn 16".to_owned(), Unit::Seconds));
    }

    #[test]
    fn values_are_short_and_have_a_unit() {
        for (unit, value, text) in [
            (Unit::Seconds, 0.000_001_812, "1.81 µs"),
            (Unit::Seconds, 0.0123, "12.3 ms"),
            (Unit::Seconds, 9e-9, "9.00 ns"),
            (Unit::PerSecond, 988_792.4, "988,792/s"),
            (Unit::Count, 0.0, "0"),
            (Unit::Percent, 99.48, "99.5 %"),
            (Unit::Times, 177.4, "177x"),
        ] {
            assert_eq!(unit.value(value), text);
        }
        let summary = Summary { median: 2.0, lowest: 1.0, highest: 1_000.0 };
        assert_eq!(Unit::Times.summary(summary), "2.00x (1.00x to 1,000x)");
    }
}
