//! The drawing in docs/cores.md is that of the example.

#[path = "../../examples/placement.rs"]
#[expect(dead_code, reason = "the example's main runs on its own")]
mod placement;

#[test]
fn the_document_shows_the_current_placements() {
    let document = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/cores.md");
    let document = std::fs::read_to_string(document).unwrap();
    assert!(
        document.contains(&placement::drawing()),
        "docs/cores.md is outdated, update it with: cargo run -p brigade-cores --example placement"
    );
}
