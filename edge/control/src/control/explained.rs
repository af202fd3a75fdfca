//! What a policy gives and costs on the cluster as it is now, and where a disk of it would stand.

use super::Control;
use super::policies::rules_of;
use crate::system::{blocking, blocking_seed};
use api::types::{
    ExplainPolicy, ExplainedPolicy, PlannedComponent, PlannedDisk, PolicyCapacity, PolicyRefusal,
};
use base::{ComponentId, DiskId};
use failure::Failure;
use placement::{Capacity, DeviceSpace, PlacedDisk, Plan, Policy, Refusal};
use std::collections::BTreeSet;

impl Control {
    /// Explains a policy; what no disk can have is an answer, too.
    ///
    /// # Errors
    /// When a rule makes no sense, or the engine is gone.
    pub async fn explain_policy(&self, request: &ExplainPolicy) -> Result<ExplainedPolicy, Failure> {
        let policy = self.resolve_policy(request.policy.as_deref())?;
        let spaces = self.cluster.spaces().await?;
        let seed = blocking_seed()?;
        // A large cluster takes a while, and others want to be answered.
        Ok(blocking(|| explained(&policy, request.size, &spaces, seed)))
    }
}

fn explained(policy: &Policy, size: Option<u64>, spaces: &[DeviceSpace], seed: u64) -> ExplainedPolicy {
    let usable = spaces.iter().filter(|device| device.in_service);
    let domains: BTreeSet<_> = usable.map(DeviceSpace::domain).collect();
    let capacity = placement::capacity(policy, spaces, seed);
    let mut next = 0;
    let mut ids = || {
        next += 1;
        ComponentId(next)
    };
    let plan = size.map(|size| (size, placement::plan(policy, size, spaces, &mut ids, seed)));
    let (disk, refused) = match plan {
        Some((size, Ok(plan))) => (Some(planned(policy, size, &plan, spaces)), None),
        Some((_, Err(refusal))) => (None, Some(refusal)),
        None => (None, None),
    };
    // A disk that can be made is no worse for a policy that is not kept in full.
    let refused = refused.or_else(|| capacity.as_ref().err().filter(|_| disk.is_none()).cloned());
    ExplainedPolicy {
        short: policy.short(),
        rules: rules_of(policy),
        failures_to_tolerate: policy.failures_to_tolerate,
        domains_needed: policy.domains_min(),
        domains: domains.len(),
        capacity: capacity.ok().map(capacity_view),
        disk,
        refusal: refused.map(|refusal| refusal_view(&refusal)),
    }
}

fn capacity_view(capacity: Capacity) -> PolicyCapacity {
    PolicyCapacity {
        total_bytes: capacity.total_bytes,
        available_bytes: capacity.available_bytes,
        largest_bytes: capacity.largest_bytes,
        cost: capacity.components as f64 / capacity.data as f64,
    }
}

fn refusal_view(refusal: &Refusal) -> PolicyRefusal {
    PolicyRefusal {
        cause: refusal.to_string(),
        hint: refusal.hint(),
        nearest: refusal.nearest.as_ref().map(|policy| policy.short()),
    }
}

fn planned(policy: &Policy, size: u64, plan: &Plan, spaces: &[DeviceSpace]) -> PlannedDisk {
    let placed = PlacedDisk {
        id: DiskId::default(),
        layout: &plan.layout,
        policy,
        size,
        space_reservation: plan.space_reservation,
        used_bytes: &[],
    };
    let device = |id| spaces.iter().find(|space| space.id == id);
    let component = |component: &layout::Component| {
        let device = device(component.device);
        PlannedComponent {
            host: device.map_or_else(String::new, |device| device.host_name.clone()),
            device: device.map_or_else(|| component.device.to_string(), |device| device.name.clone()),
            size: component.size,
        }
    };
    let components: Vec<PlannedComponent> = plan.layout.components().map(|(_, one)| component(one)).collect();
    let reserved = components.iter().map(|one| placement::reservation(one.size, plan.space_reservation));
    PlannedDisk {
        size,
        full_bytes: components.iter().map(|one| one.size).sum(),
        reserved_bytes: reserved.sum(),
        components,
        reasons: placement::explain(&placed, spaces),
        debts: plan.debts.iter().map(ToString::to_string).collect(),
    }
}
