//! Encodes responses.

use std::sync::Arc;

/// A status of HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    Ok,
    BadRequest,
    ForeignHost,
    NotFound,
    MethodNotAllowed,
    HeadTooLarge,
    SourceFailed,
    Gone,
    Busy,
    VersionNotSupported,
}

impl Status {
    /// Returns the line of the protocol and, for errors, a text for people.
    fn texts(self) -> (&'static str, &'static str) {
        match self {
            Self::Ok => ("200 OK", ""),
            Self::BadRequest => ("400 Bad Request", "the request is not valid HTTP/1.1"),
            Self::ForeignHost => (
                "403 Forbidden",
                "the `Host` field does not name this server: use localhost, the address, or a \
                 name that the server was built with",
            ),
            Self::NotFound => {
                ("404 Not Found", "there are /, /snapshot.json, /metrics and /events")
            }
            Self::MethodNotAllowed => {
                ("405 Method Not Allowed", "the server is read-only: use GET or HEAD")
            }
            Self::HeadTooLarge => ("431 Request Header Fields Too Large", "the head exceeds 8 KiB"),
            Self::SourceFailed => (
                "500 Internal Server Error",
                "the snapshot cannot be made; the log of the program says why",
            ),
            Self::Gone => ("410 Gone", "the pool does not exist any more"),
            Self::Busy => {
                ("503 Service Unavailable", "too many clients follow /events: close one of them")
            }
            Self::VersionNotSupported => {
                ("505 HTTP Version Not Supported", "only HTTP/1.1 and HTTP/1.0 are supported")
            }
        }
    }
}

/// Encodes a whole response with a body of this type, under this security policy.
pub(crate) fn encode(
    status: Status,
    (media_type, policy): (&str, &str),
    body: &str,
    with_body: bool,
) -> Arc<[u8]> {
    let mut bytes = head(status, media_type, policy);
    if status == Status::MethodNotAllowed {
        bytes.extend(b"Allow: GET, HEAD\r\n");
    }
    bytes.extend(format!("Content-Length: {}\r\n\r\n", body.len()).as_bytes());
    if with_body {
        bytes.extend(body.as_bytes());
    }
    bytes.into()
}

/// Encodes the response for an error.
pub(crate) fn encode_error(status: Status, with_body: bool) -> Arc<[u8]> {
    let text = format!("{}\n", status.texts().1);
    encode(status, (TEXT, NO_CONTENT_POLICY), &text, with_body)
}

/// Encodes the head of a response whose body ends with the connection.
pub(crate) fn encode_stream_head() -> Vec<u8> {
    let mut bytes = head(Status::Ok, "text/event-stream", NO_CONTENT_POLICY);
    bytes.extend(b"\r\n");
    bytes
}

fn head(status: Status, media_type: &str, policy: &str) -> Vec<u8> {
    let line = status.texts().0;
    format!(
        "HTTP/1.1 {line}\r\n\
         Content-Type: {media_type}\r\n\
         Content-Security-Policy: {policy}\r\n\
         Cross-Origin-Resource-Policy: same-origin\r\n\
         Referrer-Policy: no-referrer\r\n\
         X-Content-Type-Options: nosniff\r\n\
         Cache-Control: no-store\r\n\
         Connection: close\r\n"
    )
    .into_bytes()
}

pub(crate) const TEXT: &str = "text/plain; charset=utf-8";

/// The policy of everything that is not the page.
pub(crate) const NO_CONTENT_POLICY: &str = "default-src 'none'; frame-ancestors 'none'";
