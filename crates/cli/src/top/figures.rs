//! The line of figures, and the numbers behind it.

use brigade::metrics::{PoolSnapshot, WorkerState};
use ratatui::layout::Constraint::{Fill, Length};
use ratatui::layout::{Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};

use super::format::{count, rate};
use super::protocol::Terms;
use super::sparkline::Seconds;

/// The accent color.
pub(super) const ACCENT: Color = Color::Cyan;
/// The color of failures.
pub(super) const BAD: Color = Color::Red;

pub(super) fn dim() -> Style {
    Style::new().add_modifier(Modifier::DIM)
}

pub(super) fn bold() -> Style {
    Style::new().add_modifier(Modifier::BOLD)
}

/// Returns the figures as two lines at most, for this width.
pub(super) fn lines(
    snapshot: &PoolSnapshot,
    seconds: &Seconds,
    terms: &Terms,
    width: u16,
) -> Vec<Line<'static>> {
    let busy = snapshot.workers.iter().filter(|worker| worker.state == WorkerState::Busy).count();
    let failed = snapshot.finished - snapshot.succeeded.min(snapshot.finished);
    let server = snapshot.fork_server.map(|pid| (pid.to_string(), "fork server".to_owned(), false));
    let figures = [
        (format!("{}/s", rate(seconds.recent_throughput())), "throughput".to_owned(), false),
        (
            format!("{} of {}", count(snapshot.finished), count(snapshot.enqueued)),
            "finished".to_owned(),
            false,
        ),
        (count(snapshot.queued), "queued".to_owned(), false),
        (format!("{busy} of {}", snapshot.workers.len()), format!("{}s busy", terms.worker), false),
        (count(failed), "failed".to_owned(), failed > 0),
        if terms.task == "job" {
            let retries = snapshot.attempts.saturating_sub(snapshot.finished);
            (count(retries), "retries".to_owned(), false)
        } else {
            (count(snapshot.restarts), "restarts".to_owned(), snapshot.restarts > 0)
        },
    ]
    .into_iter()
    .chain(server);
    let (mut lines, mut line, mut used) = (Vec::new(), Vec::new(), 0);
    for (value, name, is_bad) in figures {
        let length = value.chars().count() + name.chars().count() + 4;
        if used > 0 && used + length > usize::from(width) {
            lines.push(Line::from(std::mem::take(&mut line)));
            used = 0;
        }
        used += length;
        line.extend(figure(value, &name, is_bad));
    }
    lines.push(Line::from(line));
    lines
}

/// Returns a figure with its name.
pub(super) fn figure(value: String, name: &str, is_bad: bool) -> [Span<'static>; 2] {
    let style = if is_bad { bold().fg(BAD) } else { bold() };
    [Span::styled(value, style), Span::styled(format!(" {name}   "), dim())]
}

/// Returns a key with what it does.
pub(super) fn key(key: &str, meaning: &str) -> [Span<'static>; 2] {
    figure(key.to_owned(), meaning, false)
}

/// Splits off the line of a heading.
pub(super) fn title(area: Rect) -> [Rect; 2] {
    Layout::vertical([Length(1), Fill(1)]).areas(area)
}
