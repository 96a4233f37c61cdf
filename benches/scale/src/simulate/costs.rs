//! The parameters of the model: what one operation takes, in nanoseconds.

use crate::figures::Figures;

/// Distances between the cores that run the host's threads and the workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Topology {
    /// All cores share a cache.
    OneCache,
    /// One socket with several caches of the last level.
    ManyCaches,
    /// Two sockets.
    TwoSockets,
}

/// The costs of the pool and of the machine.
///
/// The defaults are for two cores of an AMD EPYC that share a cache. Measured there are a submit as
/// a whole, a look, a line, a hand-over and an item of a map. How a submit and an outcome divide
/// into parts, the worker's own time, and both times of a wake-up are estimates.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Costs {
    /// Submitting: the task's memory and its argument, without the lock.
    pub(crate) prepare: f64,
    /// Under the lock, once for all tasks that are submitted together. Assumed.
    pub(crate) enter: f64,
    /// Under the lock for each task: scheduler, frame, state word.
    pub(crate) submit: f64,
    /// Under the lock, for each outcome: reading it, the scheduler, sending the next task.
    pub(crate) outcome: f64,
    /// A look at the rings.
    pub(crate) look: f64,
    /// The same for each worker, if each ring is looked at.
    pub(crate) look_slot: f64,
    /// The line of a ring with news, which comes from another core: 4 to 14.
    pub(crate) line: f64,
    /// Without the lock: taking an outcome from its handle.
    pub(crate) take: f64,
    /// More for a section if another thread had the lock before.
    pub(crate) hand_over: f64,
    /// More for each task if host and worker are farther apart than where this was measured.
    pub(crate) distance: f64,
    /// Of a worker for each task, besides its function.
    pub(crate) worker: f64,
    /// Waking a thread or a process, of its waker.
    pub(crate) wake: f64,
    /// Until a woken thread runs.
    pub(crate) wake_up: f64,
    /// An item of a map, on the thread that iterates.
    pub(crate) map_item: f64,
}

impl Default for Costs {
    fn default() -> Self {
        Self {
            prepare: 40.0,
            enter: 20.0,
            submit: 69.0,
            outcome: 100.0,
            look: 30.0,
            look_slot: 5.2,
            line: 9.0,
            take: 31.0,
            hand_over: 46.0,
            distance: 0.0,
            worker: 150.0,
            wake: 2_000.0,
            wake_up: 25_000.0,
            map_item: 29.0,
        }
    }
}

/// One way of a line between two cores that share a cache, in a virtual machine.
const NEAR: f64 = 60.0;

/// Lines that a task moves between host and worker; their ways overlap.
const MOVED: f64 = 1.5;

impl Costs {
    /// Returns the costs that a file has, and the defaults for others.
    ///
    /// Some follow from rates: the host's work for a no-op from the most of one submitter, and
    /// the worker's own from tasks of 10 µs and more. The fastest laps count, because
    /// other programs only make laps slower.
    pub(crate) fn of(figures: &Figures) -> Self {
        let mut costs = Self::default();
        let alone = costs.prepare + costs.enter + costs.submit;
        if let Some(submit) = figures.cost("submit", 1) {
            for part in [&mut costs.prepare, &mut costs.enter, &mut costs.submit] {
                *part *= submit / alone;
            }
        }
        if let Some(submit) = figures.cost("submit", 2) {
            costs.hand_over = (submit - costs.enter - costs.submit).max(0.0);
        }
        if let (Some(few), Some(many)) = (figures.cost("look", 1), figures.cost("look", 256)) {
            costs.look_slot = ((many - few) / 255.0).max(0.0);
            costs.look = (few - costs.look_slot).max(0.0);
        }
        if let Some(wake) = figures.cost("wake another thread", 1) {
            costs.wake = wake;
        }
        if let Some(wake_up) = figures.cost("until it runs", 1) {
            costs.wake_up = wake_up;
        }
        let alone = || figures.cases("each").filter(|case| case.submitters == 1);
        let fastest = |rates: &mut dyn Iterator<Item = f64>| rates.max_by(f64::total_cmp);
        let noops = alone().filter(|case| case.micros == 0);
        if let Some(rate) = fastest(&mut noops.map(|case| case.range.1)) {
            let rest = 1e9 / rate - costs.prepare - costs.enter - costs.submit;
            let share = costs.outcome / (costs.outcome + costs.take);
            costs.outcome = (rest * share).max(1.0);
            costs.take = (rest * (1.0 - share)).max(1.0);
        }
        let long = alone().filter(|case| case.workers == 1 && case.micros >= 10);
        let more = long.map(|case| 1e9 / case.range.1 - 1e9 / case.raw_per_second);
        let mut of_worker: Vec<f64> = more.collect();
        of_worker.sort_by(f64::total_cmp);
        if let Some(worker) = of_worker.get(of_worker.len() / 2) {
            costs.worker = worker.clamp(50.0, 2_000.0);
        }
        let items = figures.cases("map").filter(|case| case.micros == 0);
        if let Some(rate) = fastest(&mut items.map(|case| case.range.1)) {
            costs.map_item = 1e9 / rate;
        }
        costs
    }

    /// Returns the costs where lines have a longer way. The ways were not measured here: they are
    /// what such machines usually have.
    pub(crate) fn on(self, topology: Topology) -> Self {
        let way = match topology {
            Topology::OneCache => NEAR,
            Topology::ManyCaches => 120.0,
            Topology::TwoSockets => 250.0,
        };
        Self {
            hand_over: self.hand_over * way / NEAR,
            line: self.line * way / NEAR,
            distance: MOVED * (way - NEAR),
            ..self
        }
    }
}
