//! The display: which part is where, for the size of the terminal.

use brigade::metrics::{PoolSnapshot, PoolState};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Sparkline};

use super::app::App;
use super::figures::{self, ACCENT, BAD, bold, dim, title};
use super::format::{count, one_line, span};
use super::sparkline::{Seconds, columns};
use super::tables;
use super::workers;

/// The width from which there are two columns of tables.
const WIDE: u16 = 140;
/// The height from which there are tables of slow tasks and failures below the workers.
const TALL: u16 = 34;

/// Draws everything.
pub(super) fn draw(frame: &mut Frame<'_>, app: &App) {
    let area = margins(frame.area());
    let Some(snapshot) = &app.snapshot else {
        let text = app.lost.as_ref().map_or_else(
            || format!("connecting to {}…", app.address),
            |reason| format!("no connection to {}: {reason}; trying again…", app.address),
        );
        return frame.render_widget(Paragraph::new(text), area);
    };
    let terms = app.terms();
    let seconds = Seconds::of(snapshot);
    let figures = figures::lines(snapshot, &seconds, &terms, area.width);
    let height = u16::try_from(figures.len()).unwrap_or(u16::MAX);
    let is_tall = area.height >= TALL;
    let [head, figures_area, _, charts_area, _, body, foot] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(height),
        Constraint::Length(1),
        Constraint::Length(if is_tall { 7 } else { 4 }),
        Constraint::Length(1),
        Constraint::Fill(1),
        Constraint::Length(1),
    ])
    .areas(area);
    frame.render_widget(heading(app, snapshot), head);
    frame.render_widget(connection(app), head);
    frame.render_widget(Paragraph::new(figures), figures_area);
    charts(frame, charts_area, &seconds);
    if let Some(stack) = &app.stack {
        let lines: Vec<Line<'_>> = stack.lines().map(|line| Line::from(one_line(line))).collect();
        frame.render_widget(Paragraph::new(lines), body);
    } else if area.width >= WIDE {
        let [left, _, right] =
            Layout::horizontal([Constraint::Fill(6), Constraint::Length(4), Constraint::Fill(5)])
                .areas(body);
        let rest = body.height.saturating_sub(tables::TIMES + 1);
        let list = |share: u16| Constraint::Length((rest * share / 3).saturating_sub(1));
        let [times, _, labels, _, slowest, _, failures] = Layout::vertical([
            Constraint::Length(tables::TIMES),
            Constraint::Length(1),
            list(1),
            Constraint::Length(1),
            list(1),
            Constraint::Length(1),
            Constraint::Fill(1),
        ])
        .areas(right);
        workers::draw(frame, left, app);
        tables::times(frame, times, snapshot);
        tables::labels(frame, labels, snapshot);
        tables::slowest(frame, slowest, snapshot, &terms);
        tables::failures(frame, failures, snapshot, &terms);
    } else {
        let extra = if is_tall { 7 } else { 0 };
        let gap = u16::from(is_tall);
        let [times, _, middle, _, slowest, _, failures] = Layout::vertical([
            Constraint::Length(tables::TIMES),
            Constraint::Length(1),
            Constraint::Fill(1),
            Constraint::Length(gap),
            Constraint::Length(extra),
            Constraint::Length(gap),
            Constraint::Length(extra),
        ])
        .areas(body);
        tables::times(frame, times, snapshot);
        workers::draw(frame, middle, app);
        tables::slowest(frame, slowest, snapshot, &terms);
        tables::failures(frame, failures, snapshot, &terms);
    }
    let keys = Line::from(vec![
        Span::styled("q", bold()),
        Span::styled(" quit   ", dim()),
        Span::styled("s", bold()),
        Span::styled(" stack   ", dim()),
        Span::styled("↑ ↓", bold()),
        Span::styled(format!(" {}s   ", terms.worker), dim()),
        Span::styled(format!("http://{}/", app.address), dim()),
    ]);
    frame.render_widget(keys, foot);
}

fn margins(area: Rect) -> Rect {
    Rect { x: area.x + 1, width: area.width.saturating_sub(2), ..area }.intersection(area)
}

fn heading(app: &App, snapshot: &PoolSnapshot) -> Line<'static> {
    let program = app.about.as_ref().map_or_else(String::new, |about| one_line(&about.program));
    let name = if snapshot.name.is_empty() { program.clone() } else { one_line(&snapshot.name) };
    let program = if name == program { String::new() } else { format!("   {program}") };
    let pid = app.about.as_ref().map_or_else(String::new, |about| format!("   pid {}", about.pid));
    let about = format!("{program}{pid}   up {}", span(snapshot.age));
    Line::from(vec![Span::styled(name, bold().fg(ACCENT)), Span::styled(about, dim())])
}

fn connection(app: &App) -> Line<'static> {
    let bad = |text: String| Line::styled(text, Style::new().fg(BAD)).right_aligned();
    if let Some(reason) = &app.lost {
        return bad(format!(" {}; trying again… ", one_line(reason)));
    }
    match app.snapshot.as_ref().map(|snapshot| &snapshot.state) {
        Some(PoolState::Broken { reason }) => bad(format!(" broken: {} ", one_line(reason))),
        Some(PoolState::ShuttingDown) => Line::from(" shutting down ").right_aligned(),
        Some(PoolState::Ended) => Line::from(" ended ").right_aligned(),
        _ => Line::styled("live", dim()).right_aligned(),
    }
}

fn charts(frame: &mut Frame<'_>, area: Rect, seconds: &Seconds) {
    let [left, _, right] =
        Layout::horizontal([Constraint::Fill(1), Constraint::Length(3), Constraint::Fill(1)])
            .areas(area);
    let length = seconds.finished.len();
    let past = if length >= 120 { format!("{} min", length / 60) } else { format!("{length} s") };
    for (area, name, values, unit) in
        [(left, "Throughput", &seconds.finished, "/s"), (right, "Queue", &seconds.queued, "")]
    {
        let most = values.iter().max().copied().unwrap_or_default();
        let [heading, chart] = title(area);
        let line = Line::from(vec![
            Span::styled(name, bold()),
            Span::styled(format!("   at most {}{unit} in {past}", count(most)), dim()),
        ]);
        frame.render_widget(line, heading);
        let data = columns(values, chart.width);
        let chart_widget =
            Sparkline::default().data(data).max(most.max(1)).style(Style::new().fg(ACCENT));
        frame.render_widget(chart_widget, chart);
    }
}

#[cfg(test)]
mod tests;
