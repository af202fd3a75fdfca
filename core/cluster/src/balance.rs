//! Rebalancing: the moves that `placement::rebalance` proposes, as incoming components.
//!
//! Repairs come first. No move begins while a disk is not whole, a host enters maintenance, or former moves are under
//! way: the bytes of these would count twice.

use crate::disk::{DiskState, Incoming, Reason};
use crate::host::Maintenance;
use crate::limits::NAMED_MAX;
use crate::repair::{Action, Coming, Step, Why};
use crate::view::View;
use base::ComponentId;
use placement::{Balance, PlacedDisk, balance_of, rebalance};
use std::collections::BTreeMap;
use std::fmt;

/// Why no move begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pause {
    /// Moves, repairs or other copies are under way.
    Coming {
        /// How many components.
        count: usize,
    },
    /// Disks are not whole.
    Repairs {
        /// Their names, some of them.
        disks: Vec<String>,
    },
    /// A host is on its way into maintenance.
    Maintenance {
        /// Its name.
        host: String,
    },
}

impl fmt::Display for Pause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Pause::Coming { count } => {
                write!(f, "waiting for {} to be filled", crate::words::components(*count))
            }
            Pause::Repairs { disks } => write!(f, "waiting until disks are whole: {}", disks.join(", ")),
            Pause::Maintenance { host } => write!(f, "waiting until {host} is in maintenance"),
        }
    }
}

/// Decides which components move so that devices are filled evenly.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Balancer {
    balance: Balance,
    pause: Option<Pause>,
    stuck: Option<String>,
}

impl Balancer {
    /// How evenly the devices were filled at the last decision.
    pub fn balance(&self) -> Balance {
        self.balance
    }

    /// Why no move begins; none when moves may begin.
    pub fn pause(&self) -> Option<&Pause> {
        self.pause.as_ref()
    }

    /// Imbalance that the rules do not allow to remove, in one line.
    pub fn stuck(&self) -> Option<&str> {
        self.stuck.as_deref()
    }

    /// The next moves, each for the owner of its disk. [`crate::Repairs`] finishes them, as it does repairs. The same
    /// arguments give the same moves.
    pub fn step(&mut self, view: &View, ids: &mut impl FnMut() -> ComponentId, seed: u64) -> Vec<Action> {
        self.pause = pause(view);
        if self.pause.is_some() {
            // The imbalance is reported all the same: a full device may be the reason that disks are not whole.
            self.balance = balance_of(&view.spaces(), self.balance);
            return Vec::new();
        }
        // A component is filled by its disk's owner, so disks without one do not move. A disk that is not in use
        // causes no load anyway.
        let movable = view.disks.values().filter(|disk| {
            disk.state == DiskState::Active
                && disk.growth.is_none()
                && disk.moving.is_none()
                && disk.roster.owner.is_some()
        });
        let placed: Vec<PlacedDisk<'_>> =
            movable.map(|disk| disk.placed(&disk.layout, view.used(disk.id))).collect();
        let proposal = rebalance(self.balance, &placed, &view.spaces(), seed);
        self.balance = proposal.balance;
        self.stuck = proposal.stuck;
        let nodes = view.nodes();
        let mut begun: BTreeMap<_, Vec<Coming>> = BTreeMap::new();
        for one in proposal.moves {
            let disk = &view.disks[&one.disk];
            let (_, stands) = disk.component(one.component).expect("what moves is the disk's");
            let component = layout::Component { id: ids(), device: one.target, ..stands };
            let incoming = Incoming {
                place: one.place as u16,
                component,
                replaces: Some(one.component),
                reason: Reason::Balance,
            };
            begun.entry(one.disk).or_default().push(Coming {
                node: nodes[&one.target],
                incoming,
                why: Why::Balance,
            });
        }
        let action = |(disk, coming)| {
            let owner = view.disks[&disk].roster.owner.expect("only disks with an owner move");
            Action { disk, actor: owner.node, step: Step::Begin(coming) }
        };
        begun.into_iter().map(action).collect()
    }
}

fn pause(view: &View) -> Option<Pause> {
    let entering = |host: &&crate::HostRecord| matches!(host.maintenance, Maintenance::Entering { .. });
    if let Some(host) = view.hosts.values().find(entering) {
        return Some(Pause::Maintenance { host: host.name.clone() });
    }
    let (count, _) = view.coming();
    if count > 0 {
        return Some(Pause::Coming { count });
    }
    let is_reduced = |disk: &&crate::DiskRecord| {
        disk.state == DiskState::Active
            && disk.layout.components().any(|(_, one)| !view.is_sound(disk, one.id))
    };
    let reduced = view.disks_to_check().into_iter().filter(is_reduced);
    let disks: Vec<String> = reduced.map(|disk| disk.name.clone()).take(NAMED_MAX).collect();
    (!disks.is_empty()).then_some(Pause::Repairs { disks })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Mode;
    use crate::repair::{Because, Repairs, Settings};
    use crate::testing::{at, cluster, counting_from, node};
    use base::DeviceId;
    use base::units::GIB;
    use replication::Standing;

    /// Host 1 holds four single disks of 20 GiB of data, host 2 nothing.
    fn uneven() -> View {
        let mut view = cluster(2, 1);
        view.host_mut(2).devices[0].state = crate::DeviceState::Away { since: at(0) };
        for id in 1..=4 {
            view.add_disk(id, "single,stripes=1");
            view.used_bytes.insert(base::DiskId(id), vec![20 * GIB]);
        }
        view.host_mut(2).devices[0].state = crate::DeviceState::InService;
        view.host_mut(1).devices[0].free_bytes = 20 * GIB;
        view
    }

    fn step(balancer: &mut Balancer, view: &View) -> Vec<Action> {
        balancer.step(view, &mut counting_from(5000), 1)
    }

    #[test]
    fn moves_go_from_the_full_device_to_the_empty_one_and_are_finished() {
        let mut view = uneven();
        let mut balancer = Balancer::default();
        let actions = step(&mut balancer, &view);
        assert!(!actions.is_empty() && actions.iter().all(|action| action.actor == node(1)));
        for action in &actions {
            let disk = view.disks.get_mut(&action.disk).expect("it is there");
            *disk = action.step.apply(disk).expect("it fits").expect("a change").record;
            assert_eq!(disk.incoming[0].component.device, DeviceId(21));
        }
        assert_eq!(step(&mut balancer, &view), []);
        assert_eq!(balancer.pause(), Some(&Pause::Coming { count: actions.len() }));
        let mut repairs = Repairs::default();
        let idle = repairs.step(at(1), &view, &mut counting_from(9000), 1);
        assert_eq!(idle.actions, [], "a move that is not done is left alone");
        let mut unwilling = Repairs::new(Settings { evens_out: false, ..Settings::default() });
        let called_off = unwilling.step(at(1), &view, &mut counting_from(9000), 1);
        let is_called_off = |one: &Action| matches!(one.step, Step::Cancel(_, Because::Unwanted));
        assert!(called_off.actions.iter().all(is_called_off));
        assert_eq!(called_off.actions.len(), actions.len());
        view.disks
            .values_mut()
            .flat_map(|disk| disk.roster.members.iter_mut())
            .for_each(|one| one.standing = Standing::Active);
        let finished = repairs.step(at(2), &view, &mut counting_from(9000), 1);
        assert_eq!(finished.actions.len(), actions.len());
    }

    /// A full device kept disks from being whole, which kept devices from being rebalanced, and the report called
    /// them even.
    #[test]
    fn a_device_that_is_full_is_told_while_nothing_moves() {
        let mut view = cluster(2, 1);
        view.add_disk(1, "default,stripes=1");
        view.stand(view.component_on(1, 2), Standing::Absent);
        view.host_mut(2).devices[0].free_bytes = 0;
        let mut balancer = Balancer::default();
        assert_eq!(step(&mut balancer, &view), []);
        assert_eq!(balancer.balance(), Balance::Reactive);
        assert_eq!(balancer.pause(), Some(&Pause::Repairs { disks: vec!["disk1".to_owned()] }));
    }

    #[test]
    fn nothing_moves_while_disks_are_repaired_or_a_host_is_emptied() {
        let mut view = uneven();
        view.add_disk(9, "default,stripes=1");
        view.stand(view.component_on(9, 2), Standing::Absent);
        let mut balancer = Balancer::default();
        assert_eq!(step(&mut balancer, &view), []);
        assert_eq!(balancer.pause(), Some(&Pause::Repairs { disks: vec!["disk9".to_owned()] }));
        view.stand(view.component_on(9, 2), Standing::Active);
        let maintenance = Maintenance::Entering { mode: Mode::FullEvacuation, since: at(0) };
        view.host_mut(2).maintenance = maintenance;
        assert_eq!(step(&mut balancer, &view), []);
        assert_eq!(balancer.pause(), Some(&Pause::Maintenance { host: "h2".to_owned() }));
        view.host_mut(2).maintenance = Maintenance::Off;
        assert!(!step(&mut balancer, &view).is_empty());
    }
}
