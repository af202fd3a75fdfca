//! What an experiment's plans run on: this machine, or agents.

use crate::agents::{DriveSettings, Driver, place};
use crate::generator::stage::Settings;
use crate::runner::{self, Event};
use crate::system::Watching;
use crate::target::Target;
use measured::Run;
use plan::Plan;

/// Something that plans run on.
pub trait Bench {
    /// Runs a plan. `drop_caches`: what the kernel caches of its targets is forgotten first.
    ///
    /// # Errors
    /// When it cannot begin, in a sentence.
    fn run(
        &mut self,
        plan: &Plan,
        drop_caches: bool,
        observe: &mut dyn FnMut(&Plan, Event),
    ) -> Result<Run, String>;

    /// For each target of a plan, whether a map of it proves that every byte was written.
    ///
    /// # Errors
    /// When a target cannot be found.
    fn written(&mut self, plan: &Plan) -> Result<Vec<bool>, String>;
}

/// This machine.
pub struct Here<'a> {
    /// Finds the targets of a plan, in its order.
    pub find: &'a mut dyn FnMut(&Plan) -> Result<Vec<Target>, String>,
    /// Begins to watch the system under test of a plan.
    pub watch: &'a dyn Fn(&Plan) -> Result<Option<Watching>, String>,
    /// How stages are run.
    pub settings: Settings,
    /// The program's name and version.
    pub program: String,
}

impl Bench for Here<'_> {
    fn run(
        &mut self,
        plan: &Plan,
        drop_caches: bool,
        observe: &mut dyn FnMut(&Plan, Event),
    ) -> Result<Run, String> {
        let targets = (self.find)(plan)?;
        if drop_caches {
            targets.iter().for_each(Target::drop_cache);
        }
        Watching::over((self.watch)(plan)?, || {
            runner::run(plan, &targets, &self.settings, &self.program, &mut |event| observe(plan, event))
                .map_err(|error| error.to_string())
        })
    }

    fn written(&mut self, plan: &Plan) -> Result<Vec<bool>, String> {
        Ok((self.find)(plan)?.iter().map(Target::is_written).collect())
    }
}

/// Agents: every machine of a plan is on one of them.
pub struct There<'a> {
    /// Connected.
    pub driver: Driver,
    /// Says what the disks of a plan stand for.
    pub name: &'a mut dyn FnMut(&Plan) -> Result<Plan, String>,
    /// Begins to watch the system under test of a plan with its targets named.
    pub watch: &'a dyn Fn(&Plan) -> Result<Option<Watching>, String>,
    /// Placements by hand.
    pub by_hand: Vec<String>,
    /// Targets that may be overwritten although they are in use.
    pub destroy: Vec<String>,
    /// How stages are driven.
    pub settings: DriveSettings,
}

impl Bench for There<'_> {
    fn run(
        &mut self,
        plan: &Plan,
        drop_caches: bool,
        observe: &mut dyn FnMut(&Plan, Event),
    ) -> Result<Run, String> {
        let plan = (self.name)(plan)?;
        let placement =
            place(&plan, &self.driver.names(), &self.by_hand).map_err(|error| error.to_string())?;
        let targets =
            (self.driver.find(&placement, &self.destroy, drop_caches)).map_err(|error| error.to_string())?;
        Watching::over((self.watch)(&plan)?, || {
            self.driver
                .run(&placement, targets, &self.settings, &mut |event| observe(&placement.plan, event))
                .map_err(|error| error.to_string())
        })
    }

    fn written(&mut self, plan: &Plan) -> Result<Vec<bool>, String> {
        // Maps are not asked for over the network: filling once more does no harm.
        Ok(vec![false; plan.targets.len()])
    }
}
