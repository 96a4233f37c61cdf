//! Servers with TLS, users, tokens and credentials files. What is wrong is named by the error.
//!
//! The certificates are made by `certificates/make.sh`.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use brigade::Key;
use brigade_cluster::{Cluster, ClusterError, Endpoint, Node};
use brigade_testkit::{BOUND, NatsServer, Watchdog};
use data_encoding::BASE64URL_NOPAD;
use nkeys::KeyPair;

static DOUBLE: Key<u64, u64> = Key::new("double/1", |number: u64| 2 * number);

/// Runs a test with a server of its own, if the program is installed.
fn with_server(configuration: &str, test: impl FnOnce(&NatsServer)) {
    if NatsServer::installed() {
        let _watchdog = Watchdog::new("a test of logins", 3 * BOUND);
        test(&NatsServer::with_configuration(configuration));
    }
}

/// Runs a task from a client to a node, which both log in so.
fn runs(endpoint: Endpoint) {
    let cluster = Cluster::builder().endpoint(endpoint.clone()).connect().unwrap();
    let node = Node::builder().endpoint(endpoint).workers(1).register(&DOUBLE);
    let _node = node.start().unwrap();
    assert_eq!(cluster.submit(&DOUBLE, 21).unwrap().wait().unwrap(), 42);
}

/// Returns the error of a client, which names a setting.
fn refusal(endpoint: Endpoint, setting: &str) -> ClusterError {
    let error = Cluster::builder().endpoint(endpoint).connect().unwrap_err();
    let text = error.to_string();
    assert!(text.contains(setting), "{setting}: {text}");
    let causes =
        std::iter::successors(Some(&error as &(dyn Error + 'static)), |&cause| cause.source());
    for cause in causes {
        assert!(!cause.to_string().contains("secret"), "{cause}");
    }
    error
}

fn at(server: &NatsServer, scheme: &str, user: &str) -> String {
    server.url().replace("nats://", &format!("{scheme}://{user}"))
}

fn certificate(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/certificates").join(name)
}

#[test]
fn a_user_and_a_password_are_in_the_url() {
    let users = "authorization { user: ann, password: \"secret@\" }";
    with_server(users, |server| {
        let right = at(server, "nats", "ann:secret%40@");
        runs(Endpoint::at(&right));
        runs(Endpoint::at(server.url()).user("ann", "secret@"));
        refusal(Endpoint::at(server.url()).user("ann", "secret2"), "`user`");
        let wrong = at(server, "nats", "ann:secret2@");
        let error = refusal(Endpoint::at(&wrong), "the password in the URL");
        assert!(matches!(error, ClusterError::Login { .. }), "{error:?}");
        refusal(Endpoint::at(server.url()), "`credentials_file`");
        let error = Node::builder().url(&wrong).register(&DOUBLE).workers(1).start().unwrap_err();
        assert!(matches!(error, ClusterError::Login { .. }), "{error:?}");
    });
}

#[test]
fn a_token_is_a_setting() {
    with_server("authorization { token: secret }", |server| {
        let url = server.url();
        runs(Endpoint::at(&url).token("secret"));
        refusal(Endpoint::at(&url).token("secret2"), "`token`");
    });
}

#[test]
fn certificates_are_checked_on_both_sides() {
    let file = |name: &str| certificate(name).display().to_string();
    let tls = format!(
        "tls {{ cert_file: {:?}, key_file: {:?}, ca_file: {:?}, verify: true }}",
        file("server.pem"),
        file("server.key"),
        file("ca.pem")
    );
    with_server(&tls, |server| {
        let url = server.url();
        let (ca, other) = (certificate("ca.pem"), certificate("other.pem"));
        let (own, key) = (certificate("client.pem"), certificate("client.key"));
        runs(Endpoint::at(&url).root_certificates(&ca).client_certificate(&own, &key));
        let is_tls =
            |error: ClusterError| assert!(matches!(error, ClusterError::Tls { .. }), "{error:?}");
        // The server's certificate is of nobody that is trusted.
        is_tls(refusal(Endpoint::at(at(server, "tls", "")), "`root_certificates`"));
        let wrong = Endpoint::at(&url).root_certificates(&other).client_certificate(&own, &key);
        is_tls(refusal(wrong, "`root_certificates`"));
        // This client has no certificate.
        is_tls(refusal(Endpoint::at(&url).root_certificates(&ca), "`client_certificate`"));
        // Files that are not there, or have something else.
        refusal(Endpoint::at(&url).root_certificates("/nowhere/ca.pem"), "root_certificates");
        let wrong = Endpoint::at(&url).root_certificates(&ca).client_certificate(&own, "/dev/null");
        refusal(wrong, "client_certificate");
    });
    // A server without TLS is refused.
    with_server("", |server| {
        let error = Cluster::builder()
            .endpoint(Endpoint::at(server.url()).require_tls())
            .connect()
            .unwrap_err();
        assert!(matches!(error, ClusterError::Tls { .. }), "{error:?}");
    });
}

/// Returns a token of NATS: the claims of a subject, signed by its issuer.
fn token(issuer: &KeyPair, subject: &KeyPair, claims: &str) -> String {
    let encode = |text: &str| BASE64URL_NOPAD.encode(text.as_bytes());
    let head = r#"{"typ":"JWT","alg":"ed25519-nkey"}"#;
    let (of, by) = (subject.public_key(), issuer.public_key());
    let body = format!(
        r#"{{"jti":"{of}","iat":1600000000,"iss":"{by}","name":"test","sub":"{of}","nats":{{{claims},"version":2}}}}"#
    );
    let signed = format!("{}.{}", encode(head), encode(&body));
    let signature = issuer.sign(signed.as_bytes()).unwrap();
    format!("{signed}.{}", BASE64URL_NOPAD.encode(&signature))
}

/// Returns the contents of a credentials file.
fn credentials(token: &str, user: &KeyPair) -> String {
    format!(
        "-----BEGIN NATS USER JWT-----\n{token}\n------END NATS USER JWT------\n\n\
         -----BEGIN USER NKEY SEED-----\n{}\n------END USER NKEY SEED------\n",
        user.seed().unwrap()
    )
}

#[test]
fn a_credentials_file_is_a_setting() {
    let (operator, system) = (KeyPair::new_operator(), KeyPair::new_account());
    let (account, user) = (KeyPair::new_account(), KeyPair::new_user());
    let limits = r#""type":"account","limits":{"subs":-1,"data":-1,"payload":-1,"imports":-1,"exports":-1,"wildcards":true,"conn":-1,"leaf":-1,"mem_storage":-1,"disk_storage":-1,"streams":-1,"consumer":-1}"#;
    let no_storage =
        limits.replace(r#","mem_storage":-1,"disk_storage":-1,"streams":-1,"consumer":-1"#, "");
    let configuration = format!(
        "operator: {}\nsystem_account: {}\nresolver: MEMORY\nresolver_preload: {{ {}: {}, {}: {} }}\n",
        token(&operator, &operator, r#""type":"operator""#),
        system.public_key(),
        system.public_key(),
        token(&operator, &system, &no_storage),
        account.public_key(),
        token(&operator, &account, limits),
    );
    with_server(&configuration, |server| {
        let (folder, url) = (tempfile::tempdir().unwrap(), server.url());
        let claims = r#""type":"user","subs":-1,"data":-1,"payload":-1"#;
        let write = |name: &str, text: String| {
            let path = folder.path().join(name);
            fs::write(&path, text).unwrap();
            path
        };
        let right = write("right", credentials(&token(&account, &user, claims), &user));
        runs(Endpoint::at(&url).credentials_file(&right));
        // Signed by an account that the server does not know.
        let stranger = KeyPair::new_account();
        let wrong = write("wrong", credentials(&token(&stranger, &user, claims), &user));
        let error = refusal(Endpoint::at(&url).credentials_file(&wrong), "`credentials_file`");
        assert!(matches!(error, ClusterError::Login { .. }), "{error:?}");
        refusal(Endpoint::at(&url), "`credentials_file`");
        let empty = write("empty", String::new());
        refusal(Endpoint::at(&url).credentials_file(&empty), "credentials_file");
        refusal(Endpoint::at(&url).credentials_file("/nowhere/creds"), "credentials_file");
    });
}
