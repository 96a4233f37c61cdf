//! One suite for every kind of link: what a host and a worker may rely on, whatever carries the
//! messages. It is here because this package can use all links.

#![forbid(unsafe_code)]
#![expect(clippy::expect_used, reason = "a test stops where a value is missing")]

use std::os::fd::{AsFd, OwnedFd};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use brigade_link_ipc as ipc;
use brigade_sys::segment::Segment;
use brigade_sys::wake_set::RemoteWaker;
use brigade_testkit_core::payload as message;
use brigade_wire::handshake::Token;
use brigade_wire::link::{LinkError, LinkReceiver, LinkSender, memory, ring};
use brigade_wire::ring::{Doorbell, Listener, RemoteDoorbell};

/// Maximum number of bytes of a message in these links.
const LIMIT: usize = 32 << 20;

/// A test that takes longer waits for something that never comes.
const BOUND: Duration = brigade_testkit_core::BOUND.saturating_mul(6);

/// One end: its sending and its receiving half.
type End = (Box<dyn LinkSender>, Box<dyn LinkReceiver>);

fn memory_link() -> (End, End) {
    let (host, worker) = memory::pair(LIMIT);
    (
        (Box::new(host.sender), Box::new(host.receiver)),
        (Box::new(worker.sender), Box::new(worker.receiver)),
    )
}

fn a_path() -> std::path::PathBuf {
    std::env::temp_dir().join(format!("brigade-link-{}", Token::random().short()))
}

fn ipc_link() -> (End, End) {
    let (host, channels) = ipc::host_end(Token::random(), LIMIT, &a_path()).expect("descriptors");
    let worker = ipc::worker_end(channels, LIMIT);
    ((Box::new(host.sender), Box::new(host.receiver)), (worker.sender, worker.receiver))
}

fn ring_link() -> (End, End) {
    let segment = Arc::new(Segment::create("test", ring::words(8)).expect("memory"));
    let host_bell = Doorbell::new().expect("memory and descriptors");
    let page = host_bell.page().as_fd().try_clone_to_owned().expect("descriptors");
    let ringers = host_bell.for_worker().expect("descriptors");
    let [thread, caller] = ringers
        .each_ref()
        .map(|ringer| RemoteWaker::from_fd(ringer.try_clone().expect("descriptors")));
    let worker_bell = RemoteDoorbell::new(page, thread, caller).expect("the same page");
    let worker = ring::WorkerEnd::new(&segment, 8, worker_bell, LIMIT);
    let host = Arc::new(Mutex::new(ring::HostEnd::new(&segment, 8, LIMIT)));
    let receiver = RingHostReceiver {
        host: Arc::clone(&host),
        bell: host_bell,
        _ringers: ringers,
        message: Vec::new(),
    };
    (
        (Box::new(RingHostSender(host)), Box::new(receiver)),
        (Box::new(worker.sender), Box::new(worker.receiver)),
    )
}

/// The host's end of a ring link does not wait by itself; in a pool, callers and the collector wait
/// for all workers.
struct RingHostReceiver {
    host: Arc<Mutex<ring::HostEnd>>,
    bell: Doorbell,
    /// Kept, so that the worker's last ring is heard.
    _ringers: [OwnedFd; 2],
    message: Vec<u8>,
}

struct RingHostSender(Arc<Mutex<ring::HostEnd>>);

impl LinkSender for RingHostSender {
    fn send_unannounced(&mut self, head: &[u8], payload: &[u8]) -> Result<(), LinkError> {
        self.0.lock().expect("no panic").send_unannounced(head, payload)
    }

    fn send_words(&mut self, head: &[u64], payload: &[u8]) -> Result<(), LinkError> {
        self.0.lock().expect("no panic").send_words(head, payload)
    }

    fn announce(&mut self) -> Result<(), LinkError> {
        self.0.lock().expect("no panic").announce()
    }
}

impl LinkReceiver for RingHostReceiver {
    fn receive(&mut self) -> Result<&[u8], LinkError> {
        loop {
            self.bell.listen(Listener::Caller);
            let mut host = self.host.lock().expect("no panic");
            host.pump()?;
            let whole = host.consumer.advance()?;
            if whole {
                self.message = host.consumer.message().to_vec();
            }
            host.made_room();
            if whole {
                return Ok(&self.message);
            }
            drop(host);
            self.bell.caller().wait(None).expect("a descriptor");
        }
    }
}

fn whole(receiver: &mut dyn LinkReceiver) -> Vec<u8> {
    receiver.receive().expect("a message").to_vec()
}

fn order_is_kept_in_both_directions(link: (End, End)) {
    let (mut host, mut worker) = link;
    for number in 0..50 {
        host.0.send(&message(number, 20), &message(number, number)).expect("room");
    }
    for number in 0..50 {
        let expected = [message(number, 20), message(number, number)].concat();
        assert_eq!(whole(&mut *worker.1), expected);
        worker.0.send(&expected, &[]).expect("room");
    }
    for number in 0..50 {
        assert_eq!(whole(&mut *host.1)[..20], message(number, 20));
    }
}

/// As many as go through the ring several times.
fn a_head_in_words_is_sent_as_its_bytes(link: (End, End)) {
    let (mut host, mut worker) = link;
    let words = [1, u64::MAX, 0x0102_0304_0506_0708, 0];
    for number in 0..10_000_usize {
        let head = &words[..number % 5];
        let payload = message(number, number % 49);
        let expected =
            [head.iter().flat_map(|word| word.to_le_bytes()).collect(), payload].concat();
        let payload = &expected[size_of_val(head)..];
        for (from, to) in [(&mut host.0, &mut worker.1), (&mut worker.0, &mut host.1)] {
            // The method of the link, and not that of its box.
            from.as_mut().send_words(head, payload).expect("room");
            from.announce().expect("an open link");
            assert_eq!(whole(&mut **to), expected);
        }
    }
}

fn every_size_around_a_packet_arrives_whole(link: (End, End)) {
    let (mut host, mut worker) = link;
    let lengths = [1 << 12, 1 << 15, 1 << 16, 1 << 18].map(|around| around - 20..around + 20);
    let count = lengths.iter().map(ExactSizeIterator::len).sum();
    let echo = thread::spawn(move || {
        for _ in 0..count {
            let bytes = whole(&mut *worker.1);
            worker.0.send(&bytes[..1], &bytes[1..]).expect("a host that reads");
        }
    });
    for length in lengths.into_iter().flatten() {
        host.0.send(&message(length, 13), &message(length, length)).expect("room");
        let expected = [message(length, 13), message(length, length)].concat();
        assert!(whole(&mut *host.1) == expected, "a message of {length} bytes came back changed");
    }
    echo.join().expect("the echo");
}

fn large_messages_in_both_directions_at_once_do_not_block_each_other(link: (End, End)) {
    let (mut host, mut worker) = link;
    let worker_thread = thread::spawn(move || {
        for number in 0..3 {
            worker.0.send(&[9], &message(number, 8 << 20)).expect("a host that reads");
            let received = whole(&mut *worker.1);
            assert!(received[1..] == message(number, 8 << 20), "changed on the way to the worker");
        }
        worker.0.send(b"all received", &[]).expect("a host that reads");
    });
    for number in 0..3 {
        host.0.send(&[7], &message(number, 8 << 20)).expect("never blocks");
    }
    for number in 0..3 {
        assert!(
            whole(&mut *host.1)[1..] == message(number, 8 << 20),
            "changed on the way to the host"
        );
    }
    // While the host reads, waiting messages are sent.
    assert_eq!(whole(&mut *host.1), b"all received");
    worker_thread.join().expect("the worker");
}

fn the_host_never_blocks_on_a_worker_that_does_not_read(link: (End, End)) {
    let (mut host, mut worker) = link;
    for number in 0..10_000 {
        host.0.send(&message(number, 9), &message(number, 100)).expect("never blocks");
    }
    for number in 0..3 {
        host.0.send(&[1], &message(number, 10 << 20)).expect("never blocks");
    }
    host.0.send(&[2], &[]).expect("never blocks");
    let pump = thread::spawn(move || {
        let _ = host.1.receive();
        host
    });
    for number in 0..10_000 {
        assert_eq!(whole(&mut *worker.1)[..9], message(number, 9));
    }
    for number in 0..3 {
        assert!(whole(&mut *worker.1)[1..] == message(number, 10 << 20), "changed on the way");
    }
    assert_eq!(whole(&mut *worker.1), [2]);
    worker.0.send(&[0], &[]).expect("the host reads");
    drop(pump.join().expect("the host"));
}

fn the_limit_is_exact_and_the_link_survives_it(link: (End, End)) {
    let (mut host, mut worker) = link;
    let refused = host.0.send(&[0; 8], &vec![0; LIMIT - 7]);
    assert!(
        matches!(refused, Err(LinkError::TooLarge { size, limit }) if size == LIMIT + 1 && limit == LIMIT)
    );
    host.0.send(&[1; 8], &message(1, LIMIT - 8)).expect("exactly the limit");
    let pump = thread::spawn(move || {
        let _ = host.1.receive();
        host
    });
    assert_eq!(whole(&mut *worker.1).len(), LIMIT);
    assert!(matches!(worker.0.send(&[0; 8], &vec![0; LIMIT - 7]), Err(LinkError::TooLarge { .. })));
    worker.0.send(&[2], &[]).expect("the link is usable");
    drop(pump.join().expect("the host"));
}

fn what_was_sent_arrives_before_the_end(link: (End, End)) {
    let (mut host, worker) = link;
    let (mut sender, mut receiver) = worker;
    host.0.send(&[5], &[6]).expect("room");
    drop(host);
    assert_eq!(whole(&mut *receiver), [5, 6]);
    for _ in 0..2 {
        assert!(matches!(receiver.receive(), Err(LinkError::Closed)));
        assert!(matches!(sender.send(&[1], &[]), Err(LinkError::Closed)));
    }
}

fn a_worker_that_is_gone_is_told_to_the_host_that_sends(link: (End, End)) {
    let (mut host, worker) = link;
    // What it has not read is lost with it.
    host.0.send(&[1], &[]).expect("room");
    drop(worker);
    for _ in 0..2 {
        assert!(matches!(host.0.send(&[2], &[3]), Err(LinkError::Closed)));
    }
}

fn empty_messages_are_messages(link: (End, End)) {
    let (mut host, mut worker) = link;
    for bytes in [&[][..], &[1], &[]] {
        host.0.send(&[], bytes).expect("room");
        worker.0.send(bytes, &[]).expect("room");
    }
    for bytes in [&[][..], &[1], &[]] {
        assert_eq!(whole(&mut *worker.1), bytes);
        assert_eq!(whole(&mut *host.1), bytes);
    }
}

fn four_threads_may_use_the_four_halves(link: (End, End)) {
    const MESSAGES: usize = 2_000;
    /// Every fourth message takes up to several packets, the others are small.
    fn size(number: usize) -> usize {
        number * 7919 % if number.is_multiple_of(4) { 90_000 } else { 50 }
    }
    fn send(sender: &mut dyn LinkSender) {
        for number in 0..MESSAGES {
            sender.send(&number.to_le_bytes(), &vec![9; size(number)]).expect("room");
        }
    }
    fn receive(receiver: &mut dyn LinkReceiver) {
        for number in 0..MESSAGES {
            let message = receiver.receive().expect("a message");
            assert_eq!(message[..8], number.to_le_bytes(), "the order has changed");
            assert_eq!(message.len(), 8 + size(number));
        }
    }
    let (mut host, worker) = link;
    let (mut worker_sender, mut worker_receiver) = worker;
    let (all_received, until_all_received) = channel();
    let threads = [
        thread::spawn(move || send(&mut *host.0)),
        thread::spawn(move || {
            send(&mut *worker_sender);
            until_all_received.recv().expect("the other half received everything");
            worker_sender.send(b"all received", &[]).expect("room");
        }),
        thread::spawn(move || {
            receive(&mut *worker_receiver);
            all_received.send(()).expect("the other half waits");
        }),
    ];
    receive(&mut *host.1);
    // While the host reads, waiting messages are sent.
    assert_eq!(whole(&mut *host.1), b"all received");
    for thread in threads {
        thread.join().expect("everything was sent and received");
    }
}

/// Runs a test and fails if it hangs.
fn bounded(test: impl FnOnce() + Send + 'static) {
    let (ended, end) = channel::<()>();
    let body = thread::spawn(move || {
        let _ended = ended;
        test();
    });
    assert!(end.recv_timeout(BOUND) != Err(RecvTimeoutError::Timeout), "the link hangs");
    if let Err(panic) = body.join() {
        std::panic::resume_unwind(panic);
    }
}

macro_rules! conformance {
    ($($test:ident),* $(,)?) => {
        mod over_memory {
            $(#[test] fn $test() { super::bounded(|| super::$test(super::memory_link())); })*
        }
        mod over_ipc {
            $(#[test] fn $test() { super::bounded(|| super::$test(super::ipc_link())); })*
        }
    };
}

macro_rules! conformance_of_rings {
    ($($test:ident),* $(,)?) => {
        mod over_rings {
            $(#[test] fn $test() { super::bounded(|| super::$test(super::ring_link())); })*
        }
    };
}

// Shared memory does not show that the other side is gone: the kernel reports that, by the worker's
// pidfd and its parent-death signal. So the tests that end by dropping an end are not for rings.
conformance_of_rings!(
    order_is_kept_in_both_directions,
    a_head_in_words_is_sent_as_its_bytes,
    every_size_around_a_packet_arrives_whole,
    large_messages_in_both_directions_at_once_do_not_block_each_other,
    the_host_never_blocks_on_a_worker_that_does_not_read,
    the_limit_is_exact_and_the_link_survives_it,
    empty_messages_are_messages,
    four_threads_may_use_the_four_halves,
);

conformance!(
    order_is_kept_in_both_directions,
    a_head_in_words_is_sent_as_its_bytes,
    every_size_around_a_packet_arrives_whole,
    large_messages_in_both_directions_at_once_do_not_block_each_other,
    the_host_never_blocks_on_a_worker_that_does_not_read,
    the_limit_is_exact_and_the_link_survives_it,
    what_was_sent_arrives_before_the_end,
    a_worker_that_is_gone_is_told_to_the_host_that_sends,
    empty_messages_are_messages,
    four_threads_may_use_the_four_halves,
);

/// Only the ipc link has an end mark, because only there a worker's children may hold the worker's
/// end open.
#[test]
fn the_end_mark_comes_after_everything_that_the_worker_sent() {
    let (host, channels) = ipc::host_end(Token::random(), LIMIT, &a_path()).expect("descriptors");
    let mut worker = ipc::worker_end(channels, LIMIT);
    worker.sender.send(&[1], &message(1, 1000)).expect("room");
    host.end_mark.send();
    let mut receiver = host.receiver;
    assert_eq!(receiver.receive().expect("the message")[1..], message(1, 1000));
    // The worker's end is still open.
    assert!(matches!(receiver.receive(), Err(LinkError::Closed)));
    drop(worker);
}
