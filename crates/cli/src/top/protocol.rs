//! The stream of a live view: the head of the response, and then server-sent events.

use std::io::{self, BufRead, Read};

use brigade::status::Terms;
use serde::Deserialize;

use super::app::DisplayEvent;

/// The description of the process. The default is that of an unknown pool.
#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct About {
    pub(super) program: String,
    pub(super) pid: Option<u32>,
    pub(super) terms: Terms,
}

/// The largest length of a line. A snapshot of 256 workers has about a quarter of a megabyte.
const LINE_LIMIT: u64 = 64 << 20;

/// Reads the head of the response.
///
/// # Errors
/// [`io::ErrorKind::InvalidData`] if the response is not a stream of events, with the reason.
pub(super) fn read_head(reader: &mut impl BufRead) -> io::Result<()> {
    let status = line(reader)?.ok_or(io::ErrorKind::UnexpectedEof)?;
    let code = status.strip_prefix("HTTP/1.1 ").ok_or_else(|| invalid("it does not speak HTTP"))?;
    let mut is_stream = false;
    while let Some(field) = line(reader)?.filter(|field| !field.is_empty()) {
        is_stream |= field.eq_ignore_ascii_case("content-type: text/event-stream");
    }
    if !code.starts_with("200 ") {
        return Err(invalid(&format!("it answers {code}")));
    }
    is_stream.then_some(()).ok_or_else(|| invalid("it has no events"))
}

/// Reads events until there is one that this program knows. Returns `None` at the end.
pub(super) fn read_event(reader: &mut impl BufRead) -> io::Result<Option<DisplayEvent>> {
    let mut name = String::new();
    while let Some(line) = line(reader)? {
        if let Some(value) = line.strip_prefix("event: ") {
            value.clone_into(&mut name);
        } else if let Some(data) = line.strip_prefix("data: ") {
            match name.as_str() {
                "about" => return Ok(Some(DisplayEvent::About(serde_json::from_str(data)?))),
                "snapshot" => return Ok(Some(DisplayEvent::Snapshot(serde_json::from_str(data)?))),
                // The subject.
                "gone" => return Ok(Some(DisplayEvent::Lost("it does not exist anymore".into()))),
                _ => {}
            }
        }
    }
    Ok(None)
}

fn line(reader: &mut impl BufRead) -> io::Result<Option<String>> {
    let mut line = String::new();
    let length = reader.take(LINE_LIMIT).read_line(&mut line)?;
    if length as u64 == LINE_LIMIT {
        return Err(invalid("it sends a line without an end"));
    }
    line.truncate(line.trim_end_matches(['\r', '\n']).len());
    Ok((length > 0).then_some(line))
}

fn invalid(reason: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::top::app::tests::example;

    const HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";

    #[test]
    fn events_follow_the_head() {
        let snapshot = serde_json::to_string(&example(1)).unwrap();
        let about =
            r#"{"program":"p","pid":7,"version":"1","terms":{"task":"job","worker":"slot"}}"#;
        let text = format!(
            "{HEAD}event: about\ndata: {about}\n\nevent: later\ndata: ?\n\n\
             event: snapshot\ndata: {snapshot}\n\nevent: gone\ndata: {{}}\n\n"
        );
        let mut reader = text.as_bytes();
        read_head(&mut reader).unwrap();
        assert!(
            matches!(read_event(&mut reader), Ok(Some(DisplayEvent::About(about))) if about.pid == Some(7))
        );
        assert!(matches!(
            read_event(&mut reader),
            Ok(Some(DisplayEvent::Snapshot(snapshot))) if *snapshot == example(1)
        ));
        assert!(matches!(read_event(&mut reader), Ok(Some(DisplayEvent::Lost(_)))));
        assert!(matches!(read_event(&mut reader), Ok(None)));
    }

    #[test]
    fn other_servers_are_recognized() {
        for (text, reason) in [
            ("SSH-2.0-OpenSSH\r\n", "does not speak HTTP"),
            ("HTTP/1.1 404 Not Found\r\n\r\n", "404 Not Found"),
            ("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n", "no events"),
        ] {
            let error = read_head(&mut text.as_bytes()).unwrap_err();
            assert!(error.to_string().contains(reason), "{error}");
        }
        assert!(read_head(&mut &b""[..]).is_err());
    }
}
