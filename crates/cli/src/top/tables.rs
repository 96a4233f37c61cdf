//! The tables of times, labels, slow tasks and failures.

use std::time::Duration;

use brigade::metrics::{Distribution, PoolSnapshot};
use brigade::status::Terms;
use ratatui::Frame;
use ratatui::layout::Constraint::{Fill, Length, Min};
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Cell, Row, Table};

use super::figures::{BAD, bold, dim, number, title};
use super::format::{count, one_line, span, time};
use super::workers::{bad, task_name};

/// The height of the table of times.
pub(super) const TIMES: u16 = 5;

pub(super) fn times(frame: &mut Frame<'_>, area: Rect, snapshot: &PoolSnapshot) {
    let header = ["Times", "median", "90 %", "95 %", "99 %", "longest", "count"];
    let all: [(&str, &Distribution); 4] = [
        ("queued", &snapshot.queue_time),
        ("run", &snapshot.run_time),
        ("delivery", &snapshot.delivery_time),
        ("start", &snapshot.start_time),
    ];
    let rows = all.into_iter().filter(|(_, times)| times.count > 0).map(|(name, times)| {
        let values = [times.p50, times.p90, times.p95, times.p99, times.max].map(time);
        let cells = values.into_iter().chain([count(times.count)]).map(number);
        Row::new(std::iter::once(Cell::from(name)).chain(cells))
    });
    let columns = [Length(9)].into_iter().chain([Fill(1); 6]);
    frame.render_widget(Table::new(rows, columns).header(heading(&header)), area);
}

pub(super) fn labels(frame: &mut Frame<'_>, area: Rect, snapshot: &PoolSnapshot) {
    let mut labels: Vec<_> = snapshot.labels.iter().collect();
    labels.sort_by_key(|label| {
        std::cmp::Reverse(label.run_time.mean.as_nanos() * u128::from(label.run_time.count))
    });
    let rows = labels.into_iter().take(area.height.into()).map(|label| {
        let name =
            if label.label.is_empty() { "(none)".to_owned() } else { one_line(&label.label) };
        Row::new([
            Cell::from(name),
            number(count(label.finished)),
            Cell::from(bad(label.failed)),
            number(time(label.run_time.p50)),
            number(time(label.run_time.max)),
        ])
    });
    let columns = [Min(8), Length(9), Length(7), Length(9), Length(11)];
    let header = heading(&["Labels", "finished", "failed", "median", "longest"]);
    frame.render_widget(Table::new(rows, columns).header(header), area);
}

pub(super) fn slowest(frame: &mut Frame<'_>, area: Rect, snapshot: &PoolSnapshot, terms: &Terms) {
    let rows = snapshot.slowest.iter().take(area.height.into()).map(|task| {
        Row::new([
            Cell::from(task_name(task.task, &task.label, terms)),
            number(one_line(&task.worker)),
            number(time(task.run_time)),
            number(ago(task.ago)),
        ])
    });
    let columns = [Min(8), Length(8), Length(11), Length(16)];
    let first = format!("Slowest {}s", terms.task);
    let header = heading(&[&first, &terms.worker, "ran for", "ended"]);
    frame.render_widget(Table::new(rows, columns).header(header), area);
}

pub(super) fn failures(frame: &mut Frame<'_>, area: Rect, snapshot: &PoolSnapshot, terms: &Terms) {
    let [heading, rest] = title(area);
    let mut spans = vec![Span::styled("Failures   ", bold())];
    for (kind, number) in &snapshot.failures {
        spans.push(Span::styled(count(*number), Style::new().fg(BAD)));
        spans.push(Span::styled(format!(" {}   ", kind.name().replace('_', " ")), dim()));
    }
    if snapshot.failures.is_empty() {
        spans.push(Span::styled("none", dim()));
    }
    frame.render_widget(Line::from(spans), heading);
    let rows = snapshot.recent_failures.iter().take(rest.height.into()).map(|failure| {
        let name = task_name(failure.task, &failure.label, terms);
        let text = if failure.text.is_empty() {
            failure.kind.name().replace('_', " ")
        } else {
            one_line(&failure.text)
        };
        Row::new([Cell::from(name), Cell::from(text), number(ago(failure.ago))])
    });
    let columns = [Fill(1), Fill(3), Length(14)];
    frame.render_widget(Table::new(rows, columns), rest);
}

fn heading(names: &[&str]) -> Row<'static> {
    let cells = names.iter().enumerate().map(|(index, name)| {
        if index == 0 {
            Cell::from((*name).to_owned()).style(bold())
        } else {
            number(*name).style(dim())
        }
    });
    Row::new(cells.collect::<Vec<_>>())
}

fn ago(time: Duration) -> String {
    if time.as_secs() == 0 { "now".to_owned() } else { format!("{} ago", span(time)) }
}
