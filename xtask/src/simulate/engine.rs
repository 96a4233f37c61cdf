//! A discrete-event simulation of jobs that pass through stations with several servers each.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};

/// A place with servers that work on one job each, in the order of arrival.
#[derive(Debug)]
struct Station {
    servers: u32,
    busy: u32,
    waiting: VecDeque<usize>,
    /// Seconds that servers were busy after the first fifth, all together.
    work: f64,
}

/// A stage of the way of all jobs. Times are in seconds.
#[derive(Debug, Clone, Copy)]
pub(super) enum Stage {
    Work { station: usize, time: f64 },
    Delay(f64),
}

/// The source of jobs.
#[derive(Debug, Clone, Copy)]
pub(super) enum Source {
    /// Jobs arrive at random, this many a second.
    Poisson(f64),
    /// There are always this many jobs: a new one begins when one ends.
    #[cfg_attr(not(test), expect(dead_code, reason = "only the measured small case has a window"))]
    Window(u32),
}

/// A system of stations, and the way through it.
#[derive(Debug)]
pub(super) struct System {
    stations: Vec<Station>,
    way: Vec<Stage>,
    source: Source,
}

/// The result of a simulation.
#[derive(Debug)]
pub(super) struct Findings {
    /// Times from begin to end, sorted, without those of jobs that began in the first fifth.
    times: Vec<f64>,
    /// Jobs that ended in that time, per second.
    pub(super) rate: f64,
    /// Share of the time that the servers of each station were busy.
    pub(super) loads: Vec<f64>,
}

#[derive(Debug, PartialEq)]
struct Event {
    at: f64,
    number: u64,
    what: What,
}

#[derive(Debug, PartialEq)]
enum What {
    Arrival,
    StageEnd { job: usize },
}

#[derive(Debug)]
struct Job {
    began: f64,
    stage: usize,
}

impl Eq for Event {}

impl Ord for Event {
    /// The earliest is the greatest, for the heap.
    fn cmp(&self, other: &Self) -> Ordering {
        other.at.total_cmp(&self.at).then(other.number.cmp(&self.number))
    }
}

impl PartialOrd for Event {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl System {
    /// Returns a system with these numbers of servers.
    pub(super) fn new(servers: &[u32], way: Vec<Stage>, source: Source) -> Self {
        let station = |&servers| Station { servers, busy: 0, waiting: VecDeque::new(), work: 0.0 };
        Self { stations: servers.iter().map(station).collect(), way, source }
    }

    /// Runs for a time in seconds.
    pub(super) fn run(mut self, seconds: f64, random: &mut Random) -> Findings {
        let warm_up = seconds / 5.0;
        let mut events = Events::default();
        let mut jobs: Vec<Job> = Vec::new();
        let (mut times, mut ended) = (Vec::new(), 0_u32);
        match self.source {
            Source::Poisson(_) => events.push(0.0, What::Arrival),
            Source::Window(jobs) => (0..jobs).for_each(|_| events.push(0.0, What::Arrival)),
        }
        while let Some(Event { at: now, what, .. }) = events.heap.pop()
            && now < seconds
        {
            let job = match what {
                What::Arrival => {
                    jobs.push(Job { began: now, stage: 0 });
                    if let Source::Poisson(rate) = self.source {
                        events.push(now + random.exponential() / rate, What::Arrival);
                    }
                    jobs.len() - 1
                }
                What::StageEnd { job } => {
                    if let Stage::Work { station, time } = self.way[jobs[job].stage] {
                        let station = &mut self.stations[station];
                        if now >= warm_up {
                            station.work += time;
                        }
                        match station.waiting.pop_front() {
                            Some(next) => events.push(now + self.time_of(&jobs[next]), next.into()),
                            None => station.busy -= 1,
                        }
                    }
                    jobs[job].stage += 1;
                    job
                }
            };
            match self.way.get(jobs[job].stage) {
                Some(Stage::Delay(time)) => events.push(now + time, job.into()),
                Some(Stage::Work { station, time }) => {
                    let station = &mut self.stations[*station];
                    if station.busy < station.servers {
                        station.busy += 1;
                        events.push(now + time, job.into());
                    } else {
                        station.waiting.push_back(job);
                    }
                }
                None => {
                    ended += u32::from(now >= warm_up);
                    if jobs[job].began >= warm_up {
                        times.push(now - jobs[job].began);
                    }
                    if matches!(self.source, Source::Window(_)) {
                        events.push(now, What::Arrival);
                    }
                }
            }
        }
        times.sort_by(f64::total_cmp);
        let load =
            |station: &Station| station.work / ((seconds - warm_up) * f64::from(station.servers));
        let loads = self.stations.iter().map(load).collect();
        Findings { times, rate: f64::from(ended) / (seconds - warm_up), loads }
    }

    fn time_of(&self, job: &Job) -> f64 {
        match self.way[job.stage] {
            Stage::Work { time, .. } | Stage::Delay(time) => time,
        }
    }
}

impl From<usize> for What {
    fn from(job: usize) -> Self {
        Self::StageEnd { job }
    }
}

#[derive(Debug, Default)]
struct Events {
    heap: BinaryHeap<Event>,
    last: u64,
}

impl Events {
    fn push(&mut self, at: f64, what: What) {
        self.last += 1;
        self.heap.push(Event { at, number: self.last, what });
    }
}

impl Findings {
    /// Returns a quantile of the times; infinite if no job has ended.
    pub(super) fn quantile(&self, per_mille: usize) -> f64 {
        let index = self.times.len() * per_mille / 1000;
        self.times.get(index).copied().unwrap_or(f64::INFINITY)
    }

    /// Returns the mean of the times.
    #[cfg(test)]
    pub(super) fn mean(&self) -> f64 {
        let count = u32::try_from(self.times.len()).expect("few");
        self.times.iter().sum::<f64>() / f64::from(count)
    }

    /// Returns the findings of no simulation.
    pub(super) fn none(stations: usize) -> Self {
        Self { times: Vec::new(), rate: 0.0, loads: vec![0.0; stations] }
    }

    /// Adds the times of another simulation.
    pub(super) fn merge(&mut self, other: Self) {
        self.times.extend(other.times);
        self.times.sort_by(f64::total_cmp);
        self.rate += other.rate;
        for (load, other) in self.loads.iter_mut().zip(other.loads) {
            *load = load.max(other);
        }
    }
}

/// A generator of random numbers (`SplitMix64`), the same on every machine.
#[derive(Debug)]
pub(super) struct Random(pub(super) u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `limit`, each with the same probability as far as that matters here.
    pub(super) fn below(&mut self, limit: u32) -> usize {
        usize::try_from(self.next() % u64::from(limit)).unwrap_or_default()
    }

    /// Returns a number of the exponential distribution with the mean 1.
    fn exponential(&mut self) -> f64 {
        let [.., a, b, c, d] = self.next().to_le_bytes();
        let unit = (f64::from(u32::from_le_bytes([a, b, c, d])) + 1.0) / f64::from(u32::MAX);
        -unit.min(1.0).ln()
    }
}
