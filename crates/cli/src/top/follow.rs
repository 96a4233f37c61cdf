//! Follows the events of a live view, and connects again when the connection is lost.

use std::io::{self, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::Duration;

use crossbeam_channel::Sender;
use miette::{Report, miette};

use super::app::DisplayEvent;
use super::protocol::{read_event, read_head};

/// The stream of events.
pub(super) type Events = BufReader<TcpStream>;

/// The time for connecting, and between two events, of which there is one a second.
const PATIENCE: Duration = Duration::from_secs(5);
/// The longest stack that is read, in bytes.
const STACK_LIMIT: u64 = 1 << 20;
/// The pause before another attempt to connect.
const PAUSE: Duration = Duration::from_secs(1);

/// Connects for the first time.
pub(super) fn connect(address: SocketAddr) -> Result<Events, Report> {
    open(address).map_err(|error| match error.kind() {
        io::ErrorKind::InvalidData => miette!(
            help = "it must be the address of `brigade run --status ADDR`, or of `Pool::serve_status`",
            "{address} is not a live view of Brigade: {error}"
        ),
        _ => miette!(
            help = format!("start a run with `brigade run --status {address}`, or a pool with `Pool::serve_status`"),
            "no live view answers at {address}: {error}"
        ),
    })
}

fn open(address: SocketAddr) -> io::Result<Events> {
    let mut reader = BufReader::new(request(address, "/events")?);
    read_head(&mut reader)?;
    Ok(reader)
}

/// Connects and asks for the page at `path`.
fn request(address: SocketAddr, path: &str) -> io::Result<TcpStream> {
    let mut socket = TcpStream::connect_timeout(&address, PATIENCE)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    socket.set_write_timeout(Some(PATIENCE))?;
    // In one piece: another server may answer and close after the first one.
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n");
    socket.write_all(request.as_bytes())?;
    Ok(socket)
}

/// Starts a thread that passes events on, and connects again whenever they end. It ends with the
/// program.
pub(super) fn start(
    address: SocketAddr,
    events: Events,
    sender: Sender<DisplayEvent>,
) -> io::Result<()> {
    thread::Builder::new().name("follow".to_owned()).spawn(move || {
        let mut events: io::Result<Events> = Ok(events);
        loop {
            let reason = match events.and_then(|mut events| pass_on(&mut events, &sender)) {
                Ok(()) => "the server has ended".to_owned(),
                Err(error) => readable(&error),
            };
            if sender.send(DisplayEvent::Lost(reason)).is_err() {
                return;
            }
            // Nobody unparks this thread, and an early end does no harm.
            thread::park_timeout(PAUSE);
            events = open(address);
        }
    })?;
    Ok(())
}

/// Asks for the stack of a worker on a thread of its own, and passes it on.
pub(super) fn ask(address: SocketAddr, slot: u32, sender: Sender<DisplayEvent>) {
    let asked = move || {
        let text = stack(address, slot).unwrap_or_else(|error| {
            format!("cannot ask {address} for the stack: {}", readable(&error))
        });
        // The display may have ended.
        let _ = sender.send(DisplayEvent::Stack(text));
    };
    // Without a thread, nothing is shown, and the key can be pressed again.
    let _ = thread::Builder::new().name("stack".to_owned()).spawn(asked);
}

fn stack(address: SocketAddr, slot: u32) -> io::Result<String> {
    let socket = request(address, &format!("/stack/{slot}"))?;
    let mut response = String::new();
    socket.take(STACK_LIMIT).read_to_string(&mut response)?;
    match response.split_once("\r\n\r\n") {
        Some((head, body)) if head.starts_with("HTTP/1.1 200 ") => Ok(body.to_owned()),
        _ => Ok("It has just ended, or its worker does not answer.".to_owned()),
    }
}

fn pass_on(events: &mut Events, sender: &Sender<DisplayEvent>) -> io::Result<()> {
    while let Some(event) = read_event(events)? {
        if sender.send(event).is_err() {
            return Ok(());
        }
    }
    Ok(())
}

fn readable(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => "the server is silent".to_owned(),
        io::ErrorKind::ConnectionRefused => "nobody listens".to_owned(),
        _ => error.to_string(),
    }
}
