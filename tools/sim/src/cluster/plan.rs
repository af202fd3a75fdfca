//! What a seed draws: the cluster, and which faults come how often.

use super::features::{Features, Scene, Streams};
use super::survivors::Survivor;
use crate::zeroes::Zeroes;
use base::Random;
use layout::Code;
use std::time::Duration;

/// Nanoseconds of a millisecond.
pub const MS: u64 = 1_000_000;

/// The cluster and the faults of one run. Chances are events a (virtual) second over the whole cluster, in thousandths.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    /// Hosts.
    pub hosts: u64,
    /// Copies of each place, or members of its rows.
    pub copies: u64,
    /// How rows are coded; none: disks have copies.
    pub code: Option<Code>,
    /// Places of each disk.
    pub places: u64,
    /// Disks, each with a guest.
    pub disks: u64,
    /// Extents of each host's group.
    pub extents: u64,
    /// Length of the time with faults, in nanoseconds.
    pub faulty_ns: u64,
    /// The greatest latency of a message, of a device, and of the directory, in nanoseconds.
    pub network_ns: u64,
    /// See `network_ns`.
    pub device_ns: u64,
    /// Where delays of the processor's work come from, if it is busy.
    pub computing: Option<Random>,
    /// Which of the blocks that guests write are zeroes, or have their checksum.
    pub(crate) zeroes: Zeroes,
    /// See `network_ns`.
    pub directory_ns: u64,
    /// The greatest pause of a guest between two requests.
    pub think_ns: u64,
    /// Requests that a guest has under way at most.
    pub depth: u64,
    /// Processes killed; they come back.
    pub kills: u64,
    /// Hosts that lose power; they come back.
    pub power: u64,
    /// All hosts at once.
    pub blackouts: u64,
    /// Hosts that stop for a while and go on.
    pub pauses: u64,
    /// Links cut for a while, in one direction or in both.
    pub cuts: u64,
    /// Hosts cut off from all others for a while.
    pub partitions: u64,
    /// Connections that break.
    pub resets: u64,
    /// Messages doubled, dropped within a connection, or delivered from one that is over, in thousandths of messages.
    pub mangled: u64,
    /// Whether the directory may leave outcomes unknown, and be away.
    pub directory_faults: bool,
    /// Members that come, by far most of them to take the seat of another.
    pub comings: u64,
    /// Members that go without another in their place.
    pub goings: u64,
    /// Active members that are not to count any more.
    pub distrusts: u64,
    /// How long a host waits at most before it looks at what it holds; 0: it does so when it starts only.
    pub tend_ns: u64,
    /// Guests that move to another host.
    pub moves: u64,
    /// Bits that flip at rest.
    pub rot: u64,
    /// Devices that fail for good.
    pub dead_devices: u64,
    /// Devices that become slow for a while.
    pub slow: u64,
    /// Devices that take what they are asked and end nothing of it for a while.
    pub hangs: u64,
    /// Of 1000 s on all hosts, blocks that cannot be read from then on.
    pub spoils: u64,
    /// Changes of disks' limits, and of which copies are read.
    pub limits: u64,
    /// Snapshots that are asked for or deleted.
    pub snapshots: u64,
    /// Whether the second disk is a clone of the first snapshot of the first one.
    pub clones: bool,
    /// Snapshots of all disks at one moment.
    pub together: u64,
    /// Moves between two layouts that turn or pause.
    pub turns: u64,
    /// The other layout that disks move into, and bytes that are moved with one change of a record.
    pub other: Option<(Shape, u64)>,
    /// For how long small changes of rows are held before their parity is computed.
    pub fold_after: Option<Duration>,
    /// Bytes of a member that owners compare with the others of its rows in a second; 0: none.
    pub row_check_pace: u64,
    /// Rows that are made to disagree once all is quiet.
    pub disagreements: u64,
    /// Changes of how disks are compressed.
    pub compressed: u64,
    /// Blocks of one host that rot once all is quiet.
    pub rots: u64,
    /// Hosts that hear nothing of others and of the directory for a while, and are heard by all.
    pub deaf: u64,
    /// Whether clocks run at different speeds.
    pub drift: bool,
    /// Whether transactions that make a component count are often late, and its node lost to the owner meanwhile (`scenes`).
    pub late_joins: bool,
    /// Whether the directory goes away when it is asked to make a component count, and much is written until it is back (`scenes`).
    pub long_joins: bool,
    /// The greatest pause of a guest in a rush; 0: a millisecond.
    pub rush_ns: u64,
    /// Whether connections break while disks are opened (`scenes`).
    pub shaky_openings: bool,
    /// Components that begin to stand in for absent ones, in thousandths of the chances to do so; 0: none ever.
    pub stand_ins: u64,
    /// Whether a component is lost, and all others of its place once it has a stand-in (`stand_ins`).
    pub double_losses: bool,
    /// Whether that is played without its variants, and nothing takes the seat of what it stands in for: then what came back
    /// and its stand-in always make the disk. Devices then hang, and hosts are deaf, one after the other.
    pub is_plain: bool,
    /// Whether guests rest from the loss of the first component of a double loss until all others are lost, so that what it alone has got, and nobody else ever
    /// will, is not written over meanwhile.
    pub rests: bool,
    /// Whether the first component of a double loss always comes back for a moment before all others are lost, to devices so slow that
    /// little is copied to it. They stay so where it counts again before it could go away.
    pub relapses: bool,
    /// Whether one component is all that is left as soon as it counts, and which (`survivors`).
    pub survivor: Option<Survivor>,
}

/// Places of a disk: how many, and what each is.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    /// Copies of each place, or members of its rows.
    pub copies: u64,
    /// How rows are coded; none: places have copies.
    pub code: Option<Code>,
    /// Places.
    pub places: u64,
}

impl Shape {
    /// One of several, by a number.
    fn of(number: u64) -> Shape {
        let [single, double, wide] = Code::ALL;
        let rows = |code: Code, places| Shape { copies: u64::from(code.members()), code: Some(code), places };
        let copies = |copies, places| Shape { copies, code: None, places };
        [copies(2, 1), copies(3, 2), rows(single, 1), rows(double, 1), rows(single, 2), rows(wide, 1)]
            [(number % 6) as usize]
    }
}

impl Plan {
    /// Whether disks have rows with parity, now or when they have moved.
    pub fn has_rows(&self) -> bool {
        self.code.is_some() || self.other.is_some_and(|(shape, _)| shape.code.is_some())
    }

    /// The places that disks are made with.
    pub fn shape(&self) -> Shape {
        Shape { copies: self.copies, code: self.code, places: self.places }
    }

    /// Draws one.
    pub fn draw(random: &mut Random) -> Plan {
        let copies = [2, 2, 3, 3, 4][random.below(5) as usize];
        let mut plan = Plan {
            hosts: copies + random.below(3),
            copies,
            places: random.range(1..3),
            disks: random.range(1..3),
            extents: if random.chance(1, 10) { 12 } else { 48 },
            faulty_ns: random.range(4..14) * 1000 * MS,
            network_ns: [MS / 20, MS / 4, 5 * MS][random.below(3) as usize],
            device_ns: [MS / 10, MS / 2, 10 * MS][random.below(3) as usize],
            directory_ns: [MS, 5 * MS, 80 * MS][random.below(3) as usize],
            think_ns: [5 * MS, 20 * MS, 60 * MS][random.below(3) as usize],
            depth: [1, 4, 12][random.below(3) as usize],
            directory_faults: random.chance(1, 2),
            drift: random.chance(1, 2),
            ..Plan::default()
        };
        // Swarm: each kind of fault is in some seeds only, so that each is met with and without the others.
        let mut rate = |most: u64| if random.chance(1, 2) { 1 + random.below(most) } else { 0 };
        plan.kills = rate(400);
        plan.power = rate(300);
        plan.blackouts = rate(120);
        plan.pauses = rate(300);
        plan.cuts = rate(500);
        plan.partitions = rate(300);
        plan.resets = rate(1000);
        plan.mangled = rate(4);
        plan.moves = rate(700);
        plan.slow = rate(300);
        plan.comings = rate(2000);
        if plan.comings > 0 {
            plan.goings = rate(400);
            plan.distrusts = rate(200);
            plan.tend_ns = [0, 300 * MS, 2000 * MS][random.below(3) as usize];
            if plan.hosts == plan.copies {
                plan.hosts += random.below(2);
            }
        }
        if random.chance(1, 6) {
            plan.rot = 1 + random.below(1500);
        }
        if random.chance(1, 12) {
            plan.dead_devices = 60;
        }
        plan
    }

    /// One disk, no fault but that a component is lost, and all others of its place once it has a stand-in.
    pub fn double_loss(copies: u64) -> Plan {
        Plan {
            hosts: copies + 1,
            copies,
            places: 1,
            disks: 1,
            extents: 48,
            faulty_ns: 12_000 * MS,
            network_ns: MS / 4,
            device_ns: MS / 2,
            directory_ns: 5 * MS,
            think_ns: 5 * MS,
            depth: 4,
            tend_ns: 300 * MS,
            stand_ins: 1000,
            double_losses: true,
            is_plain: true,
            ..Plan::default()
        }
    }

    /// The same with all its variants, and guests that write much until the first component is lost, and rest then.
    pub fn quiet_loss(copies: u64) -> Plan {
        let loss = Plan::double_loss(copies);
        Plan { faulty_ns: 40_000 * MS, think_ns: 2 * MS, depth: 8, rests: true, is_plain: false, ..loss }
    }

    /// The same, where the first component begins to be brought up to date, on slow devices, and goes away again before it is.
    pub fn relapse(copies: u64) -> Plan {
        Plan { relapses: true, ..Plan::quiet_loss(copies) }
    }

    /// The same with rows of each code in turn, of which small changes are folded soon, late or never.
    pub fn in_rows(self, seed: u64) -> Plan {
        let code = Code::ALL[(seed % Code::ALL.len() as u64) as usize];
        let folds = [None, Some(20), Some(400)][(seed / 3 % 3) as usize];
        let copies = u64::from(code.members());
        let fold_after = folds.map(Duration::from_millis);
        Plan { copies, hosts: copies + 1, code: Some(code), fold_after, ..self }
    }

    /// One disk, no fault but that now and then one device hangs, and the copies are whole before the next one does.
    pub fn hanging(copies: u64) -> Plan {
        Plan {
            hosts: copies + 1,
            copies,
            places: 1,
            disks: 1,
            extents: 48,
            faulty_ns: 40_000 * MS,
            network_ns: MS / 4,
            device_ns: MS / 2,
            directory_ns: 5 * MS,
            think_ns: 5 * MS,
            depth: 4,
            hangs: 2000,
            is_plain: true,
            ..Plan::default()
        }
    }

    /// The same with blocks that cannot be read on any host, and components that come, in the place of devices that hang.
    pub fn bad_sectors(copies: u64) -> Plan {
        Plan {
            hosts: copies + 2,
            hangs: 0,
            spoils: 150,
            comings: 60,
            tend_ns: 300 * MS,
            ..Plan::hanging(copies)
        }
    }

    /// The same with hosts that hear nothing for eight seconds, in the place of devices that hang.
    pub fn deaf(copies: u64) -> Plan {
        Plan { hangs: 0, deaf: 2000, ..Plan::hanging(copies) }
    }

    /// One disk, no fault but that its limits change, that devices are slow, and that its guest moves or is started elsewhere.
    pub fn limits(copies: u64) -> Plan {
        Plan { hangs: 0, limits: 600, slow: 300, moves: 100, depth: 12, ..Plan::hanging(copies) }
    }

    /// One disk, no fault but what `left_behind` plays.
    pub fn left_behind() -> Plan {
        Plan { hangs: 0, think_ns: MS, depth: 8, ..Plan::hanging(2) }
    }

    /// One disk, no fault but that a component which has just been brought up to date is all that is left.
    pub fn survivor(kind: Survivor) -> Plan {
        let plan = Plan { hangs: 0, survivor: Some(kind), ..Plan::hanging(2) };
        match kind {
            Survivor::CaughtUp => Plan { directory_ns: 20 * MS, think_ns: 2 * MS, depth: 8, ..plan },
            // Where guests write much, little stays as it was when it was trimmed. `stand_ins` lets what is over go.
            Survivor::Heir => Plan {
                hosts: 5,
                copies: 3,
                think_ns: 40 * MS,
                depth: 1,
                stand_ins: 1,
                tend_ns: 100 * MS,
                ..plan
            },
        }
    }

    /// One disk, no fault but that processes are killed, and that the directory is away whenever one of its components is to count again.
    pub fn long_joins() -> Plan {
        Plan {
            hosts: 3,
            long_joins: true,
            rush_ns: MS / 12,
            network_ns: MS / 20,
            device_ns: MS / 10,
            think_ns: 20 * MS,
            depth: 12,
            ..Plan::late_words()
        }
    }

    /// One disk, no fault but that processes are killed; for the scene of the late word.
    pub fn late_words() -> Plan {
        Plan {
            hosts: 3,
            copies: 2,
            places: 1,
            disks: 1,
            extents: 48,
            faulty_ns: 20_000 * MS,
            network_ns: MS / 4,
            device_ns: MS / 2,
            directory_ns: 5 * MS,
            think_ns: 2 * MS,
            depth: 4,
            kills: 300,
            ..Plan::default()
        }
    }

    /// Adds what features bring; a stream decides how often the faults of a scene come.
    pub(crate) fn bring(&mut self, features: &Features, streams: &mut Streams) {
        let scenes = &mut streams.scenes;
        match features.scene {
            Some(Scene::LateJoins) => {
                self.late_joins = true;
                self.directory_faults = true;
                self.resets = self.resets.max(1 + scenes.below(1000));
                self.kills = self.kills.max(1 + scenes.below(400));
            }
            Some(Scene::ShakyOpenings) => {
                self.shaky_openings = true;
                self.places = 2;
                self.hosts = self.copies + 2;
                self.moves = self.moves.max(1 + scenes.below(1500));
                // Guests are answered quickly, so that they ask for much in a short time.
                (self.network_ns, self.device_ns, self.depth) = (MS / 20, MS / 10, 12);
            }
            None => {}
        }
        let codes = Code::ALL.into_iter();
        self.code = codes.into_iter().find(|code| u64::from(code.data()) == features.parity);
        self.fold_after = (features.folds > 0).then(|| Duration::from_millis(features.folds));
        self.row_check_pace = features.checks << 20;
        self.disagreements = if features.checks > 0 { features.disagreements } else { 0 };
        self.rots = features.rots;
        if let Some(code) = self.code {
            let more = self.hosts - self.copies;
            self.copies = u64::from(code.members());
            self.hosts = self.copies + more;
        }
        if features.moving > 0 {
            let other = Shape::of(features.moving);
            self.turns = features.moving;
            self.other = Some((other, [128 << 10, 512 << 10, 1 << 20][(features.moving / 6 % 3) as usize]));
            self.hosts = self.hosts.max(other.copies);
            self.extents = if self.extents > 20 { self.extents + 32 } else { self.extents };
            self.faulty_ns = self.faulty_ns.max(8000 * MS);
        }
        if features.stand_ins > 0 {
            self.stand_ins = features.stand_ins;
            self.hosts = self.hosts.max(self.copies + 1);
            self.tend_ns = self.tend_ns.max(300 * MS);
            if features.double_losses {
                self.double_losses = true;
                self.faulty_ns = self.faulty_ns.max(8000 * MS);
            }
        }
        (self.hangs, self.deaf, self.spoils) = (features.hangs, features.deaf, features.spoils);
        self.limits = features.limits;
        // A disk with snapshots does not move into rows with parity, nor out of them.
        let (has_rows, moves) = (self.has_rows(), self.other.is_some());
        self.snapshots = if has_rows && moves { 0 } else { features.snapshots };
        self.compressed = features.compressed;
        self.clones = features.clones && self.snapshots > 0 && !has_rows;
        self.disks = if self.clones { 2 } else { self.disks };
        // Each disk has up to six snapshots, of which each may keep all of it. All must heal where devices are not small.
        self.extents = if self.snapshots > 0 && self.extents > 20 { self.extents + 48 } else { self.extents };
        self.together = if self.snapshots > 0 { features.together } else { 0 };
        self.computing = features.busy.then(|| streams.computing.clone());
        self.zeroes = Zeroes::new(features.zeroes.then(|| streams.zeroes.clone()));
    }
}
