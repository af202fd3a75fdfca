//! What a seed plays: a cluster and faults that it draws, or one kind of fault alone.

use super::features::Features;
use super::plan::Plan;
use super::rollback::Rollback;
use super::survivors::Survivor;
use super::watchers::Watchers;
use super::world::World;
use base::Random;
use replication::Rule;

/// What a seed plays. But for the first and the last but one, each has no fault beside what is said of it, so that a rule that matters
/// there only is met with in most seeds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Play {
    /// A cluster and faults that the seed draws.
    #[default]
    Drawn,
    /// A component is lost, and when another stands in for it, all others of its place.
    DoubleLoss,
    /// The same with all its variants, and guests that rest while the first component is away.
    QuietLoss,
    /// The same, where the first component comes back for a moment before all others are lost.
    Relapse,
    /// A member of rows with parity is lost, and when another stands in for it, as many others as leave too few.
    RowLoss,
    /// The same with all its variants, and guests that rest while the first member is away.
    QuietRowLoss,
    /// Processes are killed, and the directory goes away each time that a component is to count.
    LongJoins,
    /// Devices hang, one after the other.
    Hanging,
    /// Blocks cannot be read on several hosts, never the same on two, while components come.
    BadSectors,
    /// Hosts with guests hear nothing for a while, one after the other.
    Deaf,
    /// Limits of a disk change while its guest moves, or is started elsewhere.
    Limits,
    /// A component that has just been brought up to date is all that is left of its place.
    CaughtUp,
    /// One that stood in for another is.
    Heir,
    /// Processes are killed, and word of it reaches the other hosts when a later process of the same host is isolated.
    LateWords,
    /// As drawn; the directory is set back to an old snapshot in the midst of it, and hosts restart with that.
    Rollback,
    /// A component that missed writes is all that starts with an old directory.
    LeftBehind,
}

impl Play {
    /// The features that a seed draws; none where the play has no fault but its own.
    pub fn features(self, seed: u64) -> Features {
        match self {
            _ if self.has_features() => Features::drawn(seed),
            _ => Features::default(),
        }
    }

    /// Whether its worlds are drawn, and may have features.
    pub fn has_features(self) -> bool {
        matches!(self, Play::Drawn | Play::Rollback)
    }

    /// The world of a seed with these features, and with a rule of the protocol removed or not. Only worlds that are drawn may
    /// have features.
    pub fn world(self, seed: u64, features: Features, removed: Option<Rule>) -> World {
        assert!(self.has_features() || features == Features::default(), "{} has none", self.name());
        let copies = 2 + seed % 2;
        let plan = match self {
            Play::Drawn => return World::new(seed, features, removed),
            Play::Rollback => return rollback(seed, features, removed),
            Play::DoubleLoss => Plan::double_loss(copies),
            Play::QuietLoss => Plan::quiet_loss(copies),
            Play::Relapse => Plan::relapse(3),
            Play::RowLoss => Plan::double_loss(copies).in_rows(seed),
            Play::QuietRowLoss => Plan::quiet_loss(copies).in_rows(seed),
            Play::LongJoins => Plan::long_joins(),
            Play::Hanging => Plan::hanging(copies),
            Play::BadSectors => Plan::bad_sectors(copies),
            Play::Deaf => Plan::deaf(copies),
            Play::Limits => Plan::limits(copies),
            Play::CaughtUp => Plan::survivor(Survivor::CaughtUp),
            Play::Heir => Plan::survivor(Survivor::Heir),
            Play::LateWords => Plan::late_words(),
            Play::LeftBehind => Plan::left_behind(),
        };
        let mut world = World::with_plan(plan, Random::new(seed), removed);
        match self {
            Play::Hanging => world.hangs = Random::new(seed),
            Play::BadSectors => world.spoils = Random::new(seed),
            Play::Deaf => world.deafness = Random::new(seed),
            Play::Limits => world.limits = Random::new(seed),
            Play::LateWords => world.watchers = Watchers::late(seed),
            Play::LeftBehind => world.leave_behind(seed),
            _ => {}
        }
        world
    }

    /// Its name as an argument.
    pub fn name(self) -> String {
        let value = clap::ValueEnum::to_possible_value(&self);
        value.map_or_else(String::new, |value| value.get_name().to_owned())
    }
}

fn rollback(seed: u64, features: Features, removed: Option<Rule>) -> World {
    let mut world = World::new(seed, features, removed);
    // What is replaced while nobody knows of it is for people to see to.
    (world.plan.comings, world.plan.goings, world.plan.distrusts) = (0, 0, 0);
    (world.plan.stand_ins, world.plan.double_losses) = (0, false);
    (world.plan.rot, world.plan.dead_devices) = (0, 0);
    world.rollback = Rollback::draw(seed);
    world
}
