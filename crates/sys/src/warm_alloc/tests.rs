//! Tests of the allocator, which is not the global one here.

use super::*;

fn layout(size: usize) -> Layout {
    Layout::from_size_align(size, 16).unwrap()
}

/// Allocates a block, and fills its ends.
fn block(allocator: &WarmAlloc, size: usize) -> NonNull<u8> {
    // SAFETY: the size is not zero, and the block has that many bytes.
    unsafe {
        let block = NonNull::new(allocator.alloc(layout(size))).unwrap();
        block.write(1);
        block.add(size - 1).write(2);
        block
    }
}

fn free(allocator: &WarmAlloc, block: NonNull<u8>, size: usize) {
    // SAFETY: allocated here, with this size, and not used again.
    unsafe { allocator.dealloc(block.as_ptr(), layout(size)) };
}

#[test]
fn a_freed_block_serves_sizes_of_its_class_and_no_others() {
    let allocator = WarmAlloc::new();
    let first = block(&allocator, SMALLEST + 1);
    free(&allocator, first, SMALLEST + 1);
    let length = SMALLEST / 8 * 9;
    assert_eq!(allocator.kept(), length);
    let larger = block(&allocator, length + 1);
    assert_ne!(larger, first);
    assert_eq!(block(&allocator, length), first);
    assert_eq!(allocator.kept(), 0);
    free(&allocator, first, length);
    free(&allocator, larger, length + 1);
}

#[test]
fn smaller_blocks_are_the_systems() {
    let allocator = WarmAlloc::new();
    let small = block(&allocator, SMALLEST - 1);
    free(&allocator, small, SMALLEST - 1);
    assert_eq!(allocator.kept(), 0);
    assert_eq!(length_of(Layout::from_size_align(SMALLEST, 2 * PAGE).unwrap()), None);
    assert_eq!(length_of(layout(isize::MAX.unsigned_abs() - 15)), Some(1 << 63));
}

#[test]
fn no_more_than_the_limit_is_kept() {
    let allocator = WarmAlloc::with_limit(2 * SMALLEST);
    let blocks: Vec<_> = (0..4).map(|_| block(&allocator, SMALLEST)).collect();
    for block in blocks {
        free(&allocator, block, SMALLEST);
        assert!(allocator.kept() <= 2 * SMALLEST);
    }
    assert_eq!(allocator.kept(), 2 * SMALLEST);
    let alone = block(&allocator, 3 * SMALLEST);
    free(&allocator, alone, 3 * SMALLEST);
    assert_eq!(allocator.kept(), 2 * SMALLEST);
}

#[test]
fn a_new_block_replaces_an_old_one_if_all_slots_are_taken() {
    let allocator = WarmAlloc::with_limit(usize::MAX);
    let blocks: Vec<_> = (0..SLOTS).map(|_| block(&allocator, SMALLEST)).collect();
    for block in blocks {
        free(&allocator, block, SMALLEST);
    }
    let other = block(&allocator, 2 * SMALLEST);
    free(&allocator, other, 2 * SMALLEST);
    assert_eq!(allocator.kept(), (SLOTS + 1) * SMALLEST);
    assert_eq!(block(&allocator, 2 * SMALLEST), other);
    free(&allocator, other, 2 * SMALLEST);
}

#[test]
fn zeroed_blocks_are_zero_after_others_were_freed() {
    let allocator = WarmAlloc::new();
    let used = block(&allocator, SMALLEST);
    free(&allocator, used, SMALLEST);
    // SAFETY: the size is not zero, the block has that many bytes, and is freed once.
    unsafe {
        let zeros = allocator.alloc_zeroed(layout(SMALLEST));
        let bytes = std::slice::from_raw_parts(zeros, SMALLEST);
        assert!(bytes.iter().all(|byte| *byte == 0));
        allocator.dealloc(zeros, layout(SMALLEST));
    }
}

#[test]
fn a_block_that_grows_and_shrinks_keeps_its_contents() {
    let allocator = WarmAlloc::new();
    let mut size = SMALLEST / 2;
    // SAFETY: each block is used until the next one takes its place, within its size.
    unsafe {
        let mut block = allocator.alloc(layout(size));
        block.write_bytes(7, size);
        for next in [SMALLEST, SMALLEST + 1, 5 * SMALLEST, 2 * SMALLEST, SMALLEST / 4] {
            block = allocator.realloc(block, layout(size), next);
            let kept = std::slice::from_raw_parts(block, size.min(next).min(SMALLEST / 4));
            assert!(kept.iter().all(|byte| *byte == 7), "{size} to {next}");
            block.add(next - 1).write(7);
            size = next;
        }
        allocator.dealloc(block, layout(size));
    }
    assert_eq!(allocator.kept(), 2 * SMALLEST);
}

#[test]
fn threads_never_get_the_same_block() {
    let allocator = WarmAlloc::with_limit(8 * SMALLEST);
    let held = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for thread in 1..=4_u8 {
            let (allocator, held) = (&allocator, &held);
            scope.spawn(move || {
                for turn in 0..200 {
                    let size = SMALLEST * (1 + turn % 2);
                    let block = block(allocator, size);
                    held.fetch_add(1, Ordering::Relaxed);
                    // SAFETY: the block is this thread's until it is freed.
                    unsafe {
                        block.add(8).write_volatile(thread);
                        std::thread::yield_now();
                        assert_eq!(block.add(8).read_volatile(), thread);
                    }
                    free(allocator, block, size);
                }
            });
        }
    });
    assert_eq!(held.into_inner(), 800);
    assert!(allocator.kept() <= 8 * SMALLEST);
}
