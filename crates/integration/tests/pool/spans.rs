//! The spans of tasks: their parents, fields and ends, and how they go on in workers.

use std::thread;

use brigade::{PoolBuilder, Shutdown, TaskState};
use brigade_integration::{Spanned, Spans, builder, picky, square};
use brigade_testkit::faults::{aborts, panics_with_string, sleeps};
use brigade_testkit::{BOUND, outcome, wait_until};
use tracing::{Span, info_span};

/// Builds a pool with its own name, so that its spans differ from those of other tests.
fn traced(name: &str) -> PoolBuilder {
    // Before any task, so that none is missed.
    Spans::get();
    builder(2).name(name)
}

fn only(spans: Vec<Spanned>) -> Spanned {
    let [span] = <[Spanned; 1]>::try_from(spans).unwrap();
    span
}

#[test]
fn a_task_is_a_child_of_the_span_that_submits_it() {
    let pool = traced("child").build().unwrap();
    let request = info_span!("request", path = "/");
    let handle = request.in_scope(|| pool.task(square).label("seven").submit(7)).unwrap();
    let task = handle.id().get().to_string();
    assert_eq!(outcome(handle).unwrap(), 49);
    let span = only(Spans::get().wait_for_closed("child", 1));
    for (field, value) in [
        ("label", "seven"),
        ("task", &task),
        ("attempt", "1"),
        ("outcome", "succeeded"),
        ("otel.status_code", "OK"),
        ("otel.kind", "client"),
    ] {
        assert_eq!(span.field(field), value, "{field}");
    }
    assert!(["worker 0.1", "worker 1.1"].contains(&span.field("worker")), "{span:?}");
    let parent = Spans::get().span(span.parent.expect("a parent")).unwrap();
    assert_eq!((parent.name, parent.field("path")), ("request", "/"));
    assert!(parent.closed_by.is_none(), "it ends later than its child");
}

#[test]
fn the_outcome_of_a_failure_is_its_kind_and_its_reason() {
    let pool = traced("failures").build().unwrap();
    outcome(pool.task(aborts).retries(1).submit(()).unwrap()).unwrap_err();
    outcome(pool.submit(panics_with_string, "oh no".to_owned()).unwrap()).unwrap_err();
    pool.shutdown().unwrap();
    pool.submit(square, 1).unwrap_err();
    let spans = Spans::get().wait_for_closed("failures", 3);
    let field = |name| spans.iter().map(|span| span.field(name)).collect::<Vec<_>>();
    assert_eq!(field("outcome"), ["worker_died", "panicked", "refused"]);
    assert_eq!(field("attempt"), ["2", "1", ""]);
    assert_eq!(field("otel.status_code"), ["ERROR"; 3]);
    let reasons = field("otel.status_description");
    assert!(reasons[1].contains("oh no"), "{reasons:?}");
    assert!(reasons[2].contains("shut down"), "{reasons:?}");
}

#[test]
fn a_task_that_never_ran_has_no_worker() {
    let pool = traced("cancelled").workers(1).build().unwrap();
    let first = pool.submit(sleeps, 60_000).unwrap();
    wait_until("the first task to run", BOUND, || first.state() == TaskState::Running);
    let second = pool.submit(sleeps, 1).unwrap();
    assert!(second.cancel());
    pool.shutdown_with(Shutdown::Kill, BOUND).unwrap();
    drop(first);
    let spans = Spans::get().wait_for_closed("cancelled", 2);
    assert_eq!(spans[1].field("outcome"), "cancelled");
    // A task that was sent ahead has a worker, although it did not begin.
    assert_eq!(spans[0].field("outcome"), "killed");
}

#[test]
fn the_chunks_of_a_map_have_spans() {
    let pool = traced("map").build().unwrap();
    let failed = pool.map(picky, 0..1_000).retries(3).filter(Result::is_err).count();
    assert!(failed > 100);
    pool.shutdown().unwrap();
    let spans = Spans::get().of_pool("map");
    let items = spans.iter().map(|span| span.field("items").parse::<u64>().unwrap());
    assert_eq!(items.sum::<u64>(), 1_000);
    assert!(spans.iter().all(|span| span.closed_by.is_some()), "{spans:#?}");
    assert!(spans.iter().any(|span| span.field("outcome") == "items_failed"));
}

#[test]
fn threads_that_others_depend_on_close_no_span() {
    let pool = traced("threads").build().unwrap();
    let handles: Vec<_> = (0..500).map(|number| pool.submit(square, number).unwrap()).collect();
    for _ in 0..5 {
        outcome(pool.submit(aborts, ()).unwrap()).unwrap_err();
    }
    drop(handles);
    pool.shutdown().unwrap();
    let spans = Spans::get().wait_for_closed("threads", 505);
    assert!(spans.iter().all(|span| span.closed_by.as_deref() == Some("brigade-output")));
}

#[test]
fn a_stream_has_a_span_for_each_input() {
    let pool = traced("stream").build().unwrap();
    let stream = pool.stream(square).per_worker(10).output(10).start().unwrap();
    let put = info_span!("put");
    put.in_scope(|| (0..10).for_each(|number| assert!(stream.put(number).is_ok())));
    stream.finish();
    assert_eq!(stream.iter().count(), 10);
    let spans = Spans::get().wait_for_closed("stream", 10);
    let parent = spans[0].parent.and_then(|parent| Spans::get().span(parent)).unwrap();
    assert_eq!(parent.name, "put");
    assert!(spans.iter().all(|span| span.parent == spans[0].parent), "{spans:#?}");
}

#[test]
fn callers_help_an_output_thread_that_closes_spans_too_slowly() {
    const TASKS: usize = 6_000;
    let pool = traced("held").build().unwrap();
    Spans::get().hold(Some("held"));
    for _ in 0..TASKS {
        outcome(pool.submit(square, 1).unwrap()).unwrap();
    }
    let spans = Spans::get().of_pool("held");
    let open = spans.iter().filter(|span| span.closed_by.is_none()).count();
    assert!((4_000..5_000).contains(&open), "{open} spans wait");
    Spans::get().hold(None);
    assert_eq!(Spans::get().wait_for_closed("held", TASKS).len(), TASKS);
}

fn keeps_in_touch(_: u64) -> (Option<String>, Option<u64>, String) {
    let span = Span::current();
    let name = span.metadata().map_or("", |metadata| metadata.name()).to_owned();
    (brigade::worker::trace_context(), brigade::worker::task().map(brigade::TaskId::get), name)
}

#[test]
fn the_trace_context_and_the_span_go_on_in_the_worker() {
    fn subscribes((): ()) {
        Spans::get();
    }
    fn context() -> Option<String> {
        let span = Span::current();
        let is_task = span.metadata().is_some_and(|metadata| metadata.name() == "task");
        assert!(is_task, "called inside the task's span");
        thread::current().name().filter(|name| *name == "traced").map(|_| "00-cafe-01".to_owned())
    }
    let pool = traced("context").initializer(subscribes, ()).trace_context(context);
    let pool = pool.build().unwrap();
    let submit = || {
        let handle = pool.submit(keeps_in_touch, 1).unwrap();
        (Some(handle.id().get()), outcome(handle).unwrap())
    };
    let on_traced = thread::scope(|scope| {
        let builder = thread::Builder::new().name("traced".to_owned());
        let thread = builder.spawn_scoped(scope, || {
            let chunks = pool.map(keeps_in_touch, 0..100).map(Result::unwrap).collect::<Vec<_>>();
            (submit(), chunks)
        });
        thread.unwrap().join().unwrap()
    });
    let ((id, (context, task, span)), items) = on_traced;
    assert_eq!((context.as_deref(), task, &*span), (Some("00-cafe-01"), id, "task"));
    assert!(items.iter().all(|(context, ..)| context.as_deref() == Some("00-cafe-01")));
    let (_, (context, ..)) = submit();
    assert_eq!(context, None, "a task without a context does not get that of an earlier one");
}
