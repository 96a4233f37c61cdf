//! The servers, and the means to log in.

use std::env;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use async_nats::{ConnectError, ConnectErrorKind, ConnectOptions, ServerAddr};
use brigade_codec::chain;

use crate::connection::{self, Connection};
use crate::error::ClusterError;

/// The servers of a cluster, and the means to log in: the same for clients, nodes and observers.
///
/// | setting | variable |
/// |---|---|
/// | [`url`](Self::url) | `NATS_URL` |
/// | [`credentials_file`](Self::credentials_file) | `NATS_CREDS` |
/// | [`token`](Self::token) | `NATS_TOKEN` |
/// | [`user`](Self::user) | `NATS_USER`, `NATS_PASSWORD` |
/// | [`root_certificates`](Self::root_certificates) | `NATS_CA` |
/// | [`client_certificate`](Self::client_certificate) | `NATS_CERT`, `NATS_KEY` |
///
/// A user and a password may be part of the URL too. Neither `Display` nor `Debug` shows them.
///
/// ```no_run
/// use brigade_cluster::{Cluster, Endpoint};
///
/// // As in the environment, but for the URL.
/// let endpoint = Endpoint::from_env().url("tls://nats.example:4222").root_certificates("ca.pem");
/// let cluster = Cluster::builder().endpoint(endpoint).connect()?;
/// # Ok::<(), brigade_cluster::ClusterError>(())
/// ```
#[derive(Clone, Default)]
#[must_use = "it takes effect in the builder of a client or a node"]
pub struct Endpoint {
    /// One or more URLs, separated by commas.
    urls: String,
    credentials_file: Option<PathBuf>,
    token: Option<String>,
    user: Option<String>,
    password: Option<String>,
    root_certificates: Option<PathBuf>,
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
    is_tls_required: bool,
}

impl Endpoint {
    /// Returns the endpoint of `urls`, which are separated by commas, without a login.
    pub fn at(urls: impl Into<String>) -> Self {
        Self { urls: urls.into(), ..Self::default() }
    }

    /// Returns the endpoint that the environment describes, as the tools of NATS read it; without
    /// `NATS_URL`, a server on this machine.
    pub fn from_env() -> Self {
        Self::from_variables(|name| env::var_os(name).filter(|value| !value.is_empty()))
    }

    fn from_variables(value: impl Fn(&str) -> Option<OsString>) -> Self {
        let text = |name| value(name).map(|value| value.to_string_lossy().into_owned());
        let path = |name| value(name).map(PathBuf::from);
        Self {
            urls: text("NATS_URL").unwrap_or_else(|| "nats://127.0.0.1:4222".to_owned()),
            credentials_file: path("NATS_CREDS"),
            token: text("NATS_TOKEN"),
            user: text("NATS_USER"),
            password: text("NATS_PASSWORD"),
            root_certificates: path("NATS_CA"),
            certificate: path("NATS_CERT"),
            key: path("NATS_KEY"),
            is_tls_required: false,
        }
    }
}

brigade_sys::setters! {
    impl Endpoint;

    /// Sets the URLs of the servers, separated by commas. The login stays as it is.
    pub fn url(self, urls: impl Into<String>) { self.urls = urls.into() }

    /// Logs in with the credentials in a file.
    pub fn credentials_file(self, path: impl Into<PathBuf>) {
        self.credentials_file = Some(path.into());
    }

    /// Logs in with a token.
    pub fn token(self, token: impl Into<String>) { self.token = Some(token.into()) }

    /// Logs in with a name and a password.
    pub fn user(self, user: impl Into<String>, password: impl Into<String>) {
        (self.user, self.password) = (Some(user.into()), Some(password.into()));
    }

    /// Requires TLS, and trusts the certificates in a file in addition to those of the system.
    pub fn root_certificates(self, path: impl Into<PathBuf>) {
        self.root_certificates = Some(path.into());
        self.is_tls_required = true;
    }

    /// Requires TLS, and identifies this program by a certificate.
    pub fn client_certificate(self, certificate: impl Into<PathBuf>, key: impl Into<PathBuf>) {
        (self.certificate, self.key) = (Some(certificate.into()), Some(key.into()));
        self.is_tls_required = true;
    }

    /// Requires TLS.
    pub fn require_tls(self) { self.is_tls_required = true }
}

impl Endpoint {
    /// Connects under the given name, which the server's monitoring shows.
    pub(crate) async fn connect(&self, name: &str) -> Result<Connection, ClusterError> {
        self.check()?;
        let (mut options, events) = connection::options(name);
        if self.is_tls_required {
            options = options.require_tls(true);
        }
        if let Some(path) = &self.root_certificates {
            options = options.add_root_certificates(path.clone());
        }
        if let (Some(certificate), Some(key)) = (&self.certificate, &self.key) {
            options = options.add_client_certificate(certificate.clone(), key.clone());
        }
        options = self.login(options);
        if let Some(path) = &self.credentials_file {
            options = options
                .credentials_file(path)
                .await
                .map_err(|error| unusable("credentials_file", path, &error))?;
        }
        let urls: Vec<&str> = self.urls.split(',').map(str::trim).collect();
        let client = options.connect(urls).await.map_err(|error| self.error(error))?;
        Ok(Connection::new(client, events))
    }

    fn login(&self, options: ConnectOptions) -> ConnectOptions {
        if let Some(token) = &self.token {
            return options.token(token.clone());
        }
        match (&self.user, &self.password, self.user_in_url()) {
            (Some(user), Some(password), _) => {
                options.user_and_password(user.clone(), password.clone())
            }
            (_, _, Some((user, Some(password)))) => options.user_and_password(user, password),
            // As in other clients of NATS.
            (_, _, Some((token, None))) => options.token(token),
            (_, _, None) => options,
        }
    }

    /// Returns the user and the password of the first URL that has them. The library ignores them.
    fn user_in_url(&self) -> Option<(String, Option<String>)> {
        self.urls.split(',').find_map(|url| {
            let url: ServerAddr = url.trim().parse().ok()?;
            Some((percent_decoded(url.username()?), url.password().map(percent_decoded)))
        })
    }

    /// Checks that settings are complete, and the files that the library reads only after it has
    /// connected.
    fn check(&self) -> Result<(), ClusterError> {
        let incomplete = |field, problem: &str| {
            Err(ClusterError::Configuration { field, problem: problem.to_owned() })
        };
        if self.certificate.is_some() != self.key.is_some() {
            let problem = "set both the certificate (`NATS_CERT`) and its key (`NATS_KEY`)";
            return incomplete("client_certificate", problem);
        }
        if self.user.is_some() != self.password.is_some() {
            let problem = "set both the name (`NATS_USER`) and the password (`NATS_PASSWORD`)";
            return incomplete("user", problem);
        }
        let root = self.root_certificates.iter().map(|path| ("root_certificates", path));
        let client = self.certificate.iter().chain(&self.key);
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
                let remedy = match (&self.credentials_file, &self.token, &self.user) {
                    (Some(path), _, _) => {
                        let path = path.display();
                        format!("check `credentials_file` (`NATS_CREDS`), which is {path}")
                    }
                    (None, Some(_), _) => "check `token` (`NATS_TOKEN`)".to_owned(),
                    (None, None, Some(_)) => {
                        "check `user` (`NATS_USER` and `NATS_PASSWORD`)".to_owned()
                    }
                    (None, None, None) if self.urls.contains('@') => {
                        "check the user and the password in the URL".to_owned()
                    }
                    (None, None, None) => "set `credentials_file` (`NATS_CREDS`), `token` \
                                           (`NATS_TOKEN`) or `user` (`NATS_USER` and \
                                           `NATS_PASSWORD`)"
                        .to_owned(),
                };
                ClusterError::Login { url, remedy, source: error.into() }
            }
            ConnectErrorKind::Tls | ConnectErrorKind::Io
                if is_about_tls && !is_unreachable(&error) =>
            {
                let remedy = match (&self.root_certificates, &self.certificate) {
                    (None, _) => {
                        "set `root_certificates` (`NATS_CA`) to the file with the certificate of \
                         the server's authority"
                    }
                    (_, None) => {
                        "check `root_certificates` (`NATS_CA`), and set `client_certificate` \
                         (`NATS_CERT` and `NATS_KEY`) if the server asks for one"
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
    source.and_then(|source| source.downcast_ref::<std::io::Error>()).is_some_and(|error| {
        matches!(
            error.kind(),
            std::io::ErrorKind::ConnectionRefused | std::io::ErrorKind::NetworkUnreachable
        )
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

#[cfg(test)]
mod tests {
    use super::*;

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
    fn every_variable_is_read_whatever_the_url() {
        let endpoint = Endpoint::from_variables(|name| Some(format!("{name} value").into()));
        let endpoint = endpoint.url("nats://a:4222");
        assert_eq!(endpoint.urls, "nats://a:4222");
        assert_eq!(endpoint.credentials_file, Some("NATS_CREDS value".into()));
        assert_eq!(endpoint.token.as_deref(), Some("NATS_TOKEN value"));
        assert_eq!(endpoint.user.as_deref(), Some("NATS_USER value"));
        assert_eq!(endpoint.password.as_deref(), Some("NATS_PASSWORD value"));
        assert_eq!(endpoint.root_certificates, Some("NATS_CA value".into()));
        assert_eq!(endpoint.certificate, Some("NATS_CERT value".into()));
        assert_eq!(endpoint.key, Some("NATS_KEY value".into()));
        let half = Endpoint { key: None, ..endpoint.clone() }.check().unwrap_err().to_string();
        assert!(half.starts_with("client_certificate") && half.contains("NATS_KEY"), "{half}");
        let half = Endpoint { password: None, ..endpoint }.check().unwrap_err().to_string();
        assert!(half.starts_with("user") && half.contains("NATS_PASSWORD"), "{half}");
    }
}
