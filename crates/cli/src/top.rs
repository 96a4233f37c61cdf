//! `brigade top`: shows a live view in the terminal.
//!
//! One thread follows the events of the server, one reads the keyboard, and one waits for signals;
//! the main thread sleeps until one of them has a message, and draws.

pub(crate) mod address;
mod app;
mod cluster;
mod figures;
mod follow;
mod format;
mod input;
mod protocol;
mod sparkline;
mod tables;
mod view;
mod workers;

use std::io::{self, IsTerminal};

use crossbeam_channel::{Sender, unbounded};
use miette::{IntoDiagnostic, Report, WrapErr, miette};
use ratatui::DefaultTerminal;

use app::{App, DisplayEvent, NextStep};

pub(crate) use cluster::{is_cluster, show as show_cluster};

/// Shows the live view at `address` until the user ends it.
pub(crate) fn show(address: &str) -> Result<u8, Report> {
    let address = address::resolve(address)?;
    // Before anything is drawn, so that a wrong address is an ordinary error.
    let events = follow::connect(address)?;
    check_terminal(&format!("http://{address}/snapshot.json"))?;
    let (sender, messages) = unbounded();
    follow::start(address, events, sender.clone())
        .into_diagnostic()
        .wrap_err("cannot start a thread")?;
    let mut terminal = TopScreen::open(&sender)?;
    let mut app = App::new(address);
    loop {
        terminal.0.draw(|frame| view::draw(frame, &app)).into_diagnostic()?;
        // Everything that has arrived is shown at once.
        let Ok(message) = messages.recv() else { return Ok(0) };
        for message in std::iter::once(message).chain(messages.try_iter()) {
            match app.take(message) {
                NextStep::Draw => {}
                NextStep::Ask(slot) => follow::ask(address, slot, sender.clone()),
                NextStep::End => return Ok(0),
            }
        }
    }
}

/// The terminal in the state that drawing needs. Dropping it restores the user's; a panic does so
/// too, through the hook that `try_init` has installed.
struct TopScreen(DefaultTerminal);

/// Checks that there is a terminal. Programs can use `other`.
fn check_terminal(other: &str) -> Result<(), Report> {
    if io::stdout().is_terminal() && io::stdin().is_terminal() {
        return Ok(());
    }
    Err(miette!(help = format!("for programs there is {other}"), "`brigade top` needs a terminal"))
}

impl TopScreen {
    /// Sets up the terminal, and passes on keys and signals.
    fn open(sender: &Sender<DisplayEvent>) -> Result<Self, Report> {
        input::signals(sender).into_diagnostic().wrap_err("cannot install signal handlers")?;
        let terminal = ratatui::try_init().into_diagnostic();
        let screen = Self(terminal.wrap_err("cannot set up the terminal")?);
        input::keys(sender).into_diagnostic().wrap_err("cannot start a thread")?;
        Ok(screen)
    }
}

impl Drop for TopScreen {
    fn drop(&mut self) {
        ratatui::restore();
    }
}
