//! The keyboard, the size of the terminal, and signals.

use std::io;
use std::thread;

use crossbeam_channel::Sender;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::app::{DisplayEvent, Scroll};

/// Starts a thread that reads the keyboard. It ends with the program.
pub(super) fn keys(sender: &Sender<DisplayEvent>) -> io::Result<()> {
    let sender = sender.clone();
    thread::Builder::new().name("keys".to_owned()).spawn(move || {
        loop {
            let message = match event::read() {
                Ok(Event::Key(key)) => message(key),
                Ok(Event::Resize(..)) => Some(DisplayEvent::Redraw),
                Ok(_) => None,
                // The terminal is gone.
                Err(_) => Some(DisplayEvent::End),
            };
            let is_end = matches!(message, Some(DisplayEvent::End));
            if message.is_some_and(|message| sender.send(message).is_err()) || is_end {
                return;
            }
        }
    })?;
    Ok(())
}

/// Ends the program in order when a signal asks for it, so that the terminal is restored.
pub(super) fn signals(sender: &Sender<DisplayEvent>) -> io::Result<()> {
    let mut signals = Signals::new([SIGHUP, SIGINT, SIGTERM])?;
    let sender = sender.clone();
    thread::Builder::new().name("signals".to_owned()).spawn(move || {
        if signals.forever().next().is_some() {
            let _ = sender.send(DisplayEvent::End);
        }
    })?;
    Ok(())
}

fn message(key: KeyEvent) -> Option<DisplayEvent> {
    if key.kind == KeyEventKind::Release {
        return None;
    }
    // In the raw mode of the terminal, Ctrl-C is a key.
    let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
    Some(match key.code {
        KeyCode::Char('c' | 'd') if is_control => DisplayEvent::End,
        KeyCode::Char('q' | 'Q') | KeyCode::Esc => DisplayEvent::End,
        KeyCode::Char('s' | 'S') => DisplayEvent::ToggleStack,
        KeyCode::Char('k') | KeyCode::Up => DisplayEvent::Scroll(Scroll::Lines(-1)),
        KeyCode::Char('j') | KeyCode::Down => DisplayEvent::Scroll(Scroll::Lines(1)),
        KeyCode::PageUp => DisplayEvent::Scroll(Scroll::Lines(-10)),
        KeyCode::PageDown | KeyCode::Char(' ') => DisplayEvent::Scroll(Scroll::Lines(10)),
        KeyCode::Home => DisplayEvent::Scroll(Scroll::Begin),
        KeyCode::End => DisplayEvent::Scroll(Scroll::End),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn q_and_control_c_end_the_program() {
        for key in [
            KeyEvent::new(KeyCode::Char('q'), KeyModifiers::NONE),
            KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL),
            KeyEvent::new(KeyCode::Esc, KeyModifiers::NONE),
        ] {
            assert!(matches!(message(key), Some(DisplayEvent::End)), "{key:?}");
        }
        assert!(message(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::NONE)).is_none());
    }
}
