//! Parses the head of a request: only what this server answers, and nothing leniently.

use crate::response::Status;

/// The largest head of a request. Browsers send less than 2 KiB.
pub(crate) const HEAD_LIMIT: usize = 8 * 1024;

/// A request that can be routed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RoutedRequest {
    /// `true` for `GET`, and `false` for `HEAD`.
    pub(crate) with_body: bool,
    /// Path without the query.
    pub(crate) path: String,
    /// Value of the only `Host` field.
    pub(crate) host: String,
}

/// Parses the beginning of a connection. Returns `None` if the head is not complete yet.
///
/// # Errors
/// The status of the response if no further bytes can make it a request that is answered.
pub(crate) fn parse(bytes: &[u8]) -> Result<Option<RoutedRequest>, Status> {
    let end = bytes.windows(END.len()).position(|window| window == END);
    let head = &bytes[..end.map_or(bytes.len(), |end| end + END.len())];
    // Refused before the end is looked for, so that no client makes the server wait for nothing.
    check_bytes(&head[..head.len().min(HEAD_LIMIT)])?;
    if head.len() > HEAD_LIMIT {
        return Err(Status::HeadTooLarge);
    }
    let Some(end) = end else { return Ok(None) };
    let head = std::str::from_utf8(&bytes[..end]).map_err(|_| Status::BadRequest)?;
    let mut lines = head.split("\r\n");
    let (with_body, path) = request_line(lines.next().unwrap_or_default())?;
    let mut host = None;
    for line in lines {
        let (name, value) = field(line).ok_or(Status::BadRequest)?;
        if name.eq_ignore_ascii_case("host") && host.replace(value).is_some() {
            return Err(Status::BadRequest);
        }
    }
    let host = host.ok_or(Status::BadRequest)?.to_owned();
    Ok(Some(RoutedRequest { with_body, path: path.to_owned(), host }))
}

const END: &[u8] = b"\r\n\r\n";

/// Refuses control characters, and ends of lines other than CR LF. The last byte may be the CR of
/// an incomplete pair.
fn check_bytes(head: &[u8]) -> Result<(), Status> {
    let mut previous = b' ';
    for &byte in head {
        let is_valid = match (previous, byte) {
            (b'\r', byte) => byte == b'\n',
            (_, b'\r' | b'\t') => true,
            (_, byte) => byte >= b' ' && byte != 0x7f,
        };
        if !is_valid {
            return Err(Status::BadRequest);
        }
        previous = byte;
    }
    Ok(())
}

/// Returns `true` if the answer has a body, and the path.
fn request_line(line: &str) -> Result<(bool, &str), Status> {
    let mut words = line.split(' ');
    let (Some(method), Some(target), Some(version), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(Status::BadRequest);
    };
    match version {
        "HTTP/1.1" | "HTTP/1.0" => {}
        _ if version.starts_with("HTTP/") => return Err(Status::VersionNotSupported),
        _ => return Err(Status::BadRequest),
    }
    let with_body = match method {
        "GET" => true,
        "HEAD" => false,
        _ if is_token(method) => return Err(Status::MethodNotAllowed),
        _ => return Err(Status::BadRequest),
    };
    // Other forms of targets are for proxies.
    if !target.starts_with('/') || !target.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(Status::BadRequest);
    }
    Ok((with_body, target.split('?').next().unwrap_or_default()))
}

fn field(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.split_once(':')?;
    // A name with a space before the colon, or a folded line, means different things to different
    // servers.
    is_token(name).then(|| (name, value.trim_matches([' ', '\t'])))
}

fn is_token(text: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(is_part)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn get(path: &str) -> RoutedRequest {
        RoutedRequest { with_body: true, path: path.to_owned(), host: "localhost:1".to_owned() }
    }

    #[test]
    fn the_query_is_not_part_of_the_path() {
        let request = b"GET /events?x=1 HTTP/1.1\r\nHost: \tlocalhost:1 \r\nAccept:\r\n\r\nrest";
        assert_eq!(parse(request), Ok(Some(get("/events"))));
    }

    #[test]
    fn a_request_that_can_never_be_answered_is_refused() {
        for (request, status) in [
            ("POST / HTTP/1.1\r\nHost: a\r\n\r\n", Status::MethodNotAllowed),
            ("GET / HTTP/2.0\r\nHost: a\r\n\r\n", Status::VersionNotSupported),
            ("GET / HTTP/1.1\r\n\r\n", Status::BadRequest),
            ("GET / HTTP/1.1\r\nHost: a\r\nhost: a\r\n\r\n", Status::BadRequest),
            ("GET / HTTP/1.1\r\nHost : a\r\n\r\n", Status::BadRequest),
            ("GET / HTTP/1.1\r\nHost: a\r\n folded: b\r\n\r\n", Status::BadRequest),
            ("GET http://a/ HTTP/1.1\r\nHost: a\r\n\r\n", Status::BadRequest),
            ("GET  / HTTP/1.1\r\nHost: a\r\n\r\n", Status::BadRequest),
            ("GET /\u{e9} HTTP/1.1\r\nHost: a\r\n\r\n", Status::BadRequest),
            ("GE(T / HTTP/1.1\r\nHost: a\r\n\r\n", Status::BadRequest),
            ("GET /\n", Status::BadRequest),
            ("GET /\0", Status::BadRequest),
            ("\r\n\r\n", Status::BadRequest),
        ] {
            assert_eq!(parse(request.as_bytes()), Err(status), "{request:?}");
        }
        assert_eq!(parse(&[b'a'; HEAD_LIMIT]), Ok(None));
        assert_eq!(parse(&[b'a'; HEAD_LIMIT + 1]), Err(Status::HeadTooLarge));
    }

    /// Bytes that come close to a request.
    fn nearly_requests() -> impl Strategy<Value = Vec<u8>> {
        let part = prop_oneof![
            Just(b"GET / HTTP/1.1\r\n".to_vec()),
            Just(b"HEAD /metrics HTTP/1.0\r\n".to_vec()),
            Just(b"Host: localhost\r\n".to_vec()),
            Just(b"\r\n".to_vec()),
            Just(b": ".to_vec()),
            "[ -~]{0,20}\r\n".prop_map(String::into_bytes),
            prop::collection::vec(any::<u8>(), 0..20),
        ];
        prop::collection::vec(part, 0..8).prop_map(|parts| parts.concat())
    }

    proptest! {
        #[test]
        fn the_answer_does_not_depend_on_how_the_bytes_arrive(bytes in nearly_requests()) {
            let whole = parse(&bytes);
            for cut in 0..bytes.len() {
                match parse(&bytes[..cut]) {
                    Ok(None) => {}
                    // A status may still change, but a refusal stays one.
                    Err(_) => prop_assert!(whole.is_err(), "{whole:?}"),
                    request => prop_assert_eq!(&request, &whole),
                }
            }
        }

        #[test]
        fn garbage_is_refused_or_incomplete(bytes in prop::collection::vec(any::<u8>(), 0..9000)) {
            if let Ok(Some(request)) = parse(&bytes) {
                prop_assert!(request.path.starts_with('/'));
            }
        }
    }
}
