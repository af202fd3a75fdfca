//! A layout as bytes, for the directory and for device metadata (`docs/formats/layout.md`).
//!
//! Little-endian, with a version, a checksum and reserved bytes. Decoding never panics and never allocates more than
//! the bytes at hand explain; what it gives back is a valid layout.

use crate::code::Code;
use crate::limits::{CHILDREN_MAX, COPIES_MAX, COPIES_MIN, DEPTH_MAX, MEMBERS_MAX};
use crate::tree::{Component, Invalid, Layout};
use base::bytes::{Reader, Truncated, Writer};
use base::checksum::{is_sealed, seal};
use base::{ComponentId, DeviceId};

/// The version that [`Layout::encode`] writes and the only one so far.
pub const VERSION: u8 = 1;
const HEADER_SIZE: usize = 8;
const CHECKSUM_PLACE: usize = 4;
const COMPONENT_SIZE: usize = 33;

const TAG_COMPONENT: u8 = 1;
const TAG_STRIPE: u8 = 2;
const TAG_CONCATENATION: u8 = 3;
const TAG_MIRROR: u8 = 4;
const TAG_PARITY: u8 = 5;
const TAG_MOVING: u8 = 6;

/// Why bytes are not a layout.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// Written by a newer program.
    #[error("the layout has version {found}; this program reads version {VERSION}")]
    Version {
        /// The version found.
        found: u8,
    },
    /// The checksum does not fit the bytes.
    #[error("the layout's checksum does not match its bytes")]
    Checksum,
    /// The bytes end too early.
    #[error("the layout is cut short")]
    Truncated(#[from] Truncated),
    /// A node of a kind that is not known.
    #[error("the layout holds a node of the unknown kind {tag}")]
    Kind {
        /// The kind found.
        tag: u8,
    },
    /// Rows of so many units are none that a disk may have.
    #[error(
        "the layout holds rows of {data} data and {parity} parity units, which is none of 2+1, 3+1 and 4+2"
    )]
    Code {
        /// Data units.
        data: u8,
        /// Parity units.
        parity: u8,
    },
    /// Bytes that must be zero are not, or bytes follow the end.
    #[error("the layout holds bytes where none are expected")]
    Excess,
    /// The tree breaks a rule.
    #[error(transparent)]
    Invalid(#[from] Invalid),
}

impl Layout {
    /// The layout as bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::with_capacity(HEADER_SIZE + 16 + self.component_count() * COMPONENT_SIZE);
        writer.u8(VERSION);
        writer.pad_to(HEADER_SIZE);
        encode_node(self, &mut writer);
        let mut bytes = writer.into_bytes();
        seal(&mut bytes, CHECKSUM_PLACE);
        bytes
    }

    /// The layout that `bytes` hold, all of them.
    ///
    /// # Errors
    /// When they are damaged, of a newer version, or no valid layout.
    pub fn decode(bytes: &[u8]) -> Result<Layout, DecodeError> {
        if bytes.len() < HEADER_SIZE {
            return Err(DecodeError::Truncated(Truncated));
        }
        if bytes[0] != VERSION {
            return Err(DecodeError::Version { found: bytes[0] });
        }
        if !is_sealed(bytes, CHECKSUM_PLACE) {
            return Err(DecodeError::Checksum);
        }
        if bytes[1..CHECKSUM_PLACE] != [0; 3] {
            return Err(DecodeError::Excess);
        }
        let mut reader = Reader::new(&bytes[HEADER_SIZE..]);
        let layout = decode_node(&mut reader, 1)?;
        reader.finish()?;
        if reader.remaining() > 0 {
            return Err(DecodeError::Excess);
        }
        layout.validate()?;
        Ok(layout)
    }
}

fn encode_node(node: &Layout, writer: &mut Writer) {
    match node {
        Layout::Component(component) => {
            writer.u8(TAG_COMPONENT);
            encode_component(component, writer);
        }
        Layout::Mirror { copies } => {
            writer.u8(TAG_MIRROR);
            writer.u16(u16::try_from(copies.len()).expect("a mirror has few copies"));
            copies.iter().for_each(|copy| encode_component(copy, writer));
        }
        Layout::Parity { code, members } => {
            writer.u8(TAG_PARITY);
            writer.u8(code.data());
            writer.u8(code.parity());
            writer.u16(u16::try_from(members.len()).expect("a row has few members"));
            for member in members {
                writer.u8(member.position);
                encode_component(member, writer);
            }
        }
        Layout::Stripe { unit, .. } => {
            writer.u8(TAG_STRIPE);
            writer.u64(*unit);
            encode_children(node, writer);
        }
        Layout::Concatenation { .. } => {
            writer.u8(TAG_CONCATENATION);
            encode_children(node, writer);
        }
        Layout::Moving { sides, boundary } => {
            writer.u8(TAG_MOVING);
            writer.u64(*boundary);
            sides.iter().for_each(|side| encode_node(side, writer));
        }
    }
}

fn encode_component(component: &Component, writer: &mut Writer) {
    writer.u64(component.id.0);
    writer.u128(component.device.0);
    writer.u64(component.size);
}

fn encode_children(node: &Layout, writer: &mut Writer) {
    let count = u16::try_from(node.children().len()).expect("a valid layout has few children");
    writer.u16(count);
    for child in node.children() {
        encode_node(child, writer);
    }
}

fn decode_node(reader: &mut Reader<'_>, depth: usize) -> Result<Layout, DecodeError> {
    if depth > DEPTH_MAX {
        return Err(Invalid::Depth.into());
    }
    let tag = reader.u8();
    reader.finish()?;
    match tag {
        TAG_COMPONENT => Ok(Layout::Component(decode_component(reader)?)),
        TAG_MIRROR => {
            let count = usize::from(reader.u16());
            reader.finish()?;
            // The size is asked of the first copy before the whole is validated, so an empty mirror must not come
            // into being.
            if !(COPIES_MIN..=COPIES_MAX).contains(&count) {
                return Err(Invalid::Copies { count }.into());
            }
            let copies = (0..count).map(|_| decode_component(reader)).collect::<Result<_, _>>()?;
            Ok(Layout::Mirror { copies })
        }
        TAG_PARITY => {
            let (data, parity) = (reader.u8(), reader.u8());
            let count = usize::from(reader.u16());
            reader.finish()?;
            let code = Code::new(data, parity).ok_or(DecodeError::Code { data, parity })?;
            // As for a mirror.
            if !(1..=MEMBERS_MAX).contains(&count) {
                return Err(Invalid::Members { count }.into());
            }
            let member = |reader: &mut Reader<'_>| {
                let position = reader.u8();
                Ok(Component { position, ..decode_component(reader)? })
            };
            let members = (0..count).map(|_| member(reader)).collect::<Result<_, DecodeError>>()?;
            Ok(Layout::Parity { code, members })
        }
        TAG_STRIPE => {
            let unit = reader.u64();
            Ok(Layout::Stripe { unit, columns: decode_children(reader, depth)? })
        }
        TAG_CONCATENATION => Ok(Layout::Concatenation { parts: decode_children(reader, depth)? }),
        TAG_MOVING if depth == 1 => {
            let boundary = reader.u64();
            // One deeper, so that what is moving inside is no more than one node.
            let sides = Box::new([decode_node(reader, depth + 1)?, decode_node(reader, depth + 1)?]);
            Ok(Layout::Moving { sides, boundary })
        }
        tag => Err(DecodeError::Kind { tag }),
    }
}

fn decode_component(reader: &mut Reader<'_>) -> Result<Component, DecodeError> {
    let id = ComponentId(reader.u64());
    let device = DeviceId(reader.u128());
    let size = reader.u64();
    reader.finish()?;
    Ok(Component { id, device, size, position: 0 })
}

fn decode_children(reader: &mut Reader<'_>, depth: usize) -> Result<Vec<Layout>, DecodeError> {
    let count = usize::from(reader.u16());
    reader.finish()?;
    // Sizes are asked of the first child before the whole is validated, so an empty node must not come into being.
    if !(2..=CHILDREN_MAX).contains(&count) {
        return Err(Invalid::Children { count }.into());
    }
    let mut children = Vec::with_capacity(count.min(reader.remaining() / COMPONENT_SIZE + 1));
    for _ in 0..count {
        children.push(decode_node(reader, depth + 1)?);
    }
    Ok(children)
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Random;
    use base::units::MIB;

    fn component(id: u64) -> Layout {
        Layout::Component(Component {
            id: ComponentId(id),
            device: DeviceId(7 + u128::from(id)),
            size: 3 * MIB,
            position: 0,
        })
    }

    fn mirror(ids: &[u64]) -> Layout {
        let copy = |id: &u64| Component {
            id: ComponentId(*id),
            device: DeviceId(7 + u128::from(*id)),
            size: 3 * MIB,
            position: 0,
        };
        Layout::Mirror { copies: ids.iter().map(copy).collect() }
    }

    fn parity(code: Code, ids: &[u64]) -> Layout {
        let member = |(position, id): (u8, &u64)| Component {
            id: ComponentId(*id),
            device: DeviceId(7 + u128::from(*id)),
            size: 3 * MIB,
            position,
        };
        Layout::Parity { code, members: (0..).zip(ids).map(member).collect() }
    }

    fn example() -> Layout {
        let columns = vec![component(2), mirror(&[5, 6, 7]), component(4)];
        Layout::Concatenation { parts: vec![component(1), Layout::Stripe { unit: MIB, columns }] }
    }

    #[test]
    fn a_layout_is_read_back_as_it_was_written() {
        let raid_6 = parity(Code::FOUR_AND_TWO, &[1, 2, 3, 4, 5, 6]);
        let striped = Layout::Stripe {
            unit: MIB,
            columns: vec![parity(Code::TWO_AND_ONE, &[1, 2, 3]), parity(Code::TWO_AND_ONE, &[4, 5, 6])],
        };
        for layout in [component(1), mirror(&[1, 2]), example(), raid_6, striped] {
            assert_eq!(Layout::decode(&layout.encode()), Ok(layout));
        }
    }

    #[test]
    fn version_1_stays_readable() {
        // Written by the first release: a component 0x0102 of 1 MiB on device 0x03.
        let mut bytes = vec![1, 0, 0, 0, 0x07, 0xaf, 0xd5, 0xd5, 1, 2, 1, 0, 0, 0, 0, 0, 0, 3];
        bytes.resize(8 + 1 + 8 + 16, 0);
        bytes.extend_from_slice(&MIB.to_le_bytes());
        let leaf = Component { id: ComponentId(0x0102), device: DeviceId(3), size: MIB, position: 0 };
        assert_eq!(Layout::Component(leaf).encode(), bytes);
        assert_eq!(Layout::decode(&bytes), Ok(Layout::Component(leaf)));
    }

    #[test]
    fn a_mirror_has_these_bytes() {
        // A mirror of two copies of 2 MiB: 0x0102 on device 0x03 and 0x0304 on device 0x05.
        let mut bytes = vec![1, 0, 0, 0, 0x6e, 0x37, 0xfe, 0x52, 4, 2, 0];
        for (id, device) in [(0x0102u64, 3u128), (0x0304, 5)] {
            bytes.extend_from_slice(&id.to_le_bytes());
            bytes.extend_from_slice(&device.to_le_bytes());
            bytes.extend_from_slice(&(2 * MIB).to_le_bytes());
        }
        let copy = |id, device| Component {
            id: ComponentId(id),
            device: DeviceId(device),
            size: 2 * MIB,
            position: 0,
        };
        let layout = Layout::Mirror { copies: vec![copy(0x0102, 3), copy(0x0304, 5)] };
        assert_eq!(layout.encode(), bytes);
        assert_eq!(Layout::decode(&bytes), Ok(layout));
    }

    #[test]
    fn rows_with_parity_have_these_bytes() {
        // 2+1 of 2 MiB: 0x0102 on device 0x03, 0x0304 on 0x05 and 0x0506 on 0x07; a second one is to take the last one's position.
        let mut bytes = vec![1, 0, 0, 0, 0, 0, 0, 0, 5, 2, 1, 4, 0];
        let members = [(0, 0x0102u64, 3u128), (1, 0x0304, 5), (2, 0x0506, 7), (2, 0x0708, 9)];
        for (position, id, device) in members {
            bytes.push(position);
            bytes.extend_from_slice(&id.to_le_bytes());
            bytes.extend_from_slice(&device.to_le_bytes());
            bytes.extend_from_slice(&(2 * MIB).to_le_bytes());
        }
        bytes[CHECKSUM_PLACE..HEADER_SIZE].copy_from_slice(&[0; 4]);
        seal(&mut bytes, CHECKSUM_PLACE);
        let member = |(position, id, device)| Component {
            id: ComponentId(id),
            device: DeviceId(device),
            size: 2 * MIB,
            position,
        };
        let members = members.into_iter().map(member).collect();
        let layout = Layout::Parity { code: Code::TWO_AND_ONE, members };
        assert_eq!(layout.encode(), bytes);
        assert_eq!(Layout::decode(&bytes), Ok(layout));
        for (at, value, error) in [
            (9, 3, Invalid::PositionEmpty { position: 3 }.into()),
            (9, 4, DecodeError::Code { data: 4, parity: 1 }),
            (10, 2, DecodeError::Code { data: 2, parity: 2 }),
            (11, 0, Invalid::Members { count: 0 }.into()),
            (11, 17, Invalid::Members { count: 17 }.into()),
            (13, 3, Invalid::Position { id: ComponentId(0x0102), position: 3 }.into()),
            (13, 1, Invalid::PositionEmpty { position: 0 }.into()),
        ] {
            let mut bytes = bytes.clone();
            bytes[at] = value;
            seal(&mut bytes, CHECKSUM_PLACE);
            assert_eq!(Layout::decode(&bytes), Err(error), "byte {at}: {value}");
        }
    }

    #[test]
    fn a_mirror_of_too_few_or_too_many_copies_is_refused_before_it_is_made() {
        for count in [0u8, 1, 5, 255] {
            let mut bytes = mirror(&[1, 2]).encode();
            bytes[9] = count;
            seal(&mut bytes, CHECKSUM_PLACE);
            assert_eq!(
                Layout::decode(&bytes),
                Err(Invalid::Copies { count: usize::from(count) }.into()),
                "{count} copies"
            );
        }
    }

    #[test]
    fn every_flipped_bit_and_every_cut_is_noticed() {
        let bytes = example().encode();
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(Layout::decode(&damaged).is_err(), "bit {bit}");
        }
        for length in 0..bytes.len() {
            assert!(Layout::decode(&bytes[..length]).is_err(), "length {length}");
        }
    }

    /// Bytes whose checksum is right but whose fields are anything: what a bug or a forger would write.
    #[test]
    fn sealed_nonsense_is_refused_without_harm() {
        let good = example().encode();
        let mut random = Random::new(3);
        for _ in 0..20_000 {
            let mut bytes = good.clone();
            for _ in 0..=random.below(4) {
                let place = random.range(1..bytes.len() as u64) as usize;
                bytes[place] = match random.below(3) {
                    0 => 0,
                    1 => 0xff,
                    _ => random.bits() as u8,
                };
            }
            bytes.truncate(random.range(8..good.len() as u64 + 1) as usize);
            seal(&mut bytes, CHECKSUM_PLACE);
            if let Ok(layout) = Layout::decode(&bytes) {
                assert_eq!(layout.validate(), Ok(()));
                assert_eq!(layout.encode(), bytes);
            }
        }
    }

    #[test]
    fn a_newer_version_and_trees_that_break_rules_are_refused_by_name() {
        let mut newer = example().encode();
        newer[0] = 2;
        assert_eq!(Layout::decode(&newer), Err(DecodeError::Version { found: 2 }));
        let stripe = |columns| Layout::Stripe { unit: MIB, columns };
        let twice = stripe(vec![component(1), component(1)]);
        assert_eq!(
            Layout::decode(&twice.encode()),
            Err(Invalid::ComponentTwice { id: ComponentId(1) }.into())
        );
        let zero = stripe(vec![component(1), component(0)]);
        assert_eq!(Layout::decode(&zero.encode()), Err(Invalid::ComponentIdZero.into()));
        let odd = Layout::Stripe { unit: 4097, columns: vec![component(1), component(2)] };
        assert_eq!(
            Layout::decode(&odd.encode()),
            Err(Invalid::Unit { unit: 4097, column_size: 3 * MIB }.into())
        );
        let mut deep = component(1);
        for id in 2..10 {
            deep = Layout::Concatenation { parts: vec![component(id), deep] };
        }
        assert_eq!(Layout::decode(&deep.encode()), Err(Invalid::Depth.into()));
    }
}
