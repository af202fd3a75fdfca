//! A member of rows that is put together from its stand-in counts in the place of the active one that is lost.

use super::*;

const BASE: WriteId = WriteId { epoch: 1, sequence: 5 };

fn in_rows(host: u128, position: u8, standing: Standing) -> Member {
    Member { base: BASE, ..super::in_rows(host, position, standing) }
}

/// An owner that restores the second member, which is absent, from its stand-in; the third is lost. The first tells of that window.
fn restoring(window: Vec<wire::Entry>, removed: Option<Rule>) -> Bench {
    let stand_in = Member { role: Role::StandIn { of: ComponentId(2) }, ..in_rows(4, 1, Standing::StandIn) };
    let members = vec![
        in_rows(1, 0, Standing::Active),
        in_rows(2, 1, Standing::Absent),
        in_rows(3, 2, Standing::Active),
        stand_in,
    ];
    let mut bench = Bench::claiming_after(1, members, removed);
    bench.missing.insert(ComponentId(3));
    bench.windows.insert(ComponentId(1), window);
    bench.begin();
    bench.is_slow = true;
    bench.wait(limits::RECONNECT * 2);
    bench.step(Input::Pace { bytes: 1 << 30 });
    bench.wait(limits::RETRY);
    bench
}

/// What the record is asked to say first of all but the owner's own component.
fn asked_for_first(removed: Option<Rule>) -> Vec<(u64, Standing)> {
    let asked = restoring(Vec::new(), removed).asked_for.expect("the record is to count it");
    asked.members[1..].iter().map(|one| (one.component.0, one.standing)).collect()
}

/// The first member has no part in a change and tells its number alone. The second may have a part in it, which only the lost one knows: with
/// the bare number it would be taken to have it.
#[test]
fn nobody_gets_the_number_of_a_change_of_which_the_range_is_not_known() {
    let (id, tag) = (WriteId { epoch: 1, sequence: 6 }, base::RequestTag(9));
    let mark = wire::Entry { id, part: 0, block: 0, count: 0, is_trim: true, has_happened: false, tag };
    let gets_it = |removed| {
        let bench = restoring(vec![mark], removed);
        bench.numbers.iter().any(|(component, number, _)| (*component, *number) == (2, 6))
    };
    assert!(!gets_it(None));
    if cfg!(feature = "mutants") {
        assert!(gets_it(Some(Rule::MarkOnlyKnown)));
    }
}

/// The record counted it beside the lost one, and took that one out later. If it came back in between, a change could be dropped with it
/// that stood in what was put together.
#[test]
fn the_record_takes_out_what_is_lost_with_what_counts_in_its_place() {
    let expected = [(2, Standing::Active), (3, Standing::Absent), (4, Standing::Absent)];
    assert_eq!(asked_for_first(None), expected);
    if cfg!(feature = "mutants") {
        assert_eq!(
            asked_for_first(Some(Rule::TakeOutLost))[..2],
            [(2, Standing::Active), (3, Standing::Active)]
        );
    }
}
