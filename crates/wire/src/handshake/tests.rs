//! Every packet decodes to itself, and no other bytes decode.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use brigade_sys::arena::Protection;
use brigade_sys::confine::{Isolation, Visible};
use brigade_sys::inherited::Inherited;
use brigade_sys::resource_limit::Limited;
use proptest::prelude::*;

use super::*;

fn hello(folder: PathBuf) -> Hello {
    Hello {
        arenas: (0, 0),
        terms: Terms::default(),
        token: Token::random(),
        asks: true,
        given: Given::default(),
        worker: WorkerId { slot: 1, generation: 2 },
        message_limit: 1 << 30,
        slots: 64,
        folder,
        events: None,
        link: LinkKind::Ipc,
        pinned: false,
        copies: None,
        max_rss: 0,
        max_growth: 0,
        depth: 1,
        identity: [7; 32],
        preload: None,
        initializer: None,
        finalizer: None,
        sandbox: Some(Box::new(Confinement {
            filters: vec![vec![1, u64::MAX]],
            ..Confinement::default()
        })),
    }
}

prop_compose! {
    fn hellos()(
        bytes: [u8; 16], slot: u32, generation: u32, asks: bool, message_limit: u64, slots: u16,
        folder: String, depth: u32, identity: [u8; 32], initializer: Option<u64>, finalizer: Option<u64>,
    ) -> Hello {
        let worker = WorkerId { slot, generation };
        let events = asks.then_some(tracing::Level::DEBUG.into());
        let given = Given { page: events.map(|_| ()), files: Some(()), ..Given::default() };
        let (token, folder, link, arenas) = (Token(bytes), folder.into(), LinkKind::Ring, (1, 2));
        Hello {
            token, asks, given, worker, message_limit, slots, events, link, arenas, folder, pinned: true, copies: Some(Duration::from_millis(9)), max_rss: 7, max_growth: 8, sandbox: None, depth, identity,
            preload: None, initializer, finalizer, terms: Terms { budget: 3, protection: Protection::ReadOnly },
        }
    }
}

prop_compose! {
    fn answers()(
        version: u32, bytes: [u8; 16], pid: u32, identity: [u8; 32], server: String, program: Option<Option<String>>,
    ) -> Answer {
        let has_names = program.is_some();
        let program = WorkerProgram { identity, has_names, version: program.flatten() };
        let arenas = pid % 2 == 1;
        let token = Token(bytes);
        Answer { version, token, pid, program, server, arenas }
    }
}

fn to_worker() -> impl Strategy<Value = ToWorkerControl> {
    prop_oneof![
        hellos().prop_map(ToWorkerControl::Hello),
        Just(ToWorkerControl::Go),
        any::<(u64, u64)>()
            .prop_map(|(inode, length)| ToWorkerControl::Arena(ArenaRef { inode, length })),
    ]
}

fn from_worker() -> impl Strategy<Value = FromWorkerControl> {
    prop_oneof![
        answers().prop_map(FromWorkerControl::Answer),
        Just(FromWorkerControl::Ready),
        any::<String>().prop_map(|reason| FromWorkerControl::Refused { reason }),
        any::<bool>()
            .prop_map(|takes_descriptors| FromWorkerControl::Initialized { takes_descriptors }),
        any::<String>().prop_map(|reason| FromWorkerControl::InitializerFailed { reason }),
    ]
}

proptest! {
    #[test]
    fn packets_decode_to_themselves_and_truncated_ones_do_not(host in to_worker(), worker in from_worker()) {
        let mut packet = host.encode().expect("encodes");
        for cut in 0..packet.len() {
            prop_assert!(ToWorkerControl::decode(&packet[..cut]).is_err());
        }
        prop_assert_eq!(ToWorkerControl::decode(&packet), Ok(host));
        packet.push(0);
        prop_assert!(ToWorkerControl::decode(&packet).is_err());

        let mut packet = worker.encode().expect("encodes");
        for cut in 0..packet.len() {
            prop_assert!(FromWorkerControl::decode(&packet[..cut]).is_err());
        }
        prop_assert_eq!(FromWorkerControl::decode(&packet), Ok(worker));
        packet.push(0);
        prop_assert!(FromWorkerControl::decode(&packet).is_err());
    }

    #[test]
    fn random_packets_never_panic(packet: Vec<u8>, kind in 0..6_u8) {
        let _ = ToWorkerControl::decode(&packet);
        let _ = FromWorkerControl::decode(&packet);
        let mut packet = packet;
        packet.insert(0, kind);
        let _ = ToWorkerControl::decode(&packet);
        let _ = FromWorkerControl::decode(&packet);
    }
}

#[test]
fn an_oversized_packet_is_refused_with_the_reason() {
    let nameless = PathBuf::from(OsString::from_vec(vec![b'/', 0xff]));
    let error = ToWorkerControl::Hello(hello(nameless)).encode();
    assert!(error.expect_err("refused").to_string().contains("UTF-8"));
    let long = ToWorkerControl::Hello(hello("p".repeat(PACKET_LIMIT).into())).encode();
    assert!(long.expect_err("refused").to_string().contains("64 KiB"));
}

#[test]
fn a_refusal_reads_the_same_in_all_versions() {
    let refusal = FromWorkerControl::Refused { reason: "no".to_owned() };
    assert_eq!(refusal.encode().expect("encodes"), [2, 2, b'n', b'o']);
}

#[test]
fn tokens_compare_all_bits_and_hide_them_from_debug() {
    let token = Token::random();
    assert_eq!(token, token);
    assert_ne!(token, Token::random());
    for bit in 0..128 {
        let mut other = token;
        other.0[bit / 8] ^= 1 << (bit % 8);
        assert_ne!(token, other);
    }
    assert_eq!(format!("{token:?}"), "Token(..)");
}

#[test]
fn the_bytes_of_a_greeting_change_only_with_the_version() {
    let sandbox = Confinement {
        isolation: Some(Isolation {
            network: true,
            files: Some(vec![Visible {
                path: c"/a".to_owned(),
                links: vec![(c"/l".to_owned(), c"a".to_owned())],
                is_folder: true,
                is_writable: false,
            }]),
        }),
        files: true,
        own: vec![(c"/o".to_owned(), 5)],
        capabilities: Some(false),
        limits: vec![(Limited::OpenFiles, 16), (Limited::CpuTime, 300)],
        lowers_limits: true,
        filters: vec![vec![18, 19], vec![]],
        before_initializer: true,
    };
    let greeting = Hello {
        token: Token([9; 16]),
        given: Given { segment: Some(()), caller: Some(()), files: Some(()), ..Given::default() },
        events: Some(tracing::Level::DEBUG.into()),
        arenas: (5, 6),
        terms: Terms { budget: 7, protection: Protection::Copied },
        copies: Some(Duration::new(8, 9)),
        max_rss: 10,
        max_growth: 11,
        preload: Some(14),
        initializer: Some(15),
        finalizer: Some(16),
        sandbox: Some(Box::new(sandbox)),
        ..hello("f".into())
    };
    let parts: [&[u8]; 13] = [
        // The message, token, whether it asks, and what comes along.
        &[0],
        &[9; 16],
        &[1],
        &[1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1],
        // Worker, limit and slots.
        &[1, 2, 128, 128, 128, 128, 4, 64],
        // Events, link, arenas and terms.
        &[1, 3, 1, 5, 6, 7, 2],
        // Folder, pinned, copies, limits on memory and depth.
        &[1, b'f', 0, 1, 8, 9, 10, 11, 1],
        &[7; 32],
        // Preload, initializer and finalizer.
        &[1, 14, 1, 15, 1, 16],
        // The sandbox: namespaces, visible files, rules, own entries and capabilities.
        &[1, 1, 1, 1, 1],
        &[2, b'/', b'a', 1, 2, b'/', b'l', 1, b'a', 1, 0],
        &[1, 1, 2, b'/', b'o', 5, 1, 0],
        // Limits, and filters.
        &[2, 1, 16, 6, 172, 2, 1, 2, 2, 18, 19, 0, 1],
    ];
    let packet = ToWorkerControl::Hello(greeting).encode().expect("encodes");
    assert_eq!(packet, parts.concat());
}

#[test]
fn descriptors_come_out_as_they_went_in() {
    let given = Given { segment: Some(1), page: Some(2), files: Some(3), ..Given::default() };
    let mut hello = hello(PathBuf::new());
    assert_eq!(hello.give(given.clone()), [1, 2, 3]);
    assert_eq!(hello.take(vec![1, 2, 3]), Some(given));
    assert_eq!(hello.take(vec![1, 2]), None);
}

#[test]
fn the_bytes_of_other_packets_change_only_with_the_version() {
    let request = ForkRequest {
        environment: true,
        doors: 2,
        inherited: Inherited {
            umask: 3,
            nice: -1,
            affinity: vec![4, 5],
            limits: vec![(6, 7)],
            oom_score: -2,
            ignores_hangup: true,
        },
    };
    let packet = ToWorkerControl::Fork(request).encode().expect("encodes");
    assert_eq!(packet, [2, 1, 2, 3, 1, 2, 4, 5, 1, 6, 7, 3, 1]);

    let arena = ToWorkerControl::Arena(ArenaRef { inode: 300, length: 5 });
    assert_eq!(arena.encode().expect("encodes"), [4, 172, 2, 5]);
}
