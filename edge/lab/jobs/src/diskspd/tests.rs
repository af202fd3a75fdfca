//! Tests of DiskSPD's readers.

use crate::{Options, Source, import};
use plan::{Content, WriteThrough};
use std::time::Duration;

#[test]
fn a_simple_command_line_is_one_stage() {
    let text = "diskspd.exe -b8K -d60 -W10 -o4 -t8 -r -w30 -Sh -L -Zr -c10G E:\\test.dat\n";
    let plan = import(&Source::new("x.cmd", text), &Options::default())
        .unwrap_or_else(|error| panic!("{error}"))
        .plan;
    let group = &plan.stages[0].groups[0];
    assert_eq!((group.outstanding(), group.pattern.reads(), group.pattern.random()), (32, 70.0, 100.0));
    assert_eq!(group.timing.longest(), Some(Duration::from_secs(70)));
    assert_eq!((group.caching.direct, group.caching.write_through), (true, WriteThrough::Data));
    assert_eq!((plan.targets[0].size, &group.data.content), (Some(10 << 30), &Content::Random));
}

#[test]
fn a_simple_profile_is_a_stage_for_each_time_span() {
    let text = "<Profile><TimeSpans><TimeSpan><Duration>30</Duration><Warmup>5</Warmup><Targets><Target><Path>/dev/sdx</Path><BlockSize>4096</BlockSize><Random>4096</Random><RequestCount>8</RequestCount><ThreadsPerFile>2</ThreadsPerFile><WriteRatio>100</WriteRatio></Target></Targets></TimeSpan></TimeSpans></Profile>";
    let plan = import(&Source::new("x.xml", text), &Options::default())
        .unwrap_or_else(|error| panic!("{error}"))
        .plan;
    assert_eq!((plan.stages.len(), plan.stages[0].outstanding()), (1, 16));
}

#[test]
fn what_diskspd_rejects_is_rejected_with_the_way_out() {
    let check = |line: &str, expected: &str| {
        let found = import(&Source::new("x.cmd", format!("diskspd {line}")), &Options::default());
        let error = found.map(|_| ()).expect_err(line).to_string();
        assert!(error.contains(expected), "{line}: {error}");
    };
    for (line, expected) in [
        ("-b8 x", "write 8K"),
        ("-b8KB x", "write 8K"),
        ("-b1.5M x", "no fraction"),
        ("-b 8K x", "size"),
        ("-n -a0,1 x", "-n"),
        ("-F4 -t2 x", "-F"),
        ("-g100 -x x", "-g"),
        ("-i5 x", "-j"),
        ("-j5 x", "-i"),
        ("-F2 -O4 -g10 x", "-O"),
        ("-O4 x", "-F"),
        ("-r -T4K -t2 x", "-r"),
        ("-r -s x", "-r"),
        ("-r -si x", "-r"),
        ("-r -p x", "-r"),
        ("-rdpct10/10 x", "add -r"),
        ("-r -rdpct60/10:60/10 x", "exceeds 100"),
        ("-si -T4K -t2 x", "-si"),
        ("-T4K x", "add -t"),
        ("-Z4K x", "-Z65536"),
        ("-Sm x", "maps memory"),
        ("-w x", "-w<number>"),
        ("-w101 x", "0 to 100"),
        ("-B1M -f512K x", "larger -f"),
        ("-B1M -B2M x", "allows the option once"),
        ("-Sb -h x", "conflicts with earlier"),
        ("-b4K", "no target"),
        ("-b4K *1", "profile"),
        ("-q x", "unknown"),
        ("x -b4K", "all options first"),
        ("-Xp.xml -b4K", "into the profile"),
    ] {
        check(line, expected);
    }
}

#[test]
fn a_template_of_a_profile_is_refused_as_one() {
    let text = "<Profile><TimeSpans><TimeSpan><Duration></Duration><Targets><Target><Path>x</Path><Distribution><Percent><Range IO=\"95\">5</Range></Percent></Distribution></Target></Targets></TimeSpan></TimeSpans></Profile>";
    let error = import(&Source::new("x.xml", text), &Options::default()).expect_err("it is a template");
    assert_eq!(error.faults.len(), 2, "{error}");
    assert!(error.to_string().contains("template"), "{error}");
}

#[test]
fn commands_are_read_as_people_paste_them() {
    let read = |text: &str| {
        import(&Source::new("x", text), &Options::default())
            .unwrap_or_else(|error| panic!("{text}: {error}"))
            .plan
    };
    let expected = read("diskspd -b8K -d60 -o4 -t2 -r -Sh x.dat");
    for text in [
        ".\\diskspd.exe -b8K -d60 -o4 -t2 -r -Sh x.dat",
        "C:\\Tools\\diskspd.exe -b8K -d60 -o4 -t2 -r -Sh x.dat > out.txt",
        "\"C:\\Program Files\\DiskSpd.exe\" -b8K -d60 -o4 -t2 -r -Sh x.dat",
        "PS C:\\> & .\\DiskSpd.exe -b8K -d60 -o4 -t2 -r -Sh x.dat",
        "diskspd \u{2013}b8K \u{2013}d60 \u{2013}o4 \u{2013}t2 \u{2013}r \u{2013}Sh x.dat",
        "-b8K -d60 -o4 -t2 -r -Sh x.dat",
    ] {
        let found = read(text);
        assert_eq!((&found.stages, &found.targets), (&expected.stages, &expected.targets), "{text}");
    }
}

#[test]
fn an_empty_duration_is_filled_by_the_one_beside_the_profile() {
    let text = "<Profile><TimeSpans><TimeSpan><Duration></Duration><Targets><Target><Path>/dev/sdx</Path></Target></Targets></TimeSpan></TimeSpans></Profile>";
    let source = Source::new("x.xml", text);
    let error = import(&source, &Options::default()).expect_err("nobody says how long");
    assert!(error.to_string().contains("--duration"), "{error}");
    let plan =
        import(&source, &Options { duration: Some(60), ..Options::default() }).expect("it is said").plan;
    assert_eq!(plan.stages[0].groups[0].timing.length, plan::Length::Time(Duration::from_secs(60)));
}

#[test]
fn options_of_caching_add_up_and_other_options_take_the_last_as_in_diskspd() {
    let read = |text: &str| import(&Source::new("x", text), &Options::default());
    let plan = read("diskspd -b8K -Sw -Su -t1 -t4 x.dat").unwrap_or_else(|error| panic!("{error}")).plan;
    let group = &plan.stages[0].groups[0];
    assert_eq!((group.caching.direct, group.caching.write_through), (true, WriteThrough::Data));
    assert_eq!(group.worker_count(), 4);
    assert!(plan.notes.iter().any(|note| note.text.contains("takes the last")), "{:?}", plan.notes);
    for text in
        ["diskspd -Sb -Su x", "diskspd -Sh -Sw x", "diskspd -Sd x", "diskspd -r -r x", "diskspd -s4K -s8K x"]
    {
        read(text).map(|_| ()).expect_err(text);
    }
}

#[test]
fn a_script_with_the_program_in_a_variable_is_its_calls() {
    let text = "@echo off\nset diskSpd=D:\\Apps\\diskspd.exe\nset drive=D:\nREM diskspd.exe -b1K x\n%diskSpd% -b8K -d10 %drive%\\x.dat > y.txt\n\
                timeout /T 3\n%diskSpd% -b64K -d10 %drive%\\x.dat\n";
    let plan = import(&Source::new("x.bat", text), &Options::default())
        .unwrap_or_else(|error| panic!("{error}"))
        .plan;
    let sizes: Vec<u64> = plan.stages.iter().map(|stage| stage.groups[0].pattern.size_max()).collect();
    assert_eq!(sizes, [8192, 65_536]);
}

#[test]
fn an_element_that_stands_twice_is_an_error() {
    let text = "<Profile><TimeSpans><TimeSpan><Duration>5</Duration><Duration>9</Duration><Targets><Target><Path>/dev/sdx</Path><BlockSize>4096</BlockSize><BlockSize>8192</BlockSize></Target></Targets></TimeSpan></TimeSpans></Profile>";
    let error = import(&Source::new("x.xml", text), &Options::default()).expect_err("two values");
    assert_eq!(error.faults.len(), 2, "{error}");
    assert!(error.to_string().contains("<Duration> stands twice in <TimeSpan>"), "{error}");
}

/// A <TimeSpan> below <Profile>, and a <Target> below <TimeSpan>, were passed over without a word.
#[test]
fn an_element_at_the_wrong_place_is_one_error_and_elements_of_the_schema_are_known() {
    let target = "<Targets><Target><Path>/dev/sdx</Path></Target></Targets>";
    let faults = |text: &str| {
        let found = import(&Source::new("x.xml", text), &Options::default());
        found.map(|_| ()).expect_err(text).faults
    };
    for text in [
        &format!(
            "<Profile><TimeSpan></TimeSpan><TimeSpans><TimeSpan>{target}</TimeSpan></TimeSpans></Profile>"
        ),
        &format!("<Profile><TimeSpans><TimeSpan><Target></Target>{target}</TimeSpan></TimeSpans></Profile>"),
    ] {
        let found = faults(text);
        assert!(found.len() == 1 && found[0].found.contains("has no element"), "{found:?}");
    }
    let text = format!(
        "<Profile><ExperimentFlags>0</ExperimentFlags><TimeSpans><TimeSpan><GroupAffinity>true</GroupAffinity>{target}</TimeSpan>\
         </TimeSpans></Profile>"
    );
    let plan = import(&Source::new("x.xml", text), &Options::default()).expect("the schema has them").plan;
    assert!(plan.notes.iter().any(|note| note.key == "GroupAffinity"), "{:?}", plan.notes);
}

#[test]
fn a_wrong_share_of_random_io_is_one_error() {
    let source = Source::new("x.cmd", "diskspd -b4K -rs0 -rdpct95/5 x");
    let error = import(&source, &Options::default()).expect_err("-rs is 1 to 100");
    assert_eq!(error.faults.len(), 1, "{error}");
}

/// They left a note, and the run did other I/Os than DiskSPD does.
#[test]
fn what_changes_the_order_or_the_shares_of_ios_is_refused() {
    let refused = |name: &str, text: &str, expected: &str| {
        let found = import(&Source::new(name, text), &Options::default());
        let error = found.map(|_| ()).expect_err(text).to_string();
        assert!(error.contains(expected), "{text}: {error}");
    };
    refused("x.cmd", "diskspd -b4K -o4 -p x", "remove it");
    let profile = |inner: &str| {
        format!(
            "<Profile><TimeSpans><TimeSpan><ThreadCount>2</ThreadCount><RequestCount>4</RequestCount><Targets><Target><Path>\
             /dev/sdx</Path>{inner}</Target></Targets></TimeSpan></TimeSpans></Profile>"
        )
    };
    refused("x.xml", &profile("<ParallelAsyncIO>true</ParallelAsyncIO>"), "remove it");
    refused("x.xml", &profile("<Weight>30</Weight>"), "equal shares");
    let threads = "<ThreadTargets><ThreadTarget><Thread>0</Thread></ThreadTarget></ThreadTargets>";
    refused("x.xml", &profile(threads), "time span");
    let off = profile("<ParallelAsyncIO>false</ParallelAsyncIO>");
    import(&Source::new("x.xml", off), &Options::default()).expect("it is off");
}

fn read(text: &str) -> Result<plan::Plan, crate::ImportError> {
    import(&Source::new("x.cmd", text), &Options::default()).map(|read| read.plan)
}

/// Variables became targets, and numbers that DiskSPD rejects.
#[test]
fn variables_of_a_script_are_filled_in_or_refused_by_name() {
    let script = "@echo off\nset DURATION=300\nset \"TESTFILE=D:\\load.dat\"\nset BIG=%SIZE%G\n\
                  %BASE%\\diskspd.exe -b8K -d%DURATION% -o4 -t8 -r -w25 -c1G -Sb %TESTFILE% > %RESULT%.txt\n";
    let found = read(script).expect("it is a job");
    assert_eq!(found.targets[0].name, "D:\\load.dat");
    assert_eq!(found.stages[0].groups[0].timing.longest(), Some(Duration::from_secs(305)));
    assert!(found.notes.iter().all(|note| !note.text.contains("set ")), "{:?}", found.notes);
    let shell = "size=64K\n$Target = 'E:\\io.dat'\n.\\diskspd.exe -b${SIZE} -d9 -Sh $target\n";
    let shell = read(shell).expect("it is a job");
    assert_eq!(
        (shell.targets[0].name.as_str(), shell.stages[0].groups[0].pattern.size_max()),
        ("E:\\io.dat", 65_536)
    );
    for (text, expected) in [
        ("diskspd -b4K -d%TIME% -Sh x\n", "--define TIME=value"),
        ("diskspd -b4K -d$env:SECONDS -Sh x\n", "--define SECONDS=value"),
        ("diskspd -b4K -d5 -Sh $TargetFileName\n", "--define TargetFileName=value"),
        ("for %%b in (4 8) do diskspd -b%%bK -d5 -Sh x\n", "--define b=value"),
        ("$s = @(1,2)\ndiskspd -b$s -d5 -Sh x\n", "--define s=value"),
        ("diskspd -b$($all.size) -d5 -Sh x\n", "calculated by the script"),
    ] {
        let found = read(text).expect_err(text).faults;
        assert!(found.len() == 1 && found[0].to_string().contains(expected), "{text}: {found:?}");
    }
    let options = Options { has_targets: true, ..Options::default() };
    let source = Source::new("x.cmd", "diskspd -b4K -d5 -Sh %1 \\\\server\\C$\\f\n");
    assert_eq!(
        import(&source, &options).expect("targets are named").plan.targets[1].name,
        "\\\\server\\C$\\f"
    );
    assert!(crate::is_command_line("```powershell\ndiskspd.exe -b4K -d9 x\n```"));
}
