//! A program that builds a pool and forgets `init`, as newcomers do.

#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "a program whose output the tests read")]

use std::error::Error;

use brigade::Pool;

fn main() -> Result<(), Box<dyn Error>> {
    if std::env::var_os("INIT").is_some() {
        brigade::init();
    }
    let pool = Pool::builder().workers(1).build()?;
    println!("{}", pool.submit(|number: u64| number + 1, 41)?.wait()?);
    Ok(())
}
