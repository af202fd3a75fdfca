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

    /// The method of a request.
    MethodWord {
        /// Create or begin something.
        Post = "POST",
        /// Change something.
        Patch = "PATCH",
        /// Delete or end something.
        Delete = "DELETE",
    }

    /// What a task does.
    TaskWord {
        /// A host is emptied or made dispensable before it is serviced.
        Maintenance = "maintenance",
        /// A device is emptied.
        Evacuation = "evacuation",
        /// A disk moves into another layout.
        Move = "move",
        /// A disk is rolled back to a snapshot.
        Rollback = "rollback",
        /// The content of a disk is replaced by an image.
        Import = "import",
        /// Components of a disk are filled or brought up to date.
        Resync = "resync",
        /// A disk is written anew, to take less space.
        Rewrite = "rewrite",
        /// A host samples its data for an estimate.
        Estimate = "estimate",
        /// A disk is deleted, and hosts with its components are not there.
        Deletion = "deletion",
    }

    /// Of which kind of thing the stream tells changes.
    TopicWord {
        /// Disks, with where they are attached and their snapshots.
        Disks = "disks",
        /// Hosts.
        Hosts = "hosts",
        /// Devices, by the names of their hosts.
        Devices = "devices",
        /// Policies.
        Policies = "policies",
        /// Findings and silences.
        Health = "health",
        /// Events.
        Events = "events",
        /// Settings of the cluster, and its releases.
        Settings = "settings",
        /// People, certificates and tokens.
        People = "people",
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

    /// Whether a disk is as its policy says.
    ComplianceWord {
        /// It is.
        Compliant = "compliant",
        /// It lacks something.
        NotCompliant = "not compliant",
        /// Components are on their way, and nothing else is lacking.
        Moving = "moving",
    }

    /// What becomes of a component whose host or device goes.
    FateWord {
        /// It is not there until the host is back.
        Missed = "missed",
        /// It is copied elsewhere first.
        Moves = "moves",
        /// It should be, and there is no place for it.
        Stuck = "stuck",
        /// Its disk cannot be used until the host is back.
        Inaccessible = "inaccessible",
        /// It is lost, and its disk with it.
        Lost = "lost",
    }

    /// How even the devices of a cluster are.
    BalanceWord {
        /// They are.
        Even = "even",
        /// They differ by much.
        Uneven = "uneven",
        /// One is nearly full.
        Full = "full",
    }

    /// How a disk is, or would be.
    ConditionWord {
        /// Nothing is missing.
        Whole = "whole",
        /// It can be used, and survives less than it should.
        Reduced = "reduced",
        /// It cannot be used.
        Inaccessible = "inaccessible",
    }

    /// How a disk gets another policy.
    PolicyChangeWord {
        /// It has it.
        Done = "done",
        /// At once.
        AtOnce = "at once",
        /// What it holds is moved into another layout.
        Moves = "moves",
        /// It does not.
        Refused = "refused",
    }

    /// What a rebuild of the directory makes of a disk.
    RebuildWord {
        /// It is in the new directory.
        Taken = "taken",
        /// It is, but its last changes may be lost.
        AtRisk = "at-risk",
        /// The same, and somebody has accepted that.
        Accepted = "accepted",
        /// Too little is known of it: it prevents the rebuild, unless it is left out by name.
        Unproven = "unproven",
    }

    /// How far a rollback is.
    RollbackWord {
        /// What changed is being copied back.
        Copying = "copying",
        /// It was cut short: no client gets the disk, and it has to be repeated.
        Unfinished = "unfinished",
        /// It has ended.
        Done = "done",
    }

    /// How far a host is with the sample of its data.
    PassWord {
        /// A pass runs.
        Running = "running",
        /// It has a sample.
        Done = "done",
        /// It has none.
        None = "none",
        /// Nothing is known of it.
        Unreachable = "unreachable",
    }

    /// What somebody is who asks.
    CallerWord {
        /// Somebody at the host's own socket, or at its loopback before it has a certificate.
        Local = "local",
        /// A host of the cluster.
        Host = "host",
        /// A person with a certificate of the cluster.
        Person = "person",
    }

    /// What a person is in a cluster; each may do all that the one before may.
    RoleWord {
        /// Sees everything and changes nothing.
        Viewer = "viewer",
        /// Works with disks.
        Operator = "operator",
        /// Changes the cluster and lets others in.
        Admin = "admin",
    }

    /// What a histogram counts.
    HistogramWord {
        /// Bytes of an I/O.
        Length = "length",
        /// Sectors from the end of the previous I/O to the start of this one.
        SeekDistance = "seek_distance",
        /// The same, from whichever of the previous 16 I/Os ended closest.
        SeekDistanceNearest = "seek_distance_nearest",
        /// Time from arrival to completion.
        Latency = "latency",
        /// I/Os under way when one arrives, itself among them.
        Outstanding = "outstanding",
        /// Time since the previous arrival.
        Interarrival = "interarrival",
    }

    /// Which I/Os a figure is about.
    OperationsWord {
        /// Reads alone.
        Reads = "reads",
        /// Writes alone.
        Writes = "writes",
        /// Reads and writes.
        Both = "both",
    }

    /// How a person proves who they are.
    ProofWord {
        /// With a certificate of the cluster.
        Certificate = "certificate",
        /// With a password, in the console alone.
        Password = "password",
    }

    /// How a session of the console began.
    LogInWord {
        /// With a link that `drystone console` printed.
        Link = "link",
        /// With a name and a password.
        Password = "password",
        /// At an issuer of OpenID Connect.
        Issuer = "issuer",
    }

    /// What somebody may do.
    RightWord {
        /// See disks, hosts, statistics, settings.
        See = "see",
        /// Create, change and delete disks and policies.
        ChangeDisks = "change_disks",
        /// Look after the cluster without changing it.
        Operate = "operate",
        /// Read and write the data of disks.
        AttachDisks = "attach_disks",
        /// Change hosts, devices, settings and maintenance.
        ChangeCluster = "change_cluster",
        /// Give certificates and join tokens.
        GiveCertificates = "give_certificates",
        /// Be one of the hosts.
        ActAsHost = "act_as_host",
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
