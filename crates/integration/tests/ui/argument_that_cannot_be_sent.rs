//! An argument that borrows, and so cannot cross to another process.

fn length(text: &'static str) -> usize {
    text.len()
}

fn main() {
    let pool = brigade::Pool::builder().build().unwrap();
    let _ = pool.submit(length, "abc");
}
