//! The workers: a line for each, or a cell for each if there are too many.

use brigade::metrics::{WorkerSnapshot, WorkerState};
use brigade::status::Terms;
use ratatui::Frame;
use ratatui::layout::Constraint::{Length, Min};
use ratatui::layout::Rect;
use ratatui::style::{Color, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Cell, Paragraph, Row, Table};

use super::app::App;
use super::figures::{ACCENT, BAD, bold, dim, number, title};
use super::format::{count, one_line, time};

/// Draws the workers. Those that have no line of their own are cells above the lines, which then
/// have the workers that run their tasks longest.
pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, app: &App) {
    let terms = &app.about.terms;
    let all = app.workers();
    let [heading, rest] = title(area);
    if rest.height < 2 || all.len() < usize::from(rest.height) {
        let end = format!("{}s", terms.worker);
        frame.render_widget(Span::styled(capital(&end), bold()), heading);
        let first = app.first.min(all.len());
        return table(frame, rest, all[first..].iter(), terms);
    }
    frame.render_widget(legend(all, terms), heading);
    let width = usize::from(rest.width.max(1));
    let rows = all.len().div_ceil(width).min(usize::from(rest.height));
    let cells = all.chunks(width).map(|row| Line::from(row.iter().map(cell).collect::<Vec<_>>()));
    frame.render_widget(Paragraph::new(cells.collect::<Vec<_>>()), rest);
    let taken = u16::try_from(rows + 1).unwrap_or(u16::MAX).min(rest.height);
    let below = Rect { y: rest.y + taken, height: rest.height - taken, ..rest };
    let first = app.first.min(app.running().count());
    table(frame, below, app.running().skip(first), terms);
}

fn table<'a>(
    frame: &mut Frame<'_>,
    area: Rect,
    workers: impl Iterator<Item = &'a WorkerSnapshot>,
    terms: &Terms,
) {
    let numbers = ["for", "done", "failed", "restarts", "pid"].map(number);
    let header = Row::new(["", "state", "runs"].map(Cell::from).into_iter().chain(numbers));
    let header = header.style(dim());
    let rows = workers.take(area.height.into()).map(|worker| {
        let running = worker.running.as_ref();
        let name = running.map_or_else(String::new, |task| {
            let name = task_name(task.task, &task.label, terms);
            if task.items > 1 { format!("{name} × {}", task.items) } else { name }
        });
        Row::new([
            Cell::from(Span::styled(name_of(worker), bold())),
            Cell::from(Span::styled(worker.state.name(), state_style(worker.state))),
            Cell::from(name),
            number(running.map_or_else(String::new, |task| time(task.elapsed))),
            number(count(worker.tasks)),
            Cell::from(bad(worker.failures)),
            Cell::from(bad(worker.restarts)),
            number(worker.pid.map_or_else(String::new, |pid| pid.to_string())),
        ])
    });
    let (done, pid) = if area.width >= 90 { (9, 8) } else { (8, 0) };
    let columns =
        [Length(7), Length(8), Min(8), Length(11), Length(done), Length(6), Length(8), Length(pid)];
    frame.render_widget(Table::new(rows, columns).header(header), area);
}

/// Returns the slot and the generation; slots of a run have none.
fn name_of(worker: &WorkerSnapshot) -> String {
    match worker.generation {
        0 => worker.slot.to_string(),
        generation => format!("{}.{generation}", worker.slot),
    }
}

/// Returns the name of a task for people.
pub(super) fn task_name(number: u64, label: &str, terms: &Terms) -> String {
    if label.is_empty() { format!("{} {number}", terms.task) } else { one_line(label) }
}

pub(super) fn bad(number: u64) -> Line<'static> {
    let style = if number > 0 { Style::new().fg(BAD) } else { dim() };
    Line::styled(count(number), style).right_aligned()
}

fn legend(all: &[WorkerSnapshot], terms: &Terms) -> Line<'static> {
    use WorkerState::{Busy, Idle, Starting, Stopping, Vacant};
    let mut spans = vec![Span::styled(capital(&format!("{}s   ", terms.worker)), bold())];
    for state in [Busy, Idle, Starting, Stopping, Vacant] {
        let number = all.iter().filter(|worker| worker.state == state).count();
        let (symbol, style) = (symbol(state), state_style(state));
        spans.push(Span::styled(symbol, style));
        spans.push(Span::raw(format!(" {number} ")));
        spans.push(Span::styled(format!("{}   ", state.name()), dim()));
    }
    Line::from(spans)
}

fn cell(worker: &WorkerSnapshot) -> Span<'static> {
    Span::styled(symbol(worker.state), state_style(worker.state))
}

/// Returns the symbol of a state. They differ without colors, too.
fn symbol(state: WorkerState) -> &'static str {
    match state {
        WorkerState::Busy => "■",
        WorkerState::Idle => "□",
        WorkerState::Starting => "▴",
        WorkerState::Stopping => "▾",
        _ => "·",
    }
}

fn state_style(state: WorkerState) -> Style {
    match state {
        WorkerState::Busy => Style::new().fg(ACCENT),
        WorkerState::Starting | WorkerState::Stopping => Style::new().fg(Color::Yellow),
        WorkerState::Idle => Style::new(),
        _ => dim(),
    }
}

fn capital(text: &str) -> String {
    let mut characters = text.chars();
    characters
        .next()
        .map_or_else(String::new, |first| first.to_uppercase().chain(characters).collect())
}
