//! The targets of a plan that a reader makes: each once, by its machine and its name.

use plan::{Plan, Target};
use std::collections::HashMap;

/// Where in the plan each target is. The same path on two machines is two targets.
#[derive(Debug, Default)]
pub(crate) struct Targets {
    indices: HashMap<(Option<String>, String), usize>,
}

impl Targets {
    /// The index of a target in the plan, which gets it if it is new; its size is the largest that anything asks for.
    pub(crate) fn index(
        &mut self,
        plan: &mut Plan,
        host: Option<&str>,
        name: &str,
        size: Option<u64>,
    ) -> usize {
        let key = (host.map(str::to_owned), name.to_owned());
        let index = *self.indices.entry(key).or_insert_with_key(|(host, name)| {
            plan.targets.push(Target { host: host.clone(), ..Target::named(name) });
            plan.targets.len() - 1
        });
        let target = &mut plan.targets[index];
        target.size = target.size.max(size);
        index
    }
}
