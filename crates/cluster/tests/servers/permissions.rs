//! Logins with few permissions: those of `docs/deploy/permissions.conf` suffice, and what a login
//! may not do is an error at once that names the subject.

use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use async_nats::{ConnectOptions, Event, ServerError};
use brigade::{Key, TaskErrorKind};
use brigade_cluster::{Cluster, ClusterError, ClusterStatus, Endpoint, Node};
use brigade_testkit::{BOUND, NatsServer, Watchdog};
use tokio::runtime::{self, Runtime};

static DOUBLE: Key<u64, u64> = Key::new("double/1", |number: u64| 2 * number);
static REVERSE: Key<Vec<u8>, Vec<u8>> =
    Key::new("reverse/1", |bytes: Vec<u8>| bytes.into_iter().rev().collect());
static EXIT: Key<i32, ()> = Key::new("exit/1", |code: i32| std::process::exit(code));
static NOBODY: Key<u64, u64> = Key::named("nobody/1");

const PERMISSIONS: &str = include_str!("../../../../docs/deploy/permissions.conf");

/// Runs a test with a server of its own, if the program is installed.
fn with_server(configuration: &str, test: impl FnOnce(&NatsServer)) {
    if NatsServer::installed() {
        let _watchdog = Watchdog::new("a test of permissions", 3 * BOUND);
        test(&NatsServer::with_configuration(configuration));
    }
}

fn login(server: &NatsServer, user: &str) -> Endpoint {
    Endpoint::at(server.url()).user(user, format!("change this, {user}"))
}

#[test]
fn the_permissions_in_the_documentation_suffice() {
    with_server(PERMISSIONS, |server| {
        drop(Cluster::builder().endpoint(login(server, "owner")).connect().unwrap());
        let cluster = Cluster::builder().endpoint(login(server, "client")).connect().unwrap();
        let cancelled = cluster.submit(&NOBODY, 1).unwrap();
        assert!(cancelled.cancel());
        let node = Node::builder().endpoint(login(server, "node")).workers(1).name("n");
        let node = node.register(&DOUBLE).register(&REVERSE).register(&EXIT).start().unwrap();
        assert_eq!(cluster.submit(&DOUBLE, 21).unwrap().wait().unwrap(), 42);
        let batch = cluster.batch("b").unwrap();
        let doubled: Vec<u64> = batch.map(&DOUBLE, 0..100).map(Result::unwrap).collect();
        assert_eq!(doubled[99], 198);
        let large: Vec<u8> = (0..1_000_000_u32).map(|n| n.to_le_bytes()[0]).collect();
        let reversed = cluster.submit(&REVERSE, large.clone()).unwrap().wait().unwrap();
        assert!(reversed.iter().eq(large.iter().rev()));
        let error = cluster.task(&EXIT).max_deaths(1).submit(7).unwrap().wait().unwrap_err();
        assert!(matches!(error.kind(), TaskErrorKind::GivenUp { .. }), "{error}");
        let letters: Vec<_> = cluster.dead_letters().map(Result::unwrap).collect();
        assert_eq!(letters.len(), 1);
        assert!(cluster.requeue(&letters[0]).unwrap());
        // A run of commands that finds no node looks at the lanes too.
        for user in ["observer", "client"] {
            let status = ClusterStatus::fetch(&login(server, user), "default").unwrap();
            assert_eq!(status.nodes.len(), 1);
        }
        drop(cluster);
        node.drain();
        node.join().unwrap();
        // Nothing was refused that the programs do without.
        let log = server.log();
        let refused: Vec<&str> = log.lines().filter(|line| line.contains("Violation")).collect();
        assert!(refused.is_empty(), "{refused:#?}");
    });
}

/// A connection that reports what the server refuses.
fn watched(server: &NatsServer, user: &str) -> (Runtime, async_nats::Client, Receiver<String>) {
    let runtime = runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = runtime.unwrap();
    let (sender, refusals) = channel();
    let options = ConnectOptions::new()
        .user_and_password(user.to_owned(), format!("change this, {user}"))
        .event_callback(move |event| {
            if let Event::ServerError(ServerError::Other(text)) = event {
                let _ = sender.send(text);
            }
            async {}
        });
    let client = crate::block_on(&runtime, options.connect(vec![server.url().as_str()])).unwrap();
    (runtime, client, refusals)
}

#[test]
fn a_client_and_an_observer_cannot_do_what_a_node_does() {
    with_server(PERMISSIONS, |server| {
        for (user, subjects) in [
            (
                "client",
                &[
                    "$JS.API.CONSUMER.MSG.NEXT.BRIGADE_default_TASKS.any_n",
                    "brigade.default.dead.b.item",
                    "brigade.default.returned.b.item",
                    "brigade.default.started.b",
                    "brigade.other.task.any.n.b.item",
                    "$JS.ACK.BRIGADE_default_TASKS.any_n.1.1.1.1.1",
                    "$JS.API.CONSUMER.DELETE.BRIGADE_default_TASKS.any_n",
                ][..],
            ),
            (
                "node",
                &[
                    "brigade.default.cancel",
                    "brigade.default.classes",
                    "$JS.API.STREAM.PURGE.BRIGADE_default_TASKS",
                    "$JS.API.STREAM.PURGE.BRIGADE_default_OUTCOMES",
                    "$JS.API.CONSUMER.CREATE.BRIGADE_default_OUTCOMES",
                    "$JS.API.CONSUMER.DELETE.BRIGADE_default_TASKS.any_n",
                ],
            ),
            (
                "observer",
                &[
                    "brigade.default.task.any.n.b.item",
                    "brigade.default.outcome.b.item",
                    "brigade.default.cancel",
                    "$JS.API.STREAM.MSG.GET.BRIGADE_default_OUTCOMES",
                    "$JS.API.STREAM.MSG.GET.BRIGADE_default_TASKS",
                    "$JS.API.CONSUMER.CREATE.BRIGADE_default_OUTCOMES",
                    "$O.brigade_default_payloads.C.x",
                ],
            ),
        ] {
            let (runtime, client, refusals) = watched(server, user);
            for subject in subjects {
                crate::block_on(&runtime, client.publish((*subject).to_owned(), "".into()))
                    .unwrap();
                let refusal = refusals.recv_timeout(BOUND).unwrap();
                assert!(refusal.contains(&format!("Publish to \"{subject}\"")), "{refusal}");
            }
        }
    });
}

/// The streams of the queue.
const STREAMS: [&str; 4] = [
    "BRIGADE_default_TASKS",
    "BRIGADE_default_OUTCOMES",
    "BRIGADE_default_HISTORY",
    "OBJ_brigade_default_payloads",
];

/// Requests that change or copy a whole stream.
const ADMINISTRATION: [&str; 7] =
    ["CREATE", "UPDATE", "DELETE", "SNAPSHOT", "RESTORE", "LEADER.STEPDOWN", "PEER.REMOVE"];

#[test]
fn only_the_owner_may_administer_the_streams() {
    with_server(PERMISSIONS, |server| {
        for user in ["client", "node", "observer"] {
            let (runtime, client, refusals) = watched(server, user);
            let of_stream =
                |stream| ADMINISTRATION.map(|act| format!("$JS.API.STREAM.{act}.{stream}"));
            let whole =
                ["$JS.API.ACCOUNT.PURGE.BRIGADE", "$JS.API.STREAM.NAMES", "$SYS.REQ.SERVER.PING"];
            let subjects = STREAMS.into_iter().flat_map(of_stream).chain(whole.map(str::to_owned));
            for subject in subjects {
                crate::block_on(&runtime, client.publish(subject.clone(), "".into())).unwrap();
                let refusal = refusals.recv_timeout(BOUND).unwrap();
                assert!(
                    refusal.contains(&format!("Publish to \"{subject}\"")),
                    "{user}: {refusal}"
                );
            }
        }
    });
}

#[test]
fn a_login_listens_only_to_what_it_needs() {
    with_server(PERMISSIONS, |server| {
        for (user, subjects) in [
            ("client", ["brigade.default.task.>", "brigade.default.outcome.>", "$JS.ACK.>"]),
            (
                "node",
                ["brigade.default.task.>", "brigade.default.outcome.>", "brigade.other.cancel"],
            ),
            ("observer", ["brigade.>", "brigade.default.started.>", "$JS.EVENT.>"]),
        ] {
            let (runtime, client, refusals) = watched(server, user);
            for subject in subjects.into_iter().chain([">", "$SYS.>"]) {
                let _subscription =
                    crate::block_on(&runtime, client.subscribe(subject.to_owned())).unwrap();
                let refusal = refusals.recv_timeout(BOUND).unwrap();
                let expected = format!("Subscription to \"{subject}\"");
                assert!(refusal.contains(&expected), "{user}: {refusal}");
            }
        }
    });
}

#[test]
fn without_a_login_nobody_gets_in() {
    with_server(PERMISSIONS, |server| {
        let problem = Cluster::connect(server.url()).unwrap_err();
        assert!(problem.to_string().contains("cannot log in"), "{problem}");
        let wrong = Endpoint::at(server.url()).user("owner", "change this, client");
        let problem = Cluster::builder().endpoint(wrong).connect().unwrap_err();
        assert!(problem.to_string().contains("cannot log in"), "{problem}");
    });
}

/// Returns a server on which `ann` may publish everything but `subjects`.
fn without(subjects: &str) -> String {
    format!(
        "accounts: {{ A: {{ jetstream: enabled, users: [ {{ user: owner, password: \"change this, owner\" }}, \
         {{ user: ann, password: \"change this, ann\", permissions: {{ publish: {{ deny: [{subjects}] }} }} }} ] }} }}"
    )
}

fn assert_names(error: &ClusterError, subject: &str) {
    assert!(matches!(error, ClusterError::Permission { .. }), "{error:?}");
    assert!(error.to_string().contains(&format!("may not publish to {subject}")), "{error}");
}

/// Before, each of these was silence for a minute.
#[test]
fn a_refusal_by_the_server_is_an_error_at_once() {
    let create = "$JS.API.STREAM.CREATE.BRIGADE_default_TASKS";
    with_server(&without(&format!("{create:?}")), |server| {
        let error = Cluster::builder().endpoint(login(server, "ann")).connect().unwrap_err();
        assert_names(&error, create);
        let node = Node::builder().endpoint(login(server, "ann")).workers(1).register(&DOUBLE);
        assert_names(&node.start().unwrap_err(), create);
    });
    let info = "$JS.API.STREAM.INFO.BRIGADE_default_TASKS";
    with_server(&without(&format!("{info:?}")), |server| {
        drop(Cluster::builder().endpoint(login(server, "owner")).connect().unwrap());
        assert_names(&ClusterStatus::fetch(&login(server, "ann"), "default").unwrap_err(), info);
    });
    with_server(&without("\"brigade.default.task.>\", \"brigade.default.outcome.>\""), |server| {
        let cluster = Cluster::builder().endpoint(login(server, "ann")).connect().unwrap();
        let error = cluster.submit(&DOUBLE, 1).unwrap().wait().unwrap_err().to_string();
        assert!(error.contains("may not publish to brigade.default.task."), "{error}");
        let refused = cluster.submit_timeout(&DOUBLE, 1, Duration::from_secs(20)).unwrap_err();
        assert!(refused.to_string().contains("may not publish"), "{refused}");
        let node = Node::builder().endpoint(login(server, "ann")).workers(1).register(&DOUBLE);
        let node = node.start().unwrap();
        let owner = Cluster::builder().endpoint(login(server, "owner")).connect().unwrap();
        let handle = owner.submit(&DOUBLE, 1).unwrap();
        assert_names(&node.join().unwrap_err(), "brigade.default.outcome.");
        drop(handle);
    });
}
