//! The connection to the servers: where they are, how to log in, and what happens to the link.

use std::env;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use async_nats::{Client, ConnectError, ConnectErrorKind, ConnectOptions, Event, ServerAddr};
use brigade_codec::chain;
use tokio::sync::mpsc;

use crate::error::ClusterError;

/// The longest pause between two attempts to reconnect. The client library waits up to 4 s, which
/// is longer than most outages.
const LONGEST_RECONNECT_DELAY: Duration = Duration::from_millis(250);
/// Time between two questions whether the server is there. The client library gives up a link after
/// three without an answer: before the default lease of 10 s is over, so that a node that was cut
/// off knows. The library's own minute would leave it unaware for minutes.
const PING_INTERVAL: Duration = Duration::from_secs(3);

/// Commands that wait for the connection. More than what publishers and pulls have outstanding, so
/// that a driver does not block while the server is away.
const COMMAND_CAPACITY: usize = 16 * 1024;

/// The addresses of the servers, and the means to log in.
#[derive(Clone, Default)]
pub(crate) struct Endpoint {
    /// One or more URLs, separated by commas.
    urls: String,
    credentials_file: Option<PathBuf>,
    token: Option<String>,
    root_certificates: Option<PathBuf>,
    client_certificate: Option<(PathBuf, PathBuf)>,
    is_tls_required: bool,
}

/// A change of the link to the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LinkEvent {
    /// The link is there. Nothing that was outstanding before has an answer.
    Up,
    /// The link was lost. The library tries to connect again until the connection is dropped.
    Down,
}

/// A connection to one of the servers.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) client: Client,
    events: mpsc::UnboundedReceiver<LinkEvent>,
}

impl Endpoint {
    /// Returns the endpoint of `urls`, which are separated by commas.
    pub(crate) fn at(urls: impl Into<String>) -> Self {
        Self { urls: urls.into(), ..Self::default() }
    }

    /// Returns the endpoint that `NATS_URL`, `NATS_CREDS` and `NATS_CA` describe, as the tools of
    /// NATS read them; without `NATS_URL`, a server on this machine.
    pub(crate) fn from_env() -> Self {
        let urls = env::var("NATS_URL").unwrap_or_else(|_| "nats://127.0.0.1:4222".to_owned());
        let path = |name| env::var_os(name).map(PathBuf::from);
        Self {
            credentials_file: path("NATS_CREDS"),
            root_certificates: path("NATS_CA"),
            ..Self::at(urls)
        }
    }

    pub(crate) fn set_urls(&mut self, urls: impl Into<String>) {
        self.urls = urls.into();
    }

    pub(crate) fn set_credentials_file(&mut self, path: impl Into<PathBuf>) {
        self.credentials_file = Some(path.into());
    }

    pub(crate) fn set_token(&mut self, token: impl Into<String>) {
        self.token = Some(token.into());
    }

    pub(crate) fn set_root_certificates(&mut self, path: impl Into<PathBuf>) {
        self.root_certificates = Some(path.into());
        self.is_tls_required = true;
    }

    pub(crate) fn set_client_certificate(
        &mut self,
        certificate: impl Into<PathBuf>,
        key: impl Into<PathBuf>,
    ) {
        self.client_certificate = Some((certificate.into(), key.into()));
        self.is_tls_required = true;
    }

    pub(crate) fn require_tls(&mut self) {
        self.is_tls_required = true;
    }

    /// Connects under the given name, which the server's monitoring shows.
    pub(crate) async fn connect(&self, name: &str) -> Result<Connection, ClusterError> {
        self.check_files()?;
        let (sender, events) = mpsc::unbounded_channel();
        let mut options = ConnectOptions::new()
            .name(name)
            .client_capacity(COMMAND_CAPACITY)
            .max_reconnects(None)
            .ping_interval(PING_INTERVAL)
            .reconnect_delay_callback(reconnect_delay)
            .event_callback(move |event| {
                if let Some(event) = LinkEvent::of(&event) {
                    // Nobody listens once the connection is dropped.
                    let _ = sender.send(event);
                }
                async {}
            });
        if self.is_tls_required {
            options = options.require_tls(true);
        }
        if let Some(path) = &self.root_certificates {
            options = options.add_root_certificates(path.clone());
        }
        if let Some((certificate, key)) = &self.client_certificate {
            options = options.add_client_certificate(certificate.clone(), key.clone());
        }
        options = match (&self.token, self.user_in_url()) {
            (Some(token), _) => options.token(token.clone()),
            (None, Some((user, Some(password)))) => options.user_and_password(user, password),
            // As in other clients of NATS.
            (None, Some((token, None))) => options.token(token),
            (None, None) => options,
        };
        if let Some(path) = &self.credentials_file {
            options = options
                .credentials_file(path)
                .await
                .map_err(|error: io::Error| unusable("credentials_file", path, &error))?;
        }
        let urls: Vec<&str> = self.urls.split(',').map(str::trim).collect();
        let client = options.connect(urls).await.map_err(|error| self.error(error))?;
        Ok(Connection { client, events })
    }

    /// Returns the user and the password of the first URL that has them. The library ignores them.
    fn user_in_url(&self) -> Option<(String, Option<String>)> {
        self.urls.split(',').find_map(|url| {
            let url: ServerAddr = url.trim().parse().ok()?;
            Some((percent_decoded(url.username()?), url.password().map(percent_decoded)))
        })
    }

    /// Checks the files that the library reads only after it has connected.
    fn check_files(&self) -> Result<(), ClusterError> {
        let root = self.root_certificates.iter().map(|path| ("root_certificates", path));
        let client = self.client_certificate.iter();
        let client = client.flat_map(|(certificate, key)| [certificate, key]);
        let client = client.map(|path| ("client_certificate", path));
        for (field, path) in root.chain(client) {
            let text = std::fs::read_to_string(path);
            let text = text.map_err(|error| unusable(field, path, &error))?;
            if !text.contains("-----BEGIN ") {
                return Err(unusable(field, path, &"it is not in the format PEM"));
            }
        }
        Ok(())
    }

    /// Returns the error of an attempt to connect, with the setting that is to be checked.
    fn error(&self, error: ConnectError) -> ClusterError {
        let (url, reason) = (self.to_string(), chain(&error));
        let is_about_tls =
            self.is_tls_required || self.urls.contains("tls://") || reason.contains("certificate");
        match error.kind() {
            ConnectErrorKind::AuthorizationViolation | ConnectErrorKind::Authentication => {
                let remedy = match (&self.credentials_file, &self.token) {
                    (Some(path), _) => {
                        format!("check `credentials_file`, which is {}", path.display())
                    }
                    (None, Some(_)) => "check `token`".to_owned(),
                    (None, None) if self.urls.contains('@') => {
                        "check the user and the password in the URL".to_owned()
                    }
                    (None, None) => "set `credentials_file` (`NATS_CREDS`) or `token`, or write \
                                     user:password@ in front of the host in the URL"
                        .to_owned(),
                };
                ClusterError::Login { url, remedy, source: error.into() }
            }
            ConnectErrorKind::Tls | ConnectErrorKind::Io
                if is_about_tls && !is_unreachable(&error) =>
            {
                let remedy = match (&self.root_certificates, &self.client_certificate) {
                    (None, _) => {
                        "set `root_certificates` (`NATS_CA`) to the file with the certificate of \
                         the server's authority"
                    }
                    (_, None) => {
                        "check `root_certificates`, and set `client_certificate` if the server \
                         asks for one"
                    }
                    _ => "check `root_certificates` and `client_certificate`",
                };
                ClusterError::Tls { url, remedy: remedy.to_owned(), source: error.into() }
            }
            _ => ClusterError::Connect { url, source: error.into() },
        }
    }
}

/// Replaces `%40` and the like, by which URLs write characters that have a meaning in them.
fn percent_decoded(text: &str) -> String {
    let mut parts = text.split('%');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        match part.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                bytes.extend_from_slice(&part.as_bytes()[2..]);
            }
            None => bytes.extend([b"%", part.as_bytes()].concat()),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Returns `true` if nobody listens at the address, so that certificates do not matter.
fn is_unreachable(error: &ConnectError) -> bool {
    let source = std::error::Error::source(error);
    source.and_then(|source| source.downcast_ref::<io::Error>()).is_some_and(|error| {
        matches!(error.kind(), io::ErrorKind::ConnectionRefused | io::ErrorKind::NetworkUnreachable)
    })
}

/// Returns the error of a file that is unusable.
fn unusable(field: &'static str, path: &Path, reason: &dyn fmt::Display) -> ClusterError {
    let problem = format!("cannot use {}: {reason}", path.display());
    ClusterError::Configuration { field, problem }
}

impl fmt::Display for Endpoint {
    /// Writes the URLs without user names and passwords.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, url) in self.urls.split(',').map(str::trim).enumerate() {
            if index > 0 {
                out.write_str(", ")?;
            }
            let (scheme, rest) = url.split_once("://").unwrap_or(("nats", url));
            let host = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
            write!(out, "{scheme}://{host}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Endpoint({self})")
    }
}

impl Connection {
    /// Returns the next change of the link. The first is [`LinkEvent::Up`], of the connection
    /// itself.
    ///
    /// May be dropped before it is ready without losing an event.
    pub(crate) async fn next_event(&mut self) -> LinkEvent {
        match self.events.recv().await {
            Some(event) => event,
            // The library ends its tasks only with the last client, and this is one.
            None => std::future::pending().await,
        }
    }
}

impl LinkEvent {
    fn of(event: &Event) -> Option<Self> {
        match event {
            Event::Connected => Some(Self::Up),
            Event::Disconnected => Some(Self::Down),
            _ => None,
        }
    }
}

/// Returns the pause before the given attempt to reconnect: none before the first, then 2 ms, 4 ms
/// and so on.
fn reconnect_delay(attempt: usize) -> Duration {
    let doubled = u32::try_from(attempt).ok().and_then(|attempt| 2_u64.checked_pow(attempt));
    match (attempt, doubled) {
        (0 | 1, _) => Duration::ZERO,
        (_, Some(millis)) => Duration::from_millis(millis).min(LONGEST_RECONNECT_DELAY),
        (_, None) => LONGEST_RECONNECT_DELAY,
    }
}

#[cfg(test)]
mod tests {
    use brigade_testkit::{BOUND, NatsServer, processes};

    use super::*;

    #[tokio::test]
    async fn a_server_that_falls_silent_is_a_lost_link() {
        if !NatsServer::installed() {
            return;
        }
        let server = NatsServer::start();
        let mut connection = Endpoint::at(server.url()).connect("test").await.unwrap();
        processes::hit(server.pid(), processes::Signal::STOP);
        while tokio::time::timeout(BOUND, connection.next_event()).await.unwrap() != LinkEvent::Down
        {
        }
    }

    #[test]
    fn no_password_is_shown() {
        let endpoint = Endpoint::at("nats://user:secret@a:4222, tls://token@b:1");
        assert_eq!(endpoint.to_string(), "nats://a:4222, tls://b:1");
        assert!(!format!("{endpoint:?}").contains("secret"));
    }

    #[test]
    fn the_user_of_a_url_is_decoded() {
        let user = |url: &str| Endpoint::at(url).user_in_url();
        let expected = ("ann".to_owned(), Some("a@b/%c".to_owned()));
        assert_eq!(user("nats://a:4222, nats://ann:a%40b%2F%25c@b:1"), Some(expected));
        assert_eq!(user("nats://token@b:1"), Some(("token".to_owned(), None)));
        assert_eq!(user("nats://b:1"), None);
    }

    #[test]
    fn pauses_grow_and_are_capped() {
        assert_eq!(reconnect_delay(1), Duration::ZERO);
        assert_eq!(reconnect_delay(3), Duration::from_millis(8));
        assert_eq!(reconnect_delay(8), LONGEST_RECONNECT_DELAY);
        assert_eq!(reconnect_delay(usize::MAX), LONGEST_RECONNECT_DELAY);
    }
}
