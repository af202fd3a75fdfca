//! What makes a tree a layout, and its walks: by place and by component.

use super::*;
use base::units::MIB;

fn component(id: u64, mib: u64) -> Component {
    Component { id: ComponentId(id), device: DeviceId(u128::from(id)), size: mib * MIB, position: 0 }
}

/// A mirror of components of 2 MiB.
fn mirror(ids: &[u64]) -> Layout {
    Layout::Mirror { copies: ids.iter().map(|id| component(*id, 2)).collect() }
}

fn stripe(columns: Vec<Layout>) -> Layout {
    Layout::Stripe { unit: MIB, columns }
}

/// A stripe of two mirrors, one of them with a third copy, and a lone component behind it.
fn example() -> Layout {
    let parts = vec![stripe(vec![mirror(&[1, 2]), mirror(&[3, 4, 5])]), Layout::Component(component(6, 1))];
    Layout::Concatenation { parts }
}

#[test]
fn places_and_components_are_counted_depth_first() {
    let layout = example();
    assert_eq!(layout.validate(), Ok(()));
    let ids = |copies: &[Component]| copies.iter().map(|copy| copy.id.0).collect::<Vec<u64>>();
    let places: Vec<(usize, Vec<u64>)> =
        layout.places().map(|(index, copies)| (index, ids(copies))).collect();
    assert_eq!(places, [(0, vec![1, 2]), (1, vec![3, 4, 5]), (2, vec![6])]);
    assert_eq!((layout.place_count(), layout.component_count()), (3, 6));
    for (index, copies) in layout.places() {
        assert_eq!(layout.place(index), Some(copies));
    }
    assert_eq!(layout.place(3), None);
    let components: Vec<(usize, u64)> = layout.components().map(|(index, one)| (index, one.id.0)).collect();
    assert_eq!(components, [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 6)]);
    assert_eq!(layout.component(4).map(|one| one.id), Some(ComponentId(5)));
    assert_eq!(layout.component(6), None);
    assert_eq!(layout.size(), 5 * MIB);
}

#[test]
fn the_components_of_one_place_are_replaced_and_all_else_stays() {
    let before = example();
    let replaced = before.with_place(1, vec![component(3, 2), component(9, 2)]);
    assert_eq!(replaced.validate(), Ok(()));
    let parts = vec![stripe(vec![mirror(&[1, 2]), mirror(&[3, 9])]), Layout::Component(component(6, 1))];
    assert_eq!(replaced, Layout::Concatenation { parts });
    let mirrored = replaced.with_place(2, vec![component(6, 1), component(7, 1)]);
    assert_eq!(mirrored.place(2).map(<[Component]>::len), Some(2));
    let lone = mirrored.with_place(0, vec![component(1, 2)]);
    assert_eq!(lone.place(0), Some(&[component(1, 2)][..]));
}

#[test]
fn a_mirror_that_breaks_a_rule_is_refused_by_name() {
    let of = |copies: Vec<Component>| Layout::Mirror { copies }.validate();
    assert_eq!(of(vec![component(1, 2)]), Err(Invalid::Copies { count: 1 }));
    assert_eq!(of((1..=5).map(|id| component(id, 2)).collect()), Err(Invalid::Copies { count: 5 }));
    assert_eq!(
        of(vec![component(1, 2), component(2, 3)]),
        Err(Invalid::CopySize { id: ComponentId(2), size: 3 * MIB, expected: 2 * MIB })
    );
    let device = DeviceId(1);
    let same_device = Component { id: ComponentId(3), ..component(1, 2) };
    assert_eq!(
        of(vec![component(1, 2), component(2, 2), same_device]),
        Err(Invalid::CopyDevice { first: ComponentId(1), second: ComponentId(3), device })
    );
    assert_eq!(
        of(vec![component(1, 2), component(0, 2)]),
        Err(Invalid::ComponentIdZero),
        "the rules of a component hold for copies"
    );
    let same_id = Component { device: DeviceId(9), ..component(1, 2) };
    assert_eq!(of(vec![component(1, 2), same_id]), Err(Invalid::ComponentTwice { id: ComponentId(1) }));
}

#[test]
fn columns_may_differ_in_copies_and_not_in_places() {
    let with_lone = stripe(vec![mirror(&[1, 2]), Layout::Component(component(3, 2))]);
    assert_eq!(with_lone.validate(), Ok(()));
    let places = stripe(vec![
        stripe(vec![Layout::Component(component(1, 1)), Layout::Component(component(2, 1))]),
        mirror(&[3, 4]),
    ]);
    assert_eq!(places.validate(), Err(Invalid::Columns { column: 1 }));
}

#[test]
fn the_tree_is_shown_with_its_mirrors() {
    let device = |id: u64| DeviceId(u128::from(id));
    let copy = |id: u64| format!("component {} of 2 MiB on device {}", ComponentId(id), device(id));
    let expected = [
        "concatenation of 2 parts, 5 MiB".to_owned(),
        "  stripe of 2 columns, unit 1 MiB, 4 MiB".to_owned(),
        "    mirror of 2 copies, 2 MiB".to_owned(),
        format!("      {}", copy(1)),
        format!("      {}", copy(2)),
        "    mirror of 3 copies, 2 MiB".to_owned(),
        format!("      {}", copy(3)),
        format!("      {}", copy(4)),
        format!("      {}", copy(5)),
        format!("  component {} of 1 MiB on device {}", ComponentId(6), device(6)),
    ];
    assert_eq!(example().describe(), expected);
}

/// 2+1 of components of 2 MiB.
fn parity(ids: &[u64]) -> Vec<Component> {
    let member = |(position, id): (u8, &u64)| Component { position, ..component(*id, 2) };
    (0..).zip(ids).map(member).collect()
}

#[test]
fn rows_are_as_large_as_their_data_and_stay_when_a_member_is_replaced() {
    let of = |members| Layout::Parity { code: Code::TWO_AND_ONE, members };
    let layout = of(parity(&[1, 2, 3]));
    assert_eq!((layout.validate(), layout.size(), layout.place_count()), (Ok(()), 4 * MIB, 1));
    let lines = layout.describe();
    assert_eq!((lines[0].as_str(), lines.len()), ("RAID-5 2+1, 4 MiB", 4));
    assert!(lines[2].starts_with("  member 1: component 0000000000000002 of 2 MiB"), "{lines:?}");
    let mut members = parity(&[1, 2, 3]);
    members.push(Component { position: 1, ..component(9, 2) });
    let changing = layout.with_place(0, members.clone());
    assert_eq!((changing.validate(), changing.size()), (Ok(()), layout.size()));
    members.remove(1);
    let changed = changing.with_place(0, members);
    assert_eq!(
        changed,
        of(vec![parity(&[1])[0], parity(&[1, 2, 3])[2], Component { position: 1, ..component(9, 2) }])
    );
}

#[test]
fn rows_that_break_a_rule_are_refused_by_name() {
    let of = |members| Layout::Parity { code: Code::TWO_AND_ONE, members }.validate();
    assert_eq!(of(parity(&[1, 2])), Err(Invalid::PositionEmpty { position: 2 }));
    assert_eq!(of(Vec::new()), Err(Invalid::PositionEmpty { position: 0 }));
    assert_eq!(of(parity(&[1, 2, 3, 4])), Err(Invalid::Position { id: ComponentId(4), position: 3 }));
    assert_eq!(of((1..18).map(|id| component(id, 2)).collect()), Err(Invalid::Members { count: 17 }));
    let mut members = parity(&[1, 2, 3]);
    members[2].size = MIB;
    assert_eq!(of(members), Err(Invalid::CopySize { id: ComponentId(3), size: MIB, expected: 2 * MIB }));
    let mut members = parity(&[1, 2, 3]);
    members[2].device = DeviceId(1);
    let (first, second) = (ComponentId(1), ComponentId(3));
    assert_eq!(of(members), Err(Invalid::CopyDevice { first, second, device: DeviceId(1) }));
    let misplaced = Layout::Component(Component { position: 1, ..component(1, 2) });
    assert_eq!(misplaced.validate(), Err(Invalid::Position { id: ComponentId(1), position: 1 }));
}
