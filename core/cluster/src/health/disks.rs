//! Findings about virtual disks.

use super::code::Code;
use super::finding::{Finding, Severity, Subject};
use super::surroundings::Surroundings;
use crate::compliance::{differences, waits_for_moves};
use crate::disk::{DiskRecord, DiskState, Reason, Snapshot};
use crate::domains::{self, SharedDomain};
use crate::ground::device_name;
use crate::limits::{MOVE_PAUSED_AFTER, MOVE_STUCK_AFTER, RESYNC_STUCK_AFTER};
use crate::moves::{Hindrance, MovesUnderWay};
use crate::repair::{NOT_REPLACED, Slot};
use crate::standstill::{hindrance, standstill};
use crate::status::{Condition, Known, condition, explain_disk, waits_for};
use crate::view::{Ground, View};
use crate::words::{ago, components, listed};
use base::ComponentId;
use base::units::format_bytes;
use replication::{Member, Standing};
use std::collections::BTreeSet;

pub(super) fn find(view: &View, around: &Surroundings<'_>, found: &mut Vec<Finding>) {
    let moves = MovesUnderWay::of(view.disks.values());
    for disk in view.disks.values() {
        match disk.state {
            DiskState::Creating => {}
            DiskState::Deleting => deleting(view, disk, found),
            DiskState::Active => {
                presence(view, around, disk, found);
                stale(view, disk, found);
                stuck(view, around, disk, found);
                let sharing = domains::to_move(view, disk, &BTreeSet::new());
                let sharing = sharing.into_iter().map(|(_, copy)| copy.id).collect();
                blocked(around, disk, &sharing, found);
                shared(view, around, disk, &sharing, found);
                debts(view, disk, around, &moves, found);
                moving(view, around, disk, found);
                disagreeing(view, disk, found);
                on_few_copies(disk, found);
                half_rolled_back(view, disk, found);
            }
        }
    }
}

/// Parity that did not agree with the data was written again, but a fault caused it: of a device that lost a write in spite of its flush, of
/// memory, or of the software.
fn disagreeing(view: &View, disk: &DiskRecord, found: &mut Vec<Finding>) {
    let Some(checks) = view.owners.get(&disk.id).map(|owner| owner.row_checks) else { return };
    if checks.disagreeing == 0 {
        return;
    }
    let rows = |count: u64| if count == 1 { "1 row".to_owned() } else { format!("{count} rows") };
    found.push(Finding {
        code: Code::RowsDisagree,
        severity: Severity::Warning,
        subject: Subject::Disk(disk.id),
        cause: format!(
            "the parity of {} of {} did not agree with the data since its owner began; {} mended",
            rows(checks.disagreeing),
            disk.name,
            match checks.mended {
                1 => "1 was".to_owned(),
                mended => format!("{mended} were"),
            }
        ),
        remedy: format!(
            "see `drystone events --kind rows.disagreed` for the devices of {}; replace a device that is named again and again, and report \
             it where none is",
            disk.name
        ),
    });
}

/// Whoever rolled the disk back was lost or could not go on. Guests wait for the disk until a person has the rollback repeated.
fn half_rolled_back(view: &View, disk: &DiskRecord, found: &mut Vec<Finding>) {
    let Some(rollback) = disk.rollback.filter(|_| view.rolls_back(disk).is_none()) else { return };
    let [to, before] = [rollback.to, rollback.before].map(|number| disk.snapshot_name(number));
    let name = &disk.name;
    found.push(Finding {
        code: Code::RollbackUnfinished,
        severity: Severity::Critical,
        subject: Subject::Disk(disk.id),
        cause: format!(
            "the rollback of {name} to snapshot {to} was cut short: the disk holds part of it and part of what came after, and no client gets it"
        ),
        remedy: format!(
            "repeat it (`drystone disk snapshot rollback {name} {to}`), or go back to what the disk held before (`drystone disk snapshot rollback \
             {name} {before}`)"
        ),
    });
}

/// A copy that was away when a snapshot was taken, or was made later, does not have it.
fn on_few_copies(disk: &DiskRecord, found: &mut Vec<Finding>) {
    let is_on_few = |one: &&Snapshot| {
        let (copies, wanted) = disk.copies_with(one.number);
        copies < wanted
    };
    let few: Vec<&Snapshot> = disk.snapshots.taken.iter().filter(is_on_few).collect();
    let Some((least, wanted)) = few.iter().map(|one| disk.copies_with(one.number)).min() else { return };
    let is_lost = few.iter().any(|one| !disk.is_readable(one.number));
    let names: Vec<String> = few.iter().map(|one| one.name.clone()).collect();
    let named = if names.len() > 5 { format!("{} snapshots", names.len()) } else { listed(&names) };
    found.push(Finding {
        code: Code::SnapshotsReduced,
        severity: if is_lost { Severity::Warning } else { Severity::Notice },
        subject: Subject::Disk(disk.id),
        cause: format!(
            "components of {} that were away, or were made later, do not have {named}: {}",
            disk.name,
            match is_lost {
                true => "some cannot be read as a whole".to_owned(),
                false => format!("at worst, {least} of {wanted} has one"),
            }
        ),
        remedy: match is_lost {
            true => format!(
                "wait for the hosts and devices that are away; if they do not return, delete these and take new snapshots of {}",
                disk.name
            ),
            false => "nothing: each gets them from those that have them, once it is up to date and its device has room; until then no component is taken out of \
                      the disk that is needed to read one of these"
                .to_owned(),
        },
    });
}

fn presence(view: &View, around: &Surroundings<'_>, disk: &DiskRecord, found: &mut Vec<Finding>) {
    let subject = Subject::Disk(disk.id);
    let known = Known { now: around.now, directory: around.directory, repairs: around.repairs };
    match condition(view, disk, around.directory) {
        Condition::Whole => {}
        Condition::Inaccessible => found.push(Finding {
            code: Code::DiskInaccessible,
            severity: Severity::Critical,
            subject,
            cause: format!("{} cannot be used: {}", disk.name, waits_for(view, disk, &known)),
            remedy: "bring back the host or device that it waits for; if that is impossible, restore the disk from a backup"
                .to_owned(),
        }),
        Condition::Reduced => {
            let line = explain_disk(view, disk, &known, None).unwrap_or_default();
            found.push(Finding {
                code: Code::DiskReduced,
                severity: Severity::Warning,
                subject,
                cause: format!("{}: {line}", disk.name),
                remedy: "bring back the missing components, or wait until they are rebuilt".to_owned(),
            });
        }
    }
}

fn deleting(view: &View, disk: &DiskRecord, found: &mut Vec<Finding>) {
    let devices = disk.layout.components().map(|(_, one)| one.device);
    let away: BTreeSet<String> = devices
        .filter(|device| view.ground(*device) != Ground::Here)
        .map(|device| device_name(view, device))
        .collect();
    if away.is_empty() {
        return;
    }
    found.push(Finding {
        code: Code::DiskDeleting,
        severity: Severity::Notice,
        subject: Subject::Disk(disk.id),
        cause: format!(
            "{} is being deleted and waits for {}",
            disk.name,
            listed(&away.into_iter().collect::<Vec<_>>())
        ),
        remedy: "bring these back, or remove their host from the cluster for good".to_owned(),
    });
}

fn names(view: &View, disk: &DiskRecord, members: &[&Member]) -> String {
    let device = |member: &&Member| {
        let found = disk.component(member.component);
        found.map_or_else(String::new, |(_, component)| device_name(view, component.device))
    };
    listed(&members.iter().map(device).collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>())
}

fn stale(view: &View, disk: &DiskRecord, found: &mut Vec<Finding>) {
    // Components on a host that was taken out, or on a device that was replaced, were given up by people: no device
    // lost writes.
    let is_there = |one: &Member| {
        let component = disk.component(one.component).map(|(_, component)| component);
        let host = component.and_then(|component| view.device(component.device)).map(|(host, _)| host.id);
        host == Some(one.node.host)
    };
    let is_stale = |one: &&Member| one.standing == Standing::Stale && is_there(one);
    let stale: Vec<&Member> = disk.roster.members.iter().filter(is_stale).collect();
    if stale.is_empty() {
        return;
    }
    let devices = names(view, disk, &stale);
    found.push(Finding {
        code: Code::ComponentStale,
        severity: Severity::Critical,
        subject: Subject::Disk(disk.id),
        cause: format!(
            "{} of {} lost what was acknowledged, on {devices}: the device loses writes",
            components(stale.len()),
            disk.name
        ),
        remedy: format!(
            "take {devices} out of service and check it; its components are rebuilt on other devices"
        ),
    });
}

/// Components that can be reached and should be filled, and are not.
fn stuck(view: &View, around: &Surroundings<'_>, disk: &DiskRecord, found: &mut Vec<Finding>) {
    let since = |id: ComponentId| around.repairs.stalled_since(disk.id, id);
    let is_stuck = |one: &&Member| {
        since(one.component).is_some_and(|since| around.now.since(since) >= RESYNC_STUCK_AFTER)
    };
    let stuck: Vec<&Member> = disk.roster.members.iter().filter(is_stuck).collect();
    let Some(first) = stuck.iter().filter_map(|one| since(one.component)).min() else { return };
    let report = view.owners.get(&disk.id).into_iter().flat_map(|state| &state.members);
    let troubles = report.filter(|report| stuck.iter().any(|one| one.component == report.component));
    let troubles: BTreeSet<String> =
        troubles.filter_map(|report| report.trouble.map(|why| why.to_string())).collect();
    let why = match troubles.is_empty() {
        true => String::new(),
        false => format!(": {}", listed(&troubles.into_iter().collect::<Vec<_>>())),
    };
    found.push(Finding {
        code: Code::ResyncStuck,
        severity: Severity::Warning,
        subject: Subject::Disk(disk.id),
        cause: format!(
            "nothing has been copied to {} of {} on {} for {}{why}",
            components(stuck.len()),
            disk.name,
            names(view, disk, &stuck),
            ago(around.now, first)
        ),
        remedy: "see whether their devices answer and have room, and whether the owner's host reaches them"
            .to_owned(),
    });
}

/// Components for which no device was found. Copies that share a fault domain have a finding of their own, which
/// reports the same.
fn blocked(
    around: &Surroundings<'_>,
    disk: &DiskRecord,
    sharing: &BTreeSet<ComponentId>,
    found: &mut Vec<Finding>,
) {
    let range = (disk.id, Slot::Component(ComponentId(0)))..=(disk.id, Slot::Copy(usize::MAX));
    let is_other = |slot: &Slot| match slot {
        Slot::Component(id) => !sharing.contains(id),
        Slot::Copy(_) => true,
    };
    let refused = around.repairs.refused().range(range).filter(|((_, slot), _)| is_other(slot));
    let refused: Vec<_> = refused.map(|(_, refused)| refused).collect();
    let Some(first) = refused.first() else { return };
    found.push(Finding {
        code: Code::RepairBlocked,
        severity: Severity::Warning,
        subject: Subject::Disk(disk.id),
        cause: format!(
            "for {} of {} no place has been found for {}: {}",
            components(refused.len()),
            disk.name,
            ago(around.now, first.since),
            first.cause
        ),
        remedy: first.cause.remedy().to_owned(),
    });
}

/// Copies that share a fault domain since hosts were given other domains.
fn shared(
    view: &View,
    around: &Surroundings<'_>,
    disk: &DiskRecord,
    sharing: &BTreeSet<ComponentId>,
    found: &mut Vec<Finding>,
) {
    let domains = domains::shared_domains(view, disk);
    if domains.is_empty() {
        return;
    }
    let one = |shared: &SharedDomain| {
        let devices: Vec<String> = shared.devices.iter().map(|device| device_name(view, *device)).collect();
        let loss = match shared.has_all {
            true => "the disk cannot be used without that domain",
            false => "the domain takes more than one copy with it",
        };
        format!("{} ({}): {loss}", shared.domain, listed(&devices))
    };
    let refused = |id: &ComponentId| around.repairs.refused().get(&(disk.id, Slot::Component(*id)));
    let is_moving = disk.incoming.iter().any(|one| one.reason == Reason::Policy && one.replaces.is_some());
    let refused = sharing.iter().find_map(refused);
    let next = match refused {
        Some(refused) => format!("no copy can move: {}", refused.cause),
        None if is_moving => "a copy is moving to another fault domain".to_owned(),
        None if around.repairs.are_off() => format!("no copy moves: {NOT_REPLACED}"),
        None => "a copy moves to another fault domain as soon as its turn comes".to_owned(),
    };
    let remedy = match refused {
        Some(refused) => format!(
            "{}, in another fault domain; or, if the hosts do not fail together, correct `fault_domain` in their configuration",
            refused.cause.remedy()
        ),
        None => "wait until the copy has moved (`drystone resync`); or, if the hosts do not fail together, correct \
                 `fault_domain` in their configuration"
            .to_owned(),
    };
    found.push(Finding {
        code: Code::DomainsShared,
        severity: Severity::Warning,
        subject: Subject::Disk(disk.id),
        cause: format!(
            "copies of {} share fault domain {}; {next}",
            disk.name,
            listed(&domains.iter().map(one).collect::<Vec<_>>())
        ),
        remedy,
    });
}

/// Moves into another layout that stand still, or that somebody paused and may have forgotten.
fn moving(view: &View, around: &Surroundings<'_>, disk: &DiskRecord, found: &mut Vec<Finding>) {
    let (Some(moving), Some(status)) = (&disk.moving, view.moves.get(&disk.id)) else { return };
    let still = around.now.since(status.still_since);
    let turn = if moving.is_back { "on" } else { "back" };
    let (moved, all) = disk.moved_bytes().expect("it moves");
    let progress = format!("{} of {} moved", format_bytes(moved), format_bytes(all));
    let since = ago(around.now, status.still_since);
    if moving.is_paused {
        if still >= MOVE_PAUSED_AFTER {
            found.push(Finding {
                code: Code::MovePaused,
                severity: Severity::Notice,
                subject: Subject::Disk(disk.id),
                cause: format!(
                    "the move of {} into another layout is paused for {since}, {progress}",
                    disk.name
                ),
                remedy: format!(
                    "`drystone disk set {0} move resume`, or `drystone disk set {0} move {turn}`",
                    disk.name
                ),
            });
        }
        return;
    }
    let hindrance = hindrance(view, disk);
    let patience = match hindrance {
        Some(Hindrance::NoSpace | Hindrance::Damaged) => RESYNC_STUCK_AFTER,
        Some(Hindrance::AwaitsComponent) | None => MOVE_STUCK_AFTER,
    };
    if still < patience {
        return;
    }
    let way_out = match hindrance {
        Some(Hindrance::NoSpace) => "free space on these devices or add devices",
        Some(Hindrance::Damaged) => "write the damaged blocks again, in the guest or from a backup",
        Some(Hindrance::AwaitsComponent) => {
            "bring the missing components back, or wait until they are rebuilt"
        }
        None => "see whether the owner's host and the devices of the disk answer",
    };
    let why = standstill(view, disk, around.now).map_or_else(String::new, |why| format!(": {why}"));
    found.push(Finding {
        code: Code::MoveStuck,
        severity: Severity::Warning,
        subject: Subject::Disk(disk.id),
        cause: format!(
            "the move of {} into another layout stands still for {since}, {progress}{why}",
            disk.name
        ),
        remedy: format!("{way_out}; or `drystone disk set {} move {turn}`", disk.name),
    });
}

fn debts(
    view: &View,
    disk: &DiskRecord,
    around: &Surroundings<'_>,
    moves: &MovesUnderWay,
    found: &mut Vec<Finding>,
) {
    let differences = differences(view, disk);
    if disk.debts.is_empty() && differences.is_empty() {
        return;
    }
    let has_debts = !disk.debts.is_empty();
    let is_refused = (0..disk.layout.place_count())
        .any(|place| around.repairs.refused().contains_key(&(disk.id, Slot::Copy(place))));
    let lacks_copies_alone = disk.debts.iter().all(|debt| debt.rule == "failures_to_tolerate");
    let waits = lacks_copies_alone && !is_refused && !around.repairs.are_off();
    // It gets what it lacks by itself.
    let queued = waits_for_moves(view, disk, moves).filter(|_| !has_debts);
    let is_queued = queued.is_some();
    let debts = disk.debts.iter().map(ToString::to_string).chain(differences).chain(queued);
    let debts: Vec<String> = debts.collect();
    found.push(Finding {
        code: Code::PlacementDebt,
        severity: if is_queued { Severity::Notice } else { Severity::Warning },
        subject: Subject::Disk(disk.id),
        cause: format!("{} has less than its policy asks for: {}", disk.name, debts.join("; ")),
        remedy: match (has_debts, waits) {
            (true, true) => "wait until the missing copies are made (`drystone resync`)",
            (true, false) => "add hosts or capacity devices; missing copies are then made automatically",
            (false, _) if is_queued => "wait until other disks have moved (`drystone policy show`), or give it rules of its own with `drystone disk set`",
            (false, _) => "`drystone policy show` says why the disk does not follow; give it rules of its own with `drystone disk set`",
        }
        .to_owned(),
    });
}
