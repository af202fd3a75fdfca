//! Named workloads of published tests: patterns as their authors gave them, ready for plans.
//!
//! Depths are outstanding I/Os of one host where the source says so. Sources are named with each family. A number is the
//! source's unless the description says that it is ours: a plan needs depths and times where a source leaves them open.

use crate::pace::{Arrivals, Loop, Pace, Rate, RateOf, RatePer, Timing};
use crate::pattern::{Distribution, Extent, Line, Pattern, Reuse, Size, Zone};
use crate::structure::{Depth, Group, Plan, Stage, Target, Workers};
use std::time::Duration;

/// One kind of worker of a workload.
#[derive(Debug, Clone, PartialEq)]
pub struct Member {
    /// What it stands for.
    pub name: &'static str,
    /// Its I/Os.
    pub pattern: Pattern,
    /// Workers on each target.
    pub workers: u32,
    /// Outstanding I/Os of each of them.
    pub depth: u32,
    /// I/Os per second of all its workers on one target; none: as fast as possible.
    pub iops: Option<f64>,
    /// Percent of its data that a compressor takes away.
    pub compressible: f64,
}

/// A named workload.
#[derive(Debug, Clone, PartialEq)]
pub struct Workload {
    /// How it is asked for: `family/name` in lower case.
    pub name: String,
    /// Whose test it is.
    pub source: &'static str,
    /// A sentence.
    pub description: String,
    /// What runs together.
    pub members: Vec<Member>,
    /// Outstanding I/Os of one host in the published test, where it is known.
    pub depth_per_host: Option<u32>,
    /// Seconds before it counts, and seconds that count: as published, unless the description says that they are ours.
    pub seconds: (u64, u64),
}

impl Workload {
    /// The pattern of its first member.
    pub fn pattern(&self) -> &Pattern {
        &self.members[0].pattern
    }

    /// One stage of it over these targets, for its published time.
    pub fn stage(&self, targets: &[usize]) -> Stage {
        let groups = self.members.iter().map(|member| self.group(member, targets)).collect();
        Stage::new(&self.name, groups)
    }

    /// A plan of this workload alone.
    pub fn plan(&self, targets: Vec<Target>) -> Plan {
        let indices: Vec<usize> = (0..targets.len()).collect();
        Plan { name: self.name.clone(), targets, stages: vec![self.stage(&indices)], ..Plan::default() }
    }

    fn group(&self, member: &Member, targets: &[usize]) -> Group {
        let (ramp, counted) = self.seconds;
        let timing = Timing { ramp: Duration::from_secs(ramp), ..Timing::seconds(counted) };
        let mut group = Group::new(member.name, 0, member.depth, member.pattern.clone(), timing);
        group.targets = targets.to_vec();
        group.workers = Workers::PerTarget(member.workers);
        group.depth = Depth::PerTarget(member.depth);
        group.data.compressible = member.compressible;
        group.rates.extend(member.iops.map(|iops| Rate {
            pace: Pace::Iops(iops / f64::from(member.workers)),
            per: RatePer::WorkerAndTarget,
            of: RateOf::All,
            arrivals: Arrivals::Even,
            clock: Loop::Open,
        }));
        group
    }
}

/// All of them, by family.
pub fn list() -> Vec<Workload> {
    let mut all = Vec::new();
    all.extend(storage_review());
    all.extend(star_wind());
    all.extend(vsan());
    all.extend(iometer_classics());
    all.extend(dell());
    all.extend(vm_fleet());
    all.extend(pure());
    all.extend(others());
    all
}

/// The workload of this name; case does not matter.
pub fn find(name: &str) -> Option<Workload> {
    list().into_iter().find(|workload| workload.name.eq_ignore_ascii_case(name))
}

const KIB: u64 = 1024;

fn member(name: &'static str, pattern: Pattern, workers: u32, depth: u32) -> Member {
    Member { name, pattern, workers, depth, iops: None, compressible: 0.0 }
}

fn workload(
    name: impl Into<String>,
    source: &'static str,
    description: impl Into<String>,
    members: Vec<Member>,
    seconds: (u64, u64),
) -> Workload {
    Workload {
        name: name.into(),
        source,
        description: description.into(),
        members,
        depth_per_host: None,
        seconds,
    }
}

/// One pattern of KiB, percent of reads, percent random.
fn simple(kib: u64, reads: f64, random: f64) -> Pattern {
    Pattern::simple(kib * KIB, reads, random)
}

/// A mix of (bytes, weight) with the same reads and random share.
fn mixed(sizes: &[(u64, f64)], reads: f64, random: f64) -> Pattern {
    let mut pattern = simple(4, reads, random);
    pattern.lines =
        sizes.iter().map(|&(size, weight)| Line::new(weight, Size::Fixed(size), reads, random)).collect();
    pattern
}

fn storage_review() -> Vec<Workload> {
    let source = "StorageReview with HCIBench, and Western Digital's additions";
    // 16 virtual machines of 10 disks with 2 threads on 4 hosts: 80 for each host.
    let one = |name: &str, what: &str, kib, reads, random| Workload {
        depth_per_host: Some(80),
        ..workload(
            format!("storagereview/{name}"),
            source,
            format!(
                "{what}; 16 virtual machines of 10 disks, 2 threads on each, 30 min before 60 min that count."
            ),
            vec![member("disk", simple(kib, reads, random), 1, 2)],
            (1800, 3600),
        )
    };
    let mut all = vec![
        one("4k-random-read", "4 KiB random reads", 4, 100.0, 100.0),
        one("4k-random-write", "4 KiB random writes", 4, 0.0, 100.0),
        one("8k-70-30", "8 KiB random, 70 % reads", 8, 70.0, 100.0),
        one("32k-sequential-read", "32 KiB sequential reads", 32, 100.0, 0.0),
        one("32k-sequential-write", "32 KiB sequential writes", 32, 0.0, 0.0),
        one("64k-95-5", "64 KiB random, 95 % reads", 64, 95.0, 100.0),
    ];
    for (label, kib) in [("64k", 64), ("256k", 256), ("512k", 512), ("1m", 1024)] {
        all.push(one(&format!("{label}-random-read"), &format!("{kib} KiB random reads"), kib, 100.0, 100.0));
        all.push(one(&format!("{label}-random-write"), &format!("{kib} KiB random writes"), kib, 0.0, 100.0));
    }
    all
}

fn star_wind() -> Vec<Workload> {
    let one = |name: &str, what: &str, kib, reads, random| Workload {
        depth_per_host: Some(64),
        ..workload(
            format!("starwind/{name}"),
            "StarWind, automatic striping with 1 to 12 virtual machines",
            format!("{what}; 4 threads of 16 outstanding I/Os, 60 s."),
            vec![member("disk", simple(kib, reads, random), 4, 16)],
            (0, 60),
        )
    };
    vec![
        one("4k-random-read", "4 KiB random reads", 4, 100.0, 100.0),
        one("4k-random-write", "4 KiB random writes", 4, 0.0, 100.0),
        one("64k-random-read", "64 KiB random reads", 64, 100.0, 100.0),
        one("64k-random-write", "64 KiB random writes", 64, 0.0, 100.0),
        one("8k-70-30", "8 KiB random, 70 % reads", 8, 70.0, 100.0),
        one("1m-sequential-read", "1 MiB sequential reads", 1024, 100.0, 0.0),
    ]
}

fn vsan() -> Vec<Workload> {
    let paper = "VMware, vSAN 6.6 performance";
    let records = "VMware, 2 million IOPS with vSAN 5.5";
    let of_paper = |name: &str, what: &str, reads, random| {
        workload(
            format!("vsan66/{name}"),
            paper,
            format!(
                "{what}; on 200 or 400 GB a host (small) and 1680 GB a host (large); the depth of 8, and 60 min after 10, are ours."
            ),
            vec![member("disk", simple(4, reads, random), 1, 8)],
            (600, 3600),
        )
    };
    let of_record = |name: &str, what: &str, reads, workers, depth| Workload {
        depth_per_host: Some(workers * depth),
        ..workload(
            format!("vsan2m/{name}"),
            records,
            format!(
                "{what}, 80 % random; {} outstanding on each of 32 hosts{}; 60 min after 10 are ours.",
                workers * depth,
                if depth == 16 {
                    ", as 8 workers of 16"
                } else {
                    "; how they are divided (8 workers of 8) is ours"
                }
            ),
            vec![member("worker", simple(4, reads, 80.0), workers, depth)],
            (600, 3600),
        )
    };
    vec![
        of_paper("random-read", "4 KiB random reads", 100.0, 100.0),
        of_paper("random-write", "4 KiB random writes", 0.0, 100.0),
        of_paper("70-30", "4 KiB random, 70 % reads", 70.0, 100.0),
        of_paper("sequential-read", "4 KiB sequential reads", 100.0, 0.0),
        of_paper("sequential-write", "4 KiB sequential writes", 0.0, 0.0),
        of_record("read", "4 KiB reads", 100.0, 8, 16),
        of_record("70-30", "4 KiB, 70 % reads", 70.0, 8, 8),
    ]
}

fn iometer_classics() -> Vec<Workload> {
    let source = "Iometer's well-known access specifications";
    let one = |name: &str, what: &str, pattern| {
        let what = format!(
            "{what} The depth of 16, and 5 min after 30 s, are ours: the specification leaves them open."
        );
        workload(format!("iometer/{name}"), source, what, vec![member("worker", pattern, 1, 16)], (30, 300))
    };
    let file_server: Vec<(u64, f64)> = [512, 1024, 2048, 4096, 8192, 16_384, 32_768, 65_536]
        .into_iter()
        .zip([10.0, 5.0, 5.0, 60.0, 2.0, 4.0, 4.0, 10.0])
        .collect();
    let web_server: Vec<(u64, f64)> = [512, 1024, 2048, 4096, 8192, 16_384, 32_768, 65_536, 131_072, 524_288]
        .into_iter()
        .zip([22.0, 15.0, 8.0, 23.0, 15.0, 2.0, 6.0, 7.0, 1.0, 1.0])
        .collect();
    let mut all_in_one = simple(4, 100.0, 100.0);
    all_in_one.lines.clear();
    for size in [512, 1024, 2048, 4096, 8192, 16_384, 32_768] {
        for (reads, random) in [(100.0, 0.0), (0.0, 0.0), (100.0, 100.0), (0.0, 100.0)] {
            all_in_one.lines.push(Line::new(1.0, Size::Fixed(size), reads, random));
        }
    }
    vec![
        one("database", "A database: 8 KiB random, 67 % reads.", simple(8, 67.0, 100.0)),
        one(
            "file-server",
            "A file server: 512 bytes to 64 KiB random, 80 % reads.",
            mixed(&file_server, 80.0, 100.0),
        ),
        one("workstation", "A workstation: 8 KiB, 80 % reads, 80 % random.", simple(8, 80.0, 80.0)),
        one(
            "web-server",
            "A web server: random reads of 512 bytes to 512 KiB; the sizes between and their shares are ours.",
            mixed(&web_server, 100.0, 100.0),
        ),
        one("exchange", "A mail server: 4 KiB random, 67 % reads.", simple(4, 67.0, 100.0)),
        one(
            "all-in-one",
            "Reads and writes, sequential and random, in equal parts; seven sizes from 512 bytes to 32 KiB are ours.",
            all_in_one,
        ),
    ]
}

fn dell() -> Vec<Workload> {
    let source = "Dell, VxRail performance tests";
    let one = |name: String, what: String, kib, reads, random| {
        let what = format!(
            "{what}; the source measures curves of ten points of 5 min with pauses of 30 min; the depth of 8, and 1 min before \
             it counts, are ours."
        );
        workload(
            format!("vxrail/{name}"),
            source,
            what,
            vec![member("disk", simple(kib, reads, random), 1, 8)],
            (60, 300),
        )
    };
    let mut all = Vec::new();
    for kib in [4, 8, 16, 32] {
        all.push(one(
            format!("oltp-{kib}k"),
            format!("Transactions: {kib} KiB random, 70 % reads"),
            kib,
            70.0,
            100.0,
        ));
    }
    all.push(one("rdbms".into(), "A relational database: 22 KiB random, 60 % reads".into(), 22, 60.0, 100.0));
    all.push(one(
        "peak-read".into(),
        "The most reads: 4 KiB random, the smallest of the source's 4 to 512 KiB".into(),
        4,
        100.0,
        100.0,
    ));
    all.push(one(
        "peak-write".into(),
        "The most writes: 4 KiB random, the smallest of the source's 4 to 512 KiB".into(),
        4,
        0.0,
        100.0,
    ));
    all.push(one(
        "peak-sequential-read".into(),
        "The most bytes read: 512 KiB in sequence, the largest of the source's 4 to 512 KiB".into(),
        512,
        100.0,
        0.0,
    ));
    all.push(one(
        "peak-sequential-write".into(),
        "The most bytes written: 512 KiB in sequence, the largest of the source's 4 to 512 KiB".into(),
        512,
        0.0,
        0.0,
    ));
    all
}

fn vm_fleet() -> Vec<Workload> {
    let source = "Microsoft, VMFleet";
    let rated = |member: Member, iops| Member { iops: Some(iops), ..member };
    let mut general = simple(4, 100.0, 100.0);
    general.distribution = Distribution::Zoned(vec![
        Zone { ios: 95.0, length: Extent::Percent(5.0) },
        Zone { ios: 4.0, length: Extent::Percent(10.0) },
        Zone { ios: 1.0, length: Extent::Percent(85.0) },
    ]);
    let desktop = vec![
        rated(member("writes", simple(32, 0.0, 20.0), 1, 4), 6.0),
        rated(member("reads", simple(8, 100.0, 80.0), 1, 4), 6.0),
    ];
    let sql = vec![
        rated(member("tables", simple(8, 70.0, 100.0), 4, 8), 6000.0),
        rated(member("log", simple(32, 0.0, 0.0), 1, 1), 300.0),
    ];
    vec![
        workload(
            "vmfleet/peak",
            source,
            "4 KiB random reads as fast as possible; 4 workers of 32 outstanding, and 2 min after 5, are ours.",
            vec![member("disk", simple(4, 100.0, 100.0), 4, 32)],
            (300, 120),
        ),
        workload(
            "vmfleet/general",
            source,
            "95 % of the I/Os on 5 % of the disk, 4 % on the next 10 %; 4 KiB reads, 32 outstanding, and 2 min after 5 are ours.",
            vec![member("disk", general, 1, 32)],
            (300, 120),
        ),
        workload(
            "vmfleet/vdi",
            source,
            "A desktop: 32 KiB writes, 20 % random, and 8 KiB reads, 80 % random, 6 of each per second; the depths of 4, and 2 \
             min after 5, are ours.",
            desktop,
            (300, 120),
        ),
        workload(
            "vmfleet/sql",
            source,
            "A database: 8 KiB with 30 % writes by four threads of 1500 I/Os per second, and a log of 32 KiB with 300; random \
             tables, a log of writes in sequence, the depths of 8 and 1, and 2 min after 5 are ours.",
            sql,
            (300, 120),
        ),
    ]
}

fn pure() -> Vec<Workload> {
    let source = "Pure Storage, Vdbench workloads with data reduction";
    // A reduction of r : 1 is a compressible share of 100 (1 - 1/r) percent; the middle of each published range is taken.
    let one = |name: &str, what: &str, sizes: &[(u64, f64)], reads, (ratio, range): (f64, &str)| {
        let pattern = mixed(sizes, reads, 80.0);
        let compressible = ((1.0 - 1.0 / ratio) * 1e4).round() / 100.0;
        let members = vec![Member { compressible, ..member("disk", pattern, 1, 16) }];
        workload(
            format!("pure/{name}"),
            source,
            format!(
                "{what}, 80 % random, reducible {ratio} : 1 ({range} : 1 in the source); sizes, their shares, the share of \
                 reads, the depth of 16, and 5 min after 1 are ours."
            ),
            members,
            (60, 300),
        )
    };
    let small = [(4 * KIB, 30.0), (8 * KIB, 30.0), (16 * KIB, 20.0), (32 * KIB, 10.0), (64 * KIB, 10.0)];
    let large = [(8 * KIB, 60.0), (16 * KIB, 10.0), (64 * KIB, 20.0), (256 * KIB, 10.0)];
    vec![
        one("vsi", "Virtual servers: 4 to 64 KiB", &small, 60.0, (7.0, "5 to 9")),
        one("vdi", "Desktops: 4 to 64 KiB", &small, 40.0, (15.0, "10 to 20")),
        one("oracle", "A database: 8 to 256 KiB", &large, 70.0, (3.0, "2 to 4")),
        one("sql", "A database: 8 to 256 KiB", &large, 65.0, (3.0, "2 to 4")),
    ]
}

fn others() -> Vec<Workload> {
    // JESD219's enterprise workload, as fio's well-known example of it has the sizes, in percent.
    let enterprise: Vec<(u64, f64)> =
        [512, 1024, 1536, 2048, 2560, 3072, 3584, 4096, 8192, 16_384, 32_768, 65_536]
            .into_iter()
            .zip([4.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 67.0, 10.0, 7.0, 3.0, 3.0])
            .collect();
    let mut endurance = mixed(&enterprise, 40.0, 100.0);
    endurance.reuse = Reuse::Draws;
    endurance.distribution = Distribution::Zoned(vec![
        Zone { ios: 50.0, length: Extent::Percent(5.0) },
        Zone { ios: 30.0, length: Extent::Percent(15.0) },
        Zone { ios: 20.0, length: Extent::Percent(80.0) },
    ]);
    let server = Member { iops: Some(80.0), ..member("server", simple(8, 70.0, 80.0), 1, 8) };
    let oltp = vec![
        Member { iops: Some(100.0), ..member("log", simple(32, 0.0, 0.0), 1, 1) },
        Member { iops: Some(1000.0), ..member("reads", simple(8, 100.0, 100.0), 1, 8) },
        Member { iops: Some(500.0), ..member("writes", simple(8, 0.0, 100.0), 1, 8) },
    ];
    vec![
        workload(
            "jesd219/enterprise",
            "JEDEC JESD219",
            "Endurance of a drive: twelve sizes, 40 % reads, 50 % of the I/Os on 5 % of the device, 30 % on the next 15 %; the \
             depth of 32, and 60 min, are ours.",
            vec![member("drive", endurance, 1, 32)],
            (0, 3600),
        ),
        workload(
            "xray/server",
            "Nutanix, X-Ray",
            "One of 75 small servers of a node: 80 I/Os per second; 8 KiB, 70 % reads, 80 % random, the depth of 8, and 10 min \
             after 1 are ours.",
            vec![server],
            (60, 600),
        ),
        workload(
            "xray/oltp",
            "Nutanix, X-Ray",
            "A database at a rate: a log, reads and writes; the source gives these kinds, and rates, sizes, depths, and 10 min \
             after 1 are ours.",
            oltp,
            (60, 600),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_workload_makes_a_plan_without_problems() {
        let all = list();
        assert!(all.len() > 45, "{}", all.len());
        let mut names = HashSet::new();
        for workload in &all {
            assert!(names.insert(workload.name.clone()), "{} twice", workload.name);
            assert!(workload.description.ends_with('.'), "{}", workload.name);
            let plan = workload.plan(vec![Target::named("one"), Target::named("two")]);
            assert_eq!(plan.problems(), Vec::new(), "{}", workload.name);
        }
    }

    #[test]
    fn published_numbers_are_as_published() {
        let file_server = find("Iometer/File-Server").expect("it is known");
        let weights: f64 = file_server.pattern().lines.iter().map(|line| line.weight).sum();
        assert_eq!(
            (weights, file_server.pattern().reads(), file_server.pattern().size_max()),
            (100.0, 80.0, 65_536)
        );
        let record = find("vsan2m/read").expect("it is known");
        assert_eq!((record.depth_per_host, record.pattern().random()), (Some(128), 80.0));
        let sql = find("vmfleet/sql").expect("it is known").plan(vec![Target::named("disk")]);
        assert_eq!(sql.stages[0].groups[0].rates[0].pace, Pace::Iops(1500.0));
        assert_eq!(find("nothing"), None);
    }
}
