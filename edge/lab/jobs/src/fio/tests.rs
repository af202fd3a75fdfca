//! Tests of fio's reader.

use crate::{Dialect, Options, Source, import};
use plan::{Amount, Batch, Content, Engine, Length, Reuse, Seed, Workers};
use std::time::Duration;

fn plan(text: &str) -> plan::Plan {
    let imported =
        import(&Source::new("test.fio", text), &Options::default()).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(imported.dialect, Dialect::Fio);
    imported.plan
}

#[test]
fn a_simple_job_is_one_group() {
    let plan = plan(
        "[global]\nioengine=io_uring\ndirect=1\n[one]\nrw=randrw\nrwmixread=70\nbs=8k\niodepth=16\nnumjobs=4\nfilename=/dev/sdx\nruntime=60\ntime_based\nramp_time=5\n",
    );
    assert_eq!((plan.targets[0].name.as_str(), plan.targets[0].size), ("/dev/sdx", None));
    let group = &plan.stages[0].groups[0];
    assert_eq!(
        (group.workers, group.outstanding(), group.engine),
        (Workers::Together(4), 64, Engine::IoUring)
    );
    assert_eq!(
        (group.pattern.size_max(), group.pattern.reads(), group.pattern.random()),
        (8192, 70.0, 100.0)
    );
    assert_eq!(group.timing.length, Length::Time(Duration::from_secs(60)));
    assert_eq!(group.timing.ramp, Duration::from_secs(5));
    assert_eq!(
        (group.batch, group.pattern.reuse),
        (Batch { submit: 1, complete: 1, complete_max: 1 }, Reuse::EachBlockOnce)
    );
    assert_eq!((group.data.content.clone(), plan.seed), (Content::Scrambled, Seed::Fixed(0xb189_9bed)));
}

#[test]
fn jobs_without_a_file_name_have_files_of_their_own() {
    let plan = plan("[w]\nrw=write\nbs=1m\nsize=1g\nnumjobs=2\ndirectory=/data\n");
    let names: Vec<&str> = plan.targets.iter().map(|target| target.name.as_str()).collect();
    assert_eq!(names, ["/data/w.0.0", "/data/w.1.0"]);
    assert_eq!(plan.targets[1].size, Some(1 << 30));
    let group = &plan.stages[0].groups[0];
    assert_eq!(
        (group.workers, group.timing.length),
        (Workers::PerTarget(1), Length::Amount(Amount::Passes(1.0)))
    );
}

/// The faults of a job of these options.
fn faults(options: &str) -> Vec<crate::Fault> {
    let text = format!("[j]\nioengine=io_uring\ndirect=1\nsize=1g\n{options}\n");
    match import(&Source::new("test.fio", text), &Options::default()) {
        Ok(_) => Vec::new(),
        Err(error) => error.faults,
    }
}

#[test]
fn what_fio_reads_otherwise_than_it_was_meant_is_an_error() {
    use crate::FaultKind::{Refused, UnitTrap, Unsupported};
    let check = |options: &str, kind, remedy: &str| {
        let found = faults(options);
        assert!(found.len() == 1 && found[0].kind == kind, "{options}: {found:?}");
        assert!(found[0].to_string().contains(remedy), "{options}: {}", found[0]);
        assert_eq!((found[0].place.file.as_str(), found[0].place.column), ("test.fio", 1), "{options}");
    };
    check("bs = 8k", UnitTrap, "write bs=8k");
    check("bs=8", UnitTrap, "write bs=8k");
    check("bs=4kib", UnitTrap, "write bs=4k");
    check("bs=8q", UnitTrap, "8k");
    check("bs=1k-4k", UnitTrap, "bsrange=1k-4k");
    check("size= 1m", UnitTrap, "write size=1m");
    check("runtime=10min", UnitTrap, "write runtime=10m");
    check("runtime=60sec", UnitTrap, "write runtime=60s");
    check("rw = randread", Refused, "write rw=randread");
    check("rw=randraed", Refused, "did you mean rw=randread?");
    check("runitme=3", Refused, "did you mean runtime?");
    check("direct=yes", Refused, "direct=1");
    check("rwmixread=120", Refused, "0 to 100");
    check("bs=${FOO}", Refused, "${FOO}, which is not set");
    check("rate=1m\nrate_iops=10", Refused, "mutually exclusive");
    check("rw=randread\nrandom_distribution=zipf:1.0", Refused, "0.99");
    check("size=2k\nbs=4k", Refused, "size too small");
    check("ioengine=net", Unsupported, "io_uring");
    check("read_iolog=x", Unsupported, "lens");
    check("rw=trimwrite", Unsupported, "two jobs");
    check("wait_for=nobody", Refused, "no job before it");
}

#[test]
fn sizes_are_those_that_fio_reads() {
    let check = |options: &str, size: u64| {
        let plan = plan(&format!("[j]\nsize=1g\nioengine=io_uring\ndirect=1\n{options}\n"));
        assert_eq!(plan.stages[0].groups[0].pattern.size_max(), size, "{options}");
    };
    check("bs=4K", 4096);
    check("bs=4kB", 4096);
    check("bs=4ki", 4096);
    check("bs =8k", 8192);
    check("bs=0x1000", 4096);
    check("bs=$pagesize*2", 8192);
    check("bs=4k ; a comment", 4096);
    check("kb_base=1000\nbs=4kib", 4096);
    check("bs=4k\nbs=16k", 16_384);
    check("blocksize=8k", 8192);
    check("rw=write\nbs=8k,32k", 32_768);
    check("rw=write\nbs=,64k", 65_536);
}

#[test]
fn globals_concern_the_jobs_below_them_and_the_command_line_is_a_job_too() {
    let text = "[a]\nfilename=/dev/a\n[global]\niodepth=8\nioengine=libaio\n[b]\nfilename=/dev/b\n[global-more]\nbs=16k\n[c]\nfilename=/dev/c\n";
    let found = plan(text);
    let groups = &found.stages[0].groups;
    let outstanding: Vec<u64> = groups.iter().map(plan::Group::outstanding).collect();
    assert_eq!(
        (outstanding, groups[2].pattern.size_max(), groups[1].pattern.size_max()),
        (vec![1, 8, 8], 16_384, 4096)
    );
    let found = plan(
        "fio --ioengine=libaio --iodepth=32 --name=one --rw=randread --bs 8k --filename=/dev/a --name=two --stonewall --filename=/dev/b",
    );
    assert_eq!((found.stages.len(), found.stages[1].outstanding()), (2, 32));
}

#[test]
fn a_job_for_another_store_or_without_a_size_runs_on_the_target_that_is_named() {
    let text = "[j]\nioengine=rbd\npool=p\nrbdname=r\nclientname=admin\niodepth=32\nrw=randwrite\nbs=4k\n";
    let source = crate::Source::new("test.fio", text);
    let named = crate::Options { has_targets: true, ..crate::Options::default() };
    let plan = crate::import(&source, &named).expect("a target is named").plan;
    let group = &plan.stages[0].groups[0];
    assert_eq!((group.engine, group.outstanding()), (plan::Engine::IoUring, 32));
    assert!(
        plan.notes.iter().any(|note| note.text.contains("the lab has no engine rbd")),
        "{:?}",
        plan.notes
    );
    let error = crate::import(&source, &crate::Options::default()).expect_err("nobody says how large it is");
    assert!(error.to_string().contains("--target"), "{error}");
}

fn plan_with(text: &str, options: &Options<'_>) -> plan::Plan {
    import(&Source::new("test.fio", text), options).unwrap_or_else(|error| panic!("{text}: {error}")).plan
}

/// fio 3.33 writes half of size= to each of them; the lab took the last.
#[test]
fn names_of_files_add_up_over_globals_and_lines_as_in_fio() {
    let found = plan("[global]\nfilename=/data/a\nsize=1m\nrw=write\n[j]\nfilename=/data/b\n");
    let names: Vec<&str> = found.targets.iter().map(|target| target.name.as_str()).collect();
    assert_eq!((names, found.targets[0].size), (vec!["/data/a", "/data/b"], Some(512 << 10)));
    assert!(found.notes.iter().any(|note| note.text.contains("fio adds up the files")), "{:?}", found.notes);
}

#[test]
fn a_key_that_stands_twice_in_a_section_is_told_of() {
    let found = plan("[j]\nfilename=/dev/sdx\nrw=read\nrw=write\n");
    assert_eq!(found.stages[0].groups[0].pattern.reads(), 0.0);
    assert!(found.notes.iter().any(|note| note.text.contains("rw stands twice")), "{:?}", found.notes);
    let found = plan("[global]\nrw=read\n[j]\nfilename=/dev/sdx\nrw=write\n");
    assert!(!found.notes.iter().any(|note| note.text.contains("twice")), "{:?}", found.notes);
}

#[test]
fn a_number_of_ios_ends_a_pass() {
    let amount = |options: &str| {
        let plan = plan(&format!("[j]\nrw=write\nsize=1m\n{options}\n"));
        plan.stages[0].groups[0].timing.length
    };
    assert_eq!(amount("number_ios=5"), Length::Amount(Amount::Bytes(20_480)));
    assert_eq!(amount("number_ios=5\nloops=3"), Length::Amount(Amount::Bytes(61_440)));
    assert_eq!(amount("number_ios=5000"), Length::Amount(Amount::Passes(1.0)));
    assert!(faults("number_ios=5\nbsrange=4k-8k")[0].to_string().contains("io_size="));
    assert!(faults("number_ios=5\nruntime=5\ntime_based")[0].to_string().contains("time_based"));
}

#[test]
fn a_variable_that_is_not_set_is_told_of_once_by_its_name() {
    let text = "[a]\nfilename=/dev/${DISK}\nsize=${SIZE}\n[b]\nfilename=/dev/${DISK}\nsize=${SIZE}\n";
    let error = import(&Source::new("test.fio", text), &Options::default()).expect_err("nothing is set");
    assert_eq!(error.faults.len(), 2, "{error}");
    assert!(error.to_string().contains("--define DISK=value"), "{error}");
    let environment = |name: &str| (name == "DISK").then(|| "sdx".to_owned());
    let found = plan_with(
        "[a]\nfilename=/dev/${DISK}\n",
        &Options { environment: &environment, ..Options::default() },
    );
    assert_eq!(found.targets[0].name, "/dev/sdx");
}

#[test]
fn commands_are_read_as_people_paste_them() {
    let expected =
        plan("fio --name=x --rw=randread --bs=8k --filename=/dev/sdx --ioengine=libaio --iodepth=4");
    for text in [
        "fio -name=x -rw=randread -bs=8k -filename=/dev/sdx -ioengine=libaio -iodepth=4",
        "$ sudo /usr/bin/fio --name x --rw randread --bs 8k --filename /dev/sdx --ioengine libaio --iodepth 4",
        "LC_ALL=C fio \u{2013}name=x \u{2014}rw=randread \u{2013}\u{2013}bs=8k \u{2013}filename=/dev/sdx -ioengine=libaio -iodepth=4",
        "fio --name=x --rw=randread --bs=8k --filename=\u{201c}/dev/sdx\u{201d} --ioengine=libaio --iodepth=4 > out.txt 2>&1",
        "sudo fio --name=x --rw=randread --bs=8k --filename=/dev/sdx --ioengine=libaio --iodepth=4 | tee log.txt",
        "C:\\fio\\fio.exe --name=x --rw=randread --bs=8k --filename=/dev/sdx ^\r\n --ioengine=libaio --iodepth=4",
    ] {
        let found = plan(text);
        assert_eq!((&found.stages, &found.targets), (&expected.stages, &expected.targets), "{text}");
    }
    let found = plan(
        "fio --bs=8k --name=a --rw=read --filename=/dev/sdx && fio --name=b --rw=read --filename=/dev/sdx\n",
    );
    let sizes: Vec<u64> = found.stages.iter().map(|stage| stage.groups[0].pattern.size_max()).collect();
    assert_eq!(sizes, [8192, 4096], "two commands run one after another, each with its own options");
}

/// fio 3.33: `--bs=4k --kb_base=1000` is 4096, the other order and a job file 4000.
#[test]
fn the_base_of_units_counts_from_where_it_stands_on_a_command_line() {
    let size = |text: &str| plan(text).stages[0].groups[0].pattern.size_max();
    assert_eq!(size("fio --name=x --filename=/dev/sdx --bs=512k --kb_base=1000"), 524_288);
    assert_eq!(size("fio --name=x --filename=/dev/sdx --kb_base=1000 --bs=512k"), 512_000);
    assert_eq!(size("[x]\nfilename=/dev/sdx\nbs=512k\nkb_base=1000\n"), 512_000);
}

#[test]
fn a_file_below_dev_is_no_device() {
    let size = |name: &str| plan(&format!("[j]\nfilename={name}\nsize=1m\n")).targets[0].size;
    assert_eq!((size("/dev/shm/x"), size("/dev/sdx")), (Some(1 << 20), None));
    let is_device = |name: &str| name == "/data/disk";
    let options = Options { is_device: &is_device, ..Options::default() };
    assert_eq!(plan_with("[j]\nfilename=/data/disk\nsize=1m\n", &options).targets[0].size, None);
    assert!(faults("size=1m\nfile_append=1")[0].to_string().contains("offset="));
    let text = "[j]\nfill_device=1\nrw=write\nfilename=/data/file\n";
    let error =
        import(&Source::new("test.fio", text), &Options::default()).expect_err("it fills a file system");
    assert!(error.to_string().contains("until the file system is full"), "{error}");
}

/// Seen with fio 3.33: at depth 8, four I/Os issued, or completed, and then the queue drains before the pause.
#[test]
fn a_pause_begins_as_in_fio_when_the_queue_has_drained() {
    use plan::PauseStart;
    for (text, start) in [("", PauseStart::Completed), ("thinktime_blocks_type=issue\n", PauseStart::Drained)]
    {
        let found = plan(&format!(
            "[j]\nfilename=/dev/sdx\nioengine=libaio\niodepth=8\nthinktime=1ms\nthinktime_blocks=4\n{text}"
        ));
        let think = found.stages[0].groups[0].pattern.lines[0].think.expect("it pauses");
        assert_eq!((think.after, think.start), (4, start));
    }
}

/// fio waits, when its queue is full, until no more than `iodepth_low` I/Os are in flight.
#[test]
fn a_queue_that_drains_is_filled_again_after_as_many_completions() {
    let completions = |text: &str| {
        let found = plan(&format!("[j]\nfilename=/dev/sdx\nioengine=libaio\niodepth=32\n{text}"));
        found.stages[0].groups[0].batch.complete
    };
    assert_eq!(completions("iodepth_low=8\n"), 24);
    assert_eq!(completions("iodepth_low=8\niodepth_batch_complete_min=30\n"), 30);
    assert_eq!(completions("iodepth_low=32\n"), 1);
    assert_eq!(completions(""), 1);
}

#[test]
fn what_would_change_the_order_of_ios_is_refused() {
    for (text, expected) in [
        ("serialize_overlap=1\n", "Overlapping I/Os wait"),
        ("pre_read=1\n", "rw=read"),
        ("nrfiles=4\nsize=1g\nfile_service_type=random\n", "a job for each file"),
        ("write_barrier=8\n", "fsync=N"),
    ] {
        let found = faults(&format!("rw=randwrite\n{text}"));
        assert!(found.len() == 1 && found[0].to_string().contains(expected), "{text}: {found:?}");
    }
    plan("[j]\nrw=randwrite\nsize=1m\nfile_service_type=random\nserialize_overlap=0\npre_read=0\n");
}

/// One engine that does no I/O, or one zonemode, was told of once for each of its options.
#[test]
fn what_follows_from_one_fault_is_not_told_again() {
    for (text, expected) in [
        ("ioengine=rdma\nverb=write\nport=5000\nsome_new_option=1\n", "the engine rdma"),
        ("ioengine=net\nlisten\nhostname=h\n", "the engine net"),
        ("zonemode=strided\nzonesize=256m\nzonerange=1g\nzoneskip=1g\n", "zonemode=strided"),
    ] {
        let found = faults(text);
        assert!(found.len() == 1 && found[0].to_string().contains(expected), "{text}: {found:?}");
    }
    assert!(faults("zonesize=256m\n")[0].to_string().contains("strided spans"));
    assert!(
        faults("rw=randread\nrandom_distribution=sequence:2,0,1\n")[0]
            .to_string()
            .contains("a list of blocks")
    );
    assert!(faults("size=1z\n")[0].to_string().contains("counts zones"));
    assert!(faults("zonemode=none\nmax_open_zones=4\npercentage_sequential=20\n").is_empty());
}

/// The shell's variables became targets, and a fence of Markdown an option.
#[test]
fn a_command_line_of_a_page_or_a_script_is_read_as_its_shell_reads_it() {
    let environment = |name: &str| (name == "BS").then(|| "16k".to_owned());
    let options = Options { environment: &environment, ..Options::default() };
    let command = |rest: &str| format!("fio --name=x --rw=read --filename=/dev/sdx {rest}");
    let found = plan_with(&command("--bs=$BS"), &options);
    assert_eq!(found.stages[0].groups[0].pattern.size_max(), 16_384);
    for (text, expected) in [
        ("fio --name=x --rw=read --filename=$DEV".to_owned(), "--define DEV=value"),
        (command("--runtime=$((60 * 2))").replace(" * ", "*"), "calculated by the shell"),
    ] {
        let error = import(&Source::new("command line", text.as_str()), &options).expect_err(&text);
        assert!(error.faults.len() == 1 && error.to_string().contains(expected), "{error}");
    }
    let found = plan_with(&command("--filename_format=$jobname.$jobnum"), &options);
    assert_eq!(found.targets.len(), 1);
    let fenced = format!("```bash\n{}\n```\n", command("--bs=8k"));
    assert!(crate::is_command_line(&fenced));
    assert_eq!(plan_with(&fenced, &options).stages[0].groups[0].pattern.size_max(), 8192);
}
