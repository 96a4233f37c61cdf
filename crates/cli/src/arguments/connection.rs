//! The options of the connection to the servers of a cluster.

use std::path::PathBuf;

use brigade::cluster::Endpoint;
use clap::{Args, ValueHint};
use miette::{Report, miette};

use crate::each::Each;

/// The login at the servers of a cluster. What is not given is read from the environment.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Connection")]
pub(crate) struct LoginOptions {
    /// File with credentials [default: `$NATS_CREDS`]
    #[arg(long = "nats-creds", value_name = "FILE", value_hint = ValueHint::FilePath)]
    creds: Option<PathBuf>,

    /// Token. Other users of this machine can see it; use the variable instead
    /// [default: `$NATS_TOKEN`]
    #[arg(long = "nats-token", value_name = "TOKEN")]
    token: Option<String>,

    /// Name of the user [default: `$NATS_USER`]
    #[arg(long = "nats-user", value_name = "NAME")]
    user: Option<String>,

    /// Password of the user. Other users of this machine can see it; use the variable instead
    /// [default: `$NATS_PASSWORD`]
    #[arg(long = "nats-password", value_name = "PASSWORD")]
    password: Option<String>,

    /// File with the certificates of authorities to trust; requires TLS [default: `$NATS_CA`]
    #[arg(long = "nats-ca", value_name = "FILE", value_hint = ValueHint::FilePath)]
    ca: Option<PathBuf>,

    /// File with the certificate of this program; requires TLS [default: `$NATS_CERT`]
    #[arg(long = "nats-cert", value_name = "FILE", value_hint = ValueHint::FilePath)]
    cert: Option<PathBuf>,

    /// File with the key of that certificate [default: `$NATS_KEY`]
    #[arg(long = "nats-key", value_name = "FILE", value_hint = ValueHint::FilePath)]
    key: Option<PathBuf>,
}

impl LoginOptions {
    /// Returns the first option that is given.
    pub(crate) fn given(&self) -> Option<&'static str> {
        let options = [
            ("--nats-creds", self.creds.is_some()),
            ("--nats-token", self.token.is_some()),
            ("--nats-user", self.user.is_some()),
            ("--nats-password", self.password.is_some()),
            ("--nats-ca", self.ca.is_some()),
            ("--nats-cert", self.cert.is_some()),
            ("--nats-key", self.key.is_some()),
        ];
        options.into_iter().find(|(_, is_given)| *is_given).map(|(name, _)| name)
    }

    /// Returns the servers at `url`, or else those of the environment, with this login.
    pub(crate) fn endpoint(&self, url: Option<&str>) -> Result<Endpoint, Report> {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let mut endpoint = Endpoint::from_env()
            .each(url, Endpoint::url)
            .each(&self.creds, Endpoint::credentials_file)
            .each(&self.token, Endpoint::token)
            .each(&self.ca, Endpoint::root_certificates);
        if self.user.is_some() || self.password.is_some() {
            let user = self.user.clone().or_else(|| variable("NATS_USER"));
            let password = self.password.clone().or_else(|| variable("NATS_PASSWORD"));
            let (Some(user), Some(password)) = (user, password) else {
                return Err(miette!(
                    "a user needs a name and a password: give --nats-user or set NATS_USER, and \
                     set NATS_PASSWORD or give --nats-password"
                ));
            };
            endpoint = endpoint.user(user, password);
        }
        if self.cert.is_some() || self.key.is_some() {
            let path = |path: &Option<PathBuf>, name| {
                path.clone().or_else(|| std::env::var_os(name).map(PathBuf::from))
            };
            let certificate = path(&self.cert, "NATS_CERT");
            let key = path(&self.key, "NATS_KEY");
            let (Some(certificate), Some(key)) = (certificate, key) else {
                return Err(miette!(
                    "a certificate needs its key: give both --nats-cert and --nats-key, or set \
                     NATS_CERT and NATS_KEY"
                ));
            };
            endpoint = endpoint.client_certificate(certificate, key);
        }
        Ok(endpoint)
    }
}
