//! What a disk's I/O is like, in words and small tables.

use base::units::format_bytes;
use statistics::words::{counted, number, percent, rate};

use crate::analysis::Profile;
use crate::event::Action;
use crate::surface::duration;

use super::table::table;

/// Sizes that are listed.
const SIZES: usize = 8;

/// What a disk's I/O is like.
pub fn profile(profile: &Profile) -> String {
    let mut text =
        format!("{}: {} in {} s\n", profile.name, counted(profile.ios, "I/O"), number(profile.seconds));
    mix(profile, &mut text);
    places(profile, &mut text);
    memory(profile, &mut text);
    time(profile, &mut text);
    text
}

fn add(text: &mut String, name: &str, value: &str) {
    *text += &format!("  {name:<22} {value}\n");
}

fn mix(profile: &Profile, text: &mut String) {
    let mix = &profile.mix;
    let (reads, bytes) = (percent(mix.read_share()), percent(mix.read_byte_share()));
    add(text, "reads", &format!("{reads} of the I/Os, {bytes} of the bytes"));
    if mix.trims + mix.flushes > 0 {
        add(text, "trims, flushes", &format!("{}, {}", mix.trims, mix.flushes));
    }
    let all = profile.ios.max(1) as f64;
    let mut rows = vec![["size", "", "I/Os", "random"].map(str::to_owned).to_vec()];
    rows.extend(mix.sizes.iter().take(SIZES).map(|size| {
        let what = if size.action == Action::Write { "writes" } else { "reads" };
        let random = percent(size.random as f64 / size.count.max(1) as f64);
        vec![format_bytes(size.bytes), what.to_owned(), percent(size.count as f64 / all), random]
    }));
    *text += &table(&rows);
    if mix.sizes.len() > SIZES {
        *text += &format!("  and {}\n", counted(mix.sizes.len() - SIZES, "more size"));
    }
    let misaligned =
        format!("{} to 4 KiB, {} to 64 KiB", percent(mix.misaligned_4k), percent(mix.misaligned_64k));
    add(text, "misaligned", &misaligned);
}

fn places(profile: &Profile, text: &mut String) {
    let found = &profile.sequentiality;
    let shares = format!(
        "{} continue the last I/O, {} one of the last 16, {} one of the last 32",
        percent(found.after_last),
        percent(found.after_last_16),
        percent(found.after_last_32)
    );
    add(text, "sequential", &shares);
    if found.in_streams > 0.05 {
        let streams = format!(
            "{} of the I/Os, in {} interleaved streams",
            percent(found.in_streams),
            number(found.streams)
        );
        add(text, "streams", &streams);
    }
    let heat = &profile.heat;
    let hottest = heat.lorenz.iter().find(|(share, _)| *share == 0.10);
    let hottest = hottest.map_or(String::new(), |(_, ios)| {
        format!(", the hottest 10 % receive {} of the I/Os", percent(*ios))
    });
    add(
        text,
        "hot spots",
        &format!("Gini coefficient {:.2} over regions of {}{hottest}", heat.gini, format_bytes(heat.region)),
    );
    if let Some(theta) = heat.zipf {
        let meaning = if theta < 0.2 { ": no skew" } else { "" };
        add(text, "Zipf", &format!("theta {theta:.2}{meaning}"));
    }
}

fn memory(profile: &Profile, text: &mut String) {
    let set = &profile.working_set;
    let written =
        format!("{}, of which {} written", format_bytes(set.bytes), format_bytes(set.bytes_written));
    add(text, "working set", &written);
    if let (Some(most), true) = (set.windows.iter().max(), set.windows.len() > 1) {
        let mean = set.windows.iter().sum::<u64>() / set.windows.len() as u64;
        let seconds = number(set.window_s);
        add(
            text,
            &format!("in {seconds} s"),
            &format!("{} on average, {} at most", format_bytes(mean), format_bytes(*most)),
        );
    }
    let sizes: Vec<String> = [80, 90, 95]
        .iter()
        .zip(profile.reuse.for_hits)
        .map(|(hits, bytes)| match bytes {
            Some(bytes) => format!("{} for {hits} % hits", format_bytes(bytes)),
            None => format!("none for {hits} % hits"),
        })
        .collect();
    add(
        text,
        "LRU cache size",
        &format!("{} ({} of accesses are the first)", sizes.join(", "), percent(profile.reuse.cold)),
    );
    let again = &profile.overwrites;
    if again.share > 0.0 {
        let soon = again.median_s.map_or(String::new(), |seconds| {
            format!(", half of them within {}", duration((seconds * 1e9) as u64))
        });
        add(text, "overwritten", &format!("{} of written blocks{soon}", percent(again.share)));
    }
}

fn time(profile: &Profile, text: &mut String) {
    let found = &profile.burstiness;
    if let Some(seconds) = found.interarrival_s.filter(|seconds| *seconds > 0.0) {
        let variation = found.interarrival_variation.map_or(String::new(), |variation| {
            format!(
                ", coefficient of variation of interarrival times {} (random arrivals: 1)",
                number(variation)
            )
        });
        add(text, "pace", &format!("{} IOPS{variation}", rate(1.0 / seconds)));
    }
    let at = |wanted: f64| found.dispersion.iter().find(|(seconds, _)| *seconds >= wanted);
    let scales: Vec<String> = [0.01, 1.0, 60.0]
        .into_iter()
        .filter_map(at)
        .map(|(seconds, dispersion)| format!("{} at {} s", number(*dispersion), number(*seconds)))
        .collect();
    if !scales.is_empty() {
        add(text, "index of dispersion", &format!("{} (random arrivals: 1)", scales.join(", ")));
    }
    if let Some(second) = found.peak_second {
        let minute = found
            .peak_minute
            .map_or(String::new(), |minute| format!(", {} in the busiest minute", number(minute)));
        add(text, "peak to mean", &format!("{} in the busiest second{minute}", number(second)));
    }
    if let Some(bursts) = found.bursts {
        let pause = duration((bursts.pause_s * 1e9) as u64);
        add(text, "bursts", &format!("{} I/Os each, pauses of {pause}", number(bursts.ios)));
    }
    if let Some(outstanding) = profile.outstanding {
        let (mean, found) = (number(outstanding.mean), number(outstanding.at_arrival));
        add(
            text,
            "outstanding",
            &format!(
                "{mean} on average over time, {found} at arrival of an I/O, {} at most",
                outstanding.most
            ),
        );
    }
}
