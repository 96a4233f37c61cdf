//! smoke
fn double(x: u64) -> u64 {
    x * 2
}
fn crash(x: u64) -> u64 {
    if x == 500 {
        std::process::abort()
    }
    x
}
fn noop(_: ()) {}
fn main() -> Result<(), Box<dyn std::error::Error>> {
    brigade::init();
    tracing_subscriber::fmt()
        .with_max_level(tracing::Level::DEBUG)
        .with_writer(std::io::stderr)
        .init();
    let pool = brigade::Pool::builder().workers(2).build()?;
    let h = pool.submit(double, 21)?;
    println!("{}", h.wait()?);
    let mut ok = 0;
    for r in pool.map(crash, 0..1000u64) {
        match r {
            Ok(_) => ok += 1,
            Err(e) => println!("{e}"),
        }
    }
    println!("ok {ok} pids {:?}", pool.worker_pids());
    let t = std::time::Instant::now();
    let hs: Vec<_> = (0..50_000).map(|_| pool.submit(noop, ()).unwrap()).collect();
    for h in hs {
        h.wait()?;
    }
    println!("{:.0} tasks/s", 50_000.0 / t.elapsed().as_secs_f64());
    let t = std::time::Instant::now();
    for _ in 0..2000 {
        pool.submit(noop, ())?.wait()?;
    }
    println!("rtt {:?}", t.elapsed() / 2000);
    println!("{:?}", pool.shutdown()?);
    Ok(())
}
