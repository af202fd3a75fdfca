//! A forecast in one sentence.

use super::forecast::{Change, Forecast, HostSpace, Outlook, Question};
use crate::disk::DiskState;
use crate::status::Condition;
use crate::view::View;
use crate::words::{self, listed, verb};
use base::units::format_bytes;

pub(super) fn of(view: &View, question: &Question, forecast: &Forecast) -> String {
    let disks = view.disks.values().filter(|disk| disk.state == DiskState::Active).count();
    match question {
        Question::LoseHosts(hosts) => {
            let names: Vec<String> = hosts.iter().map(|host| view.host_name(*host)).collect();
            lost(&names, disks, forecast)
        }
        Question::AddHost(host) => added(&host.name, forecast),
        Question::SetPolicy { policy, .. } => changed(&policy.short(), forecast),
    }
}

fn names<'a>(disks: impl Iterator<Item = &'a Outlook>) -> Vec<String> {
    disks.map(|one| one.name.clone()).collect()
}

fn lost(hosts: &[String], disks: usize, forecast: &Forecast) -> String {
    let which = format!("without {}", listed(hosts));
    let of = |is: &dyn Fn(&&Outlook) -> bool| names(forecast.disks.iter().filter(is));
    let dead = of(&|one| one.at_once == Condition::Inaccessible && one.now != Condition::Inaccessible);
    let hurt = of(&|one| one.at_once == Condition::Reduced);
    let stuck = of(&|one| one.at_once == Condition::Reduced && one.then != Condition::Whole);
    let first = match (dead.len(), disks) {
        (_, 0) => return format!("{which} nothing is lost: there are no disks"),
        (0, _) => format!("{which} all disks that can be used now still can ({disks} in all)"),
        (dead_count, _) => {
            format!("{which} {} of {disks} cannot be used: {}", words::disks(dead_count), listed(&dead))
        }
    };
    let copied = format_bytes(forecast.bytes_to_copy);
    let then = match (hurt.len(), stuck.len()) {
        (0, _) => "no disk lacks a copy then".to_owned(),
        (hurt, 0) => {
            let are = verb(hurt, "is", "are");
            format!("{} with fewer copies {are} whole again once {copied} are copied", words::disks(hurt))
        }
        (hurt, stuck_count) => {
            let cause = forecast.disks.iter().find_map(|one| one.lacks.first());
            let cause = cause.map_or_else(String::new, |cause| format!(": {cause}"));
            let rest = match hurt - stuck_count {
                0 => String::new(),
                rest => {
                    let are = verb(rest, "is", "are");
                    format!("; {rest} more {are} whole again once {copied} are copied")
                }
            };
            let stay = verb(stuck_count, "stays", "stay");
            format!("{} {stay} with fewer copies, {}{cause}{rest}", words::disks(stuck_count), listed(&stuck))
        }
    };
    format!("{first}; {then}")
}

fn fullest(space: &[HostSpace]) -> u64 {
    let share = |one: &HostSpace| u128::from(one.used_bytes) * 100 / u128::from(one.capacity_bytes.max(1));
    space.iter().map(|one| share(one) as u64).max().unwrap_or(0)
}

fn added(host: &str, forecast: &Forecast) -> String {
    let mended =
        forecast.disks.iter().filter(|one| one.now != Condition::Whole && one.then == Condition::Whole);
    let mended = names(mended);
    let mut parts = Vec::new();
    if !mended.is_empty() {
        let become_whole = verb(mended.len(), "becomes", "become");
        parts.push(format!("{} {become_whole} whole: {}", words::disks(mended.len()), listed(&mended)));
    }
    if forecast.bytes_to_copy > 0 {
        parts.push(format!("{} are copied for what disks lack", format_bytes(forecast.bytes_to_copy)));
    }
    if forecast.bytes_to_even > 0 {
        parts.push(format!("{} move to even devices out", format_bytes(forecast.bytes_to_even)));
    }
    if parts.is_empty() {
        parts.push("nothing is copied".to_owned());
    }
    let free: u64 = forecast.after.iter().map(|one| one.free_bytes).sum();
    format!(
        "with {host} {}; the fullest host goes from {} % to {} %, and {} are free",
        parts.join(", "),
        fullest(&forecast.before),
        fullest(&forecast.after),
        format_bytes(free)
    )
}

fn changed(policy: &str, forecast: &Forecast) -> String {
    let refused: Vec<&Outlook> = forecast.disks.iter().filter(|one| !one.lacks.is_empty()).collect();
    let (copied, freed) = (forecast.bytes_to_copy, forecast.bytes_freed);
    let cost = match (copied, freed) {
        (0, 0) => "nothing is copied".to_owned(),
        (copied, 0) => format!("{} are copied", format_bytes(copied)),
        (0, freed) => format!("{} are given back", format_bytes(freed)),
        (copied, freed) => {
            format!("{} are copied, {} are given back", format_bytes(copied), format_bytes(freed))
        }
    };
    let moves = forecast.disks.iter().filter(|one| matches!(one.change, Some(Change::Moves(_)))).count();
    let cost = match moves {
        0 => cost,
        moves => {
            format!("{cost}; {} {} into another layout", words::disks(moves), verb(moves, "moves", "move"))
        }
    };
    let granted = forecast.disks.len() - refused.len();
    match refused.first() {
        None => format!("{} can have {policy}: {cost}", words::disks(granted)),
        Some(first) => {
            let names = listed(&names(refused.iter().copied()));
            let rest = match granted {
                0 => String::new(),
                granted => format!("; {granted} more can: {cost}"),
            };
            format!(
                "{} cannot have {policy} as it is, {names}: {}{rest}",
                words::disks(refused.len()),
                first.lacks[0]
            )
        }
    }
}
