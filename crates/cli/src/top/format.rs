//! Numbers and times with few characters.

use std::time::Duration;

pub(super) use crate::screen::one_line;

/// Formats a time with three significant digits: `12.3 µs`, `4.56 s`, `2 min 05 s`.
#[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
pub(super) fn time(time: Duration) -> String {
    let nanos = time.as_nanos() as f64;
    match time.as_nanos() {
        0 => "0".to_owned(),
        1..1_000 => format!("{nanos} ns"),
        1_000..1_000_000 => format!("{} µs", digits(nanos / 1e3)),
        1_000_000..1_000_000_000 => format!("{} ms", digits(nanos / 1e6)),
        1_000_000_000..100_000_000_000 => format!("{} s", digits(nanos / 1e9)),
        _ => span(time),
    }
}

/// Formats a long time in whole seconds.
pub(super) fn span(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {:02} s", seconds / 60, seconds % 60),
        3600..86400 => format!("{} h {:02} min", seconds / 3600, seconds / 60 % 60),
        _ => format!("{} d {:02} h", seconds / 86400, seconds / 3600 % 24),
    }
}

/// Formats a count: with separators up to a million, then with a unit.
#[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
pub(super) fn count(number: u64) -> String {
    match number {
        0..1_000 => number.to_string(),
        1_000..1_000_000 => format!("{},{:03}", number / 1_000, number % 1_000),
        1_000_000..1_000_000_000 => format!("{}M", digits(number as f64 / 1e6)),
        1_000_000_000..1_000_000_000_000 => format!("{}G", digits(number as f64 / 1e9)),
        _ => format!("{}T", digits(number as f64 / 1e12)),
    }
}

/// Formats a rate per second.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "rates are positive and far below the limit"
)]
pub(super) fn rate(number: f64) -> String {
    match number {
        0.0 => "0".to_owned(),
        _ if number < 10.0 => format!("{number:.1}"),
        _ => count(number.round() as u64),
    }
}

fn digits(number: f64) -> String {
    match number {
        _ if number < 10.0 => format!("{number:.2}"),
        _ if number < 100.0 => format!("{number:.1}"),
        _ => format!("{number:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_three_digits() {
        for (nanos, text) in [
            (0, "0"),
            (999, "999 ns"),
            (1_234, "1.23 µs"),
            (45_600, "45.6 µs"),
            (789_000_000, "789 ms"),
            (99_000_000_000, "99.0 s"),
            (125_000_000_000, "2 min 05 s"),
            (7_260_000_000_000, "2 h 01 min"),
        ] {
            assert_eq!(time(Duration::from_nanos(nanos)), text);
        }
    }

    #[test]
    fn counts_are_short() {
        for (number, text) in [(999, "999"), (12_345, "12,345"), (3_456_789, "3.46M")] {
            assert_eq!(count(number), text);
        }
        assert_eq!(
            (rate(0.0), rate(3.25), rate(1234.4)),
            ("0".into(), "3.2".into(), "1,234".into())
        );
    }
}
