//! A disk's label: what each of its components carries of the disk's record, so that a lost directory can be rebuilt from
//! the devices.
//!
//! One version byte, then fields, little-endian. `docs/formats/disk-group.md` has the table.

use base::DiskId;
use base::bytes::{Reader, Writer};
use layout::{Code, Component, Layout, striping};
use replication::Origin;

/// The version of labels of disks without parity. Version 1, whose parts have one copy each, is still read.
const VERSION: u8 = 2;
const VERSION_OF_ONE_COPY: u8 = 1;
/// The version of labels of disks with parity, which a release that knows no parity must not take for others.
const VERSION_OF_PARITY: u8 = 3;
/// The version of labels of clones, which a release that knows none must not take for others.
const VERSION_OF_CLONES: u8 = 4;
/// Most parts of a concatenation in a label: each takes two of the 768 bytes.
const PARTS_MAX: usize = 200;
/// Bits of a part that hold its number of columns; the two bits above hold the copies beyond the first.
const COLUMNS_BITS: u32 = 14;
const COLUMNS_MASK: u16 = (1 << COLUMNS_BITS) - 1;

const _: () = assert!(layout::limits::COMPONENTS_MAX <= COLUMNS_MASK as usize);
const _: () = assert!(layout::limits::COPIES_MAX <= 1 << (u16::BITS - COLUMNS_BITS));

/// What one component carries of its disk's record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiskLabel {
    /// Its name.
    pub name: String,
    /// Its size in bytes.
    pub size: u64,
    /// Its policy, as the layer above writes it.
    pub policy: String,
    /// Whether clients may only read it.
    pub read_only: bool,
    /// The index of the component's place, counted depth first. Copies that are added or removed do not change it.
    pub place: u16,
    /// Which member of the place's rows the component is; zero of a place without parity.
    pub position: u8,
    /// The shape of its layout: each part of the concatenation.
    pub shape: Vec<PartShape>,
    /// What it is a clone of, if it is one. A clone has no parity.
    pub origin: Option<Origin>,
}

/// The shape of one part of a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartShape {
    /// Columns of its stripe, 1 without one.
    pub columns: u16,
    /// Each of its places.
    pub place: PlaceShape,
}

/// The shape of a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlaceShape {
    /// So many copies, 1 to 4. Where a repair adds a copy to some places, the greatest number.
    Copies(u8),
    /// Rows with parity.
    Rows(Code),
}

impl PlaceShape {
    /// Components of a place when none is missing.
    fn components(self) -> usize {
        match self {
            PlaceShape::Copies(copies) => usize::from(copies),
            PlaceShape::Rows(code) => usize::from(code.members()),
        }
    }

    /// Copies in the lower half of a byte; of rows the data units above, and the parity units below.
    fn encode(self) -> u8 {
        match self {
            PlaceShape::Copies(copies) => copies,
            PlaceShape::Rows(code) => code.data() << 4 | code.parity(),
        }
    }

    fn decode(byte: u8) -> Option<PlaceShape> {
        match (byte >> 4, byte & 0xf) {
            (0, copies) => {
                let is_right = (1..=layout::limits::COPIES_MAX).contains(&usize::from(copies));
                is_right.then_some(PlaceShape::Copies(copies))
            }
            (data, parity) => Code::new(data, parity).map(PlaceShape::Rows),
        }
    }
}

impl PartShape {
    fn encode(self, version: u8, w: &mut Writer) {
        assert!(self.columns <= COLUMNS_MASK, "a layout has few components");
        match self.place {
            PlaceShape::Copies(copies) if version != VERSION_OF_PARITY => {
                assert!((1..=layout::limits::COPIES_MAX).contains(&usize::from(copies)));
                w.u16(self.columns | u16::from(copies - 1) << COLUMNS_BITS);
            }
            place => {
                w.u16(self.columns);
                w.u8(place.encode());
            }
        }
    }

    fn decode(version: u8, r: &mut Reader<'_>) -> Option<PartShape> {
        let bits = r.u16();
        if version == VERSION_OF_PARITY {
            return Some(PartShape { columns: bits, place: PlaceShape::decode(r.u8())? });
        }
        let place = PlaceShape::Copies((bits >> COLUMNS_BITS) as u8 + 1);
        Some(PartShape { columns: bits & COLUMNS_MASK, place })
    }
}

impl DiskLabel {
    /// The bytes, at most [`diskgroup::format::page::DISK_LABEL_SIZE_MAX`]; `None` if it does not fit.
    pub fn encode(&self) -> Option<Vec<u8>> {
        let mut w = Writer::default();
        let has_parity = self.shape.iter().any(|part| matches!(part.place, PlaceShape::Rows(_)));
        let version = match self.origin {
            Some(_) if has_parity => return None,
            Some(_) => VERSION_OF_CLONES,
            None if has_parity => VERSION_OF_PARITY,
            None => VERSION,
        };
        w.u8(version);
        w.u8(u8::from(self.read_only));
        w.u16(self.place);
        if version == VERSION_OF_PARITY {
            w.u8(self.position);
        }
        if let Some(Origin { disk, snapshot, size }) = self.origin {
            w.u128(disk.0);
            w.u32(snapshot);
            w.u64(size);
        }
        w.u64(self.size);
        for text in [&self.name, &self.policy] {
            w.u16(u16::try_from(text.len()).ok()?);
            w.slice(text.as_bytes());
        }
        w.u16(self.shape.len() as u16);
        self.shape.iter().for_each(|part| part.encode(version, &mut w));
        let fits = w.len() <= diskgroup::format::page::DISK_LABEL_SIZE_MAX && self.shape.len() <= PARTS_MAX;
        fits.then(|| w.into_bytes())
    }

    /// Reads the bytes; `None` if they make no sense.
    pub fn decode(bytes: &[u8]) -> Option<DiskLabel> {
        let mut r = Reader::new(bytes);
        let version = r.u8();
        if !(VERSION_OF_ONE_COPY..=VERSION_OF_CLONES).contains(&version) {
            return None;
        }
        let read_only = r.u8() != 0;
        // Version 1 counts components, which are the places of a disk of one copy.
        let place = r.u16();
        let position = if version == VERSION_OF_PARITY { r.u8() } else { 0 };
        let origin = (version == VERSION_OF_CLONES).then(|| Origin {
            disk: DiskId(r.u128()),
            snapshot: r.u32(),
            size: r.u64(),
        });
        let size = r.u64();
        let mut text = || {
            let len = r.u16() as usize;
            String::from_utf8(r.slice(len).to_vec()).ok()
        };
        let (name, policy) = (text()?, text()?);
        let count = r.u16() as usize;
        if count > PARTS_MAX {
            return None;
        }
        let shape: Option<Vec<PartShape>> = (0..count).map(|_| PartShape::decode(version, &mut r)).collect();
        r.finish().ok()?;
        let shape = shape?;
        let has_copies = shape.iter().any(|part| part.place != PlaceShape::Copies(1));
        let makes_sense = version != VERSION_OF_ONE_COPY || !has_copies;
        makes_sense.then_some(DiskLabel { name, size, policy, read_only, place, position, shape, origin })
    }
}

/// The shape of a layout made of places, stripes of places and concatenations of these; `None` for others.
pub fn shape_of(layout: &Layout) -> Option<Vec<PartShape>> {
    let is_place = |node: &Layout| node.children().is_empty();
    let part_shape = |part: &Layout| {
        let columns = match part {
            Layout::Component(_) | Layout::Mirror { .. } | Layout::Parity { .. } => 1,
            Layout::Stripe { columns, .. } if columns.iter().all(is_place) => columns.len() as u16,
            Layout::Stripe { .. } | Layout::Concatenation { .. } | Layout::Moving { .. } => return None,
        };
        let copies = || part.places().map(|(_, copies)| copies.len()).max();
        let place = match part.code() {
            Some(code) => PlaceShape::Rows(code),
            None => PlaceShape::Copies(copies()? as u8),
        };
        Some(PartShape { columns, place })
    };
    if let Layout::Moving { sides, .. } = layout {
        // No component says which of two layouts counts for a block: a part without columns keeps it from being put together.
        let neither = PartShape { columns: 0, place: PlaceShape::Copies(1) };
        let both = sides.iter().flat_map(|side| side.parts()).map(part_shape);
        return std::iter::once(Some(neither)).chain(both).collect();
    }
    layout.parts().iter().map(part_shape).collect()
}

/// The number of components of a disk of that shape when none is missing.
pub fn component_count_of(shape: &[PartShape]) -> usize {
    shape.iter().map(|part| usize::from(part.columns) * part.place.components()).sum()
}

/// The layout of that shape over `components`, each with the index of its place. `None` if a place has no component, one with
/// parity lacks a member, or the layout is not valid. A place without parity may have fewer components than the shape says.
/// Whether these are current is for the caller to find out.
pub fn layout_of(shape: &[PartShape], components: &[(u16, Component)]) -> Option<Layout> {
    let place_count = shape.iter().map(|part| usize::from(part.columns)).sum();
    let mut places: Vec<Vec<Component>> = vec![Vec::new(); place_count];
    for (place, component) in components {
        places.get_mut(usize::from(*place))?.push(*component);
    }
    if shape.iter().any(|part| part.columns == 0) || places.iter().any(Vec::is_empty) {
        return None;
    }
    let mut places = places.into_iter();
    let part = |part: &PartShape| {
        let leaf = |members: Vec<Component>| match part.place {
            PlaceShape::Copies(_) => Layout::of_copies(members),
            PlaceShape::Rows(code) => Layout::Parity { code, members },
        };
        striping::stripe(places.by_ref().take(part.columns.into()).map(leaf).collect())
    };
    let mut parts: Vec<Layout> = shape.iter().map(part).collect();
    let layout = match parts.len() {
        0 => return None,
        1 => parts.remove(0),
        _ => Layout::Concatenation { parts },
    };
    layout.validate().is_ok().then_some(layout)
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{ComponentId, DeviceId};

    fn part(columns: u16, copies: u8) -> PartShape {
        PartShape { columns, place: PlaceShape::Copies(copies) }
    }

    fn component(id: u64) -> Component {
        Component { id: ComponentId(id), device: DeviceId(u128::from(id)), size: 1 << 20, position: 0 }
    }

    #[test]
    fn a_label_comes_back_and_cut_bytes_are_refused() {
        let label = DiskLabel {
            name: "web-1".to_owned(),
            size: 10 << 30,
            policy: "failures_to_tolerate=0".to_owned(),
            read_only: true,
            place: 7,
            position: 0,
            shape: vec![part(4, 2), part(1, 1), part(258, 4)],
            origin: None,
        };
        let origin = Some(Origin { disk: DiskId(0x77), snapshot: 3, size: 9 << 30 });
        for label in [DiskLabel { origin, ..label.clone() }, label] {
            let bytes = label.encode().expect("it is short");
            assert_eq!(bytes[0], if label.origin.is_some() { 4 } else { 2 });
            assert_eq!(DiskLabel::decode(&bytes), Some(label));
            for len in 0..bytes.len() {
                assert_eq!(DiskLabel::decode(&bytes[..len]), None, "{len} bytes");
            }
        }
    }

    #[test]
    fn version_1_stays_readable_and_has_one_copy() {
        // Written by the first release: component 2 of the disk `a` of 1 MiB and policy `p`, parts of 4 and 1 columns.
        let mut bytes = vec![1, 1, 2, 0, 0, 0, 0x10, 0, 0, 0, 0, 0, 1, 0, b'a', 1, 0, b'p', 2, 0, 4, 0, 1, 0];
        let label = DiskLabel::decode(&bytes).expect("version 1 is read");
        assert_eq!((label.name.as_str(), label.policy.as_str(), label.size), ("a", "p", 1 << 20));
        assert_eq!((label.place, label.read_only), (2, true));
        assert_eq!(label.shape, [part(4, 1), part(1, 1)]);
        bytes[0] = 2;
        assert_eq!(label.encode(), Some(bytes.clone()), "version 2 differs where there are copies");
        bytes[0] = 5;
        assert_eq!(DiskLabel::decode(&bytes), None, "a newer version");
        bytes[0] = 1;
        bytes[21] = 0x40;
        assert_eq!(DiskLabel::decode(&bytes), None, "version 1 knows no copies");
    }

    #[test]
    fn a_label_with_parity_has_these_bytes() {
        let rows = PartShape { columns: 3, place: PlaceShape::Rows(Code::FOUR_AND_TWO) };
        let label = DiskLabel {
            name: "a".to_owned(),
            size: 1 << 20,
            policy: "p".to_owned(),
            read_only: false,
            place: 2,
            position: 5,
            shape: vec![rows, part(1, 2)],
            origin: None,
        };
        let bytes =
            [3, 0, 2, 0, 5, 0, 0, 0x10, 0, 0, 0, 0, 0, 1, 0, b'a', 1, 0, b'p', 2, 0, 3, 0, 0x42, 1, 0, 2];
        assert_eq!(label.encode().as_deref(), Some(&bytes[..]));
        assert_eq!(DiskLabel::decode(&bytes), Some(label));
        for (at, byte) in [(23, 0x52), (23, 0), (23, 5), (26, 0x11)] {
            let mut odd = bytes;
            odd[at] = byte;
            assert_eq!(DiskLabel::decode(&odd), None, "{byte:#x} is the shape of no place");
        }
    }

    #[test]
    fn a_layout_with_parity_is_rebuilt_from_its_shape() {
        let member = |(position, id)| Component { position, ..component(id) };
        let of = |place, ids: std::ops::Range<u64>| (0..).zip(ids).map(move |one| (place, member(one)));
        let all: Vec<(u16, Component)> = of(0, 1..5).chain(of(1, 5..9)).collect();
        let shape = [PartShape { columns: 2, place: PlaceShape::Rows(Code::THREE_AND_ONE) }];
        let layout = layout_of(&shape, &all).expect("eight members");
        assert_eq!((layout.code(), layout.size()), (Some(Code::THREE_AND_ONE), 6 << 20));
        assert_eq!(shape_of(&layout).as_deref(), Some(&shape[..]));
        assert_eq!(component_count_of(&shape), 8);
        assert_eq!(layout_of(&shape, &all[1..]), None, "nobody says how large a member that is missing was");
    }

    #[test]
    fn a_layout_is_rebuilt_from_its_shape() {
        let all: Vec<(u16, Component)> =
            [0, 0, 1, 1, 2, 2, 3].into_iter().zip((1..=7).map(component)).collect();
        let shape = [part(3, 2), part(1, 1)];
        let layout = layout_of(&shape, &all).expect("seven components");
        assert_eq!(shape_of(&layout).as_deref(), Some(&shape[..]));
        assert_eq!(component_count_of(&shape), 7);
        let components = layout.components().map(|(_, one)| *one);
        assert!(components.eq(all.iter().map(|(_, one)| *one)));
        assert_eq!(layout_of(&[part(3, 2)], &all), None, "a place beyond the shape");
        assert_eq!(layout_of(&[part(3, 2), part(2, 1)], &all), None, "a place without components");
        assert_eq!(layout_of(&[part(0, 1), part(4, 2)], &all), None, "a part without columns");
        assert_eq!(layout_of(&[], &[]), None);
        let without_one_copy = layout_of(&shape, &all[1..]).expect("every place has a component");
        assert_eq!(shape_of(&without_one_copy).as_deref(), Some(&shape[..]));
        assert_eq!(without_one_copy.component_count(), 6);
    }
}
