//! Decides whether a `Host` field names this server.
//!
//! A page from elsewhere can make a browser resolve the page's own name to this machine (DNS
//! rebinding). The browser then treats both as one site, and only the name gives the page away.

use std::net::IpAddr;

/// Returns `true` if `host` names this machine, with or without a port: tunnels change the port.
///
/// `local` is the address that the client connected to. Addresses cannot be rebound, names can; a
/// name is accepted if it is `localhost` or in `names`.
pub(crate) fn is_own(host: &str, local: IpAddr, names: &[String]) -> bool {
    let Some(host) = without_port(host) else { return false };
    let address = match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        Some(address) => address.parse().map(IpAddr::V6),
        None => host.parse().map(IpAddr::V4),
    };
    match address {
        Ok(address) => {
            let address = address.to_canonical();
            address.is_loopback() || address == local.to_canonical()
        }
        Err(_) => {
            host.eq_ignore_ascii_case("localhost")
                || names.iter().any(|name| name.eq_ignore_ascii_case(host))
        }
    }
}

fn without_port(host: &str) -> Option<&str> {
    let end = host.rfind(']').map_or(0, |end| end + 1);
    match host[end..].split_once(':') {
        Some((name, port)) => {
            let is_port = port.len() <= 5 && port.bytes().all(|byte| byte.is_ascii_digit());
            is_port.then(|| &host[..end + name.len()])
        }
        None => Some(host),
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn accepts(host: &str) -> bool {
        is_own(host, Ipv4Addr::new(10, 0, 0, 7).into(), &["build.example".to_owned()])
    }

    #[test]
    fn names_of_this_machine_are_accepted() {
        for host in [
            "localhost",
            "LocalHost:8080",
            "127.0.0.1:1",
            "127.3.2.1",
            "[::1]:80",
            "[::ffff:127.0.0.1]",
            "10.0.0.7:9",
            "build.example:80",
        ] {
            assert!(accepts(host), "{host}");
        }
    }

    #[test]
    fn foreign_names_are_refused() {
        for host in [
            "",
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "localhost:80:80",
            "localhost:x",
            "::1",
            "[::1",
            "[::1]x:80",
            "user@localhost",
            "10.0.0.8",
            "[localhost]",
        ] {
            assert!(!accepts(host), "{host}");
        }
    }
}
