//! Named patterns: those of published tests, by name.

use plan::Pattern;

/// The pattern of a profile: its name as [`plan::profiles`] lists it, in any case.
pub fn pattern(name: &str) -> Option<Pattern> {
    plan::profiles::find(name).map(|workload| workload.pattern().clone())
}
