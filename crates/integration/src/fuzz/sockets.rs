//! Well-formed messages that lie: in the ring of outcomes, or in any socket of a worker.
//!
//! A packet of ipc-channel begins with the length of its whole message; a packet of the link over
//! it has flags, the credit, and in the first fragment of a message the message's length.

use std::fs::File;
use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use brigade_sys::clock::Monotonic;
use brigade_testkit::Random;
use brigade_wire::{Attempt, Finished, FromWorker, Item, Location, Outcome, TaskId};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};

use super::Wire;
use super::targets::Scene;
use crate::scribble::SharedMemory;

const WHOLE: u8 = 3;
const CREDIT: u8 = 4;
const UNKNOWN: u8 = 8;

/// Forges outcomes of all kinds, for its own task and for others.
pub(super) fn forge_answers(scene: &mut Scene) {
    for _ in 0..scene.random.within(1..6) {
        let message = answer(&mut scene.random);
        if scene.link == Wire::Ring {
            SharedMemory::of_this_process().publish(&message);
        } else {
            let mut packet = vec![WHOLE];
            packet.extend(credit(&mut scene.random).to_le_bytes());
            packet.extend((message.len() as u64).to_le_bytes());
            packet.extend(&message);
            send_everywhere(scene, packet.len() as u64, &packet);
        }
    }
}

/// Claims to have read more than it has.
pub(super) fn claim_credit(scene: &mut Scene) {
    for _ in 0..scene.random.within(1..20) {
        let flags = if scene.random.chance(95) { CREDIT } else { UNKNOWN };
        let packet = [&[flags], &credit(&mut scene.random).to_le_bytes()[..]].concat();
        send_everywhere(scene, 9, &packet);
    }
}

/// Sends packets whose claimed length is wrong.
pub(super) fn claim_lengths(scene: &mut Scene) {
    for _ in 0..scene.random.within(1..6) {
        let lengths = [0, 1, 9, 1000, 1 << 20, 1 << 32, 1 << 40, u64::MAX];
        let (claimed, claimed_inside) =
            (*scene.random.choose(&lengths), *scene.random.choose(&lengths));
        let mut packet = vec![scene.random.number().to_le_bytes()[0] % 16];
        packet.extend(credit(&mut scene.random).to_le_bytes());
        packet.extend(claimed_inside.to_le_bytes());
        packet.extend(vec![7; usize::try_from(scene.random.within(0..3000)).expect("a length")]);
        let claimed = if scene.random.chance(50) { packet.len() as u64 } else { claimed };
        send_everywhere(scene, claimed, &packet);
    }
}

/// Attaches open files to packets without credit.
pub(super) fn attach_descriptors(scene: &mut Scene) {
    let Ok(nowhere) = File::open("/dev/null") else { return };
    let packet = [&[CREDIT], &[0; 8][..]].concat();
    let sockets = scene.files();
    for _ in 0..scene.random.within(1..20) {
        for socket in &sockets {
            send(socket, packet.len() as u64, &packet, Some(&nowhere));
        }
    }
}

fn send_everywhere(scene: &mut Scene, claimed: u64, packet: &[u8]) {
    for socket in scene.files() {
        send(&socket, claimed, packet, None);
    }
}

/// Fails silently for files that are not sockets, and where there is no room.
fn send(socket: &OwnedFd, claimed: u64, packet: &[u8], attached: Option<&File>) {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let attached = attached.map(|file| [file.as_fd()]);
    if let Some(attached) = &attached {
        control.push(SendAncillaryMessage::ScmRights(attached));
    }
    let length = claimed.to_le_bytes();
    let bytes = [IoSlice::new(&length), IoSlice::new(packet)];
    let _ = sendmsg(socket, &bytes, &mut control, SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
}

fn credit(random: &mut Random) -> u64 {
    match random.within(0..4) {
        0 => 0,
        1 => random.within(0..10_000),
        2 => random.within(0..2_000_000),
        _ => random.number(),
    }
}

fn answer(random: &mut Random) -> Vec<u8> {
    let garbage: Vec<u8> =
        (0..random.within(0..200)).map(|_| random.number().to_le_bytes()[0]).collect();
    let outcome = match random.within(0..4) {
        0 => Outcome::Value(&garbage),
        1 => {
            let offset =
                if random.chance(50) { random.within(0..1 << 20) } else { random.number() };
            let length =
                if random.chance(80) { random.within(0..3 << 20) } else { random.number() };
            Outcome::InArena(Location { offset: offset / 64 * 64, length })
        }
        2 => Outcome::ResultCodec(String::from_utf8_lossy(&garbage).into_owned()),
        _ => Outcome::UnknownFunction("garbage".to_owned()),
    };
    let ring_index = u16::try_from(random.within(0..520)).expect("a small number");
    let own = brigade::worker::task().map_or(0, TaskId::get);
    let task = TaskId::new(if random.chance(60) {
        own + random.within(0..4)
    } else {
        random.within(0..own + 50)
    });
    let attempt = Attempt::new(u32::try_from(random.within(1..3)).expect("a small number"));
    let answer = match random.within(0..4) {
        0 => FromWorker::Item(Item { ring_index, index: u32::from(ring_index) % 8, outcome }),
        1 => FromWorker::Skipped { task, attempt, ring_index },
        _ => FromWorker::Finished(Finished {
            task,
            attempt,
            ring_index: ring_index % 4,
            run_time: Duration::from_nanos(random.number()),
            began: Monotonic::from_nanos(random.number()),
            worn: random.chance(20),
            outcome,
        }),
    };
    let mut message = Vec::new();
    answer.encode_head(&mut message);
    message.extend(answer.payload());
    message
}
