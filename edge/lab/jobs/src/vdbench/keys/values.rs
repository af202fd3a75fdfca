//! Values that are more than a number: flags, parts of a device, sizes, seeks, rates and arrivals.

use crate::error::Fault;
use crate::findings::{Findings, unsupported};
use crate::limits;
use crate::vdbench::lex::Parameter;
use crate::vdbench::settings::{Flags, Goal, Part, Seek, Transfer};
use plan::{Arrivals, NoteKind, WriteThrough};

impl Parameter {
    /// How many times smaller the data gets, at least 1.
    pub(in crate::vdbench) fn ratio_of(&self, text: &str) -> Result<f64, Fault> {
        let ratio = self.float_of(text)?;
        if ratio >= 1.0 {
            return Ok(ratio);
        }
        Err(self.refused("Vdbench expects the n of n:1, at least 1", "write 2 for 2:1"))
    }

    /// `openflags=`.
    pub(super) fn flags(&self, findings: &mut Findings) -> Result<Flags, Fault> {
        let mut flags = Flags::default();
        for value in &self.values {
            match value.to_ascii_lowercase().as_str() {
                "o_direct" | "directio" => flags.direct = true,
                "o_sync" => flags.through = WriteThrough::All,
                "o_dsync" => flags.through = WriteThrough::Data,
                "fsync" => flags.flush_end = true,
                "directio_off" | "none" => flags.direct = false,
                "o_rsync" | "fadvise" | "clear_cache" => {
                    let text = format!("{value} is not carried over");
                    findings.note(NoteKind::NotCarried, &self.place, "openflags", text);
                }
                _ => {
                    return Err(self.refused(
                        "Vdbench does not know the flag",
                        "write o_direct, directio, o_sync, o_dsync or fsync",
                    ));
                }
            }
        }
        Ok(flags)
    }

    /// `range=`: both ends in percent, or both in bytes.
    pub(super) fn part(&self) -> Result<Part, Fault> {
        let [low, high] = self.values.as_slice() else {
            return Err(self.refused("Vdbench expects two values", "write range=(0,50)"));
        };
        let percent = |text: &str| {
            text.trim_end_matches('%').parse::<f64>().ok().filter(|value| (0.0..=200.0).contains(value))
        };
        match (percent(low), percent(high)) {
            (Some(low), Some(high)) if high > 100.0 => Err(unsupported(
                &self.place,
                format!("`{}` wraps around at the end of the device", self.shown()),
                format!("write two workloads, range=({low},100) and range=(0,{})", high - 100.0),
            )),
            (Some(low), Some(high)) if low < high => Ok(Part::Percent(low, high)),
            (Some(0.0) | None, None) => match (self.bytes_of(low)?, self.bytes_of(high)?) {
                (low, high) if low < high => Ok(Part::Bytes(low, high)),
                _ => Err(self.refused("Vdbench expects low and high", "write the lower value first")),
            },
            _ => Err(self.refused("Vdbench expects low and high", "write range=(0,50), or both in bytes")),
        }
    }

    /// `xfersize=`: one size, pairs of size and percent, or smallest, largest and alignment.
    pub(super) fn transfer(&self) -> Result<Transfer, Fault> {
        match self.values.as_slice() {
            [size] => Ok(Transfer::Mix(vec![(self.block_of(size)?, 100.0)])),
            [min, max, step] => {
                let (min, max, step) = (self.block_of(min)?, self.block_of(max)?, self.block_of(step)?);
                if min >= max || step % 512 != 0 {
                    return Err(
                        self.refused("Vdbench expects (smallest,largest,alignment)", "write (4k,64k,4k)")
                    );
                }
                Ok(Transfer::Range { min, max, step })
            }
            values if values.len() % 2 == 0 && values.len() <= 2 * limits::MIX_LINES_MAX => {
                let mut mix = Vec::new();
                for pair in values.chunks(2) {
                    mix.push((self.block_of(&pair[0])?, self.percent_of(&pair[1])?));
                }
                let sum: f64 = mix.iter().map(|(_, percent)| percent).sum();
                if sum.round() != 100.0 {
                    return Err(self.refused(
                        format!("Vdbench expects percentages that total 100; these total {sum}"),
                        "correct the percentages",
                    ));
                }
                mix.retain(|&(_, percent)| percent > 0.0);
                Ok(Transfer::Mix(mix))
            }
            _ => Err(self.refused("Vdbench expects a size, pairs, or three values", "write (4k,50,8k,50)")),
        }
    }

    /// One value of `seekpct=`.
    pub(super) fn seek_of(&self, text: &str, findings: &mut Findings) -> Result<Seek, Fault> {
        let (random, stops) = match text.to_ascii_lowercase().as_str() {
            "rand" | "random" => (100.0, false),
            "seq" | "sequential" | "same" => (0.0, false),
            "seqnz" => {
                let text =
                    "Vdbench starts this sequential I/O at an offset above 0; the lab starts at offset 0";
                findings.note(NoteKind::Changed, &self.place, "seekpct", text);
                (0.0, false)
            }
            "eof" | "-1" => (0.0, true),
            "poisson" => {
                return Err(unsupported(
                    &self.place,
                    "`seekpct=poisson`",
                    "write seekpct=100, or zones as workloads with range= and skew=",
                ));
            }
            _ => (self.percent_of(text)?, false),
        };
        Ok(Seek { random, stops })
    }

    /// `iorate=`.
    pub(super) fn goals(&self) -> Result<Vec<Goal>, Fault> {
        let word = |value: &String| match value.to_ascii_lowercase().as_str() {
            "max" => Some(Goal::Max),
            "curve" => Some(Goal::Curve),
            _ => None,
        };
        let goal = |value: &String| match word(value) {
            Some(goal) => Ok(goal),
            None if value.contains('-') => Err(self
                .refused("Vdbench allows a range only without other values", "write the rates one by one")),
            None => self.bytes_of(value).map(|number| Goal::Iops(number as f64)),
        };
        let goals: Vec<Goal> = match self.values.iter().any(|value| word(value).is_some()) {
            true => self.values.iter().map(goal).collect::<Result<_, _>>()?,
            false => self.numbers()?.into_iter().map(|number| Goal::Iops(number as f64)).collect(),
        };
        if goals.is_empty() || goals.contains(&Goal::Iops(0.0)) {
            return Err(self.refused("Vdbench expects a rate above 0", "write iorate=max or a number"));
        }
        if goals.len() > 1 && goals.contains(&Goal::Curve) {
            return Err(self.refused("Vdbench allows curve only without other values", "write iorate=curve"));
        }
        Ok(goals)
    }

    /// `distribution=`.
    pub(super) fn arrivals(&self, findings: &mut Findings) -> Result<Arrivals, Fault> {
        let text = self.values.first().map(|value| value.to_ascii_lowercase()).unwrap_or_default();
        let starts = |word: &str| !text.is_empty() && word.starts_with(&text);
        if starts("uniform") {
            let text = "uniformly distributed intervals become exponentially distributed intervals";
            findings.note(NoteKind::Changed, &self.place, "distribution", text);
        }
        if starts("exponential") || starts("uniform") {
            return Ok(Arrivals::Poisson);
        }
        if starts("deterministic") {
            return Ok(Arrivals::Even);
        }
        Err(self.refused(
            "Vdbench expects exponential, uniform or deterministic",
            "write distribution=exponential",
        ))
    }
}
