//! What a seed of several hosts brings beside its cluster, its load and the faults of its plan, each drawn from a stream of its own,
//! so that a new feature changes nothing else of a seed. A pinned scenario names its features instead of drawing them.

use crate::computing;
use base::Random;
use std::fmt;
use std::str::FromStr;

/// The streams of features. Such a constant needs only differ from the others; once it changes, the scenarios that have its
/// feature are others, too.
const SCENES: u64 = 0x5ce7_e000_00a5_0000;
/// See `SCENES`.
const STAND_INS: u64 = 0x57a4_d145_001d_8b70;
/// See `SCENES`.
const HANGS: u64 = 0x4a76_0000_0000_0001;
/// See `SCENES`.
const SPOILS: u64 = 0x0bad_b10c_0000_0001;
/// See `SCENES`.
const DEAFNESS: u64 = 0xdeaf_0000_0000_0001;
/// See `SCENES`.
const PARITY: u64 = 0x9a71_7400_0000_0001;
/// See `SCENES`.
const LIMITS: u64 = 0x11a1_7500_0000_0001;
/// See `SCENES`.
const MOVING: u64 = 0x3073_1600_0000_0001;
/// See `SCENES`.
const CHECKS: u64 = 0xc4ec_5000_0000_0001;
/// See `SCENES`.
const ZEROES: u64 = 0x02e4_0e5b_0000_0001;
/// See `SCENES`.
const SNAPSHOTS: u64 = 0x54a9_5807_0000_0001;
const SNAPSHOTS_OFTEN: u64 = 0x6f66_7465_6e5f_736e;
/// For which of these one of the disks is a clone.
const CLONES: u64 = 0xc10e_0000_0000_0050;
/// See `SCENES`.
const TOGETHER: u64 = 0x7063_e74e_4000_0001;
/// See `SCENES`.
const COMPRESSED: u64 = 0xc021_7e55_0000_0049;
/// See `SCENES`.
const ROTS: u64 = 0x0207_7e00_0000_0052;
/// See `SCENES`.
const WATCHERS: u64 = 0x1a57_3042_d500_0000;

/// What a run has beside its plan. None of them by default: a pinned scenario names all that it has, and a feature that is new
/// never comes to it.
///
/// As text, the names of those that a run has, with their rates: `watchers hangs=317`; `none` or nothing if there are none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Features {
    /// The scene that is played.
    pub scene: Option<Scene>,
    /// Components that begin to stand in for absent ones, in thousandths of the chances to do so; 0: none ever.
    pub stand_ins: u64,
    /// Whether a component is lost, and all others of its place once it has a stand-in; without `stand_ins`, nothing.
    pub double_losses: bool,
    /// Whether work of the processor comes back late.
    pub busy: bool,
    /// Devices that hang, in thousandths of events a second.
    pub hangs: u64,
    /// Hosts that hear nothing, in the same way.
    pub deaf: u64,
    /// Blocks that cannot be read, in the same way.
    pub spoils: u64,
    /// Changes of disks' limits and of which copies are read, in the same way.
    pub limits: u64,
    /// Whether watchers tell hosts of the ends of processes.
    pub watchers: bool,
    /// Whether resyncs copy whole parts at once, straight to where they stay, as they do on real hosts; else 256 KiB through logs.
    pub large_copies: bool,
    /// Data units of each row of its disks, which have parity then: 2, 3 or 4; 0: they have copies.
    pub parity: u64,
    /// For how many milliseconds small changes of rows are held before their parity is computed; 0: not at all.
    pub folds: u64,
    /// MiB of a member that owners compare with the others of its rows in a second; 0: none.
    pub checks: u64,
    /// Rows that are made to disagree once all is quiet, to be found and mended.
    pub disagreements: u64,
    /// How often the move of a disk into another layout turns or pauses, in the same way; 0: disks have one layout. It also says which
    /// layout the other one is.
    pub moving: u64,
    /// Whether some of what guests write are zeroes, and blocks that have their checksum.
    pub zeroes: bool,
    /// Snapshots that are asked for or deleted, in thousandths of events a second; 0: none. Disks with parity that move have none.
    pub snapshots: u64,
    /// Whether one of the disks is a clone of the first snapshot of another, where there are any.
    pub clones: bool,
    /// Snapshots of all disks at one moment, in the same way; without `snapshots`, nothing.
    pub together: u64,
    /// Changes of how disks are compressed, in the same way; 0: none is. Disks with parity, or that move, are not.
    pub compressed: u64,
    /// Blocks of one host that rot once all is quiet, which scrubbing must find and owners have mended.
    pub rots: u64,
}

/// One of the scenes that a seed may draw (`scenes`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scene {
    /// Transactions that make a component count are late.
    LateJoins,
    /// Connections break while disks are opened.
    ShakyOpenings,
}

/// Where features take their choices from while a run is planned and goes on.
pub(crate) struct Streams {
    pub(crate) scenes: Random,
    pub(crate) computing: Random,
    pub(crate) hangs: Random,
    pub(crate) deafness: Random,
    pub(crate) spoils: Random,
    pub(crate) limits: Random,
    pub(crate) moving: Random,
    pub(crate) watchers: Random,
    pub(crate) zeroes: Random,
    pub(crate) snapshots: Random,
    pub(crate) together: Random,
    pub(crate) compressing: Random,
}

impl Features {
    /// Those that a seed draws.
    pub fn drawn(seed: u64) -> Features {
        Features::draw(seed).0
    }

    pub(crate) fn draw(seed: u64) -> (Features, Streams) {
        let mut scenes = Random::new(seed ^ SCENES);
        let scene = match scenes.below(8) {
            0 => Some(Scene::LateJoins),
            1 => Some(Scene::ShakyOpenings),
            _ => None,
        };
        let (stand_ins, double_losses) = draw_stand_ins(&mut Random::new(seed ^ STAND_INS));
        let (busy, computing) = computing::draw(seed);
        let mut hangs = Random::new(seed ^ HANGS);
        let mut deafness = Random::new(seed ^ DEAFNESS);
        let mut spoils = Random::new(seed ^ SPOILS);
        let mut limits = Random::new(seed ^ LIMITS);
        let mut watchers = Random::new(seed ^ WATCHERS);
        let mut moving = Random::new(seed ^ MOVING);
        let mut parity = Random::new(seed ^ PARITY);
        let mut checks = Random::new(seed ^ CHECKS);
        let mut zeroes = Random::new(seed ^ ZEROES);
        let snapshots = Random::new(seed ^ SNAPSHOTS);
        let mut together = Random::new(seed ^ TOGETHER);
        let mut rots = Random::new(seed ^ ROTS);
        let mut compressing = Random::new(seed ^ COMPRESSED);
        let mut often = Random::new(seed ^ SNAPSHOTS_OFTEN);
        let features = Features {
            scene,
            stand_ins,
            double_losses,
            busy,
            hangs: if hangs.chance(1, 5) { hangs.range(100..500) } else { 0 },
            deaf: if deafness.chance(1, 6) { deafness.range(50..350) } else { 0 },
            spoils: if spoils.chance(1, 6) { spoils.range(50..350) } else { 0 },
            limits: if limits.chance(1, 4) { limits.range(200..2000) } else { 0 },
            watchers: watchers.chance(1, 2),
            large_copies: (11..=14).contains(&(seed % 16)),
            parity: if parity.chance(1, 4) { parity.range(2..5) } else { 0 },
            folds: [0, 20, 200, 2000][parity.below(4) as usize],
            checks: [0, 64, 1024, 1024][checks.below(4) as usize],
            disagreements: checks.below(4),
            moving: if moving.chance(1, 5) { moving.range(50..1500) } else { 0 },
            zeroes: zeroes.chance(1, 4),
            snapshots: if often.chance(1, 3) { often.range(500..6000) } else { 0 },
            clones: Random::new(seed ^ CLONES).chance(1, 3),
            together: if together.chance(1, 2) { together.range(500..4000) } else { 0 },
            compressed: if compressing.chance(1, 4) { compressing.range(200..3000) } else { 0 },
            rots: if rots.chance(1, 3) { rots.range(1..60) } else { 0 },
        };
        let streams = Streams {
            scenes,
            computing,
            hangs,
            deafness,
            spoils,
            limits,
            moving,
            watchers,
            zeroes,
            snapshots,
            together,
            compressing,
        };
        (features, streams)
    }
}

/// How often components stand in for absent ones, and whether they do so for a double loss.
fn draw_stand_ins(random: &mut Random) -> (u64, bool) {
    if !random.chance(2, 5) {
        return (0, false);
    }
    let often = [20, 200, 1000][random.below(3) as usize];
    if random.chance(5, 6) { (1000, true) } else { (often, false) }
}

impl fmt::Display for Features {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Features { scene, stand_ins, double_losses, busy, hangs, deaf, spoils, limits, .. } = *self;
        let Features { watchers, large_copies, parity, folds, checks, disagreements, moving, .. } = *self;
        let Features { zeroes, snapshots, clones, together, compressed, rots, .. } = *self;
        let flags = [
            ("late-joins", scene == Some(Scene::LateJoins)),
            ("shaky-openings", scene == Some(Scene::ShakyOpenings)),
            ("double-losses", double_losses),
            ("busy", busy),
            ("watchers", watchers),
            ("large-copies", large_copies),
            ("zeroes", zeroes),
            ("clones", clones),
        ];
        let rates = [
            ("stand-ins", stand_ins),
            ("hangs", hangs),
            ("deaf", deaf),
            ("spoils", spoils),
            ("parity", parity),
            ("folds", folds),
            ("checks", checks),
            ("disagreements", disagreements),
            ("limits", limits),
            ("moving", moving),
            ("snapshots", snapshots),
            ("together", together),
            ("compressed", compressed),
            ("rots", rots),
        ];
        let names = flags.into_iter().filter(|(_, is_on)| *is_on).map(|(name, _)| name.to_owned());
        let rates = rates.into_iter().filter(|(_, rate)| *rate > 0);
        let all: Vec<String> = names.chain(rates.map(|(name, rate)| format!("{name}={rate}"))).collect();
        match all.is_empty() {
            true => formatter.write_str("none"),
            false => formatter.write_str(&all.join(" ")),
        }
    }
}

impl FromStr for Features {
    type Err = String;

    fn from_str(text: &str) -> Result<Features, String> {
        let mut features = Features::default();
        for word in text.split_whitespace() {
            let (name, rate) = word.split_once('=').unwrap_or((word, ""));
            let rate = || {
                rate.parse::<u64>().map_err(|error| format!("`{word}` needs a rate, as `hangs=317`: {error}"))
            };
            match name {
                "none" => {}
                "late-joins" => features.scene = Some(Scene::LateJoins),
                "shaky-openings" => features.scene = Some(Scene::ShakyOpenings),
                "stand-ins" => features.stand_ins = rate()?,
                "double-losses" => features.double_losses = true,
                "busy" => features.busy = true,
                "hangs" => features.hangs = rate()?,
                "deaf" => features.deaf = rate()?,
                "spoils" => features.spoils = rate()?,
                "parity" => features.parity = rate()?,
                "folds" => features.folds = rate()?,
                "checks" => features.checks = rate()?,
                "disagreements" => features.disagreements = rate()?,
                "limits" => features.limits = rate()?,
                "moving" => features.moving = rate()?,
                "watchers" => features.watchers = true,
                "large-copies" => features.large_copies = true,
                "zeroes" => features.zeroes = true,
                "clones" => features.clones = true,
                "snapshots" => features.snapshots = rate()?,
                "together" => features.together = rate()?,
                "compressed" => features.compressed = rate()?,
                "rots" => features.rots = rate()?,
                other => return Err(format!("several hosts have no feature `{other}`")),
            }
        }
        Ok(features)
    }
}
