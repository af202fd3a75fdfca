//! A member of rows that is put together from its stand-in counts in the place of the active one that is lost.

use super::*;
use crate::roster::InRows;
use layout::Code;

const BASE: WriteId = WriteId { epoch: 1, sequence: 5 };

fn in_rows(host: u128, position: u8, standing: Standing) -> Member {
    let rows = Some(InRows { code: Code::TWO_AND_ONE, position });
    Member { rows, base: BASE, ..member(host, standing) }
}

/// What the record is asked to say first of all but the owner's own component: the second is absent and has a stand-in, the third is lost.
fn asked_for_first(removed: Option<Rule>) -> Vec<(u64, Standing)> {
    let stand_in = Member { role: Role::StandIn { of: ComponentId(2) }, ..in_rows(4, 1, Standing::StandIn) };
    let members = vec![
        in_rows(1, 0, Standing::Active),
        in_rows(2, 1, Standing::Absent),
        in_rows(3, 2, Standing::Active),
        stand_in,
    ];
    let mut bench = Bench::claiming_after(1, members, removed);
    bench.missing.insert(ComponentId(3));
    bench.begin();
    bench.is_slow = true;
    bench.wait(limits::RECONNECT * 2);
    bench.step(Input::Pace { bytes: 1 << 30 });
    bench.wait(limits::RETRY);
    let asked = bench.asked_for.expect("the record is to count it");
    asked.members[1..].iter().map(|one| (one.component.0, one.standing)).collect()
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
