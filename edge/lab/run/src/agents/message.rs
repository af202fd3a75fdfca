//! What driver and agent tell each other.

use crate::generator::stage::Second;
use measured::{Interval, Machine, StageRun, TargetFacts};
use plan::Plan;
use serde::{Deserialize, Serialize};

/// From the driver.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToAgent {
    /// The first message.
    Hello {
        /// Of the conversation.
        protocol: u32,
        /// In hexadecimal.
        secret: String,
    },
    /// What does your clock show?
    Clock,
    /// Find these targets.
    Find {
        /// The part of the plan that is the agent's: groups of others are gone, targets keep their places.
        plan: Box<Plan>,
        /// Targets that may be overwritten although they are in use.
        destroy: Vec<String>,
        /// Whether what the agent's kernel caches of them is dropped.
        drop_caches: bool,
    },
    /// Get a stage ready.
    Prepare {
        /// Index of the plan's stage.
        stage: usize,
        /// IOPS that earlier stages reached.
        reached: Vec<f64>,
        /// Whether I/Os that fail are counted, instead of ending the stage.
        go_on: bool,
    },
    /// Begin the stage at this moment of the agent's clock.
    Begin {
        /// Nanoseconds.
        at: u64,
    },
    /// End the stage, or call it off.
    Stop,
    /// The session is over.
    Bye,
}

/// From an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToDriver {
    /// The answer to a good hello.
    Welcome {
        /// What it runs on.
        machine: Machine,
        /// Which program it is.
        program: String,
    },
    /// What the clock shows, in nanoseconds.
    Clock {
        /// Of the agent's own.
        now: u64,
    },
    /// The targets are found.
    Found {
        /// Each as it was found; none for those that are not the agent's.
        targets: Vec<Option<TargetFacts>>,
    },
    /// The stage is ready to begin.
    Ready,
    /// A second of a thread of a group.
    Second {
        /// Index of the part's group.
        group: usize,
        /// What was measured.
        interval: Interval,
    },
    /// The stage has ended.
    Done {
        /// What it measured.
        run: Box<StageRun>,
    },
    /// It cannot be done.
    Refused {
        /// Why, in a sentence.
        reason: String,
    },
    /// Nothing to tell, but still here.
    Alive,
}

impl From<Second> for ToDriver {
    fn from(second: Second) -> ToDriver {
        ToDriver::Second { group: second.group, interval: second.interval }
    }
}
