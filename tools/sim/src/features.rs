//! What a seed of one host brings beside its load and its faults, each drawn from a stream of its own, so that a new feature
//! changes nothing else of a seed. A pinned scenario names its features instead of drawing them.

use crate::computing;
use base::Random;
use std::fmt;
use std::str::FromStr;

/// The streams of features. Such a constant needs only differ from the others; once it changes, the scenarios that have its
/// feature are others, too.
const HELD_BACK: u64 = 0x0c00_5a4e_0000;
/// See `HELD_BACK`.
const RENEWALS: u64 = 0x0e8e_8a10_0000;
/// See `HELD_BACK`.
const BAD_SECTORS: u64 = 0x0bad_5ec7_0000;
/// See `HELD_BACK`.
const HOLDING: u64 = 0x0401_d1e5_0000;
/// See `HELD_BACK`.
const SNAPSHOTS: u64 = 0x54a9_5807_0000;
/// Whether components have snapshots: apart from what becomes of them, so that scenarios that were pinned before seeds drew it stay what they are.
const WITH_SNAPSHOTS: u64 = 0x54a9_58d4_0000;
/// See `HELD_BACK`.
const ROLLBACKS: u64 = 0x0011_bac5_0000;
/// See `HELD_BACK`.
const ZEROES: u64 = 0x02e4_0e5b_0000;
/// See `HELD_BACK`.
const RESTLESS: u64 = 0x0e57_1e55_0000;
/// See `HELD_BACK`.
const COMPRESSION: u64 = 0x0c03_b4e5_0000;
/// See `HELD_BACK`: when components are written anew.
const REWRITING: u64 = 0x04e3_1417_0000;
/// Layers hold blocks in one of so many seeds.
const HOLDING_SEEDS: u64 = 5;

/// What a run has beside its load and its faults. None of them by default: a pinned scenario names all that it has, and a
/// feature that is new never comes to it.
///
/// As text, the names of those that a run has: `held-back renewals`; `none` or nothing if there are none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Features {
    /// Guests feel what the group does by itself, so that it is held back.
    pub held_back: bool,
    /// Blocks of the devices cannot be read until they are written again.
    pub bad_sectors: bool,
    /// Pages of the table among them; without `bad_sectors`, nothing.
    pub bad_pages: bool,
    /// Devices that died are replaced.
    pub renewals: bool,
    /// Work of the processor comes back late.
    pub busy: bool,
    /// Components hold blocks in layers beside their content.
    pub holding: bool,
    /// Components have snapshots, which are made, read and deleted. A group may begin in the format without them.
    pub snapshots: bool,
    /// Components are rolled back to their snapshots often; without `snapshots`, nothing.
    pub rollbacks: bool,
    /// Some of what is written are zeroes.
    pub zeroes: bool,
    /// The host crashes often, and soon after checkpoints.
    pub restless: bool,
    /// Blocks of some components are compressed, by an algorithm that changes; what is written becomes smaller to different degrees.
    pub compression: bool,
}

/// Where features take their choices from while a run goes on.
pub(crate) struct Streams {
    pub(crate) bad_sectors: Random,
    pub(crate) renewals: Random,
    pub(crate) computing: Random,
    pub(crate) holding: Random,
    pub(crate) snapshots: Random,
    pub(crate) zeroes: Random,
    pub(crate) restless: Random,
    pub(crate) compression: Random,
    pub(crate) rewriting: Random,
}

impl Features {
    /// Those that a seed draws.
    pub fn drawn(seed: u64) -> Features {
        Features::draw(seed).0
    }

    pub(crate) fn draw(seed: u64) -> (Features, Streams) {
        let mut bad_sectors = Random::new(seed ^ BAD_SECTORS);
        let (busy, computing) = computing::draw(seed);
        let mut holding = Random::new(seed ^ HOLDING);
        let snapshots = Random::new(seed ^ SNAPSHOTS);
        let mut restless = Random::new(seed ^ RESTLESS);
        let mut zeroes = Random::new(seed ^ ZEROES);
        let mut compression = Random::new(seed ^ COMPRESSION);
        let features = Features {
            held_back: Random::new(seed ^ HELD_BACK).chance(1, 4),
            bad_sectors: bad_sectors.chance(1, 4),
            bad_pages: bad_sectors.chance(1, 3),
            renewals: true,
            busy,
            holding: holding.chance(1, HOLDING_SEEDS),
            snapshots: Random::new(seed ^ WITH_SNAPSHOTS).chance(1, 3),
            rollbacks: Random::new(seed ^ ROLLBACKS).chance(1, 3),
            zeroes: zeroes.chance(1, 4),
            restless: restless.chance(1, 3),
            compression: compression.chance(1, 3),
        };
        let renewals = Random::new(seed ^ RENEWALS);
        let rewriting = Random::new(seed ^ REWRITING);
        let streams = Streams {
            bad_sectors,
            renewals,
            computing,
            holding,
            snapshots,
            zeroes,
            restless,
            compression,
            rewriting,
        };
        (features, streams)
    }
}

impl fmt::Display for Features {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Features {
            held_back,
            bad_sectors,
            bad_pages,
            renewals,
            busy,
            holding,
            snapshots,
            rollbacks,
            zeroes,
            restless,
            compression,
        } = *self;
        let all = [
            ("held-back", held_back),
            ("bad-sectors", bad_sectors),
            ("bad-pages", bad_pages),
            ("renewals", renewals),
            ("busy", busy),
            ("holding", holding),
            ("snapshots", snapshots),
            ("rollbacks", rollbacks),
            ("zeroes", zeroes),
            ("restless", restless),
            ("compression", compression),
        ];
        let names: Vec<&str> = all.into_iter().filter(|(_, is_on)| *is_on).map(|(name, _)| name).collect();
        match names.is_empty() {
            true => formatter.write_str("none"),
            false => formatter.write_str(&names.join(" ")),
        }
    }
}

impl FromStr for Features {
    type Err = String;

    fn from_str(text: &str) -> Result<Features, String> {
        let mut features = Features::default();
        for name in text.split_whitespace() {
            match name {
                "none" => {}
                "held-back" => features.held_back = true,
                "bad-sectors" => features.bad_sectors = true,
                "bad-pages" => features.bad_pages = true,
                "renewals" => features.renewals = true,
                "busy" => features.busy = true,
                "holding" => features.holding = true,
                "snapshots" => features.snapshots = true,
                "rollbacks" => features.rollbacks = true,
                "zeroes" => features.zeroes = true,
                "restless" => features.restless = true,
                "compression" => features.compression = true,
                other => return Err(format!("one host has no feature `{other}`")),
            }
        }
        Ok(features)
    }
}
