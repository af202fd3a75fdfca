//! The tree itself: its nodes, their sizes, what makes it valid, and how it is shown to people.
//!
//! Must never allocate on the way of an I/O; what does is for control paths and says so.

use crate::limits::{CHILDREN_MAX, COMPONENTS_MAX, DEPTH_MAX, SIZE_STEP, UNIT_STEP};
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
}

/// The tree that says which component holds a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Layout {
    /// A leaf: the blocks stand here, in order.
    Component(Component),
    /// Units of the disk go round the columns: unit `i` stands in column `i mod n`, as its unit `i div n`.
    Stripe {
        /// Bytes that stay together; a multiple of 4 KiB.
        unit: u64,
        /// At least two, all of one size (a multiple of `unit`) and of equally many components.
        columns: Vec<Layout>,
    },
    /// The parts stand one after the other. Made when a disk grows beyond what its components can hold.
    Concatenation {
        /// At least two. Every part but the last keeps its size for ever.
        parts: Vec<Layout>,
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
    /// A stripe or a concatenation has fewer than two children, or too many.
    #[error("a node of the layout has {count} children; 2 to {CHILDREN_MAX} are expected")]
    Children {
        /// How many there are.
        count: usize,
    },
    /// The tree is too deep.
    #[error("the layout is deeper than {DEPTH_MAX} nodes")]
    Depth,
    /// The tree has too many components.
    #[error("the layout has {count} components; at most {COMPONENTS_MAX} are expected")]
    Components {
        /// How many there are.
        count: usize,
    },
}

impl Layout {
    /// Bytes of the disk that the layout can hold; a disk may be up to one step of rounding smaller.
    pub fn size(&self) -> u64 {
        match self {
            Layout::Component(component) => component.size,
            Layout::Stripe { columns, .. } => columns[0].size() * columns.len() as u64,
            Layout::Concatenation { parts } => parts.iter().map(Layout::size).sum(),
        }
    }

    /// How many components there are. Constant time but for concatenations.
    pub fn component_count(&self) -> usize {
        match self {
            Layout::Component(_) => 1,
            Layout::Stripe { columns, .. } => columns[0].component_count() * columns.len(),
            Layout::Concatenation { parts } => parts.iter().map(Layout::component_count).sum(),
        }
    }

    /// The components with their index, depth first: the index that [`Span`](crate::Span) uses.
    pub fn components(&self) -> impl Iterator<Item = (usize, &Component)> {
        let mut waiting = vec![self];
        std::iter::from_fn(move || {
            loop {
                match waiting.pop()? {
                    Layout::Component(component) => return Some(component),
                    node => waiting.extend(node.children().iter().rev()),
                }
            }
        })
        .enumerate()
    }

    /// The component of a depth-first index.
    pub fn component(&self, index: usize) -> Option<&Component> {
        let mut node = self;
        let mut index = index;
        'descend: loop {
            if let Layout::Component(component) = node {
                return (index == 0).then_some(component);
            }
            if let Layout::Stripe { columns, .. } = node {
                let each = columns[0].component_count();
                node = columns.get(index / each)?;
                index %= each;
                continue;
            }
            for child in node.children() {
                let count = child.component_count();
                if index < count {
                    node = child;
                    continue 'descend;
                }
                index -= count;
            }
            return None;
        }
    }

    /// The nodes below this one; none for a component.
    pub fn children(&self) -> &[Layout] {
        match self {
            Layout::Component(_) => &[],
            Layout::Stripe { columns, .. } => columns,
            Layout::Concatenation { parts } => parts,
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
        if let Layout::Component(component) = self {
            *count += 1;
            if *count > COMPONENTS_MAX {
                return Err(Invalid::Components { count: *count });
            }
            return component.validate();
        }
        let children = self.children();
        if children.len() < 2 || children.len() > CHILDREN_MAX {
            return Err(Invalid::Children { count: children.len() });
        }
        for child in children {
            child.validate_node(depth + 1, count)?;
        }
        match self {
            Layout::Stripe { unit, columns } => validate_stripe(*unit, columns),
            Layout::Component(_) | Layout::Concatenation { .. } => Ok(()),
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
            Layout::Stripe { unit, columns } => format!(
                "stripe of {} columns, unit {}, {}",
                columns.len(),
                format_bytes(*unit),
                format_bytes(self.size())
            ),
            Layout::Concatenation { parts } => {
                format!("concatenation of {} parts, {}", parts.len(), format_bytes(self.size()))
            }
        };
        lines.push(format!("{}{text}", "  ".repeat(depth)));
        for child in self.children() {
            child.describe_node(depth + 1, lines);
        }
    }
}

impl Component {
    fn validate(&self) -> Result<(), Invalid> {
        if self.id == ComponentId(0) {
            return Err(Invalid::ComponentIdZero);
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

fn validate_stripe(unit: u64, columns: &[Layout]) -> Result<(), Invalid> {
    let (column_size, count) = (columns[0].size(), columns[0].component_count());
    if unit == 0 || !unit.is_multiple_of(UNIT_STEP) || !column_size.is_multiple_of(unit) {
        return Err(Invalid::Unit { unit, column_size });
    }
    let differs = |column: &Layout| column.size() != column_size || column.component_count() != count;
    match columns.iter().position(differs) {
        Some(column) => Err(Invalid::Columns { column }),
        None => Ok(()),
    }
}
