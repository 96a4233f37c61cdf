//! Tasks whose outcomes never come: each gets an error that says why.

use async_nats::jetstream;
use brigade_task::TaskError;
use brigade_testkit::wait_for;

use super::*;
use crate::message::{Body, ItemsBuilder, OutcomeHead, OutcomeMessage};
use crate::task_name::unreadable;

/// A node or operator that changes the streams by hand.
struct ByHand {
    jetstream: jetstream::Context,
    names: Names,
    runtime: tokio::runtime::Runtime,
}

impl ByHand {
    fn connect(server: &NatsServer) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let jetstream = runtime
            .block_on(async { jetstream::new(async_nats::connect(server.url()).await.unwrap()) });
        Self { jetstream, names: Names::new(Queue::default()), runtime }
    }

    /// Waits until the queue has a number of tasks. Returns the sequence of the first.
    fn wait_for_tasks(&self, count: u64) -> u64 {
        wait_for("the tasks are in the queue", BOUND, || {
            self.runtime.block_on(async {
                let stream = self.jetstream.get_stream(self.names.tasks_stream()).await.unwrap();
                let state = stream.cached_info().state.clone();
                (state.messages == count).then_some(state.first_sequence)
            })
        })
    }

    fn purge_tasks(&self) {
        self.runtime.block_on(async {
            let stream = self.jetstream.get_stream(self.names.tasks_stream()).await.unwrap();
            stream.purge().await.unwrap();
        });
    }

    fn publish(&self, subject: String, message: Vec<u8>) {
        self.runtime.block_on(async {
            self.jetstream.publish(subject, message.into()).await.unwrap().await.unwrap();
        });
    }
}

fn error(handle: ClusterHandle<u64>) -> TaskError {
    handle.wait().unwrap_err()
}

fn assert_lost(error: &TaskError, reason: &str) {
    assert!(matches!(error.kind(), TaskErrorKind::Lost { .. }), "{error}");
    assert!(error.to_string().contains(reason), "{error}");
}

#[test]
fn a_task_that_was_removed_from_the_queue_is_lost() {
    with_server(|server| {
        let (cluster, by_hand) = (connect(server), ByHand::connect(server));
        let batch = cluster.batch("b").unwrap();
        let item = batch.submit("item", &DOUBLE, 1).unwrap();
        let single = cluster.submit(&DOUBLE, 2).unwrap();
        let chunk = thread::scope(|scope| {
            let chunk = scope.spawn(|| batch.map(&DOUBLE, [3]).next().unwrap().unwrap_err());
            by_hand.wait_for_tasks(3);
            by_hand.purge_tasks();
            chunk.join().unwrap()
        });
        assert_lost(&chunk, "somebody has removed");
        assert_lost(&error(item), "somebody has removed");
        assert_lost(&error(single), "somebody has removed");
        // The next ones are not affected.
        let _node = FakeNode::start(&server.url());
        assert_eq!(cluster.submit(&DOUBLE, 4).unwrap().wait().unwrap(), 8);
        assert_eq!(batch.submit("item", &DOUBLE, 5).unwrap().wait().unwrap(), 10);
    });
}

#[test]
fn a_task_that_waits_for_a_node_is_not_lost() {
    with_server(|server| {
        let cluster = connect(server);
        let mut handles: Vec<_> = (0..2).map(|n| cluster.submit(&DOUBLE, n).unwrap()).collect();
        let batch = cluster.batch("b").unwrap();
        handles.push(batch.submit("item", &DOUBLE, 2).unwrap());
        // Longer than two searches.
        assert!(handles[0].wait_timeout(Duration::from_secs(2)).is_none());
        let _node = FakeNode::start(&server.url());
        for (n, handle) in (0..).zip(handles) {
            assert_eq!(handle.wait().unwrap(), 2 * n);
        }
    });
}

#[test]
fn tasks_of_a_queue_that_was_deleted_are_lost() {
    with_server(|server| {
        let (cluster, by_hand) = (connect(server), ByHand::connect(server));
        let waiting = cluster.submit(&DOUBLE, 1).unwrap();
        let cancelled = cluster.submit(&DOUBLE, 2).unwrap();
        by_hand.wait_for_tasks(2);
        by_hand.runtime.block_on(async {
            for stream in [by_hand.names.tasks_stream(), by_hand.names.outcomes_stream()] {
                by_hand.jetstream.delete_stream(stream).await.unwrap();
            }
        });
        let unanswered = cluster.submit(&DOUBLE, 3).unwrap();
        cancelled.cancel();
        for handle in [waiting, cancelled, unanswered] {
            assert_lost(&error(handle), "BRIGADE_default_OUTCOMES does not exist");
        }
    });
}

#[test]
fn a_task_that_an_older_node_gave_up_unread_is_lost() {
    with_server(|server| {
        let (cluster, by_hand) = (connect(server), ByHand::connect(server));
        let handle = cluster.submit(&DOUBLE, 1).unwrap();
        let letter = unreadable(by_hand.wait_for_tasks(1));
        by_hand.publish(by_hand.names.dead(&letter), b"a letter".to_vec());
        by_hand.publish(by_hand.names.outcome(&letter), b"an outcome".to_vec());
        by_hand.purge_tasks();
        assert_lost(&error(handle), &format!("dead letter {letter}"));
    });
}

#[test]
fn an_outcome_of_another_version_names_both_versions() {
    with_server(|server| {
        let (cluster, by_hand) = (connect(server), ByHand::connect(server));
        let handle = cluster.batch("b").unwrap().submit("item", &DOUBLE, 1).unwrap();
        by_hand.wait_for_tasks(1);
        let items = Body::Inline(ItemsBuilder::default().finish());
        let outcome = OutcomeMessage { head: OutcomeHead::new("n", 1), body: items };
        let mut message = outcome.to_bytes().unwrap().to_vec();
        message[0] = 9;
        by_hand.publish(by_hand.names.outcome(&"b/item".parse().unwrap()), message);
        let error = error(handle).to_string();
        assert!(error.contains("version 9, and this program knows 3"), "{error}");
    });
}
