//! Damage that components tell of, and that owners have mended.

use super::*;
use wire::DamagedBlock;

const BLOCK: DamagedBlock = DamagedBlock { part: 0, block: 7, snapshot: 0 };
const OF_SNAPSHOT: DamagedBlock = DamagedBlock { part: 0, block: 9, snapshot: 1 };

impl Bench {
    /// A block is damaged on a component, which tells of it when it is asked next.
    fn rot(&mut self, host: u64, block: DamagedBlock) {
        self.damaged.insert((ComponentId(host), block));
        self.damage.entry(ComponentId(host)).or_default().push(block);
    }

    /// Longer than components are left unasked.
    fn ask_for_damage(&mut self) {
        let end = self.now + limits::DAMAGE_PERIOD + limits::LOOK_PERIOD;
        while self.now < end {
            (1..4).for_each(|host| self.leases.granted(node(host), self.now));
            self.wait(limits::LOOK_PERIOD);
        }
    }

    fn take_snapshot(&mut self) {
        let mut roster = self.owner.record().1.clone();
        assert!(roster.snapshots.ask());
        self.version += 1;
        self.step(Input::Recorded { record: Some((self.version, roster)) });
        assert_eq!(self.owner.record().1.snapshots.taken, [1]);
    }
}

fn pair() -> Vec<Member> {
    vec![member(1, Standing::Active), member(2, Standing::Active)]
}

#[test]
fn what_a_component_tells_is_looked_at_and_written_again() {
    let mut bench = Bench::new(pair());
    bench.rot(2, BLOCK);
    // This one was written again since it was found.
    bench.damage.entry(ComponentId(1)).or_default().push(BLOCK);
    bench.ask_for_damage();
    assert!(bench.count(1, "damage") >= 1 && bench.count(2, "damage") >= 1);
    assert_eq!((bench.count(1, "write"), bench.count(2, "write")), (0, 1), "where it is still damaged");
    assert_eq!(bench.count(2, "mend"), 0, "no snapshot sees it");
}

#[test]
fn a_block_that_snapshots_may_see_is_mended_for_them_too() {
    let mut bench = Bench::new(pair());
    bench.take_snapshot();
    bench.rot(2, BLOCK);
    bench.rot(2, OF_SNAPSHOT);
    bench.ask_for_damage();
    assert_eq!((bench.count(2, "mend"), bench.count(2, "write")), (2, 0));
    assert!(bench.damaged.is_empty());
    assert_eq!(bench.owner.state().repaired_blocks, 2);
}

#[test]
fn a_block_that_is_not_taken_is_written_again_if_it_is_the_live_one() {
    let mut bench = Bench::new(pair());
    bench.take_snapshot();
    bench.mends_nothing = true;
    bench.rot(2, BLOCK);
    bench.rot(2, OF_SNAPSHOT);
    bench.ask_for_damage();
    assert_eq!((bench.count(2, "not mended"), bench.count(2, "write")), (2, 1));
}

#[test]
fn what_no_component_can_give_is_left_and_others_are_asked_in_turn() {
    let mut bench = Bench::new(vec![
        member(1, Standing::Active),
        member(2, Standing::Active),
        member(3, Standing::Active),
    ]);
    bench.take_snapshot();
    bench.damaged.insert((ComponentId(1), OF_SNAPSHOT));
    bench.rot(2, OF_SNAPSHOT);
    bench.ask_for_damage();
    assert_eq!(bench.count(2, "mend"), 1, "the third has it");
    bench.damaged.insert((ComponentId(3), OF_SNAPSHOT));
    bench.rot(2, OF_SNAPSHOT);
    bench.ask_for_damage();
    assert_eq!(bench.count(2, "mend"), 1, "nobody has it");
    bench.rot(2, BLOCK);
    bench.ask_for_damage();
    assert_eq!(bench.count(2, "mend"), 2, "and others do not wait for it");
}

#[test]
fn a_view_that_was_read_elsewhere_has_its_block_mended() {
    let mut bench = Bench::new(pair());
    bench.take_snapshot();
    for host in [1, 2] {
        bench.damaged.insert((ComponentId(host), DamagedBlock { block: host as u16, ..OF_SNAPSHOT }));
    }
    (1..4).for_each(|host| bench.leases.granted(node(host), bench.now));
    for block in [1, 2] {
        let token = Token(u64::from(block));
        bench.step(Input::Read { token, place: 0, part: 0, block, count: 1, unit: None, snapshot: 1 });
    }
    bench.wait(limits::LOOK_PERIOD);
    assert_eq!(bench.done.len(), 2);
    assert_eq!(
        bench.count(1, "mend") + bench.count(2, "mend"),
        2 - bench.damaged.len(),
        "those that were asked"
    );
    assert!(bench.damaged.len() < 2, "one of both was asked first");
}

/// A third copy is made of two, each of which has a block damaged that the other one has.
#[test]
fn a_copy_is_made_of_two_with_damage_in_different_places() {
    for (removed, counts) in [(None, true), (Some(Rule::CopyBlockByBlock), false)] {
        let members = [(1, Standing::Active), (2, Standing::Active), (3, Standing::Absent)];
        let mut bench =
            Bench::claiming(members.map(|(host, standing)| member(host, standing)).into(), removed);
        let versions = || wire::Versions::Regions(Box::new([WriteId { epoch: 1, sequence: 3 }; 16]));
        for host in [1, 2] {
            let part = wire::PartVersions { part: 0, versions: versions() };
            bench.listings.insert(ComponentId(host), vec![part]);
            let block = DamagedBlock { block: host as u16, ..BLOCK };
            bench.damaged.insert((ComponentId(host), block));
        }
        bench.begin();
        for _ in 0..20 {
            bench.step(Input::Pace { bytes: 1 << 20 });
        }
        assert_eq!(bench.components()[2].1 == Standing::Active, counts, "{removed:?}");
    }
}
