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
    check("sd=sd1, lun=/dev/x\n", "take the blank out");
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
