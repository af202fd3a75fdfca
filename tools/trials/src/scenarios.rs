//! The scenarios by name.

mod away;
mod blackout;
mod clock;
mod cut;
mod device;
mod directory;
mod failover;
mod flush;
mod full;
pub mod garbage;
mod guide;
mod handover;
mod kill;
mod libvirt;
mod migrate;
mod mixed;
mod moves;
mod pause;
mod power;
mod reads;
mod rebuild;
mod replace;
mod rolling;
mod shape;
mod slow;
mod snapshot;
mod two;
mod upgrade;
mod witness;

use crate::bench::{Bench, Settings};
use crate::failure::Failure;
use crate::report::Report;

/// What can be tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Scenario {
    /// The guide of a cluster, typed as it stands: made, used, a host lost and replaced; needs root, `ip`, `nft`, `etcd` and
    /// qemu-storage-daemon.
    Guide,
    /// The process of a host with a component is killed, then started; also that of the owner, with the client elsewhere.
    Kill,
    /// The same, stopped for four seconds.
    Pause,
    /// The links of a host fall silent while it runs; needs root, `ip` and `nft`.
    Cut,
    /// Five hosts, three copies: two hosts at once.
    Two,
    /// What a guest feels while a copy is made anew; needs root, `ip`, `nft`, `etcd`.
    Rebuild,
    /// A host is away while much is written; what is copied when it returns.
    Away,
    /// All hosts are killed at once.
    Blackout,
    /// The power of a host fails, or of all: what devices had not made stable is lost or torn; needs root, `ip`, `nft`, `etcd`,
    /// FUSE.
    Power,
    /// A device of a host fails, refuses writes or hangs; needs the same.
    Device,
    /// A device becomes slow for good: it is found, emptied and taken out; needs the same.
    Slow,
    /// Devices of a disk's owner become slow while its guest reads: reads go elsewhere and come back; needs the same.
    Reads,
    /// One of two capacity devices of a host dies and is replaced, by the commands of the guide; needs the same.
    Replace,
    /// Flushes of a host's capacity devices take five seconds while devices come and go; needs the same.
    Flush,
    /// Devices are filled to the last byte, then the file systems of the hosts' data directories; needs root, `ip`, `nft`, `etcd`.
    Full,
    /// The links of a host, or the way to etcd, become narrow; needs the same, and `tc`.
    Shape,
    /// The clock of a host steps; needs root, `ip`, `nft`, `etcd`, libfaketime.
    Clock,
    /// Six hosts: a disk is moved to RAID-5, to RAID-6 and back to two copies; each move is turned round once, and a host is killed in it.
    Moves,
    /// Clients at different hosts hand the disk over.
    Handover,
    /// QEMU has the disk by a name that stands for all hosts, and its host is killed, or cut off; needs root, `ip`, `nft`, `etcd` and
    /// qemu-storage-daemon.
    Failover,
    /// A guest of QEMU moves from host to host while it runs; needs qemu-system-x86_64 and a kernel for it.
    Migrate,
    /// A guest of libvirt has the disk as `attach` prints it, and its host's server is killed; needs root, `libvirtd`, `virsh`,
    /// qemu-system-x86_64 and a kernel for it.
    Libvirt,
    /// Members of etcd die, all of them, hosts are cut off from them, its data is gone; needs root, `ip`, `nft`, `etcd`.
    Directory,
    /// An old snapshot of etcd is restored, and hosts restart with it in every order; needs the same.
    Snapshot,
    /// Every host is restarted in its turn, certificates and authorities change; needs the same.
    Rolling,
    /// Every host changes from the release of `--program` to that of `--next`, and back; needs the same.
    Upgrade,
    /// Two hosts and a witness, which is a member of etcd: a site is lost, or the sites lose each other; needs the same.
    Witness,
    /// Random bytes come to every port of a host, five minutes each; needs the same.
    Garbage,
    /// Kills, pauses, stops and blackouts by chance.
    Mixed,
}

impl Scenario {
    /// All.
    pub const ALL: [Scenario; 29] = [
        Scenario::Guide,
        Scenario::Kill,
        Scenario::Pause,
        Scenario::Cut,
        Scenario::Two,
        Scenario::Rebuild,
        Scenario::Away,
        Scenario::Blackout,
        Scenario::Power,
        Scenario::Device,
        Scenario::Slow,
        Scenario::Reads,
        Scenario::Replace,
        Scenario::Flush,
        Scenario::Full,
        Scenario::Shape,
        Scenario::Clock,
        Scenario::Moves,
        Scenario::Handover,
        Scenario::Failover,
        Scenario::Migrate,
        Scenario::Libvirt,
        Scenario::Directory,
        Scenario::Snapshot,
        Scenario::Rolling,
        Scenario::Upgrade,
        Scenario::Witness,
        Scenario::Garbage,
        Scenario::Mixed,
    ];

    /// Runs it.
    ///
    /// # Errors
    /// When it cannot begin; what happens later is in the report.
    pub fn run(self, settings: &Settings) -> Result<Report, Failure> {
        match self {
            Scenario::Guide => guide::run(settings),
            Scenario::Kill => kill::run(settings),
            Scenario::Pause => pause::run(settings),
            Scenario::Cut => cut::run(settings),
            Scenario::Two => two::run(settings),
            Scenario::Rebuild => rebuild::run(settings),
            Scenario::Away => away::run(settings),
            Scenario::Blackout => blackout::run(settings),
            Scenario::Power => power::run(settings),
            Scenario::Device => device::run(settings),
            Scenario::Slow => slow::run(settings),
            Scenario::Reads => reads::run(settings),
            Scenario::Replace => replace::run(settings),
            Scenario::Flush => flush::run(settings),
            Scenario::Full => full::run(settings),
            Scenario::Shape => shape::run(settings),
            Scenario::Clock => clock::run(settings),
            Scenario::Moves => moves::run(settings),
            Scenario::Handover => handover::run(settings),
            Scenario::Failover => failover::run(settings),
            Scenario::Migrate => migrate::run(settings),
            Scenario::Libvirt => libvirt::run(settings),
            Scenario::Directory => directory::run(settings),
            Scenario::Snapshot => snapshot::run(settings),
            Scenario::Rolling => rolling::run(settings),
            Scenario::Upgrade => upgrade::run(settings),
            Scenario::Witness => witness::run(settings),
            Scenario::Garbage => garbage::run(settings),
            Scenario::Mixed => mixed::run(settings),
        }
    }
}

/// The parts of a round in which the owner is one host and the client that counts is at a third: the owner holds a
/// component, the other does not, and they change from round to round.
fn owned_elsewhere(bench: &Bench, round: usize) -> Result<(String, String), Failure> {
    let holders = bench.disk.holders();
    let owner = holders[round % holders.len()].clone();
    let user = bench.cluster.names().iter().find(|name| !holders.contains(name));
    let user = user.ok_or_else(|| Failure::Refused("every host holds a component".to_owned()))?;
    Ok((owner, user.clone()))
}
