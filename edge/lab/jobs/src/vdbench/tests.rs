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
