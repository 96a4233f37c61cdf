//! The address of a live view, as people write it.

use std::io::ErrorKind;
use std::net::{SocketAddr, ToSocketAddrs};

use miette::{Report, miette};

/// Returns the address that a text means: `127.0.0.1:8080`, `localhost:8080`, `8080` or
/// `http://127.0.0.1:8080/`.
pub(crate) fn resolve(text: &str) -> Result<SocketAddr, Report> {
    let trimmed = text.strip_prefix("http://").unwrap_or(text).trim_end_matches('/');
    let full = match trimmed.strip_prefix(':').unwrap_or(trimmed).parse::<u16>() {
        Ok(port) => format!("127.0.0.1:{port}"),
        Err(_) => trimmed.to_owned(),
    };
    let addresses = full.to_socket_addrs().map_err(|error| {
        // The text itself is wrong; all other errors come from the system.
        let is_text = error.kind() == ErrorKind::InvalidInput;
        let why = if is_text { String::new() } else { format!(": {error}") };
        miette!(
            help = "write a host and a port, such as 127.0.0.1:8080, or only the port",
            "`{text:.100}` is not an address{why}"
        )
    })?;
    // A live view listens on IPv4 unless it was asked for something else.
    let mut addresses: Vec<_> = addresses.collect();
    addresses.sort_by_key(|address| !address.is_ipv4());
    addresses.first().copied().ok_or_else(|| miette!("`{text}` has no address"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_means_this_machine() {
        for text in ["8080", ":8080", "127.0.0.1:8080", "http://127.0.0.1:8080/", "localhost:8080"]
        {
            let address = resolve(text).unwrap();
            assert_eq!(address, SocketAddr::from(([127, 0, 0, 1], 8080)), "{text}");
        }
        assert_eq!(resolve("[::1]:80").unwrap().to_string(), "[::1]:80");
    }

    #[test]
    fn a_text_that_is_no_address_is_an_error() {
        for text in ["", "host", "127.0.0.1", "127.0.0.1:99999", "-1"] {
            assert!(resolve(text).is_err(), "{text}");
        }
    }
}
