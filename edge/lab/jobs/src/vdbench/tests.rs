//! Tests of Vdbench's reader.

use crate::{Options, Source, import};

fn plan(text: &str) -> plan::Plan {
    import(&Source::new("x.vdb", text), &Options::default()).unwrap_or_else(|error| panic!("{error}")).plan
}

#[test]
fn a_simple_file_is_one_stage() {
    let plan = plan(
        "sd=sd1,lun=/dev/sdx,openflags=o_direct,threads=16\nwd=wd1,sd=sd1,xfersize=4k,rdpct=70\nrd=rd1,wd=wd1,iorate=max,elapsed=60,interval=5,warmup=10\n",
    );
    assert_eq!((plan.stages.len(), plan.stages[0].outstanding()), (1, 16));
}

#[test]
fn loops_multiply() {
    let head = "sd=sd1,lun=/dev/sdx,openflags=o_direct\nwd=wd1,sd=sd1\n";
    let curve = plan(&format!("{head}rd=rd1,wd=wd1,iorate=curve,forxfersize=(1k-64k,d)\n"));
    assert_eq!(curve.stages.len(), 49);
    let threads =
        plan(&format!("{head}rd=rd1,wd=wd1,iorate=curve,forxfersize=(1k-64k,d),forthreads=(1-64,d)\n"));
    assert_eq!(threads.stages.len(), 343);
}

#[test]
fn what_vdbench_refuses_is_refused_with_the_way_out() {
    let check = |text: &str, expected: &str| {
        let found = import(&Source::new("x.vdb", text), &Options::default());
        let error = found.map(|_| ()).expect_err(text).to_string();
        assert!(error.contains(expected), "{text}: {error}");
    };
    let sd = "sd=sd1,lun=/dev/x\n";
    let wd = "wd=wd1,sd=sd1\n";
    check("sd=sd1, lun=/dev/x\n", "remove the blank");
    check(&format!("compratio=2.3\t# text\n{sd}"), "tab");
    check(&format!("{sd}{wd}sd=sd2,lun=/dev/y\n"), "move the line up");
    check(&format!("{sd}wd=wd1,sd=sd9\n"), "did you mean sd1?");
    check(&format!("{sd}{wd}rd=r,wd=wd1,elapsed=30\n"), "iorate");
    check(&format!("{sd}{wd}rd=r,wd=wd1,iorate=max,elapsed=60s\n"), "write elapsed=60");
    check(&format!("{sd}{wd}rd=r,wd=wd1,iorate=max,elapsed=30,interval=7\n"), "multiple");
    check(&format!("{sd}wd=wd1,sd=sd1,xfersize=4\n"), "4k");
    check(&format!("{sd}wd=wd1,sd=sd1,xfersize=(4k,50,8k,40)\n"), "100");
    check(&format!("{sd}wd=wd1,sd=sd1,rdptc=50\n"), "did you mean rdpct=?");
    check("fsd=f,anchor=/x\n", "block storage");
    check(&format!("{sd}{wd}rd=r,wd=wd1,iorate=(1-100000,1),forthreads=(1-64,d)\n"), "10000");
    check(&format!("{sd}wd=a,sd=sd1,skew=60\nwd=b,sd=sd1,skew=60\nrd=r,wd=*,iorate=max\n"), "skews");
    check("sd=sd1,lun=$lun\n", "lun=value");
    check("rate of the run\n", "no `=`");
}

#[test]
fn keys_may_be_cut_and_lines_go_on_behind_a_comma() {
    let plan = plan(
        "sd=sd1,lun=/dev/x,th=4\nwd=wd1,sd=sd1,xf=8k,\n* a comment\n rdpct=50,seek=0\nrd=r,wd=wd1,io=max,el=60,in=5 the rest is a comment\n",
    );
    let group = &plan.stages[0].groups[0];
    assert_eq!((group.outstanding(), group.pattern.reads(), group.pattern.random()), (4, 50.0, 0.0));
    assert_eq!(group.timing.longest(), Some(std::time::Duration::from_secs(60)));
}

#[test]
fn a_comma_before_the_next_definition_ends_the_one_before_as_in_vdbench() {
    let plan = plan(
        "sd=default,openflags=o_direct,\nsd=sd1,lun=/dev/sdb,threads=4,\nsd=sd2,lun=/dev/sdc,threads=8,\n\
         wd=wd1,sd=sd*,\nrd=rd1,wd=wd1,iorate=max,\nrd=rd2,wd=wd1,iorate=100\n",
    );
    let names: Vec<&str> = plan.targets.iter().map(|target| target.name.as_str()).collect();
    assert_eq!((names, plan.stages.len()), (vec!["/dev/sdb", "/dev/sdc"], 2));
    assert_eq!(plan.stages[0].outstanding(), 12);
    assert!(plan.stages[0].groups.iter().all(|group| group.caching.direct));
}

#[test]
fn one_parameter_a_line_is_read_as_vdbench_reads_it() {
    let plan = plan(
        "sd=sd1\nlun=/dev/sdb\nthreads=4\nwd=wd1\nsd=sd1\nxfersize=8k\nrd=rd1\nwd=wd1\niorate=max\nelapsed=20\n",
    );
    let group = &plan.stages[0].groups[0];
    assert_eq!((group.outstanding(), group.pattern.size_max()), (4, 8192));
}

#[test]
fn a_key_given_twice_takes_the_last_value_with_a_note_or_is_refused_as_by_vdbench() {
    let found = plan("sd=sd1,lun=/dev/x,threads=4,threads=2\nwd=w,sd=sd1\nrd=r,wd=w,iorate=max\n");
    assert_eq!(found.stages[0].outstanding(), 2);
    assert!(found.notes.iter().any(|note| note.text.contains("has threads= twice")), "{:?}", found.notes);
    let head = "sd=sd1,lun=/dev/x\nwd=w,sd=sd1\n";
    refused(&format!("{head}rd=r,wd=w,wd=w,iorate=max\n"), "write all workloads in one list");
    refused(&format!("{head}rd=r,wd=w,iorate=max,forthreads=(1,2),forthreads=(4,8)\n"), "a second loop");
    // The loop was lost without a word where the plain key came behind it, and the plain key where the loop did.
    refused(&format!("{head}rd=r,wd=w,iorate=max,forrdpct=(0,50),rdpct=70\n"), "a second loop");
    refused(&format!("{head}rd=r,wd=w,iorate=max,rdpct=70,forrdpct=(0,50)\n"), "a second loop");
    assert_eq!(
        plan(&format!("{head}rd=r,wd=w,iorate=max,rdpct=70,rdpct=50\n")).stages[0].groups[0].pattern.reads(),
        50.0
    );
    refused(&format!("{head}rd=r,wd=w,iorate=max\nrd=r,wd=w,iorate=max\n"), "two definitions have the name");
    refused("sd=sd1,lun=/dev/x,lun=/dev/y\nwd=w,sd=sd1\nrd=r,wd=w,iorate=max\n", "pairs");
}

/// A run of devices alone ran all workloads of the file, writes among them, where Vdbench reads.
#[test]
fn a_run_without_workloads_does_what_vdbench_does_and_never_writes() {
    let head = "sd=sd1,lun=/dev/sdb\nwd=writes,sd=sd1,rdpct=0,xfersize=64k\n";
    let found = plan(&format!("{head}rd=r,sd=sd1,iorate=max\n"));
    let pattern = &found.stages[0].groups[0].pattern;
    assert_eq!((pattern.reads(), pattern.random(), pattern.size_max()), (100.0, 100.0, 4096));
    let found = plan("sd=sd1,lun=/dev/x\nwd=default,xfersize=8k\nrd=r,sd=sd1,iorate=max\n");
    assert_eq!(found.stages[0].groups[0].pattern.size_max(), 8192);
    refused(&format!("{head}rd=r,iorate=max\n"), "No 'wd=' parameter specified");
}

#[test]
fn the_same_path_on_two_hosts_is_two_devices_and_the_threads_are_divided() {
    let found = plan(
        "hd=default,user=root\nhd=h1,system=10.0.0.1\nhd=h2,system=10.0.0.2\n\
         sd=sd1,host=h1,lun=/dev/sdb,threads=8\nsd=sd2,host=h2,lun=/dev/sdb,threads=4\n\
         wd=w,sd=sd*\nrd=r,wd=w,iorate=1000\n",
    );
    let labels: Vec<String> = found.targets.iter().map(plan::Target::label).collect();
    assert_eq!(labels, ["h1:/dev/sdb", "h2:/dev/sdb"]);
    let hosts: Vec<_> =
        found.stages[0].groups.iter().map(|group| (group.vm.as_deref(), group.outstanding())).collect();
    assert_eq!(hosts, [(Some("h1"), 8), (Some("h2"), 4)]);
    // A device that all hosts have.
    let found = plan("hd=h1\nhd=h2\nsd=sd1,lun=/dev/sdb,threads=8\nwd=w,sd=sd1\nrd=r,wd=w,iorate=max\n");
    let hosts: Vec<_> =
        found.stages[0].groups.iter().map(|group| (group.vm.as_deref(), group.outstanding())).collect();
    assert_eq!(hosts, [(Some("h1"), 4), (Some("h2"), 4)]);
    let found = plan(
        "hd=h1\nhd=h2\nsd=sd1,host=h1,lun=/dev/sdb,lun=/dev/sdc,host=h2\nwd=w,sd=sd1,host=h2\nrd=r,wd=w,iorate=max\n",
    );
    assert_eq!(found.targets.iter().map(plan::Target::label).collect::<Vec<_>>(), ["h2:/dev/sdc"]);
    refused(
        "hd=h1\nhd=h2\nsd=sd1,host=h1,lun=/dev/sdb\nwd=w,sd=sd1,host=h2\nrd=r,wd=w,iorate=max\n",
        "none of its devices",
    );
    refused("hd=h1\nsd=sd1,host=h9,lun=/dev/x\n", "finds no definition `h9`");
}

#[test]
fn what_changes_a_run_and_cannot_be_carried_is_refused() {
    let (sd, wd, rd) = ("sd=sd1,lun=/dev/x", "\nwd=w,sd=sd1", "\nrd=r,wd=w,iorate=max");
    refused(&format!("{sd}{wd},iorate=100,priority=1{rd}\n"), "skew=");
    refused(&format!("{sd}{wd},stride=(1m,2m){rd}\n"), "seekpct");
    refused(&format!("{sd}{wd},streams=4{rd}\n"), "range=");
    refused(&format!("{sd}{wd},hotband=(10,20){rd}\n"), "skew=");
    refused(&format!("validate=yes\n{sd}{wd}{rd}\n"), "--verify");
    refused(&format!("loop=4\n{sd}{wd}{rd}\n"), "--repeat");
    refused(&format!("{sd}{wd}{rd},maxdata=2\n"), "2 times the size of all devices");
    let found = plan(&format!("{sd},size=1g{wd}{rd},maxdata=2\n"));
    assert_eq!(found.stages[0].bytes_max, Some(2 << 30));
    let found = plan(&format!("{sd},size=(4g,4),threads=(8,2){wd},wrpct=30{rd}\n"));
    assert_eq!((found.targets[0].size, found.stages[0].outstanding()), (Some(1 << 30), 4));
    assert_eq!(found.stages[0].groups[0].pattern.reads(), 70.0);
}

#[test]
fn one_fault_is_told_once() {
    let count = |text: &str, expected: &str| {
        let error = import(&Source::new("x.vdb", text), &Options::default()).map(|_| ()).expect_err(text);
        assert_eq!(error.faults.len(), 1, "{text}: {error}");
        assert!(error.to_string().contains(expected), "{error}");
    };
    count(
        "fsd=f,anchor=/x,depth=1,width=1,files=10,size=1m\nfwd=w,fsd=f,operation=read\nrd=r,fwd=w,fwdrate=max,format=yes\n",
        "block storage",
    );
    count(
        "sd=sd1,lun=$lun,size=$size\nsd=sd2,lun=$lun\nwd=w,sd=sd*\nrd=r,wd=w,iorate=max\n",
        "--define lun=value",
    );
    count("sd=sd1 ,lun=/dev/x\nwd=w,sd=sd1\nrd=r,wd=w,iorate=max\n", "no lun=");
    count("sd=sd1,lun=/x\nwd=w,sd=sd1\nsd=sd2,lun=/y,threads=4\nrd=r,wd=w,iorate=max\n", "move the line up");
}

fn refused(text: &str, expected: &str) {
    let found = import(&Source::new("x.vdb", text), &Options::default());
    let error = found.map(|_| ()).expect_err(text).to_string();
    assert!(error.contains(expected), "{text}: {error}");
}

#[test]
fn the_same_fault_at_several_places_is_told_once_with_its_lines() {
    let text = "sd=sd1,lun=/x	* one
sd=sd2,lun=/y	* two
sd=sd3,lun=/z	* three
";
    let error =
        import(&Source::new("x.vdb", text), &Options::default()).map(|_| ()).expect_err(text).to_string();
    assert!(error.lines().count() == 1 && error.contains("(also in line 2, 3)"), "{error}");
}

#[test]
fn a_device_without_openflags_is_what_vdbench_refuses_on_linux() {
    let note = |flags: &str| {
        let found = plan(&format!(
            "sd=sd1,lun=/dev/sdb{flags}
wd=w,sd=sd1
rd=r,wd=w,iorate=max
"
        ));
        found.notes.iter().any(|note| note.text.contains("without openflags=o_direct"))
    };
    assert!(note("") && !note(",openflags=o_direct"));
}
