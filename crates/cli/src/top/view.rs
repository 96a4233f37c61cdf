//! The display: which part is where, for the size of the terminal.

use brigade::metrics::{PoolSnapshot, PoolState};
use ratatui::Frame;
use ratatui::layout::Constraint::{Fill, Length};
use ratatui::layout::{Layout, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Sparkline};

use super::app::App;
use super::figures::{self, ACCENT, BAD, bold, dim, key, title};
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
    let terms = &app.about.terms;
    let seconds = Seconds::of(snapshot);
    let figures = figures::lines(snapshot, &seconds, terms, area.width);
    let height = u16::try_from(figures.len()).unwrap_or(u16::MAX);
    let is_tall = area.height >= TALL;
    let (height, chart) = (Length(height), Length(if is_tall { 7 } else { 4 }));
    let heights = [Length(1), height, Length(1), chart, Length(1), Fill(1), Length(1)];
    let [head, figures_area, _, charts_area, _, body, foot] = Layout::vertical(heights).areas(area);
    frame.render_widget(heading(app, snapshot), head);
    frame.render_widget(connection(app), head);
    frame.render_widget(Paragraph::new(figures), figures_area);
    charts(frame, charts_area, &seconds);
    if let Some(stack) = &app.stack {
        let lines: Vec<Line<'_>> = stack.lines().map(|line| Line::from(one_line(line))).collect();
        frame.render_widget(Paragraph::new(lines), body);
    } else if area.width >= WIDE {
        two_columns(frame, body, app, snapshot);
    } else {
        one_column(frame, body, app, snapshot);
    }
    let keys = [key("q", "quit"), key("s", "stack"), key("↑ ↓", &format!("{}s", terms.worker))];
    let mut keys = Line::from(keys.concat());
    keys.push_span(Span::styled(format!("http://{}/", app.address), dim()));
    frame.render_widget(keys, foot);
}

fn two_columns(frame: &mut Frame<'_>, area: Rect, app: &App, snapshot: &PoolSnapshot) {
    let [left, _, right] = Layout::horizontal([Fill(6), Length(4), Fill(5)]).areas(area);
    let rest = area.height.saturating_sub(tables::TIMES + 1);
    let (times, list) = (Length(tables::TIMES), Length((rest / 3).saturating_sub(1)));
    let heights = [times, Length(1), list, Length(1), list, Length(1), Fill(1)];
    let [times, _, labels, _, slowest, _, failures] = Layout::vertical(heights).areas(right);
    workers::draw(frame, left, app);
    tables::times(frame, times, snapshot);
    tables::labels(frame, labels, snapshot);
    tables::slowest(frame, slowest, snapshot, &app.about.terms);
    tables::failures(frame, failures, snapshot, &app.about.terms);
}

fn one_column(frame: &mut Frame<'_>, area: Rect, app: &App, snapshot: &PoolSnapshot) {
    let is_tall = frame.area().height >= TALL;
    let (gap, list) = if is_tall { (Length(1), Length(7)) } else { (Length(0), Length(0)) };
    let heights = [Length(tables::TIMES), Length(1), Fill(1), gap, list, gap, list];
    let [times, _, middle, _, slowest, _, failures] = Layout::vertical(heights).areas(area);
    tables::times(frame, times, snapshot);
    workers::draw(frame, middle, app);
    tables::slowest(frame, slowest, snapshot, &app.about.terms);
    tables::failures(frame, failures, snapshot, &app.about.terms);
}

fn margins(area: Rect) -> Rect {
    Rect { x: area.x + 1, width: area.width.saturating_sub(2), ..area }.intersection(area)
}

fn heading(app: &App, snapshot: &PoolSnapshot) -> Line<'static> {
    let program = one_line(&app.about.program);
    let name = if snapshot.name.is_empty() { program.clone() } else { one_line(&snapshot.name) };
    let program = if name == program { String::new() } else { format!("   {program}") };
    let pid = app.about.pid.map_or_else(String::new, |pid| format!("   pid {pid}"));
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
    let [left, _, right] = Layout::horizontal([Fill(1), Length(3), Fill(1)]).areas(area);
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
