//! When reorganizing on the fly is cheaper than afterwards: the model of Wan et al., section 5.2, term by term.
//!
//! Symbols are those of Table 1. Resource utilization *U* is nodes times seconds, over the whole workflow. Beside the
//! paper's two ways there is Esker's: servers lay out and write one output while the next one is staged, so that the slowest
//! of computing, staging and writing sets the pace, and not the sum of two of them.
//!
//! ```
//! use esker_policy::staging::{Pay, Staging};
//!
//! let warpx = Staging::of_the_paper(40.0, 26.0);
//! assert!(warpx.on_the_fly() < warpx.post_hoc());
//! assert_eq!(Staging::of_the_paper(40.0, 1.0).pays_from(), Pay::From(26));
//! assert_eq!(Staging::of_the_paper(20.0, 1.0).pays_from(), Pay::Never);
//! ```

/// A run whose outputs are reorganized. Times are for one output.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Staging {
    /// `n`: nodes that compute.
    pub nodes: f64,
    /// `m`: nodes that reorganize.
    pub servers: f64,
    /// `N`: outputs.
    pub outputs: f64,
    /// `t_c`: seconds of computing between two outputs.
    pub compute: f64,
    /// `t_w(n, p, S)`: seconds in which all nodes write an output as it is.
    pub write_direct: f64,
    /// `t_r(m, q, S)`: seconds in which the reorganizing nodes read an output.
    pub read: f64,
    /// `t_s(n, p, m, q, S)`: seconds in which an output is staged.
    pub stage: f64,
    /// `t_w(m, q, S)`: seconds in which the reorganizing nodes write an output.
    pub write: f64,
}

/// From how many outputs on something pays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pay {
    /// From so many.
    From(u64),
    /// Up to so many only.
    UpTo(u64),
    /// With any number of outputs.
    Always,
    /// With no number of outputs.
    Never,
}

impl Staging {
    /// The paper's measurement on Summit (Table 2): 256 nodes, 2 more for staging, 256 GB an output.
    pub fn of_the_paper(compute: f64, outputs: f64) -> Staging {
        Staging {
            nodes: 256.0,
            servers: 2.0,
            outputs,
            compute,
            write_direct: 1.4,
            read: 11.1,
            stage: 19.4,
            write: 13.6,
        }
    }

    /// Seconds of the simulation, when it writes its outputs itself: `N (t_c + t_w(n))`.
    pub fn simulation_seconds(&self) -> f64 {
        self.outputs * (self.compute + self.write_direct)
    }

    /// Seconds of reorganizing all outputs afterwards: `t_r(m, N S) + t_w(m, N S)`.
    pub fn reorganizing_seconds(&self) -> f64 {
        self.outputs * (self.read + self.write)
    }

    /// `U` of reorganizing afterwards: `n N (t_c + t_w(n)) + m (t_r + t_w(m))`.
    pub fn post_hoc(&self) -> f64 {
        self.nodes * self.simulation_seconds() + self.servers * self.reorganizing_seconds()
    }

    /// Whether staging keeps up: `t_s + t_w(m) < t_c`. The simulation is then never delayed (the paper's first case).
    pub fn keeps_up(&self) -> bool {
        self.stage + self.write < self.compute
    }

    /// Seconds of the workflow with staging, one output at a time: `N t_c + t_s + t_w` where that keeps up, and
    /// `t_c + N (t_s + t_w)` where it does not.
    pub fn on_the_fly_seconds(&self) -> f64 {
        let output = self.stage + self.write;
        match self.keeps_up() {
            true => self.outputs * self.compute + output,
            false => self.compute + self.outputs * output,
        }
    }

    /// `U` of that: `(n + m)` times its seconds.
    pub fn on_the_fly(&self) -> f64 {
        (self.nodes + self.servers) * self.on_the_fly_seconds()
    }

    /// The slowest step of Esker's pipeline, which an output takes when the pipeline is full.
    pub fn pace(&self) -> f64 {
        self.compute.max(self.stage).max(self.write)
    }

    /// Seconds of the workflow when an output is staged while the one before is written: the first one takes all three
    /// steps, each further one as long as the slowest.
    pub fn pipelined_seconds(&self) -> f64 {
        let first = self.compute + self.stage + self.write;
        first + (self.outputs - 1.0).max(0.0) * self.pace()
    }

    /// `U` of that.
    pub fn pipelined(&self) -> f64 {
        (self.nodes + self.servers) * self.pipelined_seconds()
    }

    /// From how many outputs on reorganizing on the fly, one at a time, takes less than afterwards.
    pub fn pays_from(&self) -> Pay {
        pays(self, Staging::on_the_fly)
    }

    /// From how many outputs on Esker's pipeline takes less than reorganizing afterwards.
    pub fn pipeline_pays_from(&self) -> Pay {
        pays(self, Staging::pipelined)
    }

    /// Where staging does not keep up: the computing time above which it takes less nevertheless, for so many outputs.
    /// With ever more outputs, [`shortest_interval_ever`](Self::shortest_interval_ever).
    pub fn shortest_interval(&self) -> Option<f64> {
        // (n + m)(t_c + N T) < n N (t_c + t_w) + m N (t_r + t_w'), for t_c.
        let slope = self.nodes * self.outputs - (self.nodes + self.servers);
        (slope > 0.0).then(|| {
            self.outputs * (self.with_servers(self.stage + self.write) - self.fixed()) / slope
        })
    }

    /// What [`shortest_interval`](Self::shortest_interval) comes down to as outputs become more.
    pub fn shortest_interval_ever(&self) -> f64 {
        (self.with_servers(self.stage + self.write) - self.fixed()) / self.nodes
    }

    /// Where staging keeps up: the computing time below which it takes less, for this number of outputs. Longer ones
    /// let the additional nodes wait for more than they save.
    pub fn longest_interval(&self) -> Option<f64> {
        // (n + m)(N t_c + T) < n N (t_c + t_w) + m N (t_r + t_w'), for t_c.
        let slope = self.servers * self.outputs;
        let saved = self.outputs * self.fixed() - self.with_servers(self.stage + self.write);
        (slope > 0.0).then(|| saved / slope)
    }

    fn with_servers(&self, seconds: f64) -> f64 {
        (self.nodes + self.servers) * seconds
    }

    /// What an output costs afterwards beside its computing.
    fn fixed(&self) -> f64 {
        self.nodes * self.write_direct + self.servers * (self.read + self.write)
    }
}

/// Both sides are straight lines over the number of outputs, from 1 on.
fn pays(run: &Staging, way: impl Fn(&Staging) -> f64) -> Pay {
    let saved = |outputs: f64| {
        let run = Staging { outputs, ..*run };
        run.post_hoc() - way(&run)
    };
    let first = saved(1.0);
    let each = saved(2.0) - first;
    // The number of outputs at which nothing is saved and nothing lost.
    let even = 1.0 - first / each;
    match (first > 0.0, each > 0.0) {
        (true, true) => Pay::Always,
        (true, false) if each == 0.0 => Pay::Always,
        (true, false) => {
            Pay::UpTo(if even.fract() == 0.0 { even - 1.0 } else { even.floor() } as u64)
        }
        (false, true) => Pay::From(even.floor() as u64 + 1),
        (false, false) => Pay::Never,
    }
}

/// What merging blocks costs the simulation (section 4.3).
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Merging {
    /// Nodes that write.
    pub nodes: f64,
    /// Seconds in which cuboids are found.
    pub cluster: f64,
    /// Seconds in which blocks are copied into them.
    pub copy: f64,
    /// Seconds in which a node's blocks are gathered; 0 where each rank merges its own.
    pub gather: f64,
}

impl Merging {
    /// Node-seconds lost for each variable that is written.
    pub fn lost(&self) -> f64 {
        self.nodes * (self.cluster + self.copy + self.gather)
    }

    /// Node-seconds won by reading it once on so many nodes, of the seconds without and with merging.
    pub fn won(reading_nodes: f64, seconds_without: f64, seconds_with: f64) -> f64 {
        reading_nodes * (seconds_without - seconds_with)
    }

    /// After how many reads, each winning this, merging has paid; `None`: never.
    pub fn pays_after(&self, won: f64) -> Option<u64> {
        (won > 0.0).then(|| (self.lost() / won).ceil().max(1.0) as u64)
    }
}
