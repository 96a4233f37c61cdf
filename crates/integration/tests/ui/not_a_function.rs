//! A number in place of a function.

fn main() {
    let pool = brigade::Pool::builder().build().unwrap();
    let _ = pool.submit(7, 7);
}
