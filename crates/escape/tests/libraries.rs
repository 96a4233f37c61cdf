//! Libraries in C do their work in a strict sandbox, and reach only the files that were allowed.

use std::fs;
use std::path::Path;
use std::time::Duration;

use brigade::{Limits, Link, Pool, Sandbox};
use brigade_testkit::outcome;

brigade::init_for_tests!();

const SIDE: u32 = 64;

/// A picture file, made smaller and written again.
fn recodes_a_picture((from, to): (String, String)) -> Result<(u32, u32), String> {
    let bytes = fs::read(from).map_err(|error| error.to_string())?;
    let picture = webp::Decoder::new(&bytes).decode().ok_or("not a picture")?;
    let half: Vec<u8> = picture
        .chunks(3 * picture.width() as usize)
        .step_by(2)
        .flat_map(|row| row.chunks(3).step_by(2).flatten().copied())
        .collect();
    let (width, height) = (picture.width() / 2, picture.height() / 2);
    let encoded = webp::Encoder::from_rgb(&half, width, height).encode(80.0);
    fs::write(to, &*encoded).map_err(|error| error.to_string())?;
    Ok((width, height))
}

/// The addresses in a text, by an expression that is compiled to machine code.
fn finds_addresses(text: String) -> Result<Vec<String>, String> {
    let expression =
        pcre2::bytes::RegexBuilder::new().jit_if_available(true).build(r"\w+@\w+\.org");
    let expression = expression.map_err(|error| error.to_string())?;
    let found = expression.find_iter(text.as_bytes()).map(|found| {
        let found = found.map_err(|error| error.to_string())?;
        Ok(String::from_utf8_lossy(found.as_bytes()).into_owned())
    });
    found.collect()
}

/// The value of a script.
fn runs_a_script(script: String) -> Result<i64, String> {
    mlua::Lua::new().load(script).eval().map_err(|error| error.to_string())
}

/// The sum of a column, of a database in memory or in a file.
fn sums_a_column((path, rows): (Option<String>, i64)) -> Result<i64, String> {
    let run = || {
        let database = match &path {
            Some(path) => rusqlite::Connection::open(path)?,
            None => rusqlite::Connection::open_in_memory()?,
        };
        database.execute_batch("create table if not exists numbers (number integer)")?;
        for number in 1..=rows {
            database.execute("insert into numbers values (?1)", [number])?;
        }
        database.query_row("select sum(number) from numbers", [], |row| row.get(0))
    };
    run().map_err(|error: rusqlite::Error| error.to_string())
}

/// Compressed and expanded bytes, and the length in between.
fn compresses(bytes: Vec<u8>) -> Result<(Vec<u8>, usize), String> {
    let small = zstd::encode_all(&bytes[..], 9).map_err(|error| error.to_string())?;
    let large = zstd::decode_all(&small[..]).map_err(|error| error.to_string())?;
    Ok((large, small.len()))
}

fn strict(link: Link, folder: &Path) -> Pool {
    let sandbox = Sandbox::strict().read(folder.join("in")).write(folder.join("out"));
    let limits = Limits::new().memory(256 << 20).cpu_time(Duration::from_secs(60));
    let pool = Pool::builder().workers(1).link(link).sandbox(sandbox).limits(limits);
    pool.build().unwrap()
}

#[test]
fn five_libraries_work_with_only_their_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    fs::create_dir(path("in")).unwrap();
    fs::create_dir(path("out")).unwrap();
    let pixels: Vec<u8> = (0..SIDE * SIDE * 3).map(|index| (index % 251) as u8).collect();
    let picture = webp::Encoder::from_rgb(&pixels, SIDE, SIDE).encode(80.0);
    fs::write(path("in/picture"), &*picture).unwrap();
    fs::write(path("elsewhere"), &*picture).unwrap();
    for link in [Link::Ring, Link::Ipc] {
        let pool = strict(link, folder.path());
        let recode = |from: String| {
            let task = pool.submit(recodes_a_picture, (from, path("out/picture"))).unwrap();
            outcome(task).unwrap()
        };
        assert_eq!(recode(path("in/picture")), Ok((SIDE / 2, SIDE / 2)));
        assert!(fs::read(path("out/picture")).unwrap().starts_with(b"RIFF"));
        assert!(recode(path("elsewhere")).unwrap_err().contains("denied"));

        let text = "write to ann@example.org, not to bob@example.com".to_owned();
        let found = outcome(pool.submit(finds_addresses, text).unwrap()).unwrap();
        assert_eq!(found.unwrap(), ["ann@example.org"]);

        let script = "local s = 0; for i = 1, 1000 do s = s + i end; return s".to_owned();
        assert_eq!(outcome(pool.submit(runs_a_script, script).unwrap()).unwrap(), Ok(500_500));
        let script = "return io.open('/etc/passwd') and 1 or 0".to_owned();
        assert_eq!(outcome(pool.submit(runs_a_script, script).unwrap()).unwrap(), Ok(0));

        let rows = pool.submit(sums_a_column, (None, 1000)).unwrap();
        assert_eq!(outcome(rows).unwrap(), Ok(500_500));
        let file = pool.submit(sums_a_column, (Some(path("out/database")), 10)).unwrap();
        assert_eq!(outcome(file).unwrap(), Ok(55));
        fs::remove_file(path("out/database")).unwrap();

        let bytes = b"again and ".repeat(10_000);
        let (large, small) =
            outcome(pool.submit(compresses, bytes.clone()).unwrap()).unwrap().unwrap();
        assert!(large == bytes && small < 1000);
    }
}

/// A script that breaks out of its interpreter is still in the sandbox.
#[test]
fn a_script_that_starts_a_program_is_denied() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("in")).unwrap();
    fs::create_dir(folder.path().join("out")).unwrap();
    let pool = strict(Link::Ring, folder.path());
    let script = "return os.execute('true') and 1 or 0".to_owned();
    let error = outcome(pool.submit(runs_a_script, script).unwrap()).unwrap_err();
    assert!(error.is_denied(), "{error}");
    let script = "return 7".to_owned();
    assert_eq!(outcome(pool.submit(runs_a_script, script).unwrap()).unwrap(), Ok(7));
}
