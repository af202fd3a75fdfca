//! The tree itself: its nodes, their sizes, what makes it valid, and how it is shown to people.
//!
//! A *place* is the set of components that answer for the same addresses: a lone component, the copies of a mirror, or the members
//! of rows with parity. Places are the leaves of the tree. Must never allocate on the way of an I/O; what does is for control paths and
//! says so.

use crate::code::Code;
use crate::limits::{
    CHILDREN_MAX, COMPONENTS_MAX, COPIES_MAX, COPIES_MIN, DEPTH_MAX, MEMBERS_MAX, SIZE_STEP, UNIT_STEP,
};
use base::units::{COMPONENT_SIZE_MAX, format_bytes};
use base::{ComponentId, DeviceId};
use std::fmt;

/// The part of one virtual disk that stands on one capacity device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Component {
    /// Its identity, unique in its cluster and never zero.
    pub id: ComponentId,
    /// The capacity device on which it stands.
    pub device: DeviceId,
    /// Its size in bytes: whole MiB, at most 255 GiB.
    pub size: u64,
    /// Which member of a row it is, of a place with parity. Zero of any other.
    pub position: u8,
}

/// The tree that says which component holds a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Layout {
    /// A leaf: the blocks stand here, in order.
    Component(Component),
    /// A leaf: the same blocks stand in every copy, in order.
    Mirror {
        /// Two to four, all of one size, on different devices.
        copies: Vec<Component>,
    },
    /// A leaf: rows of data units with parity.
    Parity {
        /// Units of a row.
        code: Code,
        /// All of one size, on different devices; every position has one at least, and has more while one replaces another.
        members: Vec<Component>,
    },
    /// Units of the disk go round the columns: unit `i` stands in column `i mod n`, as its unit `i div n`.
    Stripe {
        /// Bytes that stay together; a multiple of 4 KiB.
        unit: u64,
        /// At least two, all of one size (a multiple of `unit`) and of equally many places. They may differ in
        /// copies: a repair adds a copy to one place before it takes another away.
        columns: Vec<Layout>,
    },
    /// The parts stand one after the other. Made when a disk grows beyond what its components can hold.
    Concatenation {
        /// At least two. Every part but the last keeps its size for ever.
        parts: Vec<Layout>,
    },
    /// The root while a disk gets another shape: each block stands on one side (docs/design/0041).
    Moving {
        /// The old layout, then the new one; neither is moving. Places of the new one follow those of the old one.
        sides: Box<[Layout; 2]>,
        /// Below this byte of the disk the new layout counts, from it on the old one.
        boundary: u64,
    },
}

/// Why a tree is not a layout.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Invalid {
    /// A size is zero, not whole MiB, or too large.
    #[error(
        "component {id} has a size of {size} bytes; whole MiB up to {} are expected",
        format_bytes(COMPONENT_SIZE_MAX)
    )]
    ComponentSize {
        /// The component.
        id: ComponentId,
        /// Its size in bytes.
        size: u64,
    },
    /// The id zero stands for "none".
    #[error("a component has the id zero")]
    ComponentIdZero,
    /// Two components have one id.
    #[error("component {id} occurs twice")]
    ComponentTwice {
        /// The component.
        id: ComponentId,
    },
    /// The unit is zero or not a multiple of 4 KiB, or the columns are not whole units.
    #[error("a stripe unit of {unit} bytes does not divide columns of {column_size} bytes into whole blocks")]
    Unit {
        /// The unit in bytes.
        unit: u64,
        /// The size of the first column in bytes.
        column_size: u64,
    },
    /// The columns of one stripe differ in size or shape.
    #[error("the columns of a stripe differ: column {column} is not like the first")]
    Columns {
        /// The first column that differs.
        column: usize,
    },
    /// A mirror has too few copies, or too many.
    #[error("a mirror has {count} copies; {COPIES_MIN} to {COPIES_MAX} are expected")]
    Copies {
        /// How many there are.
        count: usize,
    },
    /// The components of one place differ in size.
    #[error(
        "component {id} has a size of {size} bytes and is of one place with one of {expected} bytes; components of one size are \
         expected"
    )]
    CopySize {
        /// The first component that differs.
        id: ComponentId,
        /// Its size in bytes.
        size: u64,
        /// The size of the first component in bytes.
        expected: u64,
    },
    /// Two components of one place stand on one device, which would lose both.
    #[error("components {first} and {second} are of one place and both stand on device {device}")]
    CopyDevice {
        /// One of them.
        first: ComponentId,
        /// The other one.
        second: ComponentId,
        /// The device of both.
        device: DeviceId,
    },
    /// A place with parity has too many components.
    #[error("a place with parity has {count} components; at most {MEMBERS_MAX} are expected")]
    Members {
        /// How many there are.
        count: usize,
    },
    /// A component has a position that its place has not.
    #[error("component {id} has position {position}, which its place has not")]
    Position {
        /// The component.
        id: ComponentId,
        /// Its position.
        position: u8,
    },
    /// No component of a place with parity has this position.
    #[error("a place with parity has no component in position {position}")]
    PositionEmpty {
        /// The position.
        position: u8,
    },
    /// A stripe or a concatenation has fewer than two children, or too many.
    #[error("a node of the layout has {count} children; 2 to {CHILDREN_MAX} are expected")]
    Children {
        /// How many there are.
        count: usize,
    },
    /// The tree is too deep.
    #[error("the layout is deeper than {DEPTH_MAX} nodes")]
    Depth,
    /// A layout is moving below its root, or its boundary lies behind its end.
    #[error("the boundary between two layouts stands where none can be")]
    Boundary,
    /// The tree has too many components.
    #[error("the layout has {count} components; at most {COMPONENTS_MAX} are expected")]
    Components {
        /// How many there are.
        count: usize,
    },
}

impl Layout {
    /// The leaf of one place: a lone component, or a mirror of several.
    pub fn of_copies(copies: Vec<Component>) -> Layout {
        assert!(!copies.is_empty(), "a place has at least one component");
        match copies[..] {
            [component] => Layout::Component(component),
            _ => Layout::Mirror { copies },
        }
    }

    /// Bytes of the disk that the layout can hold; a disk may be up to one step of rounding smaller.
    pub fn size(&self) -> u64 {
        match self {
            Layout::Component(component) => component.size,
            Layout::Mirror { copies } => copies[0].size,
            Layout::Parity { code, members } => members[0].size * u64::from(code.data()),
            Layout::Stripe { columns, .. } => columns[0].size() * columns.len() as u64,
            Layout::Concatenation { parts } => parts.iter().map(Layout::size).sum(),
            Layout::Moving { sides, .. } => sides[0].size().min(sides[1].size()),
        }
    }

    /// How many places there are. Constant time but for concatenations.
    pub fn place_count(&self) -> usize {
        match self {
            Layout::Component(_) | Layout::Mirror { .. } | Layout::Parity { .. } => 1,
            Layout::Stripe { columns, .. } => columns[0].place_count() * columns.len(),
            Layout::Concatenation { .. } | Layout::Moving { .. } => {
                self.children().iter().map(Layout::place_count).sum()
            }
        }
    }

    /// The places with their index, depth first: the index that [`Span`](crate::Span) uses. Each has one component, the copies of
    /// a mirror, or the members of rows. Allocates: for control paths.
    pub fn places(&self) -> impl Iterator<Item = (usize, &[Component])> {
        let mut waiting = vec![self];
        std::iter::from_fn(move || {
            loop {
                let node = waiting.pop()?;
                match node.copies() {
                    Some(copies) => return Some(copies),
                    None => waiting.extend(node.children().iter().rev()),
                }
            }
        })
        .enumerate()
    }

    /// The components of the place with a depth-first index.
    pub fn place(&self, index: usize) -> Option<&[Component]> {
        let mut node = self;
        let mut index = index;
        'descend: loop {
            if let Some(copies) = node.copies() {
                return (index == 0).then_some(copies);
            }
            if let Layout::Stripe { columns, .. } = node {
                let each = columns[0].place_count();
                node = columns.get(index / each)?;
                index %= each;
                continue;
            }
            for child in node.children() {
                let count = child.place_count();
                if index < count {
                    node = child;
                    continue 'descend;
                }
                index -= count;
            }
            return None;
        }
    }

    /// This layout with other components in the place of a depth-first index, which must be there. The mapping stays
    /// the same; whether the result is valid is for the caller to ask. Allocates: for control paths.
    pub fn with_place(&self, index: usize, components: Vec<Component>) -> Layout {
        let replace_in = |children: &[Layout]| -> Vec<Layout> {
            let mut children = children.to_vec();
            let mut index = index;
            for child in &mut children {
                let count = child.place_count();
                if index < count {
                    *child = child.with_place(index, components.clone());
                    return children;
                }
                index -= count;
            }
            panic!("the place is there");
        };
        match self {
            Layout::Component(_) | Layout::Mirror { .. } => {
                assert!(index == 0, "the place is there");
                Layout::of_copies(components)
            }
            Layout::Parity { code, .. } => {
                assert!(index == 0, "the place is there");
                Layout::Parity { code: *code, members: components }
            }
            Layout::Stripe { unit, columns } => Layout::Stripe { unit: *unit, columns: replace_in(columns) },
            Layout::Concatenation { parts } => Layout::Concatenation { parts: replace_in(parts) },
            Layout::Moving { sides, boundary } => {
                let sides = <[Layout; 2]>::try_from(replace_in(&sides[..])).expect("two sides stay two");
                Layout::Moving { sides: Box::new(sides), boundary: *boundary }
            }
        }
    }

    /// How many components there are, all copies counted. Walks the tree: for control paths.
    pub fn component_count(&self) -> usize {
        match self.copies() {
            Some(copies) => copies.len(),
            None => self.children().iter().map(Layout::component_count).sum(),
        }
    }

    /// All components with their index, all copies of a place one after the other, places depth first. Allocates: for
    /// control paths.
    pub fn components(&self) -> impl Iterator<Item = (usize, &Component)> {
        self.places().flat_map(|(_, copies)| copies).enumerate()
    }

    /// The component of an index of [`Layout::components`]. Walks the tree: for control paths.
    pub fn component(&self, index: usize) -> Option<&Component> {
        self.components().nth(index).map(|(_, component)| component)
    }

    /// The components of a leaf; `None` for any other node.
    fn copies(&self) -> Option<&[Component]> {
        match self {
            Layout::Component(component) => Some(std::slice::from_ref(component)),
            Layout::Mirror { copies: components } | Layout::Parity { members: components, .. } => {
                Some(components)
            }
            Layout::Stripe { .. } | Layout::Concatenation { .. } | Layout::Moving { .. } => None,
        }
    }

    /// The parts that stand one after the other: of a concatenation its own, else this one alone.
    pub fn parts(&self) -> &[Layout] {
        match self {
            Layout::Concatenation { parts } => parts,
            one => std::slice::from_ref(one),
        }
    }

    /// How rows are coded, of a place with parity, or of the first one below this node.
    pub fn code(&self) -> Option<Code> {
        match self {
            Layout::Parity { code, .. } => Some(*code),
            other => other.children().first().and_then(Layout::code),
        }
    }

    /// How the rows of the place with a depth-first index are coded; none if it has copies, or is not there.
    pub fn place_code(&self, index: usize) -> Option<Code> {
        let mut index = index;
        match self {
            Layout::Component(_) | Layout::Mirror { .. } => None,
            Layout::Parity { code, .. } => (index == 0).then_some(*code),
            // All columns are alike in this.
            Layout::Stripe { columns, .. } => {
                let each = columns[0].place_count();
                columns.get(index / each)?.place_code(index % each)
            }
            Layout::Concatenation { .. } | Layout::Moving { .. } => {
                for part in self.children() {
                    let count = part.place_count();
                    if index < count {
                        return part.place_code(index);
                    }
                    index -= count;
                }
                None
            }
        }
    }

    /// The nodes below this one; none for a place.
    pub fn children(&self) -> &[Layout] {
        match self {
            Layout::Component(_) | Layout::Mirror { .. } | Layout::Parity { .. } => &[],
            Layout::Stripe { columns, .. } => columns,
            Layout::Concatenation { parts } => parts,
            Layout::Moving { sides, .. } => &sides[..],
        }
    }

    /// Whether the tree keeps all rules that the mapping relies on. Everything else here may be called only on a
    /// layout for which this holds.
    ///
    /// # Errors
    /// The first rule that is broken.
    pub fn validate(&self) -> Result<(), Invalid> {
        let mut count = 0;
        self.validate_node(1, &mut count)?;
        let mut ids: Vec<ComponentId> = self.components().map(|(_, component)| component.id).collect();
        ids.sort_unstable();
        match ids.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(Invalid::ComponentTwice { id: pair[0] }),
            None => Ok(()),
        }
    }

    fn validate_node(&self, depth: usize, count: &mut usize) -> Result<(), Invalid> {
        if depth > DEPTH_MAX {
            return Err(Invalid::Depth);
        }
        if let Some(copies) = self.copies() {
            *count += copies.len();
            if *count > COMPONENTS_MAX {
                return Err(Invalid::Components { count: *count });
            }
        }
        match self {
            Layout::Component(component) => component.validate(1),
            Layout::Mirror { copies } => validate_mirror(copies),
            Layout::Parity { code, members } => validate_parity(*code, members),
            Layout::Stripe { unit, columns } => {
                validate_children(columns, depth, count)?;
                validate_stripe(*unit, columns)
            }
            Layout::Concatenation { parts } => validate_children(parts, depth, count),
            Layout::Moving { sides, boundary } => {
                let is_moving = |side: &Layout| matches!(side, Layout::Moving { .. });
                if depth > 1 || sides.iter().any(is_moving) {
                    return Err(Invalid::Boundary);
                }
                sides.iter().try_for_each(|side| side.validate_node(depth, count))?;
                if *boundary > self.size() { Err(Invalid::Boundary) } else { Ok(()) }
            }
        }
    }

    /// The tree as text, one line per node, indented by depth.
    pub fn describe(&self) -> Vec<String> {
        let mut lines = Vec::new();
        self.describe_node(0, &mut lines);
        lines
    }

    fn describe_node(&self, depth: usize, lines: &mut Vec<String>) {
        let text = match self {
            Layout::Component(component) => component.to_string(),
            Layout::Mirror { copies } => {
                format!("mirror of {} copies, {}", copies.len(), format_bytes(self.size()))
            }
            Layout::Parity { code, .. } => format!(
                "RAID-{} {}+{}, {}",
                if code.parity() == 1 { 5 } else { 6 },
                code.data(),
                code.parity(),
                format_bytes(self.size())
            ),
            Layout::Stripe { unit, columns } => format!(
                "stripe of {} columns, unit {}, {}",
                columns.len(),
                format_bytes(*unit),
                format_bytes(self.size())
            ),
            Layout::Concatenation { parts } => {
                format!("concatenation of {} parts, {}", parts.len(), format_bytes(self.size()))
            }
            Layout::Moving { boundary, .. } => {
                format!(
                    "moving: the second layout counts below {}, the first one behind",
                    format_bytes(*boundary)
                )
            }
        };
        lines.push(format!("{}{text}", "  ".repeat(depth)));
        let inner = "  ".repeat(depth + 1);
        match self {
            Layout::Mirror { copies } => lines.extend(copies.iter().map(|copy| format!("{inner}{copy}"))),
            Layout::Parity { members, .. } => {
                let line = |member: &Component| format!("{inner}member {}: {member}", member.position);
                lines.extend(members.iter().map(line));
            }
            Layout::Component(_)
            | Layout::Stripe { .. }
            | Layout::Concatenation { .. }
            | Layout::Moving { .. } => {}
        }
        for child in self.children() {
            child.describe_node(depth + 1, lines);
        }
    }
}

impl Component {
    /// Of a place with so many positions.
    fn validate(&self, positions: u8) -> Result<(), Invalid> {
        if self.id == ComponentId(0) {
            return Err(Invalid::ComponentIdZero);
        }
        if self.position >= positions {
            return Err(Invalid::Position { id: self.id, position: self.position });
        }
        let fits = self.size > 0 && self.size.is_multiple_of(SIZE_STEP) && self.size <= COMPONENT_SIZE_MAX;
        if fits { Ok(()) } else { Err(Invalid::ComponentSize { id: self.id, size: self.size }) }
    }
}

impl fmt::Display for Component {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "component {} of {} on device {}", self.id, format_bytes(self.size), self.device)
    }
}

fn validate_children(children: &[Layout], depth: usize, count: &mut usize) -> Result<(), Invalid> {
    if children.len() < 2 || children.len() > CHILDREN_MAX {
        return Err(Invalid::Children { count: children.len() });
    }
    children.iter().try_for_each(|child| child.validate_node(depth + 1, count))
}

fn validate_mirror(copies: &[Component]) -> Result<(), Invalid> {
    if !(COPIES_MIN..=COPIES_MAX).contains(&copies.len()) {
        return Err(Invalid::Copies { count: copies.len() });
    }
    validate_place(1, copies)
}

fn validate_parity(code: Code, members: &[Component]) -> Result<(), Invalid> {
    if members.len() > MEMBERS_MAX {
        return Err(Invalid::Members { count: members.len() });
    }
    validate_place(code.members(), members)?;
    let is_empty = |position: &u8| !members.iter().any(|member| member.position == *position);
    match (0..code.members()).find(is_empty) {
        Some(position) => Err(Invalid::PositionEmpty { position }),
        None => Ok(()),
    }
}

/// What holds of the components of every place.
fn validate_place(positions: u8, components: &[Component]) -> Result<(), Invalid> {
    components.iter().try_for_each(|component| component.validate(positions))?;
    let Some(Component { size: expected, .. }) = components.first().copied() else { return Ok(()) };
    if let Some(one) = components.iter().find(|one| one.size != expected) {
        return Err(Invalid::CopySize { id: one.id, size: one.size, expected });
    }
    for (index, second) in components.iter().enumerate() {
        if let Some(first) = components[..index].iter().find(|first| first.device == second.device) {
            return Err(Invalid::CopyDevice { first: first.id, second: second.id, device: second.device });
        }
    }
    Ok(())
}

fn validate_stripe(unit: u64, columns: &[Layout]) -> Result<(), Invalid> {
    let (column_size, count) = (columns[0].size(), columns[0].place_count());
    if unit == 0 || !unit.is_multiple_of(UNIT_STEP) || !column_size.is_multiple_of(unit) {
        return Err(Invalid::Unit { unit, column_size });
    }
    let differs = |column: &Layout| column.size() != column_size || column.place_count() != count;
    match columns.iter().position(differs) {
        Some(column) => Err(Invalid::Columns { column }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
