//! Newtypes for everything that has an identity.

use std::fmt;
use std::str::FromStr;

/// Why a text is not an id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not an id: {digits} hexadecimal digits are expected")]
pub struct IdError {
    /// What was given.
    pub text: String,
    /// How many digits an id of this kind has.
    pub digits: usize,
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident: $inner:ty, $digits:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:0width$x}", self.0, width = $digits)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({:x})"), self.0)
            }
        }

        impl FromStr for $name {
            type Err = IdError;
            fn from_str(text: &str) -> Result<Self, IdError> {
                let error = || IdError { text: text.to_owned(), digits: $digits };
                if text.len() != $digits {
                    return Err(error());
                }
                <$inner>::from_str_radix(text, 16).map($name).map_err(|_| error())
            }
        }
    )*};
}

ids! {
    /// A cluster: hosts that share one datastore. Random, drawn when its first host is founded, and written into every
    /// superblock.
    ClusterId: u128, 32;
    /// A host of a cluster.
    HostId: u128, 32;
    /// A device given to Drystone. Random, written into its superblock.
    DeviceId: u128, 32;
    /// A disk group: one log device and its capacity devices.
    GroupId: u128, 32;
    /// A virtual disk.
    DiskId: u128, 32;
    /// A component: the part of one virtual disk on one capacity device. Unique in its cluster, never zero.
    ComponentId: u64, 16;
    /// A guest's request, named by the node where the guest is, and unique in the cluster as long as anybody may submit it
    /// again. By it a change is known that has happened already. The upper 32 bits are alike for all of one node.
    RequestTag: u64, 16;
}

impl RequestTag {
    const COUNTER: u64 = (1 << 32) - 1;

    /// The first tag of a node in that incarnation. The counter begins at a hash of both, so that tags of two incarnations
    /// hardly ever meet.
    pub fn first(node: NodeId, incarnation: u64) -> RequestTag {
        let fold = |bits: u128| (bits >> 64) as u64 ^ bits as u64;
        let source = mix(fold(node.host.0) ^ u64::from(node.shard));
        let counter = mix(source ^ mix(incarnation));
        RequestTag(source & !RequestTag::COUNTER | counter & RequestTag::COUNTER)
    }

    /// The one after it, of the same node.
    #[must_use]
    pub fn next(self) -> RequestTag {
        RequestTag(self.0 & !RequestTag::COUNTER | self.0.wrapping_add(1) & RequestTag::COUNTER)
    }

    /// What all tags of one node share. It sorts the tags of nodes, and does not name a node: among 64 nodes two share it in one of
    /// two million clusters, and then share what is remembered of each.
    pub fn source(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

/// Spreads bits evenly (the finalizer of SplitMix64, Steele et al. 2014).
fn mix(bits: u64) -> u64 {
    let bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ bits >> 31
}

/// One single-threaded engine: one shard of one host. A disk group and an owner each belong to exactly one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct NodeId {
    /// The host.
    pub host: HostId,
    /// Which of its nodes, from 0.
    pub shard: u8,
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.host, self.shard)
    }
}

impl fmt::Debug for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NodeId({:x}/{})", self.host.0, self.shard)
    }
}

/// The identity and the order of a write: owner's epoch first, then its sequence number within that epoch.
///
/// `WriteId::default()` (0, 0) stands for "never written"; every real id is greater.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct WriteId {
    /// Grows with every change of owner.
    pub epoch: u32,
    /// Grows with every write of one owner.
    pub sequence: u64,
}

impl fmt::Debug for WriteId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.epoch, self.sequence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_read_back_as_it_was_written() {
        let id = DiskId(0x00ff_1234);
        assert_eq!(id.to_string().parse::<DiskId>(), Ok(id));
        assert!("12".parse::<DiskId>().is_err());
        assert!("zz".repeat(8).parse::<ComponentId>().is_err());
    }

    #[test]
    fn write_ids_are_ordered_by_epoch_first() {
        assert!(WriteId { epoch: 2, sequence: 1 } > WriteId { epoch: 1, sequence: 9 });
    }
}
