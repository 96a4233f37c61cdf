//! Tests buffers in the arena of a worker, on both sides.

use std::os::fd::AsRawFd;
use std::sync::mpsc;
use std::thread;

use super::super::mapping::page_size;
use super::*;

fn arena_with(budget: usize, protection: Protection) -> (Arc<ResultArena>, Arc<ResultView>) {
    let bytes = 64 * MEBIBYTE;
    let terms = Terms { budget, protection };
    let view = ResultView::create("test", bytes, bytes, terms).expect("memory");
    assert_eq!(view.terms(), terms);
    assert_eq!(view.waiting(), 0);
    let arena = ResultArena::open(copy_of(&view), view.len(), view.terms()).expect("an arena");
    (arena, view)
}

fn buffer(arena: &Arc<ResultArena>, bytes: &[u8]) -> FrozenBlock {
    let mut block = arena.allocate_block(bytes.len(), WhenFull::Fail).expect("room");
    block.as_mut_bytes().copy_from_slice(bytes);
    assert_eq!(block.as_bytes(), bytes);
    block.freeze().expect("few mappings")
}

/// Names the block in a message that arrives.
fn send(block: &FrozenBlock, view: &Arc<ResultView>) -> Loan {
    block.export();
    view.loan_buffer(block.offset(), block.as_bytes().len()).expect("a block")
}

#[test]
fn the_host_reads_a_buffer_where_it_lies() {
    for protection in [Protection::Trusted, Protection::ReadOnly] {
        let (arena, view) = arena_with(32 * MEBIBYTE, protection);
        for length in [0, 1, 4096, MEBIBYTE + 1] {
            let bytes = payload(length, length);
            let block = buffer(&arena, &bytes);
            let loan = send(&block, &view);
            assert_eq!(loan.as_bytes(), bytes);
            assert!(block.offset().is_multiple_of(64));
            assert_eq!(all(&loan), bytes, "copied like any payload");
            drop(block);
            assert_eq!(loan.as_bytes(), bytes, "the worker needs it no longer");
        }
    }
}

#[test]
fn a_block_is_reused_when_both_sides_have_dropped_it() {
    for protection in [Protection::Trusted, Protection::ReadOnly] {
        let (arena, view) = arena_with(32 * MEBIBYTE, protection);
        let bytes = payload(0, MEBIBYTE);
        let block = buffer(&arena, &bytes);
        let offset = block.offset();
        let loans = [send(&block, &view), send(&block, &view)];
        block.export();
        block.undo_export();

        let [first, second] = loans;
        drop(first);
        thread::scope(|scope| scope.spawn(|| drop(block)).join()).expect("it does not panic");
        assert_ne!(buffer(&arena, &bytes).offset(), offset, "still lent");
        drop(second);
        arena.reclaim();
        let block = buffer(&arena, &bytes);
        assert_eq!(block.offset(), offset);
        drop(send(&block, &view));
        assert_ne!(buffer(&arena, &bytes).offset(), offset, "the worker still has it");
        assert_eq!(block.as_bytes(), bytes);
    }
}

#[test]
fn memory_of_buffers_stays_warm_up_to_the_budget() {
    let (arena, view) = arena_with(16 * MEBIBYTE, Protection::Trusted);
    let bytes = payload(0, 4 * MEBIBYTE);
    drop((buffer(&arena, &bytes), buffer(&arena, &bytes)));
    let warm = memory_of_blocks(&view);
    assert_eq!(warm, 2 * (4 * MEBIBYTE + page_size()));
    for _ in 0..10 {
        drop((buffer(&arena, &bytes), buffer(&arena, &bytes)));
        assert_eq!(memory_of_blocks(&view), warm);
    }
    let large = arena.allocate_block(32 * MEBIBYTE, WhenFull::Exceed).expect("memory");
    drop(large);
    assert!(memory_of_blocks(&view) <= 16 * MEBIBYTE);
}

#[test]
fn an_allocation_beyond_the_budget_waits_for_a_release() {
    let (arena, view) = arena_with(2 * MEBIBYTE, Protection::Trusted);
    let block = buffer(&arena, &payload(0, MEBIBYTE));
    let loan = send(&block, &view);
    drop(block);
    let page = page_size();
    let error = arena.allocate_block(MEBIBYTE, WhenFull::Fail).expect_err("used up");
    let (budget, used) = (2 * MEBIBYTE, MEBIBYTE + page);
    assert_eq!(error, AllocError::BudgetUsedUp { length: MEBIBYTE, budget, used });
    assert!(arena.allocate_block(MEBIBYTE, WhenFull::Exceed).is_ok());

    let (sender, allocated) = mpsc::channel();
    thread::scope(|scope| {
        scope.spawn(|| {
            let block = arena.allocate_block(MEBIBYTE, WhenFull::Wait).expect("memory");
            sender.send(block).expect("the test waits");
        });
        while view.waiting() == 0 {
            thread::yield_now();
        }
        assert!(allocated.try_recv().is_err(), "it does not wait");
        drop(loan);
        assert_eq!(allocated.recv().expect("a block").as_bytes().len(), MEBIBYTE);
    });
    assert_eq!(view.waiting(), 0);
}

#[test]
fn a_waiting_thread_gets_a_block_that_the_host_released() {
    let (arena, view) = arena_with(3 * MEBIBYTE, Protection::Trusted);
    let lent = buffer(&arena, &payload(0, MEBIBYTE));
    let loan = send(&lent, &view);
    drop(lent);
    let released = buffer(&arena, &payload(1, MEBIBYTE));
    drop(send(&released, &view));
    thread::scope(|scope| {
        let waits = scope.spawn(|| arena.allocate_block(MEBIBYTE, WhenFull::Wait).is_ok());
        while view.waiting() == 0 {
            thread::yield_now();
        }
        drop(released);
        assert!(waits.join().expect("it does not panic"));
    });
    drop(loan);
}

#[test]
fn nobody_waits_if_no_release_can_come() {
    let (arena, _view) = arena_with(MEBIBYTE, Protection::Trusted);
    let large = arena.allocate_block(4 * MEBIBYTE, WhenFull::Fail).expect("the only one");
    assert!(arena.allocate_block(1, WhenFull::Fail).is_err());
    let second = arena.allocate_block(1, WhenFull::Wait).expect("nothing is lent");
    drop((large, second));
    let error = arena.allocate_block(1 << 40, WhenFull::Wait).expect_err("no such arena");
    assert_eq!(error, AllocError::OutOfMemory { length: 1 << 40 });
    assert!(arena.allocate_block(usize::MAX, WhenFull::Wait).is_err());
}

#[test]
fn the_host_waits_for_room_among_the_arguments() {
    let arena = ArgumentArena::create("test", 64 * MEBIBYTE, 2 * MEBIBYTE).expect("memory");
    let large = arena.allocate_within_budget(4 * MEBIBYTE, WhenFull::Wait).expect("the only one");
    let error = arena.allocate_within_budget(1, WhenFull::Fail).expect_err("used up");
    let (budget, used) = (2 * MEBIBYTE, 4 * MEBIBYTE);
    assert_eq!(error, AllocError::BudgetUsedUp { length: 1, budget, used });
    assert!(arena.allocate_within_budget(1, WhenFull::Exceed).is_ok());
    thread::scope(|scope| {
        let waiter = scope.spawn(|| arena.allocate_within_budget(1, WhenFull::Wait));
        while arena.waiting() == 0 {
            thread::yield_now();
        }
        drop(large.freeze());
        waiter.join().expect("it does not panic").expect("memory");
    });
    let block = arena.allocate_within_budget(MEBIBYTE, WhenFull::Wait).expect("memory");
    assert_eq!(block.as_bytes().len(), MEBIBYTE);
}

/// Returns the error of a write by the kernel, which goes through the page tables of this process
/// and fails where a write by the process would get SIGSEGV.
fn write_through_the_page_tables(address: *const u8) -> Result<(), io::Error> {
    let (readable, writable) = rustix::pipe::pipe().expect("a pipe");
    rustix::io::write(&writable, b"x").expect("room in the pipe");
    // SAFETY: if it writes the byte, the test fails; the block is not referenced meanwhile.
    let read = unsafe { libc::read(readable.as_raw_fd(), address.cast_mut().cast(), 1) };
    if read == 1 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[test]
fn a_write_to_a_frozen_buffer_faults_at_read_only() {
    let (arena, view) = arena_with(32 * MEBIBYTE, Protection::ReadOnly);
    let bytes = payload(0, 10_000);
    let block = buffer(&arena, &bytes);
    for at in [0, 4096, 9_999] {
        let error = write_through_the_page_tables(&raw const block.as_bytes()[at]);
        assert_eq!(error.expect_err("protected").raw_os_error(), Some(libc::EFAULT));
    }
    let loan = send(&block, &view);
    assert_eq!(loan.as_bytes(), bytes);
    let (offset, old) = (block.offset(), block.as_bytes().as_ptr());
    drop((block, loan));
    arena.reclaim();
    // The pages can be written again, also by a payload, which is not protected.
    let (again, _) = arena.put(&[&payload(1, 12_000)]).expect("room");
    assert_eq!(again, offset - page_size() + HEADER, "the same block");
    write_through_the_page_tables(old).expect("writable");

    let (arena, _view) = arena_with(32 * MEBIBYTE, Protection::Trusted);
    let block = buffer(&arena, &bytes);
    write_through_the_page_tables(block.as_bytes().as_ptr()).expect("not protected");
}

#[test]
fn a_copy_is_out_of_reach_of_the_worker() {
    let (arena, view) = arena_with(32 * MEBIBYTE, Protection::Copied);
    let (host, worker) = arguments(8 * MEBIBYTE);
    let bytes = payload(0, MEBIBYTE);
    let block = buffer(&arena, &bytes);
    let loan = send(&block, &view);
    let copy = host.copy(&loan).expect("room");
    drop(loan);
    write_through_the_page_tables(block.as_bytes().as_ptr()).expect("its own memory");
    assert_eq!(copy.as_bytes(), bytes);
    assert_eq!(worker.lend(copy.offset(), copy.len()).expect("inside").as_bytes(), bytes);
}

#[test]
fn the_memory_of_a_dead_worker_goes_back() {
    let (arena, view) = arena_with(32 * MEBIBYTE, Protection::Trusted);
    let blocks = [1, 2, 3].map(|number| buffer(&arena, &payload(number, MEBIBYTE)));
    let [_, second, third] = &blocks;
    let loans = [send(second, &view), send(second, &view), send(third, &view)];
    let one = MEBIBYTE + page_size();
    assert_eq!(memory_of_blocks(&view), 3 * one);
    view.bury();
    assert_eq!(memory_of_blocks(&view), 2 * one, "only what is lent is left");
    let [first, second, third] = loans;
    drop(first);
    assert_eq!(memory_of_blocks(&view), 2 * one, "lent twice");
    assert_eq!(second.as_bytes(), payload(2, MEBIBYTE));
    drop(second);
    assert_eq!(memory_of_blocks(&view), one);
    assert_eq!(third.as_bytes(), payload(3, MEBIBYTE));
    let file = copy_of(&view);
    drop((third, view));
    assert_eq!(memory(&file), page_size(), "others that map it keep the control page only");
    drop(blocks);
}

#[test]
fn another_worker_reads_a_buffer_that_the_host_lends() {
    let (arena, view) = arena_with(32 * MEBIBYTE, Protection::Trusted);
    let bytes = payload(0, MEBIBYTE);
    let block = buffer(&arena, &bytes);
    let loan = send(&block, &view);
    let reference = loan.view().reference();
    assert_eq!(reference, arena.reference());
    let open = |arena| ForeignArena::open(view.for_reader().expect("a descriptor"), arena);
    let foreign = open(reference).expect("an arena");
    let mapped = foreign.lend(loan.offset(), loan.len()).expect("a buffer");
    assert_eq!(mapped.as_bytes(), bytes);
    write_through_the_page_tables(mapped.as_bytes().as_ptr()).expect_err("read-only");
    assert_eq!(arena.lend(loan.offset(), loan.len()).expect("its own").as_bytes(), bytes);

    assert!(open(ArenaRef { inode: reference.inode + 1, ..reference }).is_err());
    assert!(open(ArenaRef { length: reference.length - 4096, ..reference }).is_err());
    assert!(open(ArenaRef { length: u64::MAX, ..reference }).is_err());
    for (offset, length) in [(view.len(), 1), (0, view.len() + 1), (usize::MAX, 1), (1, usize::MAX)]
    {
        assert!(foreign.lend(offset, length).is_none());
        assert!(arena.lend(offset, length).is_none());
    }
    drop(foreign);
    assert_eq!(mapped.as_bytes(), bytes);
}

#[test]
fn names_of_impossible_blocks_are_refused() {
    let (arena, view) = arena_with(32 * MEBIBYTE, Protection::Trusted);
    let page = page_size();
    let block = buffer(&arena, &payload(0, 100));
    let (offset, blocks) = (block.offset(), 64 * MEBIBYTE);
    assert!(view.loan_buffer(offset, 100).is_some());
    assert!(view.loan_buffer(blocks - page, page).is_some());
    for (offset, length) in [
        (0, 1),
        (offset + 1, 1),
        (offset + 32, 1),
        (offset - page + 8, 1),
        (blocks, 0),
        (blocks - page, page + 1),
        (blocks + page, 0),
        (offset, usize::MAX),
        (usize::MAX - page + 1, 1),
    ] {
        let loan = view.loan_buffer(offset, length);
        // The end of the blocks holds an empty buffer, whose page with the header is the last one.
        assert_eq!(loan.is_some(), (offset, length) == (blocks, 0), "{offset}, {length}");
    }
}

#[test]
fn a_fork_of_host_or_worker_changes_nothing() {
    let (arena, view) = arena_with(32 * MEBIBYTE, Protection::Trusted);
    let bytes = payload(0, MEBIBYTE);
    let block = buffer(&arena, &bytes);
    let mut loan = Some(send(&block, &view));
    let mut block = Some(block);
    let offset = loan.as_ref().map(Loan::offset);
    let (host, _) = arguments(MEBIBYTE);
    let mut argument = Some(host.put(&[b"bytes"]).expect("room"));
    // SAFETY: the child calls only functions that take no lock of the C library, and exits.
    let child = unsafe { libc::fork() };
    if child == 0 {
        drop((loan.take(), block.take(), argument.take()));
        view.bury();
        let refused = arena.allocate_block(1, WhenFull::Wait).is_err()
            && arena.put(&[b"x"]).is_none()
            && host.allocate_within_budget(1, WhenFull::Wait).is_err();
        // SAFETY: it ends the process and has no conditions.
        unsafe { libc::_exit(i32::from(!refused)) }
    }
    let mut status = 0;
    // SAFETY: the child is ours, and the status is a valid place to write to.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(status, 0, "the fork could allocate, or crashed");
    let loan = loan.expect("here it was not taken");
    assert_eq!(loan.as_bytes(), bytes);
    drop(block);
    assert_ne!(Some(buffer(&arena, &bytes).offset()), offset, "the fork has released it");
    drop(loan);
    arena.reclaim();
    assert_eq!(Some(buffer(&arena, &bytes).offset()), offset);
    assert_eq!(argument.expect("here it was not taken").as_bytes(), b"bytes");
}

#[test]
fn the_default_budget_is_a_part_of_the_memory() {
    assert!(default_budget() >= 64 * MEBIBYTE);
    assert!(default_budget() < 1 << 50);
}
