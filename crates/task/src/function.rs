//! The functions that an executor's verbs take: a function item, a key, or a name.

use std::sync::Arc;

use brigade_sys::executable::EntryPoint;
use brigade_sys::sync::Mutex;
use brigade_worker::context::with_seed;
use brigade_worker::{Key, function_of, types_of};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Arguments and results: data that serde can encode and decode, and that borrows nothing.
pub trait Data: Serialize + DeserializeOwned + 'static {}

impl<T: Serialize + DeserializeOwned + 'static> Data for T {}

/// A function that workers can run.
///
/// - A function item, or a closure that captures nothing. A pool runs it in workers of the same
///   program.
/// - A reference to a [`Key`], whose name, types and function the programs of both sides share.
/// - The name of a function, as a `&str`. The types of the two sides are not compared: if one of
///   them cannot decode what it gets, the task fails with an error that names the type. The caller
///   says which type the result has.
///
/// `By` tells these apart, and the compiler finds it. The types of a closure's parameters have to
/// be written if its body calls methods on them:
///
/// ```
/// use brigade::{Handle, Pool, Key};
///
/// static LENGTH: Key<String, usize> = Key::new("length/1", |text: String| text.len());
///
/// # brigade::init();
/// # fn run(pool: &Pool) -> Result<(), Box<dyn std::error::Error>> {
/// pool.submit(u64::count_ones, 7)?;
/// pool.submit(|text: String| text.len(), "abc".to_owned())?;
/// pool.submit(&LENGTH, "abc".to_owned())?;
/// let handle: Handle<usize> = pool.submit("length/1", "abc".to_owned())?;
/// # Ok(())
/// # }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a function from `{A}` to `{R}` that workers can run",
    label = "not a function item, a closure without captures, a key or a name",
    note = "pass what a closure would capture as a part of the argument"
)]
pub trait Function<A, R, By>: Copy {
    /// Does not compile for a function that needs more than its type, in the caller's line.
    #[doc(hidden)]
    const CHECK: () = ();

    /// Returns what workers are to call.
    #[doc(hidden)]
    fn target(&self) -> Target<'_>;

    /// Returns the function for the calling process, if it has it.
    #[doc(hidden)]
    fn here(self) -> Option<Here<A, R>> {
        None
    }
}

/// A function with a name, which programs on other machines may have: a key or a name.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no name by which another program knows it",
    label = "not a key or a name",
    note = "the programs of a cluster share functions by keys: `static KEY: Key<A, R> = Key::new(\"name/1\", function)`"
)]
pub trait NamedFunction<A, R, By>: Function<A, R, By> {
    /// Returns the name, and a hash of the types; 0 if they are not to be compared.
    #[doc(hidden)]
    fn name_and_types(&self) -> (&str, u64);
}

/// Marks the implementations for function items.
#[derive(Debug)]
pub enum ByItem {}

/// Marks the implementations for keys.
#[derive(Debug)]
pub enum ByKey {}

/// Marks the implementations for names.
#[derive(Debug)]
pub enum ByName {}

/// The function that workers are to call.
#[doc(hidden)]
#[derive(Debug, Clone, Copy)]
pub enum Target<'a> {
    /// A function of this program, and the same for arguments with a seed.
    Item { plain: EntryPoint, seeded: EntryPoint },
    /// The function of a key, with a hash of its types.
    Key { name: &'static str, types: u64, entry: Option<EntryPoint> },
    /// The function that the worker's program has under this name.
    Name(&'a str),
}

/// A function that runs in this process, with the input's seed.
#[doc(hidden)]
pub type Here<A, R> = Arc<dyn Fn(Option<u64>, A) -> R + Send + Sync>;

impl<F, A, R> Function<A, R, ByItem> for F
where
    F: Fn(A) -> R + Copy + Send + 'static,
    A: DeserializeOwned + 'static,
    R: Serialize + 'static,
{
    const CHECK: () = assert!(
        size_of::<F>() == 0,
        "a task function must be a function item or a closure that captures nothing, and not a \
         pointer to a function: put what differs into the argument"
    );

    #[inline]
    fn target(&self) -> Target<'_> {
        let function = *self;
        let seeded = move |(seed, input): (u64, A)| with_seed(seed, || function(input));
        Target::Item {
            plain: function_of::<F, A, R>(function),
            seeded: function_of::<_, (u64, A), R>(seeded),
        }
    }

    fn here(self) -> Option<Here<A, R>> {
        // Copied for each call, because it may not be `Sync`.
        let copy = Mutex::new(self);
        Some(Arc::new(move |seed, input| {
            let function = *copy.lock();
            match seed {
                Some(seed) => with_seed(seed, || function(input)),
                None => function(input),
            }
        }))
    }
}

impl<A: 'static, R: 'static> Function<A, R, ByKey> for &Key<A, R> {
    fn target(&self) -> Target<'_> {
        Target::Key { name: self.name(), types: types_of::<A, R>(), entry: self.entry() }
    }
}

impl<A: 'static, R: 'static> NamedFunction<A, R, ByKey> for &Key<A, R> {
    fn name_and_types(&self) -> (&str, u64) {
        (self.name(), types_of::<A, R>())
    }
}

impl<A, R> Function<A, R, ByName> for &str {
    fn target(&self) -> Target<'_> {
        Target::Name(self)
    }
}

impl<A, R> NamedFunction<A, R, ByName> for &str {
    fn name_and_types(&self) -> (&str, u64) {
        (self, 0)
    }
}
