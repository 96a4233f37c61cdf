//! A closure that borrows a vector of its caller.

fn main() {
    let pool = brigade::Pool::builder().build().unwrap();
    let names = vec!["a".to_owned()];
    let _ = pool.submit(|index: usize| names[index].clone(), 0);
}
