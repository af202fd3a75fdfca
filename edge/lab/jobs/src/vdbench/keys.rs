//! Every parameter of Vdbench's raw workloads, and what becomes of it.

use crate::keys::Key;

pub(crate) const GENERAL: &str = "General";
pub(crate) const HD: &str = "hd";
pub(crate) const SD: &str = "sd";
pub(crate) const WD: &str = "wd";
pub(crate) const RD: &str = "rd";

/// Keys may be cut to a prefix of two letters or more that belongs to one of them.
pub(crate) const PARAMETERS: &[Key] = &[
    Key::noted("data_errors", "How many errors end a run; the lab counts all errors.").of(GENERAL),
    Key::noted("messagescan", "Messages of the system.").of(GENERAL),
    Key::carried("compratio", "Original size to compressed size: n to 1.").of(GENERAL).or(&["compression"]),
    Key::carried("dedupratio", "Original size to deduplicated size: n to 1.").of(GENERAL),
    Key::carried("dedupunit", "The unit of it, in bytes.").of(GENERAL),
    Key::noted("dedupsets", "How many different blocks are repeated; the lab repeats any.").of(GENERAL),
    Key::noted("deduphotsets", "Which blocks are repeated more often.").of(GENERAL),
    Key::noted("dedupflipflop", "How repeated blocks change.").of(GENERAL),
    Key::noted("histogram", "Buckets that are printed; the lab keeps fine ones.").of(GENERAL),
    Key::noted("monitor", "A file that ends a run.").of(GENERAL),
    Key::noted("startcmd", "A command before a run; run it yourself.").of(GENERAL),
    Key::noted("endcmd", "A command after a run; run it yourself.").of(GENERAL),
    Key::noted("start_cmd", "A command before a run; run it yourself.").of(GENERAL),
    Key::noted("end_cmd", "A command after a run; run it yourself.").of(GENERAL),
    Key::refused("validate", "Vdbench reads every block before it writes it again; leave it out and add --verify.").of(GENERAL),
    Key::noted("pattern", "A file of data patterns.").of(GENERAL),
    Key::noted("report", "What is reported; the lab reports all.").of(GENERAL),
    Key::refused("concatenatesds", "All devices as one cannot be said in a plan; name them one by one.")
        .of(GENERAL),
    Key::noted("formatxfersize", "The size of I/Os that fill files.").of(GENERAL),
    Key::noted("formatsds", "Files are filled before a run; fill them with the lab.").of(GENERAL),
    Key::noted("create_anchors", "Concerns file systems.").of(GENERAL),
    Key::noted("debug", "For Vdbench's own developers.").of(GENERAL),
    Key::noted("abort_failed_skew", "When a run ends whose skew was not kept.").of(GENERAL),
    Key::noted("ios_per_jvm", "Concerns Java.").of(GENERAL),
    Key::noted("swat", "Concerns a tool of Sun.").of(GENERAL),
    Key::noted("patterns", "A folder of data patterns.").of(GENERAL),
    Key::noted("port", "Ports of Vdbench.").of(GENERAL),
    Key::noted("timeout", "How long Vdbench waits.").of(GENERAL),
    Key::noted("loginuid", "Concerns remote hosts.").of(GENERAL),
    Key::noted("miscellaneous", "Texts for reports.").of(GENERAL),
    Key::carried("hd", "A host, or `default`.").of(HD),
    Key::noted("system", "A host's address; the lab has agents.").of(HD),
    Key::noted("shell", "How Vdbench starts on a host.").of(HD),
    Key::noted("user", "How Vdbench starts on a host.").of(HD),
    Key::noted("vdbench", "Where Vdbench is on a host.").of(HD),
    Key::noted("jvms", "Java machines of a host.").of(HD),
    Key::noted("clients", "Clients of a host; make virtual machines of the plan.").of(HD),
    Key::noted("mount", "A file system that is mounted.").of(HD),
    Key::carried("sd", "A storage definition, or `default` for those below.").of(SD),
    Key::carried("lun", "A device or file.").of(SD),
    Key::carried("host", "The hosts that have it, in pairs with lun=; all of them by default.").of(SD).or(&["hd"]),
    Key::carried("size", "How much of it is used; a file is made so large.").of(SD),
    Key::carried("openflags", "o_direct, directio, o_sync, o_dsync, fsync.").of(SD),
    Key::carried("threads", "I/Os outstanding; 8 by default.").of(SD),
    Key::carried("range", "The part that is used, in percent or (above 200) bytes.").of(SD),
    Key::carried("hitarea", "The size of the area for hits; 1m by default.").of(SD),
    Key::carried("offset", "Where the device begins, in bytes.").of(SD),
    Key::carried("align", "Random offsets are multiples of it.").of(SD),
    Key::carried("count", "So many definitions of one line: (first,count).").of(SD),
    Key::refused("streams", "Vdbench moved it to the workload definition; write a workload with range= for each stream.").of(SD),
    Key::refused("replay", "A recorded trace is no job: capture it with the lens.").of(SD),
    Key::noted("journal", "A journal for validation.").of(SD),
    Key::noted("journal_max", "A journal for validation.").of(SD),
    Key::refused("resetbus", "Resets of a bus during the run; leave it out.").of(SD),
    Key::refused("resetlun", "Resets of a device during the run; leave it out.").of(SD),
    Key::noted("instance", "A name for reports.").of(SD),
    Key::refused("dedupratio", "Of one device; write it among the general parameters.").of(SD),
    Key::refused("dedupsets", "Of one device; write it among the general parameters.").of(SD),
    Key::refused("dedupunit", "Of one device; write it among the general parameters.").of(SD),
    Key::carried("wd", "A workload definition, or `default` for those below.").of(WD),
    Key::carried("sd", "Its storage definitions: names, ranges of names, wildcards.").of(WD),
    Key::carried("host", "The hosts that run it; all of them by default.").of(WD).or(&["hd"]),
    Key::carried(
        "xfersize",
        "Size of an I/O; pairs of size and percent; or smallest, largest and alignment.",
    )
    .of(WD),
    Key::carried("rdpct", "Percent of reads; 100 by default.").of(WD).or(&["readpct"]),
    Key::carried("wrpct", "Percent of writes.").of(WD).or(&["writepct"]),
    Key::carried("seekpct", "Percent of random I/O; `seq`, `rand`, `eof`; 100 by default.").of(WD),
    Key::carried("rhpct", "Percent of reads that go to the area for hits.").of(WD),
    Key::carried("whpct", "Percent of writes that go to the area for hits.").of(WD),
    Key::carried("skew", "Percent of the run's I/Os.").of(WD),
    Key::refused("priority", "Workloads that wait for one another; write skew= for the share of each.").of(WD),
    Key::refused("iorate", "A rate of one workload; write iorate= of all together in the run definition, and skew= for the share of each.").of(WD),
    Key::carried("range", "The part of each device that is used.").of(WD),
    Key::refused("hotband", "A band that is met more often; use a second workload with range= and skew=.")
        .of(WD),
    Key::carried("openflags", "As of a storage definition.").of(WD),
    Key::carried("threads", "I/Os outstanding, with concatenated devices alone.").of(WD),
    Key::refused("streams", "Several sequential streams of one device; write a workload with range= for each stream.").of(WD),
    Key::refused("stride", "Sequential I/Os with gaps of varying size; write seekpct=0 for none, or seekpct=100.").of(WD),
    Key::refused("replay", "A recorded trace is no job: capture it with the lens.").of(WD),
    Key::carried("rd", "A run definition, or `default` for those below.").of(RD),
    Key::carried("wd", "Its workloads.").of(RD),
    Key::carried("sd", "Storage definitions in place of those of its workloads.").of(RD),
    Key::carried("iorate", "I/Os per second of the whole run: max, a number, a list, or curve.").of(RD),
    Key::carried("curve", "Percent of the greatest rate that a curve goes through.").of(RD),
    Key::noted("stopcurve", "The latency that ends a curve; the lab runs it to its end.").of(RD),
    Key::carried("elapsed", "Seconds of a run.").of(RD),
    Key::carried(
        "interval",
        "Seconds of an interval; the first one does not count unless there is a warm-up.",
    )
    .of(RD),
    Key::carried("warmup", "Seconds before anything counts.").of(RD),
    Key::carried("pause", "Seconds before a run.").of(RD),
    Key::carried("maxdata", "Bytes that end a run; below 100, so many times the size of all devices.").of(RD),
    Key::refused("maxdataread", "Bytes read that end a run; write maxdata=.").of(RD),
    Key::refused("maxdatawritten", "Bytes written that end a run; write maxdata=.").of(RD),
    Key::carried("distribution", "When I/Os of a rate begin: exponential, uniform, deterministic.").of(RD),
    Key::carried("openflags", "As of a storage definition.").of(RD),
    Key::carried("forthreads", "A loop over I/Os outstanding.").of(RD),
    Key::carried("forxfersize", "A loop over sizes.").of(RD),
    Key::carried("forrdpct", "A loop over percent of reads.").of(RD),
    Key::carried("forseekpct", "A loop over percent of random I/O.").of(RD),
    Key::carried("forrhpct", "A loop over percent of read hits.").of(RD),
    Key::carried("forwhpct", "A loop over percent of write hits.").of(RD),
    Key::carried("forhitarea", "A loop over sizes of the area for hits.").of(RD),
    Key::carried("fordedupratio", "A loop over deduplication.").of(RD),
    Key::carried("forcompratio", "A loop over compression.").of(RD).or(&["forcompression"]),
    Key::carried("threads", "In place of the devices' own.").of(RD),
    Key::carried("xfersize", "In place of the workloads' own.").of(RD),
    Key::carried("rdpct", "In place of the workloads' own.").of(RD).or(&["readpct"]),
    Key::carried("seekpct", "In place of the workloads' own.").of(RD),
    Key::carried("rhpct", "In place of the workloads' own.").of(RD),
    Key::carried("whpct", "In place of the workloads' own.").of(RD),
    Key::carried("hitarea", "In place of the devices' own.").of(RD),
    Key::carried("dedupratio", "In place of the general one.").of(RD),
    Key::carried("compratio", "In place of the general one.").of(RD),
    Key::refused("forrange", "A loop over ranges; write a run definition for each.").of(RD),
    Key::refused("range", "Write it in the workload definition.").of(RD),
    Key::refused("replay", "A recorded trace is no job: capture it with the lens.").of(RD),
    Key::refused("operations", "Concerns file systems; the lab measures block storage.").of(RD),
    Key::refused("foroperations", "Concerns file systems; the lab measures block storage.").of(RD),
    Key::refused("fwd", "Concerns file systems; write sd=, wd= and rd= for a large file in its place.")
        .of(RD),
    Key::refused("fwdrate", "Concerns file systems; write iorate=.").of(RD),
    Key::refused("format", "Concerns file systems; fill targets with the lab.").of(RD),
    Key::noted("startcmd", "A command before a run; run it yourself.").of(RD),
    Key::noted("endcmd", "A command after a run; run it yourself.").of(RD),
    Key::noted("start_cmd", "A command before a run; run it yourself.").of(RD),
    Key::noted("end_cmd", "A command after a run; run it yourself.").of(RD),
    Key::refused("fsd", "File systems; the lab measures block storage: write sd= with a large file.")
        .of("Others"),
    Key::refused("fwd", "File systems; the lab measures block storage: write wd=.").of("Others"),
    Key::refused("rg", "Groups for replay; capture a trace with the lens.").of("Others"),
    Key::carried("include", "Another file in this place.").of("Others"),
    Key::carried("eof", "The end of the file.").of("Others"),
];

/// What a key may be.
pub(crate) enum Found {
    One(&'static Key),
    Several(Vec<&'static str>),
    None,
}

/// The key of this name or of this prefix in a scope.
pub(crate) fn find(scope: &str, name: &str) -> Found {
    let scope = || PARAMETERS.iter().filter(move |key| key.scope == scope);
    if let Some(key) = scope().find(|key| key.is(name)) {
        return Found::One(key);
    }
    if name.len() < 2 {
        return Found::None;
    }
    let mut found: Vec<&'static Key> = scope()
        .filter(|key| key.name.starts_with(name) || key.aliases.iter().any(|alias| alias.starts_with(name)))
        .collect();
    // `startcmd` and `start_cmd` are one key for people: what is treated alike is not ambiguous.
    found.dedup_by_key(|key| (key.treatment, key.sentence));
    match found.as_slice() {
        [] => Found::None,
        [key] => Found::One(key),
        several => Found::Several(several.iter().map(|key| key.name).collect()),
    }
}
