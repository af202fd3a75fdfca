//! What a component carries of its disk's record, so that a lost directory can be rebuilt from the devices.
//!
//! One version byte, then fields, little-endian. `docs/formats/disk-group.md` has the table.

use base::bytes::{Reader, Writer};
use layout::{Component, Layout};

const VERSION: u8 = 1;
/// Most parts of a concatenation, each with its number of columns, that a record can tell of.
const PARTS_MAX: usize = 200;

/// A disk as one of its components tells of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiskRecord {
    /// Its name.
    pub name: String,
    /// Its size in bytes.
    pub size: u64,
    /// Its policy, as the layer above writes it.
    pub policy: String,
    /// Whether clients may only read it.
    pub read_only: bool,
    /// Which of the disk's components this is, counted depth first.
    pub component: u16,
    /// The shape of its layout: for each part of the concatenation the number of its columns.
    pub shape: Vec<u16>,
}

impl DiskRecord {
    /// The bytes, at most [`diskgroup::format::page::RECORD_SIZE_MAX`]; `None` if it does not fit.
    pub fn encode(&self) -> Option<Vec<u8>> {
        let mut w = Writer::default();
        w.u8(VERSION);
        w.u8(u8::from(self.read_only));
        w.u16(self.component);
        w.u64(self.size);
        for text in [&self.name, &self.policy] {
            w.u16(u16::try_from(text.len()).ok()?);
            w.slice(text.as_bytes());
        }
        w.u16(self.shape.len() as u16);
        self.shape.iter().for_each(|&columns| w.u16(columns));
        let fits = w.len() <= diskgroup::format::page::RECORD_SIZE_MAX && self.shape.len() <= PARTS_MAX;
        fits.then(|| w.into_bytes())
    }

    /// Reads the bytes; `None` if they make no sense.
    pub fn decode(bytes: &[u8]) -> Option<DiskRecord> {
        let mut r = Reader::new(bytes);
        if r.u8() != VERSION {
            return None;
        }
        let read_only = r.u8() != 0;
        let component = r.u16();
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
        let shape = (0..count).map(|_| r.u16()).collect();
        r.finish().ok()?;
        Some(DiskRecord { name, size, policy, read_only, component, shape })
    }
}

/// The shape of a layout made of components, stripes of components and concatenations of these; `None` for others.
pub fn shape_of(layout: &Layout) -> Option<Vec<u16>> {
    let columns = |part: &Layout| match part {
        Layout::Component(_) => Some(1),
        Layout::Stripe { columns, .. } => {
            let is_flat = columns.iter().all(|column| matches!(column, Layout::Component(_)));
            is_flat.then_some(columns.len() as u16)
        }
        Layout::Concatenation { .. } => None,
    };
    match layout {
        Layout::Concatenation { parts } => parts.iter().map(columns).collect(),
        one => Some(vec![columns(one)?]),
    }
}

/// The layout of that shape over `components` in depth-first order; `None` if their number does not match.
pub fn layout_of(shape: &[u16], components: &[Component]) -> Option<Layout> {
    let mut rest = components;
    let mut parts = Vec::new();
    for &columns in shape {
        let (here, after) = rest.split_at_checked(columns as usize)?;
        rest = after;
        parts.push(match here {
            [] => return None,
            [one] => Layout::Component(*one),
            several => Layout::Stripe {
                unit: base::units::EXTENT_SIZE,
                columns: several.iter().copied().map(Layout::Component).collect(),
            },
        });
    }
    match (rest.is_empty(), parts.len()) {
        (true, 1) => parts.pop(),
        (true, 2..) => Some(Layout::Concatenation { parts }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{ComponentId, DeviceId};

    #[test]
    fn a_record_comes_back_and_cut_bytes_are_refused() {
        let record = DiskRecord {
            name: "web-1".to_owned(),
            size: 10 << 30,
            policy: "failures_to_tolerate=0".to_owned(),
            read_only: true,
            component: 7,
            shape: vec![4, 1, 258],
        };
        let bytes = record.encode().expect("it is short");
        assert_eq!(DiskRecord::decode(&bytes), Some(record));
        for len in 0..bytes.len() {
            assert_eq!(DiskRecord::decode(&bytes[..len]), None, "{len} bytes");
        }
    }

    #[test]
    fn a_layout_is_rebuilt_from_its_shape() {
        let component = |id| Component { id: ComponentId(id), device: DeviceId(9), size: 1 << 20 };
        let all: Vec<Component> = (1..=6).map(component).collect();
        let layout = layout_of(&[4, 1, 1], &all).expect("six components");
        assert_eq!(shape_of(&layout), Some(vec![4, 1, 1]));
        assert_eq!(layout.components().map(|(_, one)| *one).collect::<Vec<_>>(), all);
        assert_eq!(layout_of(&[4, 1], &all), None);
    }
}
