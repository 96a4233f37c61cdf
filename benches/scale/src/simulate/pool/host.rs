//! The threads of the host in the model, and their lock.

use super::{COLLECT_EVERY, Event, LONG_PATIENCE, LOOKS, Look, MAX_PASSED, Pool, SPIN, State};

impl Pool<'_> {
    /// Handles the end of what a thread of the host was doing.
    pub(super) fn host(&mut self, index: usize) {
        match self.hosts[index].state {
            State::Prepare => self.want_lock(index),
            State::WakeUp => {
                self.clock.running += 1.0;
                // The switch takes about as long here as the wake-up did there.
                self.plan_host(index, State::Prepare, self.costs.wake);
            }
            State::Submit(tasks) => self.submitted(index, tasks),
            State::Collect { from, of_next, found } => self.collected(index, from, of_next, found),
            State::Take => self.go_on(index),
            State::Spin => self.sleep(index),
            // It was patient for long enough.
            State::Sleep if self.listener.unwrap_or(self.collector()) == index => {
                self.clock.running += 1.0;
                self.want_lock(index);
            }
            // The last look before the sleep.
            State::Lock if self.lock.holder.is_none() => self.take_turn(),
            State::Lock => {
                self.hosts[index].state = State::LockAsleep;
                self.clock.running -= 1.0;
            }
            State::Sleep | State::LockAsleep | State::Done => {}
        }
    }

    /// Begins what a thread does next, without the lock.
    pub(super) fn go_on(&mut self, index: usize) {
        if index == self.collector() {
            self.sleep(index);
            return;
        }
        let batch = self.setting.batch;
        let host = &mut self.hosts[index];
        let owed = std::mem::take(&mut host.owes);
        if host.ready > 0 && host.left == 0 {
            let work = owed + f64::from(std::mem::take(&mut host.ready)) * self.costs.take;
            self.plan_host(index, State::Take, work);
        } else if host.left > 0 {
            let work = owed + f64::from(host.left.min(batch)) * self.costs.prepare;
            self.plan_host(index, State::Prepare, work);
        } else if host.pending == 0 {
            host.state = State::Done;
            self.clock.running -= 1.0;
            if self.listener == Some(index) {
                self.listener = None;
                self.choose_listener();
            }
        } else if self.listener.is_none_or(|listener| listener == index) {
            self.listener = Some(index);
            self.plan_host(index, State::Prepare, owed);
        } else {
            host.state = State::Sleep;
            host.turn += 1;
            self.clock.running -= 1.0;
        }
    }

    /// Lets a caller that sleeps listen.
    fn choose_listener(&mut self) {
        let sleeps = |host: &super::Host| host.state == State::Sleep && host.pending > 0;
        if let Some(next) = self.callers().iter().position(sleeps) {
            self.listener = Some(next);
            self.wake(next);
        }
    }

    pub(super) fn wake(&mut self, index: usize) {
        self.plan_host(index, State::WakeUp, self.costs.wake_up);
    }

    fn plan_host(&mut self, index: usize, state: State, work: f64) {
        let host = &mut self.hosts[index];
        host.state = state;
        host.turn += 1;
        self.clock.after(work, Event::Host(index, host.turn));
    }

    pub(super) fn want_lock(&mut self, index: usize) {
        let has_waited = !self.lock.waiting.is_empty() && self.lock.passed >= MAX_PASSED;
        if self.lock.holder.is_none() && !has_waited {
            self.lock.passed += 1;
            let cold = if self.lock.last == index { 0.0 } else { self.costs.hand_over };
            self.enter(index, cold);
        } else {
            self.plan_host(index, State::Lock, LOOKS);
            self.lock.waiting.push_back(index);
        }
    }

    /// Gives the free lock to the thread that has looked at it longest, and has the line by now.
    pub(super) fn take_turn(&mut self) {
        let looks = |waiting: &&usize| self.hosts[**waiting].state == State::Lock;
        let next = self.lock.waiting.iter().find(looks).copied();
        if let Some(next) = next.filter(|_| self.lock.holder.is_none()) {
            self.lock.passed = 0;
            self.lock.waiting.retain(|waiting| *waiting != next);
            self.enter(next, 0.0);
        }
    }

    fn enter(&mut self, index: usize, cold: f64) {
        (self.lock.holder, self.lock.last) = (Some(index), index);
        let begin = cold + self.costs.enter;
        let tasks = self.hosts[index].left.min(self.setting.batch);
        if tasks > 0 {
            let each = self.costs.submit + self.costs.distance;
            self.plan_host(index, State::Submit(tasks), begin + f64::from(tasks) * each);
        } else {
            self.look(index, begin);
        }
    }

    /// Releases the lock. One that sleeps is woken, and tries again when it runs.
    fn leave(&mut self, index: usize) {
        self.lock.holder = None;
        self.lock.turn += 1;
        let sleeps = |waiting: &usize| self.hosts[*waiting].state == State::LockAsleep;
        if let Some(sleeper) = self.lock.waiting.iter().position(sleeps)
            && let Some(sleeper) = self.lock.waiting.remove(sleeper)
        {
            self.wake(sleeper);
            self.hosts[index].owes += self.costs.wake;
        }
        if !self.lock.waiting.is_empty() {
            self.clock.after(self.costs.hand_over, Event::Free(self.lock.turn));
        }
    }

    fn submitted(&mut self, index: usize, tasks: u32) {
        let looks = self.submitted / COLLECT_EVERY < (self.submitted + tasks) / COLLECT_EVERY;
        self.submitted += tasks;
        self.hosts[index].left -= tasks;
        // Workers are woken after the lock is released.
        let wake_ups: f64 = (0..tasks).map(|_| self.assign()).sum();
        self.hosts[index].owes += wake_ups;
        if looks {
            self.look(index, 0.0);
        } else {
            self.leave(index);
            self.go_on(index);
        }
    }

    /// Begins a look at all workers.
    fn look(&mut self, index: usize, before: f64) {
        let looked_at = match self.setting.look {
            Look::Slots => self.setting.workers,
            Look::Words => self.setting.workers.div_ceil(64),
        };
        let work = before + self.costs.look + f64::from(looked_at) * self.costs.look_slot;
        self.collect_from(index, 0, 0, work);
    }

    /// Collects from the next worker with outcomes. The lock is released after the last one.
    fn collect_from(&mut self, index: usize, from: usize, found: u32, before: f64) {
        let has_news = |slot: &usize| self.workers[*slot].outcomes > 0;
        let (state, work) = match (from..self.workers.len()).find(has_news) {
            Some(from) => {
                let of_next = self.workers[from].outcomes;
                let each = self.costs.outcome + self.costs.distance;
                let work = self.costs.line + f64::from(of_next) * each;
                (State::Collect { from, of_next, found }, work)
            }
            None => (State::Collect { from: self.workers.len(), of_next: 0, found }, 0.0),
        };
        self.plan_host(index, state, before + work);
    }

    fn collected(&mut self, index: usize, from: usize, of_next: u32, found: u32) {
        if from < self.workers.len() {
            let worker = &mut self.workers[from];
            worker.outcomes -= of_next;
            worker.load -= of_next;
            worker.silent_since = None;
            for _ in 0..of_next {
                self.give_outcome(index);
            }
            let wake_ups = self.refill(from);
            self.hosts[index].owes += wake_ups;
            self.collect_from(index, from + 1, found + of_next, 0.0);
            return;
        }
        self.leave(index);
        let host = &self.hosts[index];
        let is_listener = self.listener == Some(index);
        if found > 0 || host.left > 0 || host.pending == 0 || !is_listener {
            self.go_on(index);
        } else if self.may_spin() {
            self.plan_host(index, State::Spin, SPIN);
            self.look_again(index);
        } else {
            self.sleep(index);
        }
    }

    /// A thread that spins sees outcomes that came during its look.
    fn look_again(&mut self, index: usize) {
        if self.workers.iter().any(|worker| worker.outcomes > 0) {
            self.want_lock(index);
        }
    }

    fn sleep(&mut self, index: usize) {
        if self.workers.iter().any(|worker| worker.outcomes > 0 && worker.silent_since.is_none()) {
            // The last look before the sleep finds what was announced meanwhile.
            self.want_lock(index);
            return;
        }
        self.clock.running -= 1.0;
        self.plan_host(index, State::Sleep, LONG_PATIENCE);
    }

    /// Gives an outcome to a thread that waits for one, in turn. `finder` wakes it if that was the
    /// last.
    fn give_outcome(&mut self, finder: usize) {
        while self.hosts[self.owner].pending <= self.hosts[self.owner].left {
            self.owner = (self.owner + 1) % self.collector();
        }
        let owner = self.owner;
        self.owner = (owner + 1) % self.collector();
        let host = &mut self.hosts[owner];
        host.pending -= 1;
        host.ready += 1;
        match host.state {
            State::Sleep if host.pending == 0 => {
                self.wake(owner);
                self.hosts[finder].owes += self.costs.wake;
            }
            State::Spin if host.pending == 0 => self.go_on(owner),
            _ => {}
        }
    }
}
