//! An argument of another type than the function takes.

fn square(x: u64) -> u64 {
    x * x
}

fn main() {
    let pool = brigade::Pool::builder().build().unwrap();
    let _ = pool.submit(square, "seven");
}
