//! Who may do what: one table, and one function that decides by it.
//!
//! Relies on identities that were verified before. Must never look at anything but the table: no name is special.

use crate::identity::Identity;
use std::fmt;
use std::str::FromStr;

/// What a person is in a cluster. Each may do all that the one before may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Sees everything and changes nothing.
    Viewer,
    /// Works with disks.
    Operator,
    /// Changes the cluster and lets others in.
    Admin,
}

/// A text that is no role.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is not a role: `viewer`, `operator` and `admin` are", .text.escape_default())]
pub struct RoleError {
    /// What was given.
    pub text: String,
}

impl Role {
    /// All of them, lowest first.
    pub const ALL: [Role; 3] = [Role::Viewer, Role::Operator, Role::Admin];

    /// As it stands in certificates and records.
    pub fn as_str(self) -> &'static str {
        match self {
            Role::Viewer => "viewer",
            Role::Operator => "operator",
            Role::Admin => "admin",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl FromStr for Role {
    type Err = RoleError;
    fn from_str(text: &str) -> Result<Role, RoleError> {
        let found = Role::ALL.into_iter().find(|role| role.as_str() == text);
        found.ok_or_else(|| RoleError { text: text.chars().take(80).collect() })
    }
}

/// What somebody may want to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// See a thing: disks, hosts, statistics, settings.
    See,
    /// Make, change or delete a disk, or a policy that disks may have.
    ChangeDisk,
    /// Look after the cluster without changing it: silence findings, take what supporters need of all hosts.
    Operate,
    /// Read and write a disk's data.
    AttachDisk,
    /// Change the cluster: its hosts, devices, settings and maintenance.
    ChangeCluster,
    /// Give certificates and join tokens to hosts and people, and change the authority.
    GiveCertificates,
    /// Be one of the hosts: replicate, follow and change the directory for its disks, pass requests on, renew its own
    /// certificate.
    ActAsHost,
}

/// One line of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Right {
    /// What is done.
    pub action: Action,
    /// The lowest role of a person that may; none: no person may.
    pub person: Option<Role>,
    /// Whether a host may, for itself.
    pub host: bool,
}

/// The table, in the order of the actions. A host passes on what people ask for (`ActAsHost`), after it has checked that
/// they may; of its own it sees, and its guests attach to disks of other hosts when their own host's daemon is away.
pub const RIGHTS: [Right; 7] = [
    Right { action: Action::See, person: Some(Role::Viewer), host: true },
    Right { action: Action::ChangeDisk, person: Some(Role::Operator), host: false },
    Right { action: Action::Operate, person: Some(Role::Operator), host: true },
    Right { action: Action::AttachDisk, person: Some(Role::Operator), host: true },
    Right { action: Action::ChangeCluster, person: Some(Role::Admin), host: false },
    Right { action: Action::GiveCertificates, person: Some(Role::Admin), host: false },
    Right { action: Action::ActAsHost, person: None, host: true },
];

/// Somebody may not do something.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{who} may not {}: {}", what(*.action), remedy(*.action))]
pub struct Denied {
    /// Who wanted it.
    pub who: Identity,
    /// What.
    pub action: Action,
}

fn what(action: Action) -> &'static str {
    match action {
        Action::See => "see this",
        Action::ChangeDisk => "change disks",
        Action::Operate => "look after the cluster",
        Action::AttachDisk => "attach disks",
        Action::ChangeCluster => "change the cluster",
        Action::GiveCertificates => "give certificates out",
        Action::ActAsHost => "act as a host",
    }
}

fn remedy(action: Action) -> String {
    match right(action).person {
        Some(role) => {
            format!("a person with the role `{role}` or above may; an admin can issue such a certificate")
        }
        None => "only hosts of the cluster may".to_owned(),
    }
}

fn right(action: Action) -> Right {
    let found = RIGHTS.into_iter().find(|right| right.action == action);
    found.expect("the table has a line for every action")
}

/// Whether somebody, verified to be who they are, may do something in their cluster.
///
/// # Errors
/// Says who wanted what, and who may.
pub fn decide(who: &Identity, action: Action) -> Result<(), Denied> {
    let right = right(action);
    let may = match who {
        Identity::Host { .. } => right.host,
        Identity::Person { role, .. } => right.person.is_some_and(|lowest| *role >= lowest),
    };
    if may { Ok(()) } else { Err(Denied { who: who.clone(), action }) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{ClusterId, HostId};

    /// Whether viewer, operator, admin and host may.
    fn may(action: Action) -> [bool; 4] {
        let name = || "ann".parse().expect("a name");
        let person = |role| Identity::Person { cluster: ClusterId(1), name: name(), role };
        let host = Identity::Host { cluster: ClusterId(1), host: HostId(2), name: name() };
        let all = [person(Role::Viewer), person(Role::Operator), person(Role::Admin), host];
        all.map(|who| decide(&who, action).is_ok())
    }

    #[test]
    fn every_line_of_the_table_is_as_the_design_has_it() {
        let (yes, no) = (true, false);
        let expected = [
            (Action::See, [yes, yes, yes, yes]),
            (Action::ChangeDisk, [no, yes, yes, no]),
            (Action::Operate, [no, yes, yes, yes]),
            (Action::AttachDisk, [no, yes, yes, yes]),
            (Action::ChangeCluster, [no, no, yes, no]),
            (Action::GiveCertificates, [no, no, yes, no]),
            (Action::ActAsHost, [no, no, no, yes]),
        ];
        assert_eq!(
            expected.map(|(action, _)| action),
            RIGHTS.map(|right| right.action),
            "no line is missing"
        );
        for (action, row) in expected {
            assert_eq!(may(action), row, "{action:?}");
        }
    }

    #[test]
    fn a_refusal_names_who_wanted_what_and_who_may() {
        let name = "ann".parse().expect("a name");
        let viewer = Identity::Person { cluster: ClusterId(1), name, role: Role::Viewer };
        let text = decide(&viewer, Action::ChangeDisk).expect_err("a viewer").to_string();
        for part in ["viewer `ann`", "may not change disks", "role `operator` or above"] {
            assert!(text.contains(part), "{text}");
        }
        let text = decide(&viewer, Action::ActAsHost).expect_err("a person").to_string();
        assert!(text.contains("only hosts of the cluster may"), "{text}");
    }

    #[test]
    fn roles_are_ordered_and_read_back() {
        assert!(Role::Viewer < Role::Operator && Role::Operator < Role::Admin);
        for role in Role::ALL {
            assert_eq!(role.as_str().parse(), Ok(role));
        }
        let error = "Admin".parse::<Role>().expect_err("another case").to_string();
        assert!(error.contains("`viewer`, `operator` and `admin` are"), "{error}");
    }
}
