//! The state of the display. It changes by messages only.

use std::net::SocketAddr;

use brigade::metrics::{PoolSnapshot, WorkerSnapshot};

use super::protocol::About;

/// The state of the display.
#[derive(Debug)]
pub(super) struct App {
    pub(super) address: SocketAddr,
    pub(super) about: About,
    pub(super) snapshot: Option<Box<PoolSnapshot>>,
    /// The reason why the connection is lost.
    pub(super) lost: Option<String>,
    /// Number of the first worker that is shown.
    pub(super) first: usize,
    /// The stack of a task, instead of the tables.
    pub(super) stack: Option<String>,
}

/// An event for the display.
#[derive(Debug)]
pub(super) enum DisplayEvent {
    About(About),
    Snapshot(Box<PoolSnapshot>),
    Lost(String),
    Scroll(Scroll),
    /// Shows the stack of the first task in the list, or the tables again.
    ToggleStack,
    /// The stack of a task.
    Stack(String),
    Redraw,
    End,
}

/// A movement in the list of workers.
#[derive(Debug, Clone, Copy)]
pub(super) enum Scroll {
    Lines(isize),
    Begin,
    End,
}

impl Scroll {
    /// Returns the number of the entry that is first then, in a list of this length.
    pub(super) fn target(self, first: usize, length: usize) -> usize {
        let last = length.saturating_sub(1);
        match self {
            Self::Lines(lines) => first.saturating_add_signed(lines).min(last),
            Self::Begin => 0,
            Self::End => last,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NextStep {
    Draw,
    /// Ask for the stack of the worker in this slot.
    Ask(u32),
    End,
}

impl App {
    pub(super) fn new(address: SocketAddr) -> Self {
        Self { address, about: About::default(), snapshot: None, lost: None, first: 0, stack: None }
    }

    pub(super) fn take(&mut self, message: DisplayEvent) -> NextStep {
        match message {
            DisplayEvent::About(about) => self.about = about,
            DisplayEvent::Snapshot(snapshot) => {
                self.lost = None;
                self.snapshot = Some(snapshot);
            }
            DisplayEvent::Lost(reason) => self.lost = Some(reason),
            DisplayEvent::Scroll(scroll) => {
                self.first = scroll.target(self.first, self.workers().len());
            }
            DisplayEvent::ToggleStack if self.stack.take().is_some() => {}
            DisplayEvent::ToggleStack => {
                let slot = self.running().nth(self.first).map(|worker| worker.slot);
                match slot {
                    Some(slot) => return NextStep::Ask(slot),
                    None => self.stack = Some(format!("No {} runs.", self.about.terms.task)),
                }
            }
            DisplayEvent::Stack(text) => self.stack = Some(text),
            DisplayEvent::Redraw => {}
            DisplayEvent::End => return NextStep::End,
        }
        NextStep::Draw
    }

    pub(super) fn workers(&self) -> &[WorkerSnapshot] {
        self.snapshot.as_ref().map_or(&[], |snapshot| &snapshot.workers)
    }

    /// Returns the workers that run something, those that have run it longest first.
    pub(super) fn running(&self) -> impl Iterator<Item = &WorkerSnapshot> {
        let mut running: Vec<_> =
            self.workers().iter().filter(|worker| worker.running.is_some()).collect();
        running
            .sort_by_key(|worker| std::cmp::Reverse(worker.running.as_ref().map(|it| it.elapsed)));
        running.into_iter()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Returns a snapshot of a pool with this number of workers.
    pub(crate) fn example(workers: u32) -> PoolSnapshot {
        serde_json::from_value(brigade_testkit::example_snapshot(workers)).unwrap()
    }

    /// Returns a display of a pool with this number of workers.
    pub(crate) fn app(workers: u32) -> App {
        let mut app = App::new(([127, 0, 0, 1], 80).into());
        let about = About { program: "checksum".to_owned(), pid: Some(4711), ..About::default() };
        app.take(DisplayEvent::About(about));
        app.take(DisplayEvent::Snapshot(Box::new(example(workers))));
        app
    }

    #[test]
    fn scrolling_stays_in_the_list() {
        let mut app = app(5);
        for (scroll, first) in [
            (Scroll::Lines(-1), 0),
            (Scroll::Lines(2), 2),
            (Scroll::Lines(10), 4),
            (Scroll::Begin, 0),
            (Scroll::End, 4),
        ] {
            assert_eq!(app.take(DisplayEvent::Scroll(scroll)), NextStep::Draw);
            assert_eq!(app.first, first, "{scroll:?}");
        }
    }

    #[test]
    fn the_stack_is_that_of_the_first_task_that_is_shown() {
        let mut app = app(5);
        let slots: Vec<_> = app.running().map(|worker| worker.slot).collect();
        assert_eq!(app.take(DisplayEvent::ToggleStack), NextStep::Ask(slots[0]));
        app.take(DisplayEvent::Stack("0 shop::decode".to_owned()));
        assert_eq!(app.stack.as_deref(), Some("0 shop::decode"));
        assert_eq!(app.take(DisplayEvent::ToggleStack), NextStep::Draw);
        assert_eq!(app.stack, None);
        app.take(DisplayEvent::Scroll(Scroll::Lines(1)));
        assert_eq!(app.take(DisplayEvent::ToggleStack), NextStep::Ask(slots[1]));
    }

    #[test]
    fn a_snapshot_ends_a_lost_connection() {
        let mut app = app(1);
        app.take(DisplayEvent::Lost("nobody listens".to_owned()));
        assert!(app.lost.is_some());
        app.take(DisplayEvent::Snapshot(Box::new(example(1))));
        assert_eq!(app.lost, None);
    }
}
