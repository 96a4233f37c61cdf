//! The line of figures, and the numbers behind it.

use brigade::metrics::{PoolSnapshot, WorkerState};
use brigade::status::Terms;
use ratatui::layout::Constraint::{Fill, Length};
use ratatui::layout::{Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::Cell;

use super::format::{count, rate};
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
    let finished = format!("{} of {}", count(snapshot.finished), count(snapshot.enqueued));
    let server = snapshot.fork_server.map(|pid| figure(pid.to_string(), "fork server", false));
    let figures = [
        figure(format!("{}/s", rate(seconds.recent_throughput())), "throughput", false),
        figure(finished, "finished", false),
        figure(count(snapshot.queued), "queued", false),
        figure(
            format!("{busy} of {}", snapshot.workers.len()),
            &format!("{}s busy", terms.worker),
            false,
        ),
        figure(count(failed), "failed", failed > 0),
        if terms.task == "job" {
            let retries = snapshot.attempts.saturating_sub(snapshot.finished);
            figure(count(retries), "retries", false)
        } else {
            figure(count(snapshot.restarts), "restarts", snapshot.restarts > 0)
        },
    ];
    let mut lines = vec![Line::default()];
    for figure in figures.into_iter().chain(server) {
        let length: usize = figure.iter().map(Span::width).sum();
        let fits = |used: usize| used == 0 || used + length <= usize::from(width);
        match lines.last_mut().filter(|line| fits(line.width())) {
            Some(line) => line.extend(figure),
            None => lines.push(figure.to_vec().into()),
        }
    }
    lines
}

/// Returns a cell with a number.
pub(super) fn number(text: impl Into<String>) -> Cell<'static> {
    Cell::from(Line::from(text.into()).right_aligned())
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
