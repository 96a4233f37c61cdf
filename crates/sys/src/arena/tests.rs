//! Tests both sides in one process, over descriptors as they would be handed over.

mod buffers;
#[cfg(not(loom))]
mod random;

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr;
use std::sync::Arc;

use brigade_testkit_core::payload;
use rustix::fs::{MemfdFlags, fstat, ftruncate, memfd_create};
use rustix::io::Errno;
use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap, mprotect, munmap};

use super::mapping::page_size;
use super::*;

const MEBIBYTE: usize = 1 << 20;

fn copy_of(descriptor: &impl AsFd) -> OwnedFd {
    descriptor.as_fd().try_clone_to_owned().expect("a descriptor")
}

/// Returns the bytes of memory behind a file.
fn memory(file: impl AsFd) -> usize {
    usize::try_from(fstat(file).expect("its size").st_blocks).expect("not negative") * 512
}

/// Returns the bytes of memory behind the blocks of an arena of results, whose control page was
/// looked at, and so has memory.
fn memory_of_blocks(view: &ResultView) -> usize {
    memory(view) - page_size()
}

fn arguments(bytes: usize) -> (Arc<ArgumentArena>, ArgumentView) {
    let arena = ArgumentArena::create("test", bytes, KEPT).expect("memory");
    let view = ArgumentView::open(copy_of(&arena), arena.len()).expect("an arena");
    (arena, view)
}

fn results(bytes: usize) -> (Arc<ResultArena>, Arc<ResultView>) {
    let view = ResultView::create("test", bytes, bytes, Terms::default()).expect("memory");
    assert_eq!(view.waiting(), 0);
    let arena = ResultArena::open(copy_of(&view), view.len(), view.terms()).expect("an arena");
    (arena, view)
}

fn all(loan: &Loan) -> Vec<u8> {
    loan.copy_to_vec(0, loan.len())
}

#[test]
fn arguments_arrive() {
    let (arena, view) = arguments(8 * MEBIBYTE);
    let lengths = [0, 1, 4095, 4096, 4097, MEBIBYTE];
    let blocks: Vec<_> = (0..)
        .zip(lengths)
        .map(|(number, length)| {
            let payload = payload(number, length);
            let (head, tail) = payload.split_at(length / 3);
            arena.put(&[head, tail]).expect("room")
        })
        .collect();
    for (number, (block, length)) in blocks.iter().zip(lengths).enumerate() {
        assert_eq!(block.len(), length);
        assert_eq!(view.bytes(block.offset(), block.len()), Some(&payload(number, length)[..]));
    }
}

#[test]
fn results_arrive() {
    let (arena, view) = results(8 * MEBIBYTE);
    let mut loans = Vec::new();
    for (number, length) in [0, 1, 4031, 4032, 4033, MEBIBYTE].into_iter().enumerate() {
        let payload = payload(number, length);
        let (head, tail) = payload.split_at(length / 3);
        let (offset, length) = arena.put(&[head, tail]).expect("room");
        loans.push((view.loan(offset, length).expect("a block"), payload));
    }
    for (loan, payload) in &loans {
        assert_eq!(&all(loan), payload);
        let (at, length) = (payload.len() / 2, payload.len() / 4);
        let mut into = b"before".to_vec();
        loan.copy_into(at, length, &mut into);
        assert_eq!(into, [b"before", &payload[at..at + length]].concat());
    }
}

fn try_to_map(descriptor: BorrowedFd<'_>, access: ProtFlags) -> Result<*mut u8, Errno> {
    // SAFETY: a new mapping at an address of the kernel's choice overlaps nothing.
    unsafe { mmap(ptr::null_mut(), page_size(), access, MapFlags::SHARED, descriptor, 0) }
        .map(<*mut _>::cast)
}

#[test]
fn a_worker_cannot_write_arguments() {
    let (arena, _view) = arguments(MEBIBYTE);
    let worker = arena.as_fd();
    let writable = ProtFlags::READ | ProtFlags::WRITE;
    assert_eq!(try_to_map(worker, writable), Err(Errno::ACCESS));
    let readable = try_to_map(worker, ProtFlags::READ).expect("it can be read");
    let flags = MprotectFlags::READ | MprotectFlags::WRITE;
    // SAFETY: nobody else knows of this mapping.
    let made_writable = unsafe { mprotect(readable.cast(), page_size(), flags) };
    assert_eq!(made_writable, Err(Errno::ACCESS));
    // SAFETY: see above.
    unsafe { munmap(readable.cast(), page_size()) }.expect("it was mapped");
    assert_eq!(rustix::io::write(worker, b"x"), Err(Errno::BADF));
    assert!(ftruncate(worker, 0).is_err());
    if !rustix::process::geteuid().is_root() {
        use std::os::fd::AsRawFd;
        let path = format!("/proc/self/fd/{}", worker.as_raw_fd());
        let error = std::fs::File::options().write(true).open(path).expect_err("read-only");
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
    }
}

#[test]
fn a_file_that_is_not_an_arena_is_refused() {
    let kind = |error: io::Error| error.kind();
    let invalid = Some(io::ErrorKind::InvalidData);
    let arguments = ArgumentArena::create("test", MEBIBYTE, KEPT).expect("memory");
    let results = ResultView::create("test", MEBIBYTE, MEBIBYTE, Terms::default()).expect("memory");
    for bytes in [0, MEBIBYTE - 1, 2 * MEBIBYTE, usize::MAX] {
        assert_eq!(ArgumentView::open(copy_of(&arguments), bytes).err().map(kind), invalid);
        assert_eq!(
            ResultArena::open(copy_of(&results), bytes, Terms::default()).err().map(kind),
            invalid
        );
    }
    let writable = ArgumentView::open(copy_of(&results), MEBIBYTE);
    assert_eq!(writable.err().map(kind), invalid);
    let unsealed = memfd_create("test", MemfdFlags::CLOEXEC).expect("memory");
    ftruncate(&unsealed, MEBIBYTE as u64).expect("a size");
    let opened = ResultArena::open(unsealed, MEBIBYTE, Terms::default());
    assert_eq!(opened.err().map(kind), invalid);
    for bytes in [usize::MAX, isize::MAX.unsigned_abs() + 1] {
        let error = ArgumentArena::create("test", bytes, KEPT).expect_err("impossible");
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    }
}

#[test]
fn arenas_leave_most_of_the_address_space_to_the_program() {
    let (most, gibibyte) = (16 << 30, 1_u64 << 30);
    assert_eq!(share_of(None, most, 64), Some(most), "without a limit");
    assert_eq!(share_of(Some(1 << 46), most, 64), Some(most));
    assert_eq!(share_of(Some(24 * gibibyte), most, 1), Some(3 << 30));
    assert_eq!(share_of(Some(24 * gibibyte), most, 64), Some((3 << 30) / 64));
    assert_eq!(share_of(Some(gibibyte), most, 64), None, "a few pages are not an arena");
    assert_eq!(share_of(Some(0), most, 0), None);
}

#[test]
fn a_size_too_large_is_halved_until_the_system_grants_it() {
    // More than any address space; the kernel creates the file and refuses the mapping.
    let arena = ArgumentArena::create("test", 1 << 62, KEPT).expect("memory");
    assert!((SMALLEST..1 << 62).contains(&arena.len()));
    assert_eq!(memory(&arena), 0, "an unused arena takes memory");
}

#[test]
fn locations_outside_are_refused() {
    let (_arena, view) = arguments(MEBIBYTE);
    assert!(view.bytes(MEBIBYTE - 1, 1).is_some());
    for (offset, length) in [(MEBIBYTE - 1, 2), (MEBIBYTE + 1, 0), (1, usize::MAX), (usize::MAX, 1)]
    {
        assert_eq!(view.bytes(offset, length), None);
    }
    let (_arena, view) = results(MEBIBYTE);
    assert!(view.loan(HEADER, MEBIBYTE - HEADER).is_some());
    for (offset, length) in [
        (0, 1),
        (HEADER - 1, 1),
        (HEADER + 1, 1),
        (HEADER + 8, 1),
        (HEADER, MEBIBYTE),
        (HEADER, usize::MAX),
        (MEBIBYTE + HEADER, 0),
        (usize::MAX, 1),
    ] {
        assert!(view.loan(offset, length).is_none(), "{offset}, {length}");
    }
}

#[test]
fn freed_memory_is_used_again_and_is_warm() {
    let length = 16 * MEBIBYTE;
    let (arena, view) = arguments(1 << 30);
    let first = arena.put(&[&payload(1, length)]).expect("room").offset();
    assert_eq!(memory(&arena), length);
    for number in 2..5 {
        let block = arena.put(&[&payload(number, length)]).expect("room");
        assert_eq!((block.offset(), memory(&arena)), (first, length));
        assert_eq!(view.bytes(first, length), Some(&payload(number, length)[..]));
    }

    let (arena, view) = results(1 << 30);
    let bytes = payload(1, length);
    let (first, _) = arena.put(&[&bytes]).expect("room");
    let loan = view.loan(first, length).expect("a block");
    let (second, _) = arena.put(&[b"x"]).expect("room");
    assert_ne!(first, second, "lent");
    let warm = memory(&view);
    drop(loan);
    let (third, _) = arena.put(&[&bytes]).expect("room");
    assert_eq!((third, memory(&view)), (first, warm));
}

#[test]
fn an_arena_that_is_full_recovers() {
    let (arena, _view) = arguments(MEBIBYTE);
    let bytes = payload(0, MEBIBYTE / 2);
    let first = arena.put(&[&bytes]).expect("room");
    let second = arena.put(&[&bytes]).expect("room");
    assert!(arena.allocate(1).is_none() && arena.allocate(usize::MAX).is_none());
    drop(first);
    assert!(arena.allocate(bytes.len() + 1).is_none());
    assert!(arena.allocate(bytes.len()).is_some());
    drop(second);
    assert!(arena.allocate(MEBIBYTE).is_some(), "in one piece");

    let (arena, view) = results(MEBIBYTE);
    let bytes = payload(0, MEBIBYTE - HEADER);
    let (offset, length) = arena.put(&[&bytes]).expect("room");
    let loan = view.loan(offset, length).expect("a block");
    assert_eq!(arena.put(&[b"x"]), None);
    drop(loan);
    assert_eq!(arena.put(&[&bytes]), Some((offset, length)));
}

#[test]
fn memory_beyond_the_kept_amount_goes_back() {
    let length = 2 * KEPT;
    let (arena, _view) = arguments(1 << 30);
    let block = arena.allocate(length).expect("room");
    assert_eq!(memory(&arena), length);
    drop(block);
    assert_eq!(memory(&arena), KEPT);
    let blocks: Vec<_> = (0..128).map(|_| arena.allocate(MEBIBYTE).expect("room")).collect();
    assert_eq!(memory(&arena), length);
    drop(blocks);
    assert_eq!(memory(&arena), KEPT);
}

#[test]
fn the_host_releases_memory_for_an_idle_worker() {
    let (arena, view) = results(1 << 30);
    let bytes = payload(0, MEBIBYTE - HEADER);
    let mut offsets = Vec::new();
    let loans: Vec<_> = (0..128)
        .map(|_| {
            let (offset, length) = arena.put(&[&bytes]).expect("room");
            offsets.push(offset);
            view.loan(offset, length).expect("a block")
        })
        .collect();
    assert_eq!(memory_of_blocks(&view), 2 * KEPT);
    drop(loans);
    // Half of the blocks were released except for the page with the flag.
    assert_eq!(memory_of_blocks(&view), KEPT + 64 * page_size());
    arena.reclaim();
    assert_eq!(memory_of_blocks(&view), KEPT);
    for _ in 0..128 {
        let (offset, length) = arena.put(&[&bytes]).expect("room");
        assert!(offsets.contains(&offset));
        assert_eq!(all(&view.loan(offset, length).expect("a block")), bytes);
    }
    let large = payload(1, 2 * KEPT);
    let (offset, length) = arena.put(&[&large]).expect("room");
    drop(view.loan(offset, length).expect("a block"));
    arena.reclaim();
    assert!(memory_of_blocks(&view) <= KEPT);
    let (offset, length) = arena.put(&[&large]).expect("room");
    assert_eq!(all(&view.loan(offset, length).expect("a block")), large);
}

#[test]
fn a_lying_worker_harms_only_itself() {
    let (arena, view) = results(MEBIBYTE);
    let bytes = payload(0, 100_000);
    let (offset, length) = arena.put(&[&bytes]).expect("room");
    let loans = [(); 3].map(|()| view.loan(offset, length).expect("a block"));
    let [first, second, third] = loans;
    drop(first);
    // The worker uses the memory again while it is lent.
    let (again, _) = arena.put(&[&payload(1, length)]).expect("room");
    assert_eq!(again, offset);
    assert_eq!(all(&second), payload(1, length));
    drop((second, third));
    // Nothing was ever stored there.
    let never = view.loan(page_size() * 40 + HEADER, 10_000).expect("inside");
    assert_eq!(all(&never), [0; 10_000]);
    drop(never);
    // More than exists, in total.
    let loans: Vec<_> =
        (0..1000).map(|_| view.loan(HEADER, MEBIBYTE - HEADER).expect("inside")).collect();
    drop(loans);
    assert_eq!(arena.put(&[&bytes]).map(|(_, length)| length), Some(length));
}

#[test]
fn copies_are_exact_at_any_offset_and_length() {
    let (arena, view) = results(MEBIBYTE);
    let bytes = payload(5, 5000);
    let (offset, length) = arena.put(&[&bytes]).expect("room");
    let loan = view.loan(offset, length).expect("there");
    let mut copy = Vec::new();
    for (at, length) in [(0, 5000), (1, 0), (0, 1), (7, 63), (64, 64), (3, 4097), (4999, 1)] {
        loan.copy_into(at, length, &mut copy);
        assert!(copy.ends_with(&bytes[at..at + length]), "{length} bytes from {at} on");
    }
    assert_eq!(copy[..5000], bytes, "what was copied before stays");
}

#[test]
fn a_read_only_mapping_does_not_count_as_populated() {
    let (descriptor, writable) = mapping::create("test", MEBIBYTE).expect("memory");
    writable.populate(0, MEBIBYTE).expect("memory");
    let readable = mapping::open(&descriptor, MEBIBYTE, ProtFlags::READ).expect("an arena");
    assert!(readable.populate(0, MEBIBYTE).is_err());
}

#[test]
fn blocks_may_cross_threads() {
    fn check<T: Send + Sync + std::fmt::Debug>() {}
    check::<ArgumentBlock>();
    check::<SharedBlock>();
    check::<Arc<ArgumentArena>>();
    check::<ArgumentView>();
    check::<Arc<ResultArena>>();
    check::<Arc<ResultView>>();
    check::<Loan>();
    check::<ResultBlock>();
    check::<FrozenBlock>();
    check::<LentBlock>();
    check::<ForeignArena>();
}

#[test]
fn no_payload_is_longer_than_the_longest_wherever_it_lies() {
    let view = ResultView::create("test", MEBIBYTE, 10_000, Terms::default()).expect("memory");
    let page = page_size();
    for payload in [HEADER, page + HEADER] {
        assert!(view.loan(payload, 10_000).is_some());
        assert!(view.loan(payload, 10_001).is_none());
        assert!(view.loan_buffer(payload, 1).is_none(), "a payload is no buffer");
    }
    for buffer in [page, 2 * page] {
        assert!(view.loan_buffer(buffer, 10_001).is_some());
        assert!(view.loan(buffer, 10_001).is_none());
        assert!(view.loan(buffer, 1).is_none(), "a buffer is no payload");
    }
}
