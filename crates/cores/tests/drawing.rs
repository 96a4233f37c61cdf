//! The drawing in docs/cores.md is what the example draws.

#[path = "../examples/placement.rs"]
#[expect(dead_code, reason = "the example's main runs on its own")]
mod placement;

#[test]
fn the_document_shows_what_the_policies_do() {
    let document = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/cores.md");
    let document = std::fs::read_to_string(document).unwrap();
    assert!(
        document.contains(&placement::drawing()),
        "bring docs/cores.md up to date: cargo run -p brigade-cores --example placement"
    );
}
