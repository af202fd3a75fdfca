//! The mapping against its own inverse and against a slow model that deals out block after block.

use super::*;
use crate::code::Code;
use crate::tree::Component;
use base::units::{BLOCK_SIZE, MIB};
use base::{ComponentId, DeviceId};
use proptest::prelude::*;

fn component(id: u64, mib: u64) -> Layout {
    Layout::Component(Component {
        id: ComponentId(id),
        device: DeviceId(u128::from(id)),
        size: mib * MIB,
        position: 0,
    })
}

/// A stripe of `columns` components of `mib` each with ids from `first` on.
fn stripe(first: u64, columns: u64, mib: u64, unit: u64) -> Layout {
    stripe_of_mirrors(first, columns, 1, mib, unit)
}

/// A stripe of `columns` places of `copies` components of `mib` each with ids from `first` on.
fn stripe_of_mirrors(first: u64, columns: u64, copies: u64, mib: u64, unit: u64) -> Layout {
    let of = |id: u64| Component {
        id: ComponentId(id),
        device: DeviceId(u128::from(id)),
        size: mib * MIB,
        position: 0,
    };
    let place =
        |column: u64| Layout::of_copies((0..copies).map(|copy| of(first + column * copies + copy)).collect());
    match columns {
        1 => place(0),
        _ => Layout::Stripe { unit, columns: (0..columns).map(place).collect() },
    }
}

/// A place with parity.
fn parity(first: u64, code: Code, mib: u64) -> Layout {
    let member = |position: u8| {
        let id = first + u64::from(position);
        let (id, device) = (ComponentId(id), DeviceId(u128::from(id)));
        Component { id, device, size: mib * MIB, position }
    };
    Layout::Parity { code, members: (0..code.members()).map(member).collect() }
}

/// One to three stripes one after the other, small enough to walk block by block.
fn layouts() -> impl Strategy<Value = Layout> {
    let part = (1u64..6, 1u64..8, 1u64..4, prop::sample::select(vec![4096u64, 65536, MIB]));
    prop::collection::vec(part, 1..4).prop_map(|shapes| {
        let mut first = 1;
        let mut parts: Vec<Layout> = shapes
            .into_iter()
            .map(|(columns, copies, mib, unit)| {
                // Beyond four copies: with parity.
                let part = match copies.checked_sub(5) {
                    None => stripe_of_mirrors(first, columns, copies, mib, unit),
                    Some(shape) => {
                        let code = Code::ALL[shape as usize];
                        let place = |column| parity(first + 6 * column, code, mib);
                        crate::striping::stripe((0..columns).map(place).collect())
                    }
                };
                first += columns * 6;
                part
            })
            .collect();
        match parts.len() {
            1 => parts.remove(0),
            _ => Layout::Concatenation { parts },
        }
    })
}

/// Deals the blocks of the disk out one after the other: the model.
fn dealt(layout: &Layout) -> Vec<(usize, u64)> {
    fn deal(node: &Layout, first: usize) -> Vec<(usize, u64)> {
        match node {
            Layout::Component(Component { size, .. }) => {
                (0..size / BLOCK_SIZE).map(|block| (first, block * BLOCK_SIZE)).collect()
            }
            Layout::Mirror { copies } => deal(&Layout::Component(copies[0]), first),
            Layout::Parity { .. } => {
                (0..node.size() / BLOCK_SIZE).map(|block| (first, block * BLOCK_SIZE)).collect()
            }
            Layout::Stripe { unit, columns } => {
                let mut rows: Vec<_> = columns
                    .iter()
                    .enumerate()
                    .map(|(i, column)| deal(column, first + i * column.place_count()).into_iter())
                    .collect();
                let mut blocks = Vec::new();
                while rows[0].len() > 0 {
                    for row in &mut rows {
                        blocks.extend(row.by_ref().take((unit / BLOCK_SIZE) as usize));
                    }
                }
                blocks
            }
            Layout::Concatenation { parts } => {
                let mut next = first;
                let mut blocks = Vec::new();
                for part in parts {
                    blocks.extend(deal(part, next));
                    next += part.place_count();
                }
                blocks
            }
            Layout::Moving { sides, boundary } => {
                let old = deal(&sides[0], first).into_iter();
                let new = deal(&sides[1], first + sides[0].place_count());
                let moved = (boundary / BLOCK_SIZE) as usize;
                new.into_iter().take(moved).chain(old.skip(moved)).collect()
            }
        }
    }
    deal(layout, 0)
}

fn spans(layout: &Layout, offset: u64, len: u64) -> Vec<Span> {
    let mut spans = Vec::new();
    layout.map(offset, len, &mut |span| spans.push(span));
    spans
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_block_has_one_place_and_every_place_one_block(layout in layouts()) {
        layout.validate().expect("the strategy makes valid layouts");
        let mut seen = std::collections::BTreeSet::new();
        for (block, place) in dealt(&layout).into_iter().enumerate() {
            let disk_offset = block as u64 * BLOCK_SIZE;
            let expected = Span { place: place.0, offset: place.1, disk_offset, len: BLOCK_SIZE };
            prop_assert_eq!(spans(&layout, disk_offset, BLOCK_SIZE), vec![expected]);
            prop_assert_eq!(layout.locate(place.0, place.1), Some(disk_offset));
            prop_assert!(seen.insert(place));
        }
        prop_assert_eq!(layout.size(), seen.len() as u64 * BLOCK_SIZE);
    }

    #[test]
    fn the_places_of_a_range_hold_its_pieces_and_nothing_between(
        layout in layouts(), a in any::<u64>(), b in any::<u64>()
    ) {
        let sectors = layout.size() / 512;
        let (first, last) = ((a % sectors).min(b % sectors), (a % sectors).max(b % sectors));
        let (offset, len) = (first * 512, (last - first) * 512);
        let mut expected = std::collections::BTreeMap::new();
        for span in spans(&layout, offset, len) {
            let range = expected.entry(span.place).or_insert(span.offset..span.offset);
            prop_assert_eq!(range.end, span.offset);
            range.end += span.len;
        }
        let mut found = Vec::new();
        layout.map_places(offset, len, &mut |place, range| found.push((place, range)));
        prop_assert_eq!(found, expected.into_iter().collect::<Vec<_>>());
    }

    #[test]
    fn the_pieces_of_a_range_are_the_range(layout in layouts(), a in any::<u64>(), b in any::<u64>()) {
        let sectors = layout.size() / 512;
        let (first, last) = ((a % sectors).min(b % sectors), (a % sectors).max(b % sectors));
        let mut next = first * 512;
        for span in spans(&layout, first * 512, (last - first) * 512) {
            prop_assert_eq!(span.disk_offset, next);
            prop_assert!(span.len > 0);
            prop_assert!(layout.place(span.place).is_some());
            prop_assert_eq!(layout.locate(span.place, span.offset), Some(next));
            prop_assert_eq!(layout.locate(span.place, span.offset + span.len - 1), Some(next + span.len - 1));
            next += span.len;
        }
        prop_assert_eq!(next, last * 512);
    }
}

#[test]
fn components_are_counted_depth_first() {
    let layout =
        Layout::Concatenation { parts: vec![stripe(1, 3, 2, MIB), component(4, 1), stripe(5, 2, 1, MIB)] };
    let ids: Vec<(usize, u64)> =
        layout.components().map(|(index, component)| (index, component.id.0)).collect();
    assert_eq!(ids, [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 6)]);
    for (index, component) in layout.components() {
        assert_eq!(layout.component(index), Some(component));
    }
    assert_eq!(layout.component(6), None);
    assert_eq!(layout.locate(6, 0), None);
    assert_eq!(layout.locate(3, MIB), None);
}

#[test]
fn copies_change_nothing_of_where_a_block_stands() {
    let (lone, mirrored) = (stripe(1, 3, 2, MIB), stripe_of_mirrors(1, 3, 3, 2, MIB));
    assert_eq!(spans(&lone, 0, lone.size()), spans(&mirrored, 0, mirrored.size()));
    assert_eq!(mirrored.locate(2, 0), lone.locate(2, 0));
    assert_eq!(mirrored.locate(3, 0), None, "places are counted, and not components");
}

#[test]
fn a_larger_column_leaves_the_blocks_before_where_they_were() {
    let (before, after) = (stripe(1, 3, 2, MIB), stripe(1, 3, 5, MIB));
    for block in 0..before.size() / BLOCK_SIZE {
        assert_eq!(
            spans(&before, block * BLOCK_SIZE, BLOCK_SIZE),
            spans(&after, block * BLOCK_SIZE, BLOCK_SIZE)
        );
    }
}

#[test]
#[should_panic(expected = "a range lies within its layout")]
fn a_range_beyond_the_end_is_a_bug() {
    spans(&component(1, 1), MIB - 512, 1024);
}
