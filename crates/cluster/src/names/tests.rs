//! Tests of names.

use super::*;
use crate::requirements::Requirements;

#[test]
fn texts_that_would_change_a_subject_are_refused() {
    for text in ["", "a.b", "a b", "*", ">", "ä", &"x".repeat(65)] {
        assert!(text.parse::<Queue>().is_err(), "{text}");
        assert!(text.parse::<ItemId>().is_err(), "{text}");
        assert!(Origin::batch(text).is_err(), "{text}");
    }
    assert!("nightly-2026_11".parse::<Queue>().is_ok());
}

#[test]
fn no_batch_has_the_name_of_a_client() {
    let client = Origin::client("x1").unwrap();
    assert!(!client.is_batch());
    assert!(Origin::batch(client.as_str()).is_err());
    assert!(Origin::batch("x1").unwrap().is_batch());
}

#[test]
fn no_item_of_a_user_is_a_chunk() {
    let chunk = ItemId::chunk(7);
    assert_eq!(chunk.as_str().parse(), Ok(chunk.clone()));
    assert!(ItemId::named(chunk.as_str()).is_err());
    assert!("~manifest".parse::<ItemId>().is_err());
}

#[test]
fn a_lane_is_found_again_by_its_consumer() {
    let class = Requirements::cores(4).label("gpu").class().unwrap();
    for priority in Priority::ALL {
        let lane = Lane { priority, class: class.clone() };
        assert_eq!(Lane::of_consumer(&lane.consumer()), Some(lane));
    }
    assert_eq!(Lane::of_consumer("somebody_else"), None);
}

#[test]
fn only_items_of_batches_have_a_subject_of_their_own() {
    let names = Names::new(Queue::default());
    let lane = Lane { priority: Priority::Normal, class: Class::default() };
    let key = |origin| TaskKey { origin, item: ItemId::number(7) };
    let of_batch = names.task(&lane, &key(Origin::batch("b").unwrap()));
    assert_eq!(of_batch, "brigade.default.task.any.n.b.7");
    let of_client = names.task(&lane, &key(Origin::client("c").unwrap()));
    assert_eq!(of_client, "brigade.default.task.any.n.~c");
}
