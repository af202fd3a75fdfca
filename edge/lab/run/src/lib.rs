//! The lab at work: generator, targets, experiments, agents.
