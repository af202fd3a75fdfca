//! How a connection begins: who speaks to whom, and in which version of the protocol.
//!
//! The node that connects sends a [`Hello`]; the other one answers in as many bytes and, where it refuses, closes. Frames
//! follow only after an acceptance. **The format of both is frozen for all versions**, so that any two nodes can tell each
//! other that they have no version in common: what later versions need beyond it goes into frames.

use crate::{Version, VersionRange};
use base::bytes::{Reader, Writer};
use base::{ClusterId, HostId, NodeId, checksum};

/// Bytes of a hello, and of its answer.
pub const HELLO_SIZE: usize = 128;

const HELLO_MAGIC: [u8; 8] = *b"DRYHELLO";
const ANSWER_MAGIC: [u8; 8] = *b"DRYREPLY";
const SEAL_AT: usize = 8;

/// What a node says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    /// The versions that it speaks.
    pub versions: VersionRange,
    /// Its cluster.
    pub cluster: ClusterId,
    /// Itself.
    pub node: NodeId,
    /// Which start of its process, greater than at every start before: another one means that it has forgotten all that it did
    /// not keep on devices.
    pub incarnation: u64,
}

/// What the initiator of a channel is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Role(pub u8);

impl Role {
    /// A node of the cluster, on behalf of its owners and frontends.
    pub const NODE: Role = Role(1);
    /// Not the node itself, but who watches over its process on the same host, and saw it end: all sessions of the node up
    /// to the one in the hello are over, and what was granted in them is used no more. No frames follow.
    pub const ENDED: Role = Role(2);
}

/// The first bytes of a connection, from the node that connects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hello {
    /// Who connects.
    pub from: Identity,
    /// Whom it means to reach.
    pub receiver: NodeId,
    /// As what it connects.
    pub role: Role,
    /// The session of the channel that begins; greater than all that this incarnation of the sender had with the receiver.
    pub session: u64,
}

/// What both sides know once a hello was accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Accepted {
    /// The version of all frames of the connection.
    pub version: Version,
    /// The other node.
    pub peer: NodeId,
    /// Its incarnation.
    pub peer_incarnation: u64,
    /// The session that begins.
    pub session: u64,
}

/// Why a hello is not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HelloRefusal {
    /// The two belong to different clusters.
    #[error(
        "the node that connects belongs to cluster {initiator}, the one that it reached to cluster {acceptor}: correct the address"
    )]
    OtherCluster {
        /// The cluster of the node that connects.
        initiator: ClusterId,
        /// The cluster of the other.
        acceptor: ClusterId,
    },
    /// Another node stands at this address.
    #[error(
        "node {wanted} is wanted, and node {found} stands at its address: correct the addresses of their hosts"
    )]
    NotThisNode {
        /// Whom the initiator means to reach.
        wanted: NodeId,
        /// Whom it reached.
        found: NodeId,
    },
    /// The host of the node that connects does not belong to the cluster, as far as the other knows.
    #[error("host {host} is not a member of the cluster, or not any more: let it join")]
    NotMember {
        /// The host.
        host: HostId,
    },
    /// The initiator is something that this version does not know.
    #[error("the node that connects has the role {}, which the one that it reached does not know: upgrade that one", .role.0)]
    UnknownRole {
        /// What it says to be.
        role: Role,
    },
    /// There is no version that both speak.
    #[error(
        "the node that connects speaks {initiator}, the one that it reached {acceptor}: upgrade the older one, by way of a release \
         that speaks both"
    )]
    NoCommonVersion {
        /// What the node that connects speaks.
        initiator: VersionRange,
        /// What the other speaks.
        acceptor: VersionRange,
    },
}

/// Why a connection does not begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HelloError {
    /// Something else than a node of Drystone is at the other end.
    #[error(
        "what came begins with {found:#018x} instead of a hello or its answer: something else than a node speaks there"
    )]
    Magic {
        /// The first eight bytes, as a big-endian number, so that they read in order.
        found: u64,
    },
    /// The bytes came damaged.
    #[error("a hello or its answer came damaged: its checksum does not match")]
    Checksum,
    /// The fields make no sense.
    #[error("a hello or its answer makes no sense: {flaw}")]
    Fields {
        /// What is wrong.
        flaw: &'static str,
    },
    /// The other node refused.
    #[error(transparent)]
    Refused(#[from] HelloRefusal),
}

impl Hello {
    /// Its bytes.
    pub fn encode(&self) -> [u8; HELLO_SIZE] {
        let mut w = Writer::with_capacity(HELLO_SIZE);
        w.slice(&HELLO_MAGIC);
        w.u32(0); // the checksum's place
        put_versions(&mut w, self.from.versions);
        w.u128(self.from.cluster.0);
        w.u128(self.from.node.host.0);
        w.u128(self.receiver.host.0);
        w.u8(self.from.node.shard);
        w.u8(self.receiver.shard);
        w.u8(self.role.0);
        w.pad_to(72);
        w.u64(self.from.incarnation);
        w.u64(self.session);
        sealed(w)
    }

    /// The hello in these bytes.
    ///
    /// # Errors
    /// When they are none. There is nobody to answer then: the connection is closed.
    pub fn decode(bytes: &[u8; HELLO_SIZE]) -> Result<Hello, HelloError> {
        let mut r = opened(bytes, HELLO_MAGIC)?;
        let versions = take_versions(&mut r)?;
        let cluster = ClusterId(r.u128());
        let (sender, receiver) = (HostId(r.u128()), HostId(r.u128()));
        let (sender_shard, receiver_shard, role) = (r.u8(), r.u8(), Role(r.u8()));
        let is_clear = r.reserved(5);
        let (incarnation, session) = (r.u64(), r.u64());
        let node = NodeId { host: sender, shard: sender_shard };
        closed(r, is_clear)?;
        Ok(Hello {
            from: Identity { versions, cluster, node, incarnation },
            receiver: NodeId { host: receiver, shard: receiver_shard },
            role,
            session,
        })
    }

    /// Whether the node `own`, which it reached, lets the connection begin; `is_member` tells of a host whether it belongs to
    /// the cluster. The result goes back by [`Hello::answer`].
    ///
    /// # Errors
    /// When it does not, and why: the connection is to be closed after the answer.
    pub fn accept(
        &self,
        own: &Identity,
        is_member: impl FnOnce(HostId) -> bool,
    ) -> Result<Accepted, HelloRefusal> {
        if self.from.cluster != own.cluster {
            return Err(HelloRefusal::OtherCluster { initiator: self.from.cluster, acceptor: own.cluster });
        }
        if self.receiver != own.node {
            return Err(HelloRefusal::NotThisNode { wanted: self.receiver, found: own.node });
        }
        if !is_member(self.from.node.host) {
            return Err(HelloRefusal::NotMember { host: self.from.node.host });
        }
        let Some(number) = self.from.versions.highest_common(own.versions) else {
            return Err(HelloRefusal::NoCommonVersion {
                initiator: self.from.versions,
                acceptor: own.versions,
            });
        };
        if !matches!(self.role, Role::NODE | Role::ENDED) {
            return Err(HelloRefusal::UnknownRole { role: self.role });
        }
        Ok(Accepted {
            version: Version::new(number).expect("a node says only versions that it speaks"),
            peer: self.from.node,
            peer_incarnation: self.from.incarnation,
            session: self.session,
        })
    }

    /// The answer of `own` to this hello: the bytes of what [`Hello::accept`] gave.
    pub fn answer(&self, own: &Identity, result: &Result<Accepted, HelloRefusal>) -> [u8; HELLO_SIZE] {
        let (verdict, version) = match result {
            Ok(accepted) => (Verdict::Accepted, accepted.version.number()),
            Err(HelloRefusal::OtherCluster { .. }) => (Verdict::OtherCluster, 0),
            Err(HelloRefusal::NotThisNode { .. }) => (Verdict::NotThisNode, 0),
            Err(HelloRefusal::NotMember { .. }) => (Verdict::NotMember, 0),
            Err(HelloRefusal::UnknownRole { .. }) => (Verdict::UnknownRole, 0),
            Err(HelloRefusal::NoCommonVersion { .. }) => (Verdict::NoCommonVersion, 0),
        };
        let mut w = Writer::with_capacity(HELLO_SIZE);
        w.slice(&ANSWER_MAGIC);
        w.u32(0); // the checksum's place
        put_versions(&mut w, own.versions);
        w.u128(own.cluster.0);
        w.u128(own.node.host.0);
        w.u8(own.node.shard);
        w.u8(verdict as u8);
        w.u16(version);
        w.pad_to(56);
        w.u64(own.incarnation);
        w.u64(self.session);
        sealed(w)
    }

    /// What the answer to this hello says.
    ///
    /// # Errors
    /// When it is a refusal, is no answer, or is not one to this hello. The connection is to be closed.
    pub fn conclude(&self, answer: &[u8; HELLO_SIZE]) -> Result<Accepted, HelloError> {
        let answer = AnswerFields::decode(answer)?;
        let (own, other) = (&self.from, &answer.from);
        let flaw = |flaw| Err(HelloError::Fields { flaw });
        if answer.session != self.session {
            return flaw("it answers another hello");
        }
        let common = own.versions.highest_common(other.versions);
        let refusal = match answer.verdict {
            Verdict::Accepted => {
                if other.cluster != own.cluster || other.node != self.receiver {
                    return flaw("one accepts that was not meant");
                }
                return match Version::new(answer.version).filter(|version| Some(version.number()) == common) {
                    Some(version) => Ok(Accepted {
                        version,
                        peer: other.node,
                        peer_incarnation: other.incarnation,
                        session: self.session,
                    }),
                    None => flaw("it does not choose the highest version that both speak"),
                };
            }
            Verdict::OtherCluster => {
                HelloRefusal::OtherCluster { initiator: own.cluster, acceptor: other.cluster }
            }
            Verdict::NotThisNode => HelloRefusal::NotThisNode { wanted: self.receiver, found: other.node },
            Verdict::NotMember => HelloRefusal::NotMember { host: own.node.host },
            Verdict::UnknownRole => HelloRefusal::UnknownRole { role: self.role },
            Verdict::NoCommonVersion => {
                HelloRefusal::NoCommonVersion { initiator: own.versions, acceptor: other.versions }
            }
        };
        Err(refusal.into())
    }
}

/// The codes of the answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Verdict {
    Accepted = 1,
    NoCommonVersion = 2,
    OtherCluster = 3,
    NotThisNode = 4,
    NotMember = 5,
    UnknownRole = 6,
}

impl Verdict {
    fn from_code(code: u8) -> Option<Verdict> {
        Some(match code {
            1 => Verdict::Accepted,
            2 => Verdict::NoCommonVersion,
            3 => Verdict::OtherCluster,
            4 => Verdict::NotThisNode,
            5 => Verdict::NotMember,
            6 => Verdict::UnknownRole,
            _ => return None,
        })
    }
}

/// The fields of an answer.
struct AnswerFields {
    from: Identity,
    verdict: Verdict,
    version: u16,
    session: u64,
}

impl AnswerFields {
    fn decode(bytes: &[u8; HELLO_SIZE]) -> Result<AnswerFields, HelloError> {
        let mut r = opened(bytes, ANSWER_MAGIC)?;
        let versions = take_versions(&mut r)?;
        let (cluster, host, shard) = (ClusterId(r.u128()), HostId(r.u128()), r.u8());
        let verdict = Verdict::from_code(r.u8());
        let version = r.u16();
        let is_clear = r.reserved(4);
        let (incarnation, session) = (r.u64(), r.u64());
        closed(r, is_clear)?;
        let verdict = verdict.ok_or(HelloError::Fields { flaw: "it is refused for no known reason" })?;
        if (verdict == Verdict::Accepted) != (version != 0) {
            return Err(HelloError::Fields { flaw: "a refusal chooses a version, or an acceptance none" });
        }
        let from = Identity { versions, cluster, node: NodeId { host, shard }, incarnation };
        Ok(AnswerFields { from, verdict, version, session })
    }
}

fn put_versions(w: &mut Writer, versions: VersionRange) {
    w.u16(versions.lowest);
    w.u16(versions.highest);
}

fn take_versions(r: &mut Reader<'_>) -> Result<VersionRange, HelloError> {
    let versions = VersionRange { lowest: r.u16(), highest: r.u16() };
    match 0 < versions.lowest && versions.lowest <= versions.highest {
        true => Ok(versions),
        false => Err(HelloError::Fields { flaw: "its range of versions is none" }),
    }
}

fn sealed(mut w: Writer) -> [u8; HELLO_SIZE] {
    w.pad_to(HELLO_SIZE);
    let mut bytes = [0; HELLO_SIZE];
    bytes.copy_from_slice(w.as_bytes());
    checksum::seal(&mut bytes, SEAL_AT);
    bytes
}

/// Checks what comes before the fields.
fn opened(bytes: &[u8; HELLO_SIZE], magic: [u8; 8]) -> Result<Reader<'_>, HelloError> {
    let mut r = Reader::new(bytes);
    let found = r.u64();
    if found != u64::from_le_bytes(magic) {
        return Err(HelloError::Magic { found: found.swap_bytes() });
    }
    if !checksum::is_sealed(bytes, SEAL_AT) {
        return Err(HelloError::Checksum);
    }
    r.u32();
    Ok(r)
}

/// Checks what comes after the fields.
fn closed(mut r: Reader<'_>, is_clear: bool) -> Result<(), HelloError> {
    let rest = r.remaining();
    let is_clear = r.reserved(rest) && is_clear;
    assert!(r.finish().is_ok(), "the fields fit");
    match is_clear {
        true => Ok(()),
        false => Err(HelloError::Fields { flaw: "reserved bytes are set" }),
    }
}

#[cfg(test)]
mod tests;
