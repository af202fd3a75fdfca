//! Texts that ask for too much: each is read or refused, and soon.

use jobs::{Dialect, ImportError, Options, Source, import_as};
use plan::Plan;
use std::time::{Duration, Instant};

/// Far more than any of them takes, and far less than what grows with the square of its text.
const SOON: Duration = Duration::from_secs(20);

fn read(
    dialect: Dialect,
    text: String,
    include: &dyn Fn(&str) -> Result<String, String>,
) -> Result<Plan, ImportError> {
    let options = Options { include, ..Options::default() };
    let shown: String = text.chars().take(80).collect();
    let start = Instant::now();
    let found = import_as(dialect, &Source::new("hostile", text), &options).map(|read| read.plan);
    assert!(start.elapsed() < SOON, "{}: {shown}: it took {:?}", dialect.name(), start.elapsed());
    found
}

fn nothing(name: &str) -> Result<String, String> {
    Err(format!("{name} is not there"))
}

/// It is refused, with this word.
fn refused(dialect: Dialect, text: String, word: &str) {
    let shown: String = text.chars().take(80).collect();
    let error = read(dialect, text, &nothing).expect_err(&shown);
    assert!(error.to_string().contains(word), "{shown}: {error}");
}

#[test]
fn jobs_of_fio_that_ask_for_too_much_are_refused_soon() {
    let check = |text: String, word: &str| refused(Dialect::Fio, text, word);
    check("[j]\nsize=1m\nnumjobs=1000000000\n".into(), "write a smaller numjobs");
    check("[j]\nsize=1m\nfilename=f\nnumjobs=1000000000\n".into(), "workers");
    check("[j]\nsize=1m\nnumjobs=60000\nnrfiles=60000\n".into(), "files");
    check(
        format!("[global]\nsize=1m\nnumjobs=60000\nfilename_format=f$jobnum\n{}", "[j]\n".repeat(9000)),
        "too many targets of groups",
    );
    check(format!("[j]\nsize=1m\nfilename={}\n", "abcdefgh:".repeat(400_000)), "names 400000 files");
    check(
        format!("[global]\nsize=1m\nfilename={}\n{}", "a:".repeat(60_000), "[j]\n".repeat(9000)),
        "too many jobs and options",
    );
    check(format!("[global]\nsize=1m\n{}", "[j]\n".repeat(20_000)), "too many jobs");
    check("[j]\n".to_owned() + &"runitme=1\n".repeat(400_000), "did you mean runtime?");
    check(format!("[j]\nsize=1m\n{}=1\n", "x".repeat(4_000_000)), "unknown");
    check(format!("[j]\nsize=1m\nbssplit={}\n", "4k/1:".repeat(700_000)), "bssplit");
    check(format!("[j]\nsize=1m\nbs={}\n", "9".repeat(4_000_000)), "number");
    check("x".repeat(5 << 20), "4194304");
}

#[test]
fn jobs_of_fio_that_are_merely_long_are_read_soon() {
    let check = |text: String, stages: usize| {
        let plan = read(Dialect::Fio, text, &nothing).expect("it is a job");
        assert_eq!(plan.stages.len(), stages);
    };
    let options = "invalidate=1\nnice=1\ngtod_reduce=1\n".repeat(300);
    check(format!("[global]\nfilename=f\nsize=1m\n{options}{}", "[j]\nstonewall\n".repeat(2000)), 2000);
    check(format!("[j]\nsize=1m\n{}", "bs=4k\n".repeat(600_000)), 1);
    check(format!("[j]\nsize=1m\n{}", "; nothing\n".repeat(400_000)), 1);
}

#[test]
fn files_that_include_themselves_or_too_much_are_refused_soon() {
    let check = |dialect: Dialect, text: &str, included: &str, word: &str| {
        let include = |_: &str| Ok(included.to_owned());
        let error = read(dialect, text.to_owned(), &include).expect_err(text);
        assert!(error.to_string().contains(word), "{text}: {error}");
    };
    check(Dialect::Fio, "[j]\nsize=1m\ninclude x\n", "bs=4k\ninclude x\n", "circle");
    check(Dialect::Fio, "[j]\nsize=1m\ninclude x\n", "include x\ninclude x\ninclude x\n", "circle");
    let long = "bs=4k\n".repeat(300_000);
    check(Dialect::Fio, &format!("[j]\nsize=1m\n{}", "include x\n".repeat(200)), &long, "too long");
    check(Dialect::Vdbench, "include=x\n", "include=x\n", "circle");
    check(Dialect::Vdbench, "include=x\n", "include=x\ninclude=x\n", "circle");
    check(Dialect::Vdbench, &"include=x\n".repeat(200), &"* nothing\n".repeat(150_000), "too long");
}

/// A variable is put in once: what it holds is not looked at again.
#[test]
fn variables_do_not_grow() {
    let environment = |_: &str| Some("${X}${X}".to_owned());
    let options = Options { environment: &environment, ..Options::default() };
    let text = "[j]\nsize=1m\ndescription=${X}${X}\n";
    assert!(import_as(Dialect::Fio, &Source::new("x", text), &options).is_ok());
    let options = Options { variables: vec![("x".into(), "$x$x".into())], ..Options::default() };
    let text = "sd=sd1,lun=$x\nwd=wd1,sd=sd1,xfersize=4k\nrd=rd1,wd=wd1,iorate=max,elapsed=10,interval=1\n";
    let plan = import_as(Dialect::Vdbench, &Source::new("x", text), &options).expect("it is a job").plan;
    assert_eq!(plan.targets[0].name, "$x$x");
}

#[test]
fn parameter_files_of_vdbench_that_ask_for_too_much_are_refused_soon() {
    let check = |text: String, word: &str| refused(Dialect::Vdbench, text, word);
    let sds = |count: usize| -> String {
        (0..count).map(|number| format!("sd=s{number},lun=/d{number}\n")).collect()
    };
    let wd = "wd=w,sd=*,xfersize=4k\n";
    let rd = "rd=r,wd=w,iorate=max,elapsed=10,interval=1";
    check(format!("sd=s,lun=/d,count=(1,1000000000)\n{wd}{rd}\n"), "from 1 to 1048576");
    check(format!("{}{wd}{rd}\n", sds(60_000)), "more than 4096 definitions");
    check(format!("{}{wd}{rd},forthreads=(1-9000,1)\n", sds(4000)), "too many");
    check(
        format!("{}{wd}{rd},forthreads=(1-9000,1),forxfersize=(1k-9m,1k)\n", sds(1)),
        "too many stages: 82944000",
    );
    check(format!("{}{}", sds(1), "wd=w,sd=s0\n".repeat(200_000)), "two definitions have the name");
    check(format!("sd=s,lun={}", "a,".repeat(2_000_000)), "=");
    check(format!("sd=s,lun=({}", "(".repeat(4_000_000)), "closed");
}

#[test]
fn command_lines_and_profiles_of_diskspd_that_ask_for_too_much_are_refused_soon() {
    let check = |text: String, word: &str| refused(Dialect::DiskSpd, text, word);
    check(format!("diskspd {} x\n", "-b4K ".repeat(700_000)), "options");
    check("diskspd -b4K -t1000000000 x\n".into(), "-t");
    check("diskspd -b4K -t1000000 x\n".into(), "workers");
    check(format!("diskspd -b4K {}\n", "x ".repeat(1_000_000)), "too many");
    check("diskspd -b4K -q x\n".repeat(200_000), "unknown");
    check("diskspd -b4K x\n".repeat(200_000), "too many");
    let xml = |text: String, word: &str| refused(Dialect::DiskSpdXml, text, word);
    xml("<Profile>".repeat(400_000), "too many");
    xml(format!("<Profile><TimeSpans>{}</TimeSpans></Profile>", "<TimeSpan></TimeSpan>".repeat(190_000)), "");
}

#[test]
fn files_of_iometer_that_ask_for_too_much_are_refused_soon() {
    let check = |text: String, word: &str| refused(Dialect::Iometer, text, word);
    let spec =
        |number: usize| format!("'Access specification name,default assignment\n\tspec{number},NONE\n");
    let many: String = (0..60_000).map(spec).collect();
    check(
        format!("Version 1.1.0\n'ACCESS SPECIFICATIONS =\n{many}'END access specifications\n"),
        "access specifications",
    );
    check(format!("Version 1.1.0\n'MANAGER LIST =\n{}", "'Worker\n\tw\n".repeat(300_000)), "");
}
