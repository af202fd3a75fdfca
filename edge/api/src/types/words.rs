//! The words of which a field of the API is one: what they are is in the document, and a client can tell all of them apart.
//!
//! In JSON they are strings. A word that only a later release knows is read as `unknown`.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Makes an enum of words.
macro_rules! words {
    ($($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $word:tt),+ $(,)? })+) => { $(
        $(#[$about])*
        #[derive(
            Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema,
        )]
        pub enum $name {
            $($(#[$doc])* #[serde(rename = $word)] $variant,)+
            /// A word of a later release, or nothing is known of it.
            #[default]
            #[serde(rename = "unknown", other)]
            Unknown,
        }

        impl $name {
            /// As it stands in JSON.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $($name::$variant => $word,)+
                    $name::Unknown => "unknown",
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }
    )+ };
}

words! {
    /// How bad a finding of health is.
    SeverityWord {
        /// Something is to be known, and nothing to be done at once.
        Notice = "notice",
        /// Something needs attention.
        Warning = "warning",
        /// Data or service are at risk.
        Critical = "critical",
    }

    /// How it is in one group of findings.
    HealthWord {
        /// There are none, or all are silenced.
        Well = "well",
        /// The worst is a notice.
        Notice = "notice",
        /// The worst is a warning.
        Warning = "warning",
        /// One is critical.
        Critical = "critical",
    }

    /// A group of findings.
    HealthGroupWord {
        /// Hosts, clocks, releases and the directory.
        Cluster = "cluster",
        /// Connections between hosts.
        Network = "network",
        /// Disks and their components.
        Data = "data",
        /// Space.
        Capacity = "capacity",
        /// Devices.
        Devices = "devices",
        /// Certificates and authorities.
        Certificates = "certificates",
    }

    /// How far the owner of a disk is.
    PhaseWord {
        /// It asks the directory for the disk.
        Claiming = "claiming",
        /// It opens the components.
        Opening = "opening",
        /// It serves clients.
        Serving = "serving",
        /// It lets go of the disk.
        Releasing = "releasing",
        /// It has let go, or another host owns it.
        Ended = "ended",
    }

    /// How far the making of a disk is.
    DiskWord {
        /// It is being made.
        Creating = "creating",
        /// It can be used.
        Active = "active",
        /// It is being deleted.
        Deleting = "deleting",
    }

    /// What a component counts for.
    StandingWord {
        /// It has all that was acknowledged.
        Active = "active",
        /// It was away, and does not count.
        Absent = "absent",
        /// It is brought up to date.
        Stale = "stale",
        /// It keeps changes for one that is away.
        StandIn = "stand-in",
    }

    /// Whether a host is there.
    HostWord {
        /// It tells that it is.
        Alive = "alive",
        /// It has told nothing for a moment.
        Suspect = "suspect",
        /// It has told nothing for so long that others stand in for it.
        Away = "away",
    }

    /// What a device is for.
    DeviceRoleWord {
        /// The write log of its group.
        Log = "log",
        /// Blocks at rest.
        Capacity = "capacity",
        /// Both.
        LogAndCapacity = "log+capacity",
    }

    /// Encryption at rest below a device.
    EncryptionWord {
        /// There is none.
        None = "none",
        /// A part of what is below is encrypted.
        Partly = "partly",
        /// LUKS2.
        Luks2 = "luks2",
        /// LUKS1.
        Luks1 = "luks1",
        /// dm-crypt without a header.
        PlainDmCrypt = "plain-dm-crypt",
        /// Another form of dm-crypt, or several.
        Other = "other",
    }

    /// Why a component is copied.
    CopyWord {
        /// It was away and is back.
        Return = "return",
        /// It takes the place of a lost one.
        Repair = "repair",
        /// Its former host or device is to be empty.
        Evacuation = "evacuation",
        /// The disk's policy says so.
        Policy = "policy",
        /// Another copy stands in the same fault domain.
        Domain = "domain",
        /// Devices are to be filled evenly.
        Balance = "balance",
        /// It keeps changes for one that is away.
        StandIn = "stand-in",
    }

    /// How far a disk is with the policy that it follows.
    FollowerWord {
        /// It is as the policy says.
        Done = "done",
        /// It moves.
        Moving = "moving",
        /// It waits for copies, or for other disks.
        Waiting = "waiting",
        /// It cannot follow.
        Refused = "refused",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_strings_and_those_of_a_later_release_are_unknown() {
        let written = serde_json::to_string(&[DeviceRoleWord::LogAndCapacity, DeviceRoleWord::Unknown]);
        assert_eq!(written.expect("they are strings"), r#"["log+capacity","unknown"]"#);
        let read: Vec<StandingWord> =
            serde_json::from_str(r#"["stand-in","witness","unknown"]"#).expect("words");
        assert_eq!(read, [StandingWord::StandIn, StandingWord::Unknown, StandingWord::Unknown]);
        assert_eq!(format!("{:>9}", HostWord::Alive), "    alive");
    }
}
