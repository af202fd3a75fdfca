//! What each carried option sets in a job.

use super::job::{Job, Jump, Mode, READ, TRIM, WRITE};
use super::value::Value;
use crate::error::Fault;
use crate::findings::{Findings, unsupported};
use crate::keys::Key;
use crate::limits;
use plan::{Distribution, Extent, NoteKind, Steady, SteadyOf, Verify, VerifyWhen, WriteThrough, Zone};

/// Engines that the plan has an engine for.
const ENGINES: &[&str] = &[
    "io_uring",
    "libaio",
    "psync",
    "sync",
    "pvsync",
    "pvsync2",
    "vsync",
    "mmap",
    "posixaio",
    "windowsaio",
    "solarisaio",
    "nbd",
];

/// Engines of fio that read and write blocks of something that the lab does not reach by itself, and what does the same on the
/// target that stands for it: with the depth of the job, or one I/O at a time.
const ENGINES_OF_OTHER_STORES: &[(&str, &str)] = &[
    ("null", "io_uring"),
    ("io_uring_cmd", "io_uring"),
    ("sg", "io_uring"),
    ("rbd", "io_uring"),
    ("rados", "io_uring"),
    ("gfapi_async", "io_uring"),
    ("libiscsi", "io_uring"),
    ("nfs", "io_uring"),
    ("xnvme", "io_uring"),
    ("libblkio", "io_uring"),
    ("dfs", "io_uring"),
    ("ime_aio", "io_uring"),
    ("guasi", "io_uring"),
    ("syslet-rw", "io_uring"),
    ("http", "psync"),
    ("gfapi", "psync"),
    ("libhdfs", "psync"),
    ("mtd", "psync"),
    ("pmemblk", "psync"),
    ("dev-dax", "psync"),
    ("libpmem", "psync"),
    ("libpmem2", "psync"),
    ("ime_psync", "psync"),
    ("ime_psyncv", "psync"),
    ("libcufile", "psync"),
];

/// Engines of fio that do something else than to read and write blocks.
const ENGINES_OF_FIO_ALONE: &[&str] = &[
    "net",
    "netsplice",
    "splice",
    "cpuio",
    "rdma",
    "falloc",
    "ftruncate",
    "e4defrag",
    "filecreate",
    "filestat",
    "filedelete",
    "dircreate",
    "dirstat",
    "dirdelete",
    "exec",
    "librpma_apm_client",
    "librpma_apm_server",
    "librpma_gpspm_client",
    "librpma_gpspm_server",
    "external",
];

type Done = Option<Result<(), Fault>>;

impl Job {
    /// Sets what a carried option says.
    pub(crate) fn apply(
        &mut self,
        key: &'static Key,
        value: &Value,
        findings: &mut Findings,
    ) -> Result<(), Fault> {
        let name = key.name;
        self.apply_shape(name, value, findings)
            .or_else(|| self.apply_random(name, value))
            .or_else(|| self.apply_engine(name, value, findings))
            .or_else(|| self.apply_place(name, value, findings))
            .or_else(|| self.apply_time(name, value, findings))
            .or_else(|| self.apply_pace(name, value, findings))
            .or_else(|| self.apply_data(name, value, findings))
            .or_else(|| self.apply_verify(name, value, findings))
            .or_else(|| self.apply_goal(name, value))
            .unwrap_or_else(|| {
                Err(unsupported(
                    &value.place,
                    format!("`{}`", value.shown()),
                    "take it out: nothing reads it",
                ))
            })
    }

    fn apply_shape(&mut self, name: &str, value: &Value, findings: &mut Findings) -> Done {
        Some(match name {
            "rw" => self.set_mode(value, findings),
            "bs" => value.triple(block).map(|sizes| set(&mut self.block, sizes)),
            "bsrange" => value.triple(range).map(|ranges| {
                ranges.iter().zip(&mut self.range).filter(|(range, _)| range.is_some()).for_each(
                    |(range, slot)| {
                        *slot = *range;
                    },
                );
            }),
            "bssplit" => split(value, findings).map(|lists| self.split = Some(lists)),
            "bs_unaligned" => value.switch().map(|on| self.range_unaligned = on),
            "bs_is_seq_rand" => value.boolean().and_then(|on| {
                if on {
                    return Err(unsupported(
                        &value.place,
                        "`bs_is_seq_rand` gives sequential and random I/Os sizes of their own",
                        "write two jobs, one sequential and one random",
                    ));
                }
                Ok(())
            }),
            "ba" => value.triple(block).map(|aligns| {
                for (align, slot) in aligns.into_iter().zip(&mut self.align) {
                    *slot = align.or(*slot);
                }
            }),
            "rwmixread" => value.whole(0, 100).map(|percent| self.mix_read = percent as f64),
            "rwmixwrite" => value.whole(0, 100).map(|percent| self.mix_read = 100.0 - percent as f64),
            _ => return None,
        })
    }

    fn set_mode(&mut self, value: &Value, findings: &mut Findings) -> Result<(), Fault> {
        let (word, jump) = match value.text.split_once(':') {
            Some((word, jump)) => (word.to_owned(), Some(jump.to_owned())),
            None => (value.text.clone(), None),
        };
        let mode = |read, write, trim, random| Mode { read, write, trim, random };
        if matches!(word.as_str(), "trimwrite" | "randtrimwrite") {
            return Err(unsupported(
                &value.place,
                format!("`{}` trims each block and then writes it", value.shown()),
                "write two jobs, one of trims and one of writes",
            ));
        }
        let word = Value { text: word, ..value.clone() };
        self.mode = word.one_of(&[
            ("read", mode(true, false, false, false)),
            ("write", mode(false, true, false, false)),
            ("trim", mode(false, false, true, false)),
            ("randread", mode(true, false, false, true)),
            ("randwrite", mode(false, true, false, true)),
            ("randtrim", mode(false, false, true, true)),
            ("rw", mode(true, true, false, false)),
            ("readwrite", mode(true, true, false, false)),
            ("randrw", mode(true, true, false, true)),
        ])?;
        self.jump = Jump::None;
        let Some(jump) = jump else { return Ok(()) };
        if self.mode.random {
            let digits: String = jump.chars().take_while(char::is_ascii_digit).collect();
            if digits.len() < jump.len() {
                findings.note(
                    NoteKind::Trap,
                    &value.place,
                    "rw",
                    format!("fio reads `:{jump}` up to its first letter that is no digit"),
                );
            }
            let every = value.part(if digits.is_empty() { "1" } else { &digits }).count(1)?;
            self.jump = if every > 1 { Jump::Every(every) } else { Jump::None };
            return Ok(());
        }
        let (sign, number) = jump.strip_prefix('-').map_or((1, jump.as_str()), |rest| (-1, rest));
        let bytes = i64::try_from(value.part(number).bytes()?).expect("sizes fit 63 bits");
        self.jump = if bytes == 0 { Jump::None } else { Jump::Gap(sign * bytes) };
        Ok(())
    }

    fn apply_random(&mut self, name: &str, value: &Value) -> Done {
        Some(match name {
            "percentage_random" => value
                .triple(|part| part.whole(0, 100))
                .map(|percents| set(&mut self.random_percent, percents.map(|one| one.map(|it| it as f64)))),
            "random_distribution" => distribution(value).map(|found| self.distribution = found),
            "norandommap" => value.switch().map(|on| self.each_once = !on),
            "randrepeat" | "allrandrepeat" => value.boolean().map(|on| self.repeatable = on),
            "randseed" => value.bytes().map(|seed| self.seed = Some(seed)),
            _ => return None,
        })
    }

    fn apply_engine(&mut self, name: &str, value: &Value, findings: &mut Findings) -> Done {
        Some(match name {
            "ioengine" => self.set_engine(value, findings),
            "uri" => {
                self.uri = Some(value.text.clone());
                Ok(())
            }
            "iodepth" => value.count(1).map(|depth| self.depth = depth),
            "iodepth_batch" => value.count(0).map(|count| self.batch.submit = count),
            "iodepth_batch_complete_min" => value.count(0).map(|count| {
                if count == 0 {
                    findings.note(
                        NoteKind::Changed,
                        &value.place,
                        "iodepth_batch_complete_min",
                        "fio polls for completions; the lab waits for one",
                    );
                }
                self.batch.complete = count.max(1);
            }),
            "numjobs" => value.count(0).and_then(|count| match count {
                0 => Err(value.refused("fio says `maximum number of jobs reached`", "write numjobs=1")),
                count => {
                    self.count = count;
                    Ok(())
                }
            }),
            "direct" => value.boolean().map(|on| self.direct = Some(on)),
            "buffered" => value.boolean().map(|on| self.direct = Some(!on)),
            "sync" => value
                .one_of(&[
                    ("0", WriteThrough::No),
                    ("none", WriteThrough::No),
                    ("1", WriteThrough::All),
                    ("sync", WriteThrough::All),
                    ("dsync", WriteThrough::Data),
                ])
                .map(|through| self.write_through = through),
            "fsync" => value.count(0).map(|every| self.flush_every = every),
            "fdatasync" => value.count(0).map(|every| self.flush_data_every = every),
            "end_fsync" | "fsync_on_close" => value.boolean().map(|on| self.flush_end |= on),
            _ => return None,
        })
    }

    fn set_engine(&mut self, value: &Value, findings: &mut Findings) -> Result<(), Fault> {
        let word = value.text.split(':').next().unwrap_or_default();
        if let Some(engine) = ENGINES.iter().find(|engine| **engine == word && !value.spaced) {
            self.engine = Some(engine);
            if matches!(*engine, "posixaio" | "windowsaio" | "solarisaio") {
                findings.note(
                    NoteKind::Changed,
                    &value.place,
                    "ioengine",
                    format!("{engine} becomes io_uring, with the same depth"),
                );
            }
            if *engine == "mmap" {
                findings.note(
                    NoteKind::Changed,
                    &value.place,
                    "ioengine",
                    "memory mapping becomes blocking calls through the page cache",
                );
            }
            return Ok(());
        }
        if let Some((_, engine)) = ENGINES_OF_OTHER_STORES.iter().find(|(other, _)| *other == word) {
            self.engine = Some(engine);
            let text = format!(
                "what {word} reaches is not reached by the lab: the I/Os go to the target, by {engine}; name one with --target"
            );
            findings.note(NoteKind::Changed, &value.place, "ioengine", text);
            return Ok(());
        }
        if ENGINES_OF_FIO_ALONE.contains(&word) {
            return Err(unsupported(
                &value.place,
                format!("the engine {word}"),
                "write ioengine=io_uring, libaio or psync, or ioengine=nbd with uri=",
            ));
        }
        let all: Vec<(&str, ())> = ENGINES.iter().map(|engine| (*engine, ())).collect();
        value.one_of(&all)
    }

    fn apply_place(&mut self, name: &str, value: &Value, findings: &mut Findings) -> Done {
        let inverted = matches!(name, "size" | "io_size" | "filesize" | "offset" | "offset_increment")
            && value.is_inverted();
        if inverted {
            let text = format!("fio counts the unit of `{}` by 1000; so does the lab", value.shown());
            findings.note(NoteKind::Trap, &value.place, &value.key, text);
        }
        Some(match name {
            "size" => value.extent().map(|size| self.size = Some(size)),
            "io_size" => value.extent().map(|size| self.io_size = Some(size)),
            "filesize" => self.set_file_size(value, findings),
            "fill_device" => value.boolean().map(|on| self.fill = on),
            "offset" => value.extent().map(|offset| self.offset = offset),
            "offset_increment" => value.extent().map(|step| self.offset_step = step),
            "filename" => {
                if !self.files.is_empty() {
                    let text = format!(
                        "fio adds the files of every filename= (of [global] too): the job goes to {} as well; take one of them out",
                        self.files.join(" and ")
                    );
                    findings.note(NoteKind::Trap, &value.place, "filename", text);
                }
                self.files.extend(listed(&value.text));
                Ok(())
            }
            "number_ios" => value.count(0).map(|count| self.passes.ios = (count > 0).then_some(count)),
            "name" => {
                self.name.clone_from(&value.text);
                Ok(())
            }
            "filename_format" => {
                self.file_format = Some(value.text.clone());
                Ok(())
            }
            "directory" => {
                self.directories = listed(&value.text);
                Ok(())
            }
            "nrfiles" => value.count(0).and_then(|count| match count {
                0 => Err(value.trap("fio starts a job without files, which does nothing", "write nrfiles=1")),
                count => {
                    self.files_count = count;
                    Ok(())
                }
            }),
            "kb_base" => value.one_of(&[("1000", ()), ("1024", ())]),
            "description" => Ok(()),
            _ => return None,
        })
    }

    fn set_file_size(&mut self, value: &Value, findings: &mut Findings) -> Result<(), Fault> {
        let (low, high) = value.text.split_once('-').unwrap_or((&value.text, ""));
        let low = value.part(low).bytes()?;
        let high = if high.is_empty() { low } else { value.part(high).bytes()? };
        if low != high {
            findings.note(
                NoteKind::Changed,
                &value.place,
                "filesize",
                "fio draws a size for each file; all files get the largest",
            );
        }
        self.file_size = Some(low.max(high));
        Ok(())
    }

    fn apply_time(&mut self, name: &str, value: &Value, findings: &mut Findings) -> Done {
        Some(match name {
            "runtime" => value.seconds().map(|time| self.runtime = time),
            "time_based" => value.switch().map(|on| self.time_based = on),
            "ramp_time" => value.seconds().map(|time| self.ramp = time),
            "startdelay" => {
                let (first, range) =
                    value.text.split_once('-').map_or((value.text.as_str(), false), |(low, _)| (low, true));
                if range {
                    findings.note(
                        NoteKind::Changed,
                        &value.place,
                        "startdelay",
                        "fio draws each job's delay from a range; all take the shortest",
                    );
                }
                value.part(first).seconds().map(|time| self.delay = time)
            }
            "loops" => value.count(0).map(|loops| self.passes.count = loops.max(1)),
            "stonewall" => value.switch().map(|on| self.stonewall = on.then(|| value.place.clone())),
            "wait_for" => {
                self.wait_for = Some((value.text.clone(), value.place.clone()));
                Ok(())
            }
            "exitall" => value.switch().map(|on| self.exit_all = on),
            _ => return None,
        })
    }

    fn apply_pace(&mut self, name: &str, value: &Value, findings: &mut Findings) -> Done {
        Some(match name {
            "rate" => value.triple(Value::bytes).map(|rates| {
                if rates.iter().flatten().any(|&rate| rate > 0 && rate < 65_536) {
                    let text =
                        "the rate is bytes per second, less than 64 KiB/s; I/Os per second are rate_iops";
                    findings.note(NoteKind::Trap, &value.place, "rate", text);
                }
                self.rate_bytes = rates.map(|rate| rate.filter(|&rate| rate > 0));
            }),
            "rate_iops" => value
                .triple(Value::bytes)
                .map(|rates| self.rate_iops = rates.map(|rate| rate.filter(|&rate| rate > 0))),
            "rate_process" => {
                value.one_of(&[("linear", false), ("poisson", true)]).map(|on| self.poisson = on)
            }
            "io_submit_mode" => {
                value.one_of(&[("inline", false), ("offload", true)]).map(|on| self.offload = on)
            }
            "thinktime" => value.micros().map(|time| self.think = time),
            "thinktime_spin" => value.micros().map(|time| self.think_spin = time),
            "thinktime_blocks" => value.count(0).map(|count| self.think_after = count.max(1)),
            "flow" => value.whole(0, 1000).map(|flow| self.flow = flow as u32),
            _ => return None,
        })
    }

    fn apply_data(&mut self, name: &str, value: &Value, findings: &mut Findings) -> Done {
        Some(match name {
            "zero_buffers" => value.switch().map(|on| self.zeroes = on),
            "refill_buffers" => value.switch().map(|on| self.refill = on),
            "scramble_buffers" => value.boolean().map(|on| {
                if !on {
                    let text =
                        "fio would write the same random bytes again and again; the lab changes some words";
                    findings.note(NoteKind::Changed, &value.place, "scramble_buffers", text);
                }
            }),
            "buffer_pattern" => pattern(value).map(|bytes| self.pattern = Some(bytes)),
            "buffer_compress_percentage" => value.whole(0, 100).map(|percent| self.compress = percent as u32),
            "buffer_compress_chunk" => value.bytes().map(|unit| self.compress_unit = Some(unit)),
            "dedupe_percentage" => value.whole(0, 100).map(|percent| self.duplicates = percent as u32),
            _ => return None,
        })
    }

    fn apply_verify(&mut self, name: &str, value: &Value, findings: &mut Findings) -> Done {
        const KINDS: &[(&str, bool)] = &[
            ("0", false),
            ("none", false),
            ("1", true),
            ("md5", true),
            ("crc64", true),
            ("crc32", true),
            ("crc32c", true),
            ("crc32c-intel", true),
            ("crc16", true),
            ("crc7", true),
            ("sha256", true),
            ("sha512", true),
            ("sha1", true),
            ("sha3-224", true),
            ("sha3-256", true),
            ("sha3-384", true),
            ("sha3-512", true),
            ("xxhash", true),
            ("meta", true),
            ("pattern", true),
            ("pattern_hdr", true),
            ("null", false),
        ];
        Some(match name {
            "verify" => value.one_of(KINDS).map(|on| {
                self.verification.by_pattern = matches!(value.text.as_str(), "pattern" | "pattern_hdr");
                self.verify = on.then_some(Verify { when: VerifyWhen::After, interval: None, fatal: false });
                if on && value.text != "crc32c" {
                    let text = format!("the lab has checksums of its own in place of {}", value.text);
                    findings.note(NoteKind::Changed, &value.place, "verify", text);
                }
            }),
            "do_verify" => value.boolean().map(|on| self.verification.without_end = !on),
            "verify_interval" => value.bytes().map(|unit| self.verification.interval = Some(unit)),
            "verify_fatal" => value.boolean().map(|on| self.verification.fatal = on),
            "verify_backlog" => value.count(0).map(|count| self.verification.backlog = count),
            "verify_only" => value.switch().map(|on| self.verification.only = on),
            _ => return None,
        })
    }

    fn apply_goal(&mut self, name: &str, value: &Value) -> Done {
        Some(match name {
            "latency_target" => {
                value.micros().map(|time| self.latency_target = Some(time).filter(|time| !time.is_zero()))
            }
            "latency_window" => {
                value.micros().map(|time| self.latency_window = Some(time).filter(|time| !time.is_zero()))
            }
            "latency_percentile" => value.float().and_then(|percent| {
                if percent == 0.0 {
                    return Err(
                        value.trap("fio takes it, and any latency meets it", "write a percentage above 0")
                    );
                }
                if !(percent > 0.0 && percent <= 100.0) {
                    return Err(value.refused("fio takes 0 to 100", "write a percentage above 0"));
                }
                self.latency_percentile = percent;
                Ok(())
            }),
            "steadystate" => steady(value).map(|found| self.steady = Some(found)),
            "steadystate_duration" => value.seconds().map(|time| self.steady_window = time),
            _ => return None,
        })
    }
}

fn block(value: &Value) -> Result<u64, Fault> {
    if let Some((low, high)) = value.text.split_once('-') {
        let found = format!("`{}` looks like a range", value.shown());
        return Err(crate::findings::unit_trap(
            &value.place,
            found,
            format!("fio takes {low} for reads and {high} for writes"),
            format!("write bsrange={low}-{high}"),
        ));
    }
    value.block()
}

fn set<T: Copy>(slots: &mut [T; 3], values: [Option<T>; 3]) {
    for (slot, value) in [READ, WRITE, TRIM].into_iter().zip(values) {
        slots[slot] = value.unwrap_or(slots[slot]);
    }
}

fn range(value: &Value) -> Result<(u64, u64), Fault> {
    let Some((low, high)) = value.text.split_once(['-', ':']) else {
        return Err(value.refused("fio fails to parse a range", "write smallest-largest, as 4k-64k"));
    };
    let (low, high) = (value.part(low).block()?, value.part(high).block()?);
    Ok((low.min(high), low.max(high)))
}

/// `size/percent:size/percent`, a list for each direction behind commas.
fn split(value: &Value, findings: &mut Findings) -> Result<[Vec<(u64, f64)>; 3], Fault> {
    if value.spaced {
        let remedy = format!("write {}={}", value.key, value.text);
        return Err(value.refused("fio loses the units behind white space", remedy));
    }
    let lists: Vec<&str> = value.text.split(',').collect();
    if lists.len() > 3 {
        return Err(value.refused("fio takes at most three lists", "write reads,writes,trims"));
    }
    let mut found: Vec<Vec<(u64, f64)>> = Vec::new();
    for list in &lists {
        found.push(match list.trim() {
            // The direction keeps its bs=.
            "" => Vec::new(),
            list => split_list(&value.part(list), findings)?,
        });
    }
    let last = found.last().cloned().unwrap_or_default();
    found.resize(3, last);
    let [reads, writes, trims] = <[_; 3]>::try_from(found).expect("three lists");
    Ok([reads, writes, trims])
}

fn split_list(value: &Value, findings: &mut Findings) -> Result<Vec<(u64, f64)>, Fault> {
    let mut sizes: Vec<(u64, Option<f64>)> = Vec::new();
    for part in value.text.split(':').filter(|part| !part.is_empty()) {
        let (size, percent) = part.split_once('/').unwrap_or((part, ""));
        let size = value.part(size).block()?;
        let percent = match percent.trim_end_matches('%') {
            "" => None,
            number => Some(value.part(number).float()?),
        };
        if percent.is_some_and(|percent| !(0.0..=100.0).contains(&percent)) {
            return Err(value.refused("fio takes 0 to 100 percent", "write percentages that add up to 100"));
        }
        sizes.push((size, percent));
    }
    if sizes.is_empty() || sizes.len() > limits::MIX_LINES_MAX {
        return Err(value.refused("fio fails to parse it", "write size/percent:size/percent"));
    }
    let sum: f64 = sizes.iter().filter_map(|(_, percent)| *percent).sum();
    let open = sizes.iter().filter(|(_, percent)| percent.is_none()).count();
    let share = if open > 0 { (100.0 - sum).max(0.0) / open as f64 } else { 0.0 };
    let mut filled: Vec<(u64, f64)> =
        sizes.into_iter().map(|(size, percent)| (size, percent.unwrap_or(share))).collect();
    let total: f64 = filled.iter().map(|(_, percent)| percent).sum();
    if (total - 100.0).abs() > 0.01 {
        effective(&mut filled);
        findings.note(
            NoteKind::Trap,
            &value.place,
            "bssplit",
            format!("the percentages add up to {total}: fio takes it, and gives or takes the difference at the end of the list"),
        );
    }
    filled.retain(|&(_, percent)| percent > 0.0);
    if filled.is_empty() {
        return Err(value.refused("fio would draw nothing", "write percentages above 0"));
    }
    Ok(filled)
}

/// What fio draws where percentages do not add up to 100: it goes through the list until the sum reaches its number of 0 to
/// 100, and takes the last size where it never does.
fn effective(sizes: &mut [(u64, f64)]) {
    let mut sum = 0.0;
    for (_, percent) in sizes.iter_mut() {
        *percent = percent.min(100.0 - sum).max(0.0);
        sum += *percent;
    }
    if let Some((_, last)) = sizes.last_mut() {
        *last += 100.0 - sum;
    }
}

fn distribution(value: &Value) -> Result<Distribution, Fault> {
    let mut parts = value.text.splitn(2, ':');
    let kind = value.part(parts.next().unwrap_or_default());
    let rest = parts.next().unwrap_or_default();
    let number = |default: f64| -> Result<(f64, Option<f64>), Fault> {
        let (number, center) = rest.split_once('/').map_or((rest, None), |(one, two)| (one, Some(two)));
        let number = if number.is_empty() { default } else { value.part(number).float()? };
        let center = center.map(|center| value.part(center).float()).transpose()?;
        match center {
            Some(center) if !(0.0..=1.0).contains(&center) => {
                Err(value.trap("fio takes it for a place beyond the span", "write a center of 0 to 1"))
            }
            center => Ok((number, center)),
        }
    };
    let out_of = |tool: &str, remedy: &str| Err(value.refused(tool, remedy));
    match kind.one_of(&[
        ("random", 0),
        ("zipf", 1),
        ("pareto", 2),
        ("normal", 3),
        ("zoned", 4),
        ("zoned_abs", 5),
    ])? {
        0 => Ok(Distribution::Uniform),
        1 => match number(1.1)? {
            (1.0, _) => out_of("fio says `zipf theta must different than 1.0`", "write 0.99 or 1.01"),
            (theta, _) if theta <= 0.0 => out_of("fio takes a theta above 0", "write 1.1"),
            (theta, center) => Ok(Distribution::Zipf { theta, center }),
        },
        2 => match number(0.2)? {
            (h, center) if h > 0.0 && h < 1.0 => Ok(Distribution::Pareto { h, center }),
            _ => out_of("fio says `pareto input out of range (0 < input < 1.0)`", "write 0.2"),
        },
        3 => match number(0.0)? {
            (deviation, center) if deviation > 0.0 && deviation <= 100.0 => {
                Ok(Distribution::Normal { deviation, center })
            }
            _ => out_of("fio takes a deviation of 0 to 100 percent", "write normal:20"),
        },
        4 => zones(value, rest, |value| value.float().map(Extent::Percent)),
        _ => zones(value, rest, |value| value.bytes().map(Extent::Bytes)),
    }
}

/// `ios/length:ios/length`; what is left open shares the rest.
fn zones(
    value: &Value,
    text: &str,
    length: impl Fn(&Value) -> Result<Extent, Fault>,
) -> Result<Distribution, Fault> {
    let mut lists = text.split(',');
    let first = lists.next().unwrap_or_default();
    if lists.any(|list| list != first) {
        return Err(unsupported(
            &value.place,
            "zones of reads differ from those of writes",
            "write one list of zones, or a job for reads and one for writes",
        ));
    }
    let mut open_ios = Vec::new();
    let mut open_lengths = Vec::new();
    let mut zones = Vec::new();
    for (index, part) in first.split(':').filter(|part| !part.is_empty()).enumerate() {
        let (ios, size) = part.split_once('/').unwrap_or((part, ""));
        let ios = match ios.trim() {
            "" => {
                open_ios.push(index);
                0.0
            }
            ios => value.part(ios).float()?,
        };
        let size = match size.trim().trim_end_matches('%') {
            "" => {
                open_lengths.push(index);
                Extent::Percent(0.0)
            }
            size => length(&value.part(size))?,
        };
        zones.push(Zone { ios, length: size });
    }
    if zones.is_empty() || zones.len() > 256 {
        return Err(value.refused("fio takes 1 to 256 zones", "write zoned:ios/size:ios/size"));
    }
    let sum: f64 = zones.iter().map(|zone| zone.ios).sum();
    let lengths: f64 = (zones.iter())
        .map(|zone| if let Extent::Percent(percent) = zone.length { percent } else { 0.0 })
        .sum();
    if sum > 100.01 || lengths > 100.01 || (open_ios.is_empty() && sum < 99.99) {
        return Err(value.refused(
            "fio wants shares of 100 % together, and sizes of at most 100 %",
            format!("the shares add up to {sum} %, the sizes to {lengths} %"),
        ));
    }
    for index in &open_ios {
        zones[*index].ios = (100.0 - sum) / open_ios.len() as f64;
    }
    if !open_lengths.is_empty() && zones.iter().any(|zone| matches!(zone.length, Extent::Bytes(_))) {
        return Err(value.refused(
            "fio says `split conversion failed` of a zone without a size",
            "write its size in bytes, or all sizes in percent with zoned:",
        ));
    }
    for index in &open_lengths {
        zones[*index].length = Extent::Percent((100.0 - lengths) / open_lengths.len() as f64);
    }
    Ok(Distribution::Zoned(zones))
}

/// `"text"`, `0xhex`, a decimal number, or several one behind another.
fn pattern(value: &Value) -> Result<Vec<u8>, Fault> {
    let mut bytes = Vec::new();
    let mut rest = value.text.as_str();
    let bad =
        || value.refused("fio fails to parse the pattern", "write 0x and hexadecimal digits, or \"text\"");
    while !rest.is_empty() {
        if let Some(quoted) = rest.strip_prefix('"') {
            let end = quoted.find('"').ok_or_else(bad)?;
            bytes.extend_from_slice(&quoted.as_bytes()[..end]);
            rest = &quoted[end + 1..];
        } else if let Some(hex) = rest.strip_prefix("0x").or_else(|| rest.strip_prefix("0X")) {
            let end = hex.find(|letter: char| !letter.is_ascii_hexdigit()).unwrap_or(hex.len());
            let digits = if end % 2 == 1 { format!("0{}", &hex[..end]) } else { hex[..end].to_owned() };
            for pair in digits.as_bytes().chunks(2) {
                let pair = std::str::from_utf8(pair).map_err(|_| bad())?;
                bytes.push(u8::from_str_radix(pair, 16).map_err(|_| bad())?);
            }
            if end == 0 {
                return Err(bad());
            }
            rest = &hex[end..];
        } else {
            let end = rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len());
            let number: u64 = rest[..end].parse().map_err(|_| bad())?;
            let long = number.to_le_bytes();
            let used = long.iter().rposition(|&byte| byte != 0).map_or(1, |last| last + 1);
            bytes.extend_from_slice(&long[..used]);
            rest = &rest[end..];
        }
        if bytes.len() > 512 {
            return Err(value.refused("fio takes at most 512 bytes", "write a shorter pattern"));
        }
    }
    if bytes.is_empty() { Err(bad()) } else { Ok(bytes) }
}

/// `iops:5%`, `bw_slope:0.1%`, …
fn steady(value: &Value) -> Result<Steady, Fault> {
    let (kind, limit) = value.text.split_once(':').unwrap_or((&value.text, ""));
    let (of, slope) = value.part(kind).one_of(&[
        ("iops", (SteadyOf::Iops, false)),
        ("iops_slope", (SteadyOf::Iops, true)),
        ("bw", (SteadyOf::Bandwidth, false)),
        ("bw_slope", (SteadyOf::Bandwidth, true)),
        ("lat", (SteadyOf::Latency, false)),
        ("lat_slope", (SteadyOf::Latency, true)),
    ])?;
    let Some(percent) = limit.strip_suffix('%') else {
        return Err(unsupported(
            &value.place,
            format!("`{}` is a limit in absolute numbers", value.shown()),
            "write the limit in percent of the mean, as iops:5%",
        ));
    };
    let limit = value.part(percent).float()?;
    if limit < 0.0 {
        return Err(value.refused("fio takes no limit below 0", "write a percentage"));
    }
    Ok(Steady { of, slope, limit, window: std::time::Duration::ZERO })
}

/// The parts between `:`, where `\:` is a colon of a name.
pub(crate) fn listed(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        let last = parts.last_mut().expect("there is always one");
        match letter {
            '\\' if letters.peek() == Some(&':') => {
                letters.next();
                last.push(':');
            }
            ':' => parts.push(String::new()),
            letter => last.push(letter),
        }
    }
    parts.retain(|part| !part.is_empty());
    parts
}
