//! A closure that captures a vector.

fn main() {
    let pool = brigade::Pool::builder().build().unwrap();
    let names = vec!["a".to_owned()];
    let _ = pool.submit(move |index: usize| names[index].clone(), 0);
}
