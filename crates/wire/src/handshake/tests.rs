//! Every packet decodes to itself, and no other bytes decode.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use proptest::prelude::*;

use super::*;

fn hello(pool: String, folder: PathBuf) -> Hello {
    Hello {
        arenas: (0, 0),
        terms: [0, 0],
        version: 1,
        token: Token::random(),
        worker: WorkerId { slot: 1, generation: 2 },
        pool,
        message_limit: 1 << 30,
        slots: 64,
        folder,
        lifeline: false,
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
        version: u32, bytes: [u8; 16], slot: u32, generation: u32, pool: String, message_limit: u64, slots: u16,
        folder: String, lifeline: bool, depth: u32, identity: [u8; 32], initializer: Option<u64>, finalizer: Option<u64>,
    ) -> Hello {
        let worker = WorkerId { slot, generation };
        let events = lifeline.then_some(EventLevel::Debug);
        let (token, folder, link, arenas) = (Token(bytes), folder.into(), LinkKind::Ring, (1, 2));
        Hello {
            version, token, worker, pool, message_limit, slots, lifeline, events, link, arenas, folder, pinned: true, copies: Some(Duration::from_millis(9)), max_rss: 7, max_growth: 8, sandbox: None, depth, identity,
            preload: None, initializer, finalizer, terms: [3, 4],
        }
    }
}

prop_compose! {
    fn answers()(
        version: u32, bytes: [u8; 16], pid: u32, identity: [u8; 32], server: String, program: Option<Option<String>>,
    ) -> Answer {
        let program = program.map(|version| ServerProgram { version });
        let arenas = pid % 2 == 1;
        let token = Token(bytes);
        Answer { version, token, pid, identity, server, arenas, program }
    }
}

fn to_worker() -> impl Strategy<Value = ToWorkerControl> {
    prop_oneof![
        hellos().prop_map(ToWorkerControl::Hello),
        Just(ToWorkerControl::Go),
        any::<(u64, u64)>().prop_map(|(inode, size)| ToWorkerControl::Arena { inode, size }),
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
    let error = ToWorkerControl::Hello(hello("pool".to_owned(), nameless)).encode();
    assert!(error.expect_err("refused").to_string().contains("UTF-8"));
    let long = ToWorkerControl::Hello(hello("p".repeat(PACKET_LIMIT), PathBuf::new())).encode();
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
