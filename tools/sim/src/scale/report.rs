//! What was measured, for people and for programs.

use super::directory::{Traffic, Writes};
use super::measured::{Moments, Report, Span, Times};
use std::fmt;
use std::time::Duration;

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

impl Traffic {
    /// All writes.
    pub fn total(&self) -> Writes {
        let all = [self.disks, self.names, self.hosts, self.beats, self.clock];
        Writes {
            count: all.iter().map(|writes| writes.count).sum(),
            bytes: all.iter().map(|writes| writes.bytes).sum(),
        }
    }

    fn json(&self) -> String {
        let writes = |name: &str, writes: Writes| {
            format!("\"{name}_writes\":{},\"{name}_bytes\":{}", writes.count, writes.bytes)
        };
        format!(
            "{{{},{},{},{},{},\"conflicts\":{},\"heartbeat_bytes_read\":{}}}",
            writes("disk", self.disks),
            writes("name", self.names),
            writes("host", self.hosts),
            writes("heartbeat", self.beats),
            writes("clock", self.clock),
            self.conflicts,
            self.beats_read
        )
    }
}

impl fmt::Display for Traffic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds = [
            ("of disks", self.disks),
            ("of names", self.names),
            ("of hosts", self.hosts),
            ("of heartbeats", self.beats),
            ("of the clock", self.clock),
        ];
        let mut is_first = true;
        for (kind, writes) in kinds.iter().filter(|(_, writes)| writes.count > 0) {
            let comma = if is_first { "" } else { ", " };
            is_first = false;
            write!(f, "{comma}{} {kind} ({} bytes)", writes.count, writes.bytes)?;
        }
        if is_first { f.write_str("none") } else { Ok(()) }
    }
}

impl Times {
    fn json(&self) -> String {
        format!(
            "{{\"count\":{},\"mean_ms\":{:.3},\"p50_ms\":{:.3},\"p99_ms\":{:.3},\"max_ms\":{:.3}}}",
            self.count(),
            milliseconds(self.mean()),
            milliseconds(self.percentile(50)),
            milliseconds(self.percentile(99)),
            milliseconds(self.max())
        )
    }
}

impl fmt::Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "mean {:.2} ms, p50 {:.2}, p99 {:.2}, most {:.2} ({} times)",
            milliseconds(self.mean()),
            milliseconds(self.percentile(50)),
            milliseconds(self.percentile(99)),
            milliseconds(self.max()),
            self.count()
        )
    }
}

impl Moments {
    fn json(&self) -> String {
        format!(
            "{{\"count\":{},\"first_s\":{:.3},\"last_s\":{:.3}}}",
            self.count,
            seconds(self.first_ns),
            seconds(self.last_ns)
        )
    }
}

impl fmt::Display for Moments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.count {
            0 => f.write_str("never"),
            count => {
                write!(f, "after {:.2} to {:.2} s ({count})", seconds(self.first_ns), seconds(self.last_ns))
            }
        }
    }
}

impl Span {
    fn json(&self) -> String {
        format!(
            "{{\"virtual_s\":{:.3},\"traffic\":{},\"decide\":{},\"decide_and_balance\":{}}}",
            seconds(self.virtual_ns),
            self.traffic.json(),
            self.decide.json(),
            self.balance.json()
        )
    }
}

impl Report {
    /// All figures as one JSON object.
    pub fn json(&self) -> String {
        let memory = |memory: Option<(usize, usize)>| {
            memory.map_or("null".to_owned(), |(mean, max)| {
                format!("{{\"mean_bytes\":{mean},\"max_bytes\":{max}}}")
            })
        };
        let failure = &self.failure;
        let told = [
            ("creation", self.creation.json()),
            ("opening", self.opening.json()),
            ("place", self.place.json()),
            ("place_full", self.place_full.json()),
            ("idle", self.idle.json()),
            ("memory_idle", memory(self.memory)),
            ("memory_repairing", memory(self.memory_repairing)),
            ("suspect", failure.suspect.json()),
            ("away", failure.away.json()),
            ("shrunk", failure.shrunk.json()),
            ("claimed", failure.claimed.json()),
            ("stood_in", failure.stood_in.json()),
            ("planned", failure.planned.json()),
            ("replaced", failure.replaced.json()),
            ("failure", failure.span.json()),
            ("before_delay", failure.before_delay.json()),
            ("after", failure.after.json()),
        ];
        let told: Vec<String> = told.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
        format!(
            "{{\"hosts\":{},\"disks\":{},\"components\":{},\"delay_s\":{:.3},\"fill_s\":{:.3},\"affected_components\":{},\
             \"affected_disks\":{},\"owned_disks\":{},\"plans_max\":{},\"coming_max\":{},\"objections\":{},{}}}",
            self.hosts,
            self.disks,
            self.components,
            seconds(self.delay_ns),
            seconds(self.fill_ns),
            failure.components,
            failure.disks,
            failure.owned,
            failure.plans_max,
            failure.coming_max,
            failure.objections,
            told.join(",")
        )
    }

    fn memory_text(&self) -> String {
        let text = |memory: Option<(usize, usize)>| match memory {
            Some((mean, max)) => format!("{:.1} MiB, at most {:.1}", mebibytes(mean), mebibytes(max)),
            None => "not known".to_owned(),
        };
        format!("{}; during repairs {}", text(self.memory), text(self.memory_repairing))
    }
}

fn mebibytes(bytes: usize) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (failure, delay) = (&self.failure, seconds(self.delay_ns));
        let per = |bytes: u64, count: usize| bytes as f64 / count.max(1) as f64;
        writeln!(f, "{} hosts, {} disks, {} components", self.hosts, self.disks, self.components)?;
        writeln!(f, "made:          writes {}", self.creation)?;
        let disk = self.creation.disks.bytes + self.creation.names.bytes;
        writeln!(
            f,
            "               per disk {:.0} bytes in {:.1} transactions",
            per(disk, self.disks),
            per(self.creation.disks.count, self.disks)
        )?;
        writeln!(f, "first owners:  writes {}", self.opening)?;
        writeln!(f, "placing one:   {}", self.place)?;
        writeln!(f, "  all made:    {}", self.place_full)?;
        writeln!(f, "memory a host: {}", self.memory_text())?;
        let idle = &self.idle;
        writeln!(f, "idle {:.0} s:     writes {}", seconds(idle.virtual_ns), idle.traffic)?;
        let read = per(idle.traffic.beats_read, 1) / seconds(idle.virtual_ns).max(1e-9);
        writeln!(f, "               heartbeats read: {read:.0} bytes a second by all hosts")?;
        writeln!(f, "  decide:      {}", idle.decide)?;
        writeln!(f, "  and balance: {}", idle.balance)?;
        writeln!(
            f,
            "a host lost:   {} components of {} disks; it owned {} disks",
            failure.components, failure.disks, failure.owned
        )?;
        writeln!(f, "  suspect:     {}", failure.suspect)?;
        writeln!(f, "  away:        {}", failure.away)?;
        writeln!(f, "  taken out:   {}", failure.shrunk)?;
        writeln!(f, "  own. claimed: {}", failure.claimed)?;
        writeln!(f, "  stood in:    {}", failure.stood_in)?;
        writeln!(f, "  planned:     {}; a repair delay of {delay:.0} s is in it", failure.planned)?;
        writeln!(
            f,
            "               each {} times at most, {} at once",
            failure.plans_max, failure.coming_max
        )?;
        let fill = seconds(self.fill_ns);
        writeln!(f, "  replaced:    {}; to fill one takes {fill:.1} s", failure.replaced)?;
        let traffic = &failure.span.traffic;
        writeln!(f, "  writes:      {traffic}")?;
        writeln!(f, "  before delay: {}", failure.before_delay)?;
        writeln!(
            f,
            "               per affected disk {:.1} writes of its record, {:.0} bytes; {} conflicts, {} came too late",
            per(traffic.disks.count, failure.disks),
            per(traffic.disks.bytes, failure.disks),
            traffic.conflicts,
            failure.objections
        )?;
        writeln!(f, "  decide:      {}", failure.span.decide)?;
        writeln!(f, "  and balance: {}", failure.span.balance)?;
        write!(f, "10 s after:    writes {}", failure.after)
    }
}
