//! Inspections of components: whoever measures what devices hold sees what guests wrote, and guests do not notice.

use super::*;
use base::checksum::crc32c;
use wire::{Answer, Refusal};

const COMPONENT: ComponentId = ComponentId(1);

fn inspect(bench: &mut Bench, ask: impl FnOnce(&mut Node, Instant, Token, &mut Vec<Output>)) -> Answer {
    let (token, mut out) = (bench.token(), Vec::new());
    bench.now += 1;
    ask(&mut bench.node, Instant(bench.now), token, &mut out);
    bench.settle(out);
    bench.components.remove(&token.0).expect("it is answered").expect("the component is on this node")
}

#[test]
fn checksums_and_blocks_of_a_component_are_those_of_what_guests_wrote() {
    let mut bench = Bench::new(20);
    let disk = bench.create(Bench::spec(8 * MIB, 1));
    assert_eq!(bench.node.next_backed_part(COMPONENT, 0), None, "nothing was written yet");
    let request = bench.write_request(5 * MIB + 8192, &[[3; 4096], [4; 4096]].concat());
    assert!(bench.ask(disk, request).is_ok());
    let before = bench.node.statistics(disk);

    assert_eq!(bench.node.next_backed_part(COMPONENT, 0), Some(5));
    assert_eq!(bench.node.next_backed_part(COMPONENT, 6), None);
    assert_eq!(bench.node.next_backed_part(COMPONENT, 600), None, "it is not that large");
    let told = inspect(&mut bench, |node, now, token, out| {
        node.inspect_checksums(now, token, COMPONENT, 5, out);
    });
    let Answer::Checksums(checksums) = told else { panic!("not the checksums: {told:?}") };
    let mut expected = vec![None; 256];
    (expected[2], expected[3]) = (Some(crc32c(&[3; 4096])), Some(crc32c(&[4; 4096])));
    assert_eq!(checksums, expected);
    let told = inspect(&mut bench, |node, now, token, out| {
        node.inspect_blocks(now, token, (COMPONENT, 5), 3..5, out);
    });
    let Answer::Data { pieces, .. } = told else { panic!("not the blocks: {told:?}") };
    let [Piece::Bytes(block), Piece::Hole(4096)] = &pieces[..] else { panic!("{pieces:?}") };
    assert_eq!(block[..], [4; 4096]);

    let after = bench.node.statistics(disk);
    assert_eq!(before.counters.bytes, after.counters.bytes, "no guest has read anything");
}

#[test]
fn a_component_that_is_not_there_is_refused() {
    let mut bench = Bench::new(20);
    bench.create(Bench::spec(8 * MIB, 1));
    let other = ComponentId(99);
    assert_eq!(bench.node.next_backed_part(other, 0), None);
    for (component, part) in [(other, 0), (COMPONENT, 8)] {
        let told = inspect(&mut bench, |node, now, token, out| {
            node.inspect_checksums(now, token, component, part, out);
        });
        assert!(matches!(told, Answer::Refused(Refusal::NoComponent)), "{told:?}");
        let told = inspect(&mut bench, |node, now, token, out| {
            node.inspect_blocks(now, token, (component, part), 0..1, out);
        });
        assert!(matches!(told, Answer::Refused(Refusal::NoComponent)), "{told:?}");
    }
}
