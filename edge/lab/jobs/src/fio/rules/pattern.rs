//! Which I/Os a job does: directions, sizes, places.

use super::Rule;
use crate::error::Fault;
use crate::findings::{Findings, unsupported};
use crate::fio::job::{Job, Jump, Mode, READ, TRIM, WRITE};
use crate::fio::value::Value;
use crate::limits;
use plan::{Distribution, Extent, NoteKind, Zone};

pub(super) const RULES: &[Rule] = &[
    Rule::carried(
        "rw",
        "Reads, writes, trims, random or sequential. `:N` is N I/Os between seeks, or a gap behind sequential I/Os.",
        mode,
    )
    .or(&["readwrite"]),
    Rule::refused(
        "rw_sequencer",
        "`identical` repeats an offset, which a plan cannot say. Leave the option out for `sequential`.",
    ),
    Rule::carried("bs", "Block size, for reads, writes and trims.", |job, value, _| {
        value.triple(block).map(|sizes| set(&mut job.block, sizes))
    })
    .or(&["blocksize"]),
    Rule::carried(
        "bsrange",
        "Block sizes from the smallest to the largest, in multiples of the smallest.",
        |job, value, _| {
            let ranges = value.triple(range)?;
            for (slot, range) in job.range.iter_mut().zip(ranges) {
                *slot = range.or(*slot);
            }
            Ok(())
        },
    )
    .or(&["blocksize_range"]),
    Rule::carried("bssplit", "Mix of block sizes with percentages, for each direction.", |job, value, findings| {
        job.split = Some(split(value, findings)?);
        Ok(())
    }),
    Rule::carried(
        "bs_unaligned",
        "Sizes of a range need not be multiples of the smallest.",
        |job, value, _| {
            job.range_unaligned = value.switch()?;
            Ok(())
        },
    )
    .or(&["blocksize_unaligned"])
    .alone(),
    Rule::refused(
        "bs_is_seq_rand",
        "Block sizes of sequential and random I/Os of one job. Write two jobs, one sequential and one random.",
    ),
    Rule::carried("ba", "Alignment of random offsets.", |job, value, _| {
        let aligns = value.triple(block)?;
        for (slot, align) in job.align.iter_mut().zip(aligns) {
            *slot = align.or(*slot);
        }
        Ok(())
    })
    .or(&["blockalign"]),
    Rule::carried("rwmixread", "Percentage of reads in a mix.", |job, value, _| {
        value.whole(0, 100).map(|percent| job.mix_read = percent as f64)
    }),
    Rule::carried("rwmixwrite", "Percentage of writes in a mix.", |job, value, _| {
        value.whole(0, 100).map(|percent| job.mix_read = 100.0 - percent as f64)
    }),
    Rule::carried("percentage_random", "Percentage of random I/Os in a random job.", |job, value, _| {
        let percents = value.triple(|part| part.whole(0, 100))?;
        set(&mut job.random_percent, percents.map(|one| one.map(|percent| percent as f64)));
        Ok(())
    }),
    Rule::carried(
        "random_distribution",
        "Distribution of random offsets: uniform, zipf, pareto, normal, zoned, zoned_abs.",
        |job, value, _| distribution(value).map(|found| job.distribution = found),
    ),
    Rule::refused("num_range", "Several ranges in one trim. Leave the option out."),
    Rule::refused("sprandom", "Preconditioning by its own sequence. Write a stage of random writes."),
    Rule::noted("spr_num_regions", "Part of `sprandom`.").or(&["spr_cs", "spr_op"]),
    Rule::noted("random_sequence_stride", "Part of `random_distribution=sequence`."),
    Rule::noted("rwmixcycle", "fio has removed the option and ignores it.").or(&["percentage_sequential"]),
    Rule::carried("norandommap", "Random I/Os may repeat a block before all others were visited.", |job, value, _| {
        value.switch().map(|on| job.each_once = !on)
    })
    .alone(),
    Rule::noted("softrandommap", "Goes on without a map of blocks if memory is short. The lab needs no map."),
    Rule::noted("random_generator", "Random generator of offsets. The lab has its own."),
    Rule::carried("randrepeat", "The same I/Os in every run.", repeatable),
    Rule::carried("allrandrepeat", "The same I/Os in every run, for all random generators.", repeatable),
    Rule::carried("randseed", "Random seed.", |job, value, _| value.bytes().map(|seed| job.seed = Some(seed))),
];

fn repeatable(job: &mut Job, value: &Value, _: &mut Findings) -> Result<(), Fault> {
    value.boolean().map(|on| job.repeatable = on)
}

/// `rw=`, with what follows a colon.
fn mode(job: &mut Job, value: &Value, findings: &mut Findings) -> Result<(), Fault> {
    let (word, jump) = match value.text.split_once(':') {
        Some((word, jump)) => (word.to_owned(), Some(jump.to_owned())),
        None => (value.text.clone(), None),
    };
    let of = |read, write, trim, random| Mode { read, write, trim, random };
    if matches!(word.as_str(), "trimwrite" | "randtrimwrite") {
        return Err(unsupported(
            &value.place,
            format!("`{}` trims each block and then writes it", value.shown()),
            "write two jobs, one of trims and one of writes",
        ));
    }
    let word = Value { text: word, ..value.clone() };
    job.mode = word.one_of(&[
        ("read", of(true, false, false, false)),
        ("write", of(false, true, false, false)),
        ("trim", of(false, false, true, false)),
        ("randread", of(true, false, false, true)),
        ("randwrite", of(false, true, false, true)),
        ("randtrim", of(false, false, true, true)),
        ("rw", of(true, true, false, false)),
        ("readwrite", of(true, true, false, false)),
        ("randrw", of(true, true, false, true)),
    ])?;
    job.jump = Jump::None;
    let Some(jump) = jump else { return Ok(()) };
    if job.mode.random {
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
        job.jump = if every > 1 { Jump::Every(every) } else { Jump::None };
        return Ok(());
    }
    let (sign, number) = jump.strip_prefix('-').map_or((1, jump.as_str()), |rest| (-1, rest));
    let bytes = i64::try_from(value.part(number).bytes()?).expect("sizes fit 63 bits");
    job.jump = if bytes == 0 { Jump::None } else { Jump::Gap(sign * bytes) };
    Ok(())
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
        ("sequence", 6),
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
        5 => zones(value, rest, |value| value.bytes().map(Extent::Bytes)),
        _ => Err(unsupported(
            &value.place,
            format!("`{}` is a list of blocks in their order", value.shown()),
            "write random_distribution=zoned, or a job for each block",
        )),
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
