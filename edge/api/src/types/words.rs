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
        /// For information.
        Notice = "notice",
        /// Redundancy or room is less than promised: somebody should look.
        Warning = "warning",
        /// Something cannot be used, or soon cannot.
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
        /// Hosts: their directory, clocks, releases, maintenance.
        Cluster = "cluster",
        /// Whether hosts reach each other.
        Network = "network",
        /// Virtual disks and their copies.
        Data = "data",
        /// Room, and places for copies.
        Capacity = "capacity",
        /// Devices.
        Devices = "devices",
        /// Certificates.
        Certificates = "certificates",
    }

    /// How far the owner of a disk is.
    PhaseWord {
        /// The record does not name it yet.
        Claiming = "claiming",
        /// Components are being opened, or what is undecided is being decided.
        Opening = "opening",
        /// Clients are served.
        Serving = "serving",
        /// What is under way ends; then the record is told.
        Releasing = "releasing",
        /// It is over.
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
        /// It has all that was acknowledged: every acknowledgement waits for it.
        Active = "active",
        /// It missed writes since it was last active, or has never been active.
        Absent = "absent",
        /// It lost what it had acknowledged: nothing that it says of itself is relied on.
        Stale = "stale",
        /// It has all that was changed since the component that it stands in for was last active, and nobody reads from it.
        StandIn = "stand-in",
    }

    /// Whether a host is there.
    HostWord {
        /// It is there.
        Alive = "alive",
        /// It may be away, or is only just back.
        Suspect = "suspect",
        /// It is away.
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
        /// No data pass dm-crypt.
        None = "none",
        /// Some of the data pass dm-crypt, and some do not.
        Partly = "partly",
        /// All data pass dm-crypt with LUKS2.
        Luks2 = "luks2",
        /// All data pass dm-crypt with LUKS1.
        Luks1 = "luks1",
        /// All data pass dm-crypt without a header.
        PlainDmCrypt = "plain-dm-crypt",
        /// All data pass dm-crypt, in another form or in several.
        Other = "other",
    }

    /// Why a component is copied.
    CopyWord {
        /// It was away or is behind, and gets the changes that it missed.
        Return = "return",
        /// Another component is lost.
        Repair = "repair",
        /// A host or a device is to be emptied.
        Evacuation = "evacuation",
        /// The policy asks for more copies.
        Policy = "policy",
        /// Another copy stands in the same fault domain.
        Domain = "domain",
        /// Devices are rebalanced.
        Balance = "balance",
        /// It stands in for a missing component.
        StandIn = "stand-in",
    }

    /// How far a disk is with the policy that it follows.
    FollowerWord {
        /// It has the rules of the policy.
        Done = "done",
        /// It has them, and components are on their way.
        Moving = "moving",
        /// It gets them next, or has them and lacks copies that have not begun to come.
        Waiting = "waiting",
        /// It does not get them.
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
