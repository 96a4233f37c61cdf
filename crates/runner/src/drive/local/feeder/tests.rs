//! Tests of feeding jobs.

use std::io::Read;

use super::*;

fn part(text: &str, range: Range<u64>) -> (tempfile::TempPath, FilePart) {
    let path = tempfile::NamedTempFile::new().expect("disk").into_temp_path();
    std::fs::write(&path, text).expect("disk");
    let part = FilePart::new(path.to_path_buf(), range).header(b"head ".to_vec());
    (path, part)
}

#[test]
fn a_feed_is_the_header_and_the_part() {
    let mut feeder = Feeder::new(Stopper::new().expect("descriptors"));
    let text = "0123456789".repeat(500_000);
    let (_path, part) = part(&text, 3..4_999_999);
    let readers = [(); 3].map(|()| {
        let mut pipe = File::from(feeder.part(1, &part).expect("a pipe"));
        feeder.begin();
        thread::spawn(move || {
            let mut read = String::new();
            pipe.read_to_string(&mut read).expect("a pipe");
            read
        })
    });
    // Nobody reads this one.
    let _unread = feeder.part(2, &part).expect("a pipe");
    feeder.begin();
    // This one is closed early.
    drop(feeder.part(3, &part).expect("a pipe"));
    feeder.begin();
    for reader in readers {
        let read = reader.join().expect("no panic");
        assert!(read.strip_prefix("head ") == Some(&text[3..4_999_999]));
    }
    assert!(feeder.take_failures().is_empty());
}

#[test]
fn a_stream_is_its_header_and_the_blocks_that_arrive() {
    let mut feeder = Feeder::new(Stopper::new().expect("descriptors"));
    let streams = crate::block_streams::BlockStreams::new(2, crate::BlockSharing::InTurns);
    let header: Arc<[u8]> = Arc::from(&b"head "[..]);
    let [first, second] = [0, 1].map(|index| {
        let stream = streams.stream(index, Arc::clone(&header));
        let pipe = File::from(feeder.stream(1, &stream).expect("a pipe"));
        feeder.begin();
        pipe
    });
    // Closed by its job.
    drop(second);
    let reader = thread::spawn(move || io::read_to_string(first).expect("a pipe"));
    for text in ["one ", "two ", "three"] {
        for _ in [0, 1] {
            streams.give(&InputBlock::new(&[text.as_bytes()], 0).expect("memory"));
        }
    }
    streams.end();
    assert_eq!(reader.join().expect("no panic"), "head one two three");
}

#[test]
fn a_file_that_has_become_shorter_is_a_failure() {
    let stopper = Stopper::new().expect("descriptors");
    let mut feeder = Feeder::new(stopper.clone());
    let (path, part) = part("abc", 1..9);
    let mut read = String::new();
    let mut pipe = File::from(feeder.part(7, &part).expect("a pipe"));
    feeder.begin();
    pipe.read_to_string(&mut read).expect("a pipe");
    assert_eq!(read, "head bc");
    // It was recorded before the end of the pipe.
    let failures = feeder.take_failures();
    let [Failure { number: 7, path: failed, error }] = &failures[..] else {
        panic!("{failures:?}");
    };
    assert_eq!((failed.as_path(), error.kind()), (&*path, io::ErrorKind::UnexpectedEof));
}
