//! The workers of the model, and how tasks are sent to them.

use super::{DELAY, DONE_PER_LEFT, Event, JITTER, Pool, SHORT, SPIN, State, WAKE_UP, Work, Worker};

impl Pool<'_> {
    /// Handles the end of a task, of a spin or of a wake-up.
    pub(super) fn worker(&mut self, index: usize) {
        match self.workers[index].state {
            Work::Run => {
                let worker = &mut self.workers[index];
                worker.outcomes += 1;
                self.totals.ran += worker.task;
                let announces = self.announces(index);
                let cost = self.notify(announces);
                self.next_task(index, cost);
            }
            Work::WakeUp => {
                self.clock.running += 1.0;
                self.next_task(index, self.costs.wake);
            }
            Work::Spin => {
                self.workers[index].state = Work::Sleep;
                self.clock.running -= 1.0;
            }
            Work::Sleep => {}
        }
    }

    /// Starts the next task, after some other work.
    fn next_task(&mut self, index: usize, cost: f64) {
        let was_idle = self.workers[index].state != Work::Run;
        let (state, work) = if self.workers[index].ring > 0 {
            let task = self.setting.grain * (1.0 + JITTER * (2.0 * self.random() - 1.0));
            let worker = &mut self.workers[index];
            worker.ring -= 1;
            worker.task = task;
            (Work::Run, cost + self.costs.worker + task)
        } else if self.may_spin() {
            (Work::Spin, cost + SPIN)
        } else {
            self.clock.running -= 1.0;
            (Work::Sleep, 0.0)
        };
        self.totals.idle_workers += match (was_idle, state == Work::Run) {
            (true, true) => -1.0,
            (false, false) => 1.0,
            _ => 0.0,
        };
        self.plan(index, state, work);
    }

    fn plan(&mut self, index: usize, state: Work, work: f64) {
        let worker = &mut self.workers[index];
        worker.state = state;
        worker.turn += 1;
        if state != Work::Sleep {
            self.clock.after(work, Event::Worker(index, worker.turn));
        }
    }

    /// Returns `true` if a worker announces its outcomes now, and not later together with others.
    fn announces(&mut self, index: usize) -> bool {
        let time = self.clock.time;
        let worker = &mut self.workers[index];
        let left = f64::from(worker.ring) * self.setting.grain;
        let since = *worker.silent_since.get_or_insert(time);
        let is_due = time - since >= DELAY.min(left * DONE_PER_LEFT);
        let announces = worker.ring <= 1 || left <= WAKE_UP || is_due;
        if announces {
            worker.silent_since = None;
        }
        announces
    }

    /// Lets the listener know of an outcome: one that spins sees it, one that sleeps is woken if
    /// the worker announces it. Returns the work for that.
    fn notify(&mut self, announces: bool) -> f64 {
        let collector = (!self.is_submitting()).then(|| self.collector());
        let Some(listener) = self.listener.or(collector) else { return 0.0 };
        match self.hosts[listener].state {
            State::Sleep if announces => {
                self.wake(listener);
                self.costs.wake
            }
            State::Spin => {
                self.hosts[listener].turn += 1;
                self.want_lock(listener);
                0.0
            }
            _ => 0.0,
        }
    }

    /// Sends a task to a worker, or puts it in the queue. Returns the work for a wake-up.
    pub(super) fn assign(&mut self) -> f64 {
        let packed = (self.depth / 4).clamp(64, 256);
        let is_short = self.setting.grain <= SHORT;
        let current = self.current;
        if self.queue > 0 {
            self.queue += 1;
            return 0.0;
        }
        if is_short && (1..packed).contains(&self.workers[current].load) {
            return self.send(current);
        }
        if let Some(idle) = self.idle.pop() {
            return self.send(idle);
        }
        let count = self.workers.len();
        let has_room = |index: &usize| self.workers[*index].load < self.depth;
        let stays = has_room(&current) && !self.workers[current].load.is_multiple_of(packed);
        let mut after = (1..=count).map(|step| (current + step) % count);
        let chosen = if stays { Some(current) } else { after.find(has_room) };
        if let Some(index) = chosen {
            return self.send(index);
        }
        self.queue += 1;
        0.0
    }

    /// Sends tasks of the queue to a worker that has room again, or counts it as idle. Returns the
    /// work for a wake-up.
    pub(super) fn refill(&mut self, index: usize) -> f64 {
        let mut work = 0.0;
        while self.queue > 0 {
            let load = self.workers[index].load;
            let shared = u64::from(load) * 2 * u64::from(self.setting.workers);
            if load >= self.depth && (load >= self.deepest || shared >= u64::from(self.queue)) {
                break;
            }
            self.queue -= 1;
            work += self.send(index);
        }
        if self.workers[index].load == 0 {
            self.idle.push(index);
        }
        work
    }

    fn send(&mut self, index: usize) -> f64 {
        self.current = index;
        let Worker { ring, load, state, .. } = &mut self.workers[index];
        *ring += 1;
        *load += 1;
        match state {
            Work::Sleep => {
                self.plan(index, Work::WakeUp, self.costs.wake_up);
                self.totals.waking += self.costs.wake;
                self.costs.wake
            }
            Work::Spin => {
                self.next_task(index, 0.0);
                0.0
            }
            Work::Run | Work::WakeUp => 0.0,
        }
    }
}
