//! Text for people: durations, colors, lines that fit.

use std::time::Duration;

use brigade::runner::{Command, Job, Need};
use console::Style;

/// Applies colors if they are wanted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tint {
    is_on: bool,
}

impl Tint {
    pub(super) fn for_stderr() -> Self {
        let is_refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self { is_on: !is_refused && console::colors_enabled_stderr() }
    }

    #[cfg(test)]
    pub(super) fn off() -> Self {
        Self { is_on: false }
    }

    pub(super) fn bad(self, text: &str) -> String {
        self.apply(&Style::new().red().bold(), text)
    }

    pub(super) fn good(self, text: &str) -> String {
        self.apply(&Style::new().green(), text)
    }

    pub(super) fn faint(self, text: &str) -> String {
        self.apply(&Style::new().dim(), text)
    }

    fn apply(self, style: &Style, text: &str) -> String {
        if self.is_on {
            style.clone().force_styling(true).apply_to(text).to_string()
        } else {
            text.to_owned()
        }
    }
}

/// Formats a duration in at most six characters: `0.04s`, `12.3s`, `4m05s`, `2h07m`, `3d04h`.
pub(super) fn seconds(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0..10 => format!("{:.2}s", duration.as_secs_f64()),
        10..60 => format!("{:.1}s", duration.as_secs_f64()),
        60..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        3600..86400 => format!("{}h{:02}m", seconds / 3600, seconds / 60 % 60),
        _ => format!("{}d{:02}h", seconds / 86400, seconds / 3600 % 24),
    }
}

/// Longer lines are cut: an argument may have megabytes.
const MAX_LINE: usize = 200;

/// Replaces newlines and control characters, which would garble a display, and cuts a long text.
pub(crate) fn one_line(text: &str) -> String {
    let mut rest = text.chars();
    let shown = |character: char| if character.is_control() { ' ' } else { character };
    let mut line: String = rest.by_ref().take(MAX_LINE).map(shown).collect();
    if rest.next().is_some() {
        line.push('…');
    }
    line
}

/// Returns the label of a job, or else its command.
pub(crate) fn name_of(job: &Job, command: impl FnOnce() -> Command) -> String {
    job.label.clone().unwrap_or_else(|| command().to_string())
}

/// Returns what a run waits for, and why.
pub(super) fn waiting_for(need: Need) -> &'static str {
    match need {
        Need::Cores => "waiting for cores that other runs have leased; --no-pin shares them",
        Need::Memory => "waiting for memory: less is available than --memfree asks for",
        Need::Load => "waiting for processors: more threads run than --load allows",
        _ => "waiting",
    }
}

/// Cuts a text to a width, ending it with `…` if it was cut.
pub(super) fn fit(text: &str, width: usize) -> String {
    console::truncate_str(text, width, "…").into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_short() {
        for (millis, text) in [
            (40, "0.04s"),
            (12_345, "12.3s"),
            (245_000, "4m05s"),
            (7_620_000, "2h07m"),
            (273_600_000, "3d04h"),
        ] {
            assert_eq!(seconds(Duration::from_millis(millis)), text);
        }
    }

    #[test]
    fn a_command_is_cut_to_one_line_that_fits() {
        assert_eq!(fit(&one_line("a\nb\tc\u{1b}[31m"), 6), "a b c…");
        assert_eq!(fit("äöü", 3), "äöü");
    }
}
