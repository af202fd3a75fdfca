//! What changes of rows consist of: what each member gets, and which layer holds it until it is decided (docs/design/0040).

use super::interface::Payload;
use base::request::Piece;
use base::units::{BLOCKS_PER_REGION, EXTENT_SIZE};
use layout::code::UNITS_MAX;
use layout::{Code, Target, Unit};
use wire::layer;

/// What each member gets of a change.
#[derive(Debug)]
pub(crate) enum Sent {
    /// All the same.
    Same(Payload),
    /// Of rows: by position.
    Each(Box<[Payload; UNITS_MAX]>),
}

impl Sent {
    /// A change of nothing.
    pub(crate) fn nothing() -> Sent {
        Sent::Same(Payload::Trim { count: 0 })
    }

    /// What the member of a position gets.
    pub(crate) fn to(&self, position: u8) -> &Payload {
        match self {
            Sent::Same(payload) => payload,
            Sent::Each(payloads) => &payloads[usize::from(position)],
        }
    }

    /// What is written, of a change of which all get the same or nothing.
    pub(crate) fn into_payload(self) -> Payload {
        match self {
            Sent::Same(payload) => payload,
            Sent::Each(payloads) => {
                let written = payloads.into_iter().find(|payload| payload.blocks() > 0);
                written.expect("a change is of something")
            }
        }
    }

    /// Bytes that it carries, to all positions.
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Sent::Same(payload) => payload.bytes(),
            Sent::Each(payloads) => payloads.iter().map(Payload::bytes).sum(),
        }
    }
}

/// The layer that members hold a change in until it is decided.
pub(crate) fn layer_of(target: Option<Target>) -> u8 {
    match target {
        None => layer::CONTENT,
        Some(Target::Data(unit)) => layer::UNIT_FIRST + unit,
        Some(Target::Rows) => layer::ROWS,
    }
}

/// The part by which a change of rows is known again, however it was held.
pub(crate) fn known_part(part: u32) -> u32 {
    match layer::split(part) {
        (of, part) if layer::is_of_copies(of) => {
            layer::layered(of - layer::COPY_FIRST + layer::UNIT_FIRST, part)
        }
        _ => part,
    }
}

/// The row that a block of a part is in.
pub(crate) fn row_of(part: u32, block: u16) -> u64 {
    u64::from(part) * (EXTENT_SIZE / layout::rows::UNIT) + u64::from(block) / BLOCKS_PER_REGION as u64
}

/// Whether the member of a position has a part in a change that is held in a layer.
pub(crate) fn is_touched(code: Code, (part, block): (u32, u16), position: u8) -> bool {
    let (of, part) = layer::split(part);
    let unit = code.unit(row_of(part, block), position);
    match unit {
        Unit::Parity(_) => true,
        Unit::Data(unit) => {
            of == layer::ROWS || of == layer::UNIT_FIRST + unit || of == layer::COPY_FIRST + unit
        }
    }
}

/// Calls `visit` with each run of bytes of pieces, and where it begins.
pub(crate) fn bytes_in(pieces: &[Piece], visit: &mut impl FnMut(usize, &[u8])) {
    let mut at = 0;
    for piece in pieces {
        match piece {
            Piece::Bytes(buffer) => {
                visit(at, buffer);
                at += buffer.len();
            }
            Piece::Hole(len) => at += *len as usize,
        }
    }
}
