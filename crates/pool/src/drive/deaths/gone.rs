//! Removes workers that are dead, and gives back what was theirs alone once their processes are
//! gone.

use brigade_scheduler::Event;
use brigade_sys::clock::now;
use brigade_wire::WorkerId;

use crate::cell::TaskCell;
use crate::drive::deaths::death::has_died;
use crate::drive::deferred::Deferred;
use crate::drive::observer::Observer;
use crate::drive::outcome::EventData;
use crate::drive::shared::{Core, Shared};
use crate::drive::user_code::queue::UserCode;

impl Shared {
    /// Handles the last event of a worker's process. The worker is removed in the same step,
    /// because the slot may get its next process in it.
    pub(in crate::drive) fn remove_dead(
        &self,
        worker: WorkerId,
        mut event: Event<TaskCell>,
        data: EventData,
    ) {
        // Dropped after the locks: a process that nobody attends is killed and reaped then. And
        // last, because giving back the memory of the dead worker takes a while.
        let dead = self.give_cores_back(worker, |core, deferred| {
            let slot = core.worker_slots.get_mut(worker.slot as usize);
            let dead = slot.and_then(|slot| slot.take_if(|slot| slot.id == worker));
            core.watch_rings();
            let time = now();
            if dead.is_some() {
                core.observers.worker_gone(time, worker, has_died(&event, &data));
            }
            if let (Event::Died { death, .. }, Some(slot)) = (&mut event, &dead) {
                // Under the lock, because the reaper may report it at the same time.
                death.gone = slot.process.is_gone();
            }
            core.handle(time, event, data, self, deferred);
            dead
        });
        if let Some(results) =
            dead.as_ref().and_then(|slot| slot.connection.as_ref()?.results.as_ref())
        {
            // Buffers of it may exist for long.
            results.bury();
        }
    }

    /// Acts, and gives back the cores of the worker's slot if it is no longer kept and no process
    /// has them.
    pub(in crate::drive) fn give_cores_back<T>(
        &self,
        WorkerId { slot, .. }: WorkerId,
        act: impl FnOnce(&mut Core, &mut Deferred) -> T,
    ) -> T {
        let cores = self.config.cores.as_ref();
        let turn = cores.map(|_| self.resizing.lock());
        let mut deferred = Deferred::default();
        let mut core = self.lock();
        let result = act(&mut core, &mut deferred);
        let unneeded = cores.filter(|_| !core.scheduler.has_process(slot));
        let unneeded = unneeded.and_then(|cores| cores.release(slot));
        drop(core);
        // A resize that is waiting for its turn may need these cores.
        self.call(unneeded.into_iter().map(UserCode::Lease).collect());
        drop(turn);
        deferred.run(self);
        result
    }
}
