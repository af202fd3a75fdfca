//! Which host becomes a member, or is none any more.

use super::*;
use crate::host::{Maintenance, Mode};
use crate::testing::{at, cluster};
use crate::view::View;

const PATIENCE: Duration = Duration::from_secs(3600);
/// Long after [`PATIENCE`].
const NOW: u64 = 10_000;

fn seat(id: u64, host: u128) -> Seat {
    Seat { id, host: Some(HostId(host)), is_learner: false, answers: true }
}

fn able(view: &View) -> Vec<HostId> {
    view.hosts.keys().copied().collect()
}

fn step(view: &View, seats: &[Seat]) -> Option<MemberStep> {
    let hosts = Hosts { records: &view.hosts, liveness: &view.liveness, patience: PATIENCE, now: at(NOW) };
    next_member_step(seats, &able(view), hosts)
}

fn is_away(view: &mut View, host: u128, seconds: u64) {
    let since = at(NOW - seconds);
    view.liveness.insert(HostId(host), Liveness::Suspect { since });
}

#[test]
fn there_is_one_member_up_to_two_hosts_and_three_from_the_third_on() {
    for hosts in [1, 2] {
        assert_eq!(step(&cluster(hosts, 1), &[seat(1, 1)]), None, "{hosts} hosts");
    }
    let view = cluster(3, 1);
    let mut seats = vec![seat(1, 1)];
    assert_eq!(step(&view, &seats), Some(MemberStep::Add(HostId(2))));
    seats.push(Seat { is_learner: true, ..seat(2, 2) });
    assert_eq!(step(&view, &seats), Some(MemberStep::Promote(2)));
    seats[1].is_learner = false;
    assert_eq!(step(&view, &seats), Some(MemberStep::Add(HostId(3))));
    seats.push(seat(3, 3));
    assert_eq!(step(&view, &seats), None);
    assert_eq!(step(&cluster(5, 1), &seats), None);
}

#[test]
fn nobody_becomes_a_member_while_there_cannot_be_three() {
    let mut view = cluster(3, 1);
    let serviced = Maintenance::On { mode: Mode::EnsureAccessibility, since: at(1) };
    view.hosts.get_mut(&HostId(3)).expect("it is there").maintenance = serviced;
    assert_eq!(step(&view, &[seat(1, 1)]), None);
    assert_eq!(step(&view, &[seat(1, 1), seat(2, 2)]), None);
}

#[test]
fn members_are_in_as_many_fault_domains_as_there_are() {
    let mut view = cluster(5, 1);
    for host in [1, 2, 3] {
        view.hosts.get_mut(&HostId(host)).expect("it is there").fault_domain = Some("rack 1".to_owned());
    }
    assert_eq!(step(&view, &[seat(1, 1)]), Some(MemberStep::Add(HostId(4))));
    assert_eq!(step(&view, &[seat(1, 1), seat(2, 4)]), Some(MemberStep::Add(HostId(5))));
}

#[test]
fn a_lost_hosts_member_is_replaced_once_patience_is_over_and_never_before_there_is_another_host() {
    let lost = |view: &mut View| {
        is_away(view, 2, 4_000);
        [seat(1, 1), Seat { answers: false, ..seat(2, 2) }, seat(3, 3)]
    };
    let mut view = cluster(4, 1);
    let seats = lost(&mut view);
    assert_eq!(step(&view, &seats), Some(MemberStep::Remove(2)));
    assert_eq!(step(&view, &[seat(1, 1), seat(3, 3)]), Some(MemberStep::Add(HostId(4))));
    is_away(&mut view, 2, 3_000);
    assert_eq!(step(&view, &seats), None, "it may come back");
    let mut view = cluster(3, 1);
    let seats = lost(&mut view);
    assert_eq!(step(&view, &seats), None, "nobody can take its place");
}

#[test]
fn no_member_is_taken_out_while_another_one_is_away() {
    let mut view = cluster(5, 1);
    is_away(&mut view, 2, 4_000);
    is_away(&mut view, 3, 4_000);
    let away = |id, host| Seat { answers: false, ..seat(id, host) };
    assert_eq!(step(&view, &[seat(1, 1), away(2, 2), away(3, 3)]), None);
    // A host that was removed from the cluster does not count by itself either.
    assert_eq!(step(&view, &[seat(1, 1), away(2, 9), away(3, 3)]), None);
    assert_eq!(step(&view, &[away(2, 9)]), None, "the last one stays");
}

#[test]
fn the_member_of_a_removed_host_goes_at_once_and_two_become_one() {
    let view = cluster(3, 1);
    let removed = Seat { answers: false, ..seat(9, 9) };
    assert_eq!(step(&view, &[seat(1, 1), seat(2, 2), removed.clone()]), Some(MemberStep::Remove(9)));
    let view = cluster(2, 1);
    assert_eq!(step(&view, &[seat(1, 1), seat(2, 2), removed]), Some(MemberStep::Remove(9)));
    assert_eq!(step(&view, &[seat(1, 1), seat(2, 2)]), Some(MemberStep::Remove(2)));
    let silent = Seat { answers: false, ..seat(2, 2) };
    assert_eq!(step(&view, &[seat(1, 1), silent]), None, "it needs both to agree");
}

#[test]
fn a_member_without_a_vote_whose_host_is_lost_is_taken_out() {
    let mut view = cluster(4, 1);
    is_away(&mut view, 3, 4_000);
    let learner = Seat { is_learner: true, answers: false, ..seat(3, 3) };
    assert_eq!(step(&view, &[seat(1, 1), seat(2, 2), learner.clone()]), Some(MemberStep::Remove(3)));
    is_away(&mut view, 3, 10);
    assert_eq!(step(&view, &[seat(1, 1), seat(2, 2), learner]), Some(MemberStep::Promote(3)));
}
