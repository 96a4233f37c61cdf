//! Decodes and resizes image files in worker processes, and takes them as batches of `u8` tensors:
//! the input of a training job.
//!
//! ```sh
//! cargo run --release -p brigade-example-image-loader -- /usr/share
//! cargo run --release -p brigade-example-image-loader -- /usr/share --threads
//! ```
//!
//! A worker writes each batch once, into shared memory, and this process reads it there: the time
//! of the hand-over does not depend on the size of the batch.
//!
//! One more file is added that crashes the decoder, as a malformed file does with many decoders in
//! C. The stream names the batch that was lost, and the files of that batch are loaded again, one
//! by one. In the end exactly one file is missing.

#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "it prints what it has loaded")]

use std::collections::{HashMap, VecDeque};
use std::error::Error;
use std::fmt;
use std::fs;
use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::{Duration, Instant};

use brigade::{Pool, SharedBuf, SharedBufMut};
use clap::Parser;
use image::{ImageReader, Rgb, RgbImage, imageops};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

/// Loads PNG and JPEG files as batches of tensors.
#[derive(Debug, Parser)]
#[command(name = "image_loader")]
struct Arguments {
    /// Folder of images [default: /usr/share, or generated images if it has none].
    folder: Option<PathBuf>,
    /// Number of images to load at most.
    #[arg(long, value_name = "N", default_value_t = 2_000)]
    limit: usize,
    /// Number of images in a batch.
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = positive)]
    batch: usize,
    /// Number of worker processes or threads.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = positive)]
    workers: usize,
    /// Use threads of this process instead, without the file that crashes the decoder: it would
    /// end the program.
    #[arg(long)]
    threads: bool,
}

fn positive(text: &str) -> Result<usize, String> {
    let number: usize = text.parse().map_err(|error| format!("{error}"))?;
    if number == 0 { Err("at least 1".to_owned()) } else { Ok(number) }
}

fn main() -> ExitCode {
    brigade::init(); // a worker process never gets beyond this line
    match run(&Arguments::parse()) {
        Ok(report) => {
            print!("{report}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("image_loader: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<Report, Box<dyn Error>> {
    let own = tempfile::tempdir()?;
    let mut files = files(arguments, own.path())?;
    if !arguments.threads {
        let crasher = own.path().join("crasher.png");
        fs::write(&crasher, CRASHER)?;
        files.insert(files.len() / 2, crasher);
    }
    let batches = files.chunks(arguments.batch).map(<[PathBuf]>::to_vec).collect();
    let begin = Instant::now();
    let mut report = if arguments.threads {
        with_threads(batches, arguments.workers)
    } else {
        with_processes(batches, arguments.workers)?
    };
    report.elapsed = begin.elapsed();
    Ok(report)
}

/// Keeps the stream full, and takes batches as they are ready.
fn with_processes(
    mut batches: VecDeque<Vec<PathBuf>>,
    workers: usize,
) -> Result<Report, Box<dyn Error>> {
    let pool = Pool::builder().name("images").workers(workers).build()?;
    let stream = pool.stream(load).start()?;
    let mut report = Report::default();
    let mut under_way = HashMap::new();
    while !batches.is_empty() || !under_way.is_empty() {
        while let Some(batch) = batches.pop_front() {
            match stream.try_put(batch.clone()) {
                Ok(id) => drop(under_way.insert(id, batch)),
                Err(full) if full.is_full() => {
                    batches.push_front(batch);
                    break;
                }
                Err(error) => return Err(error.into()),
            }
        }
        let asked = now();
        let item = stream.recv().ok_or("the stream has ended early")?;
        let batch = under_way.remove(&item.id).unwrap_or_default();
        match item.result {
            Ok(loaded) => report.add(loaded?, asked),
            Err(error) if batch.len() > 1 => {
                println!(
                    "batch {}: {error}; its {} files go again, one by one",
                    item.id,
                    batch.len()
                );
                batches.extend(batch.into_iter().map(|path| vec![path]));
            }
            Err(error) => {
                report
                    .lost
                    .extend(batch.into_iter().map(|path| (item.id, path, error.to_string())));
            }
        }
    }
    pool.shutdown()?;
    Ok(report)
}

/// Does the same with threads, which a crash would end together with this process.
fn with_threads(batches: VecDeque<Vec<PathBuf>>, workers: usize) -> Report {
    let batches = Mutex::new(batches);
    let next = || batches.lock().ok()?.pop_front();
    let mut report = Report::default();
    let (sender, receiver) = sync_channel(3);
    thread::scope(|scope| {
        for _ in 0..workers {
            let sender = sender.clone();
            scope.spawn(move || {
                while let Some(paths) = next() {
                    let pixels = SharedBufMut::on_heap(paths.len() * IMAGE);
                    if sender.send(write(paths, pixels)).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        let receive = || (now(), receiver.recv());
        while let (asked, Ok(loaded)) = receive() {
            report.add(loaded, asked);
        }
    });
    report
}

/// Width and height of an image in a batch.
const SIDE: u32 = 224;

/// Bytes of an image in a batch: height x width x 3.
const IMAGE: usize = 224 * 224 * 3;

/// A batch of images.
#[derive(Debug, Serialize, Deserialize)]
struct Loaded {
    /// A tensor of `images` x 224 x 224 x 3.
    pixels: SharedBuf,
    images: usize,
    /// The files that are missing in the tensor, and the reasons.
    unreadable: Vec<(PathBuf, String)>,
    /// The time at which the worker had written the batch.
    sent: Duration,
}

/// The task: writes the images into shared memory.
fn load(paths: Vec<PathBuf>) -> Result<Loaded, String> {
    let pixels = brigade::worker::alloc(paths.len() * IMAGE).map_err(|error| error.to_string())?;
    Ok(write(paths, pixels))
}

/// Decodes files into `pixels`, one after the other; leaves out what no decoder reads.
fn write(paths: Vec<PathBuf>, mut pixels: SharedBufMut) -> Loaded {
    let mut rows = pixels.chunks_exact_mut(IMAGE);
    let (mut images, mut unreadable) = (0, Vec::new());
    for path in paths {
        match decode(&path) {
            Ok(image) => {
                if let Some(row) = rows.next() {
                    row.copy_from_slice(&image);
                    images += 1;
                }
            }
            Err(error) => unreadable.push((path, error.to_string())),
        }
    }
    let pixels = pixels.freeze().slice(..images * IMAGE);
    Loaded { pixels, images, unreadable, sent: now() }
}

/// Returns the time of the clock that all processes share.
fn now() -> Duration {
    clock_gettime(ClockId::Monotonic).try_into().unwrap_or_default()
}

fn decode(path: &Path) -> Result<RgbImage, Box<dyn Error>> {
    let bytes = fs::read(path)?;
    if bytes == CRASHER {
        // The decoders of the crate `image` do not crash, so this stands for one that does.
        std::process::abort();
    }
    let image = ImageReader::new(Cursor::new(bytes)).with_guessed_format()?.decode()?;
    Ok(imageops::thumbnail(&image.into_rgb8(), SIDE, SIDE))
}

/// The contents of a file that crashes the decoder.
const CRASHER: &[u8] = b"\x89PNG\r\n\x1a\ncrash";

/// Returns the files to load: those below the folder, or else generated ones in `own`.
fn files(arguments: &Arguments, own: &Path) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let folder = arguments.folder.as_deref().unwrap_or(Path::new("/usr/share"));
    let mut files = Vec::new();
    if arguments.folder.is_some() {
        // Unreadable folders below it are passed over.
        fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    }
    find(folder, &mut files);
    files.sort();
    files.truncate(arguments.limit);
    match (files.is_empty(), &arguments.folder) {
        (false, _) => Ok(files),
        (true, None) => generate(own, arguments.limit.min(256)),
        (true, Some(folder)) => Err(format!(
            "{}: no PNG or JPEG file there; name another folder, or none to load from /usr/share",
            folder.display()
        )
        .into()),
    }
}

/// Adds the images below a folder. Links are not followed.
fn find(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => find(&path, files),
            Ok(kind) if kind.is_file() && is_image(&path) => files.push(path),
            _ => {}
        }
    }
}

fn is_image(path: &Path) -> bool {
    let extension = path.extension().unwrap_or_default();
    ["png", "jpg", "jpeg"].iter().any(|known| extension.eq_ignore_ascii_case(known))
}

fn generate(folder: &Path, count: usize) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let mut files = Vec::new();
    for (number, shade) in (0..count).zip((0..=u8::MAX).cycle()) {
        let kind = if number % 2 == 0 { "png" } else { "jpg" };
        let path = folder.join(format!("{number:04}.{kind}"));
        let byte = |at: u32| at.to_le_bytes()[0];
        RgbImage::from_fn(640, 480, |x, y| Rgb([byte(x), byte(y), byte(x ^ y) ^ shade]))
            .save(&path)?;
        files.push(path);
    }
    Ok(files)
}

/// The summary of a run.
#[derive(Debug, Default)]
struct Report {
    images: usize,
    /// The sum of all bytes of all tensors: a training step would do more with them.
    sum: u64,
    handed_over: Vec<Duration>,
    unreadable: Vec<(PathBuf, String)>,
    /// Files whose worker died while it loaded them alone, with the ids of their inputs.
    lost: Vec<(u64, PathBuf, String)>,
    elapsed: Duration,
}

impl Report {
    /// Adds a batch. A hand-over begins when the worker has written the batch and the consumer has
    /// asked for it.
    fn add(&mut self, loaded: Loaded, asked: Duration) {
        std::hint::black_box((loaded.pixels.first(), loaded.pixels.last()));
        self.handed_over.push(now().saturating_sub(loaded.sent.max(asked)));
        self.images += loaded.images;
        self.sum += loaded.pixels.iter().map(|&byte| u64::from(byte)).sum::<u64>();
        self.unreadable.extend(loaded.unreadable);
    }
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.elapsed.as_secs_f64();
        #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
        let rate = self.images as f64 / seconds;
        let mut times = self.handed_over.clone();
        times.sort();
        let longest = times.last().copied().unwrap_or_default();
        let median = times.get(times.len() / 2).copied().unwrap_or_default();
        writeln!(out, "loaded     {} images in {} batches", self.images, times.len())?;
        writeln!(out, "rate       {rate:.0} images/s")?;
        writeln!(out, "hand-over  {median:.0?} a batch, at most {longest:.0?}")?;
        writeln!(out, "sum        {} of all bytes", self.sum)?;
        for (path, error) in &self.unreadable {
            writeln!(out, "unreadable {}: {error}", path.display())?;
        }
        for (id, path, error) in &self.lost {
            writeln!(out, "lost       {} (batch {id}): {error}", path.display())?;
        }
        Ok(())
    }
}
