//! Results of like form to DiskSPD's.

use super::*;

pub(crate) const TEXT: &str = "
Command Line: diskspd -b8K -d30 -o16 -t2 -r -w30 -L test.dat

Input parameters:

\ttimespan:   1
\t-------------
\tduration: 30s
\tpath: 'test.dat'
\t\tthink time: 0ms
\t\tperforming mix test (read/write ratio: 70/30)
\t\tblock size: 8KiB
\t\tusing random I/O (alignment: 8KiB)
\t\tnumber of outstanding I/O operations per thread: 16
\t\tthreads per file: 2

System information:

Results for timespan 1:
*******************************************************************************

actual test time:\t30.00s
thread count:\t\t2

Total IO
thread |       bytes     |     I/Os     |    MiB/s   |  I/O per s |  AvgLat  | LatStdDev |  file
-----------------------------------------------------------------------------------------------------
     0 |       163840000 |        20000 |       5.21 |     666.67 |   24.000 |     2.000 | test.dat (10GiB)
     1 |        81920000 |        10000 |       2.60 |     333.33 |   48.000 |     2.000 | test.dat (10GiB)
-----------------------------------------------------------------------------------------------------
total:         245760000 |        30000 |       7.81 |    1000.00 |   32.000 |     9.000

Read IO
thread |       bytes     |     I/Os     |    MiB/s   |  I/O per s |  AvgLat  | LatStdDev |  file
-----------------------------------------------------------------------------------------------------
     0 |       163840000 |        20000 |       5.21 |     666.67 |   24.000 |     2.000 | test.dat (10GiB)
-----------------------------------------------------------------------------------------------------
total:         163840000 |        20000 |       5.21 |     666.67 |   24.000 |     9.000

Write IO
thread |       bytes     |     I/Os     |    MiB/s   |  I/O per s |  AvgLat  | LatStdDev |  file
-----------------------------------------------------------------------------------------------------
     0 |               0 |            0 |       0.00 |       0.00 |    0.000 |       N/A | test.dat (10GiB)
-----------------------------------------------------------------------------------------------------
total:                 0 |            0 |       0.00 |       0.00 |    0.000 |       N/A

Total latency distribution:
  %-ile |  Read (ms) | Write (ms) | Total (ms)
----------------------------------------------
    min |      1.000 |        N/A |      1.000
   50th |     20.000 |        N/A |     30.000
3-nines |     99.000 |        N/A |    120.000
    max |    100.000 |        N/A |    130.000
";

pub(crate) const XML: &str = "<Results>
 <System><Tool><Version>2.2.0</Version></Tool></System>
 <Profile><TimeSpans><TimeSpan><Targets><Target><Path>a</Path><BlockSize>4096</BlockSize><Random>4096</Random>
  <WriteRatio>100</WriteRatio><RequestCount>8</RequestCount><ThreadsPerFile>2</ThreadsPerFile></Target></Targets></TimeSpan></TimeSpans></Profile>
 <TimeSpan><TestTimeSeconds>10.0</TestTimeSeconds>
  <Latency><AverageWriteMilliseconds>1.6</AverageWriteMilliseconds><AverageTotalMilliseconds>1.6</AverageTotalMilliseconds>
   <Bucket><Percentile>50</Percentile><WriteMilliseconds>1.5</WriteMilliseconds><TotalMilliseconds>1.5</TotalMilliseconds></Bucket></Latency>
  <Iops><Bucket SampleMillisecond=\"1000\" Read=\"0\" Write=\"9000\" Total=\"9000\"/></Iops>
  <Thread><Id>0</Id><Target><Path>a</Path><BytesCount>245760000</BytesCount><IOCount>60000</IOCount>
   <WriteBytes>245760000</WriteBytes><WriteCount>60000</WriteCount></Target></Thread>
  <Thread><Id>1</Id><Target><Path>a</Path><BytesCount>163840000</BytesCount><IOCount>40000</IOCount>
   <WriteBytes>163840000</WriteBytes><WriteCount>40000</WriteCount></Target></Thread>
 </TimeSpan>
</Results>
";

#[test]
fn text_is_read_by_its_headers() {
    assert!(is_text(TEXT));
    let run = read("a.txt", TEXT).unwrap().runs.remove(0);
    let job = &run.job;
    assert_eq!((job.block_bytes, job.read_share, job.random_share), (Some(8_192), Some(0.7), Some(1.0)));
    assert_eq!((job.threads, job.depth, job.outstanding), (Some(2), Some(16), Some(32.0)));
    assert_eq!((run.seconds, run.workers_iops.clone()), (Some(30.0), vec![666.67, 333.33]));
    let total = run.total();
    assert_eq!((total.ios, total.iops, total.latency_s), (Some(30_000), Some(1_000.0), Some(0.032)));
    assert_eq!(total.latencies.percentile(0.999).as_deref(), Some("120.00 ms"));
    assert_eq!(run.directions[&Direction::Read].latencies.percentile(0.5).as_deref(), Some("20.00 ms"));
    assert!(!run.directions.contains_key(&Direction::Write), "nothing was written");
}

#[test]
fn text_without_latency_and_of_an_older_release_is_read_too() {
    let old = TEXT
        .replace("MiB/s", "MB/s")
        .replace(" |  AvgLat  | LatStdDev", "")
        .replace(" |   32.000 |     9.000", "");
    let total = read("a.txt", &old).unwrap().runs[0].total();
    assert_eq!((total.latency_s, total.bytes_per_s), (None, Some(7.81 * MIB)));
}

#[test]
fn threads_that_targets_share_are_counted_once() {
    let shared = TEXT
        .replace("\t\tthreads per file: 2\n", "")
        .replace("     1 |        81920000", "     0 |        81920000")
        .replace("thread count:\t\t2\n", "thread count:\t\t3\nrequest count:\t\t5\n");
    let run = read("a.txt", &shared).unwrap().runs.remove(0);
    assert_eq!((run.job.threads, run.job.depth, run.job.outstanding), (Some(3), Some(5), Some(15.0)));
    assert_eq!(run.workers_iops, [1_000.0]);
}

#[test]
fn a_timespan_that_was_interrupted_is_told() {
    let text = TEXT.replace("actual test time:", "The test was interrupted before the measurements began.");
    assert!(read("a.txt", &text).unwrap_err().found.contains("interrupted"));
    let second =
        format!("{TEXT}{}", &text[text.find("Results for").unwrap()..].replace("timespan 1", "timespan 2"));
    let set = read("a.txt", &second).unwrap();
    assert_eq!((set.runs.len(), set.notes.len()), (1, 1));
}

#[test]
fn text_that_is_cut_off_is_refused_with_its_place() {
    let check = |at: &str, expected: &str| {
        let error = read("a.txt", &TEXT[..TEXT.find(at).unwrap()]).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    };
    check("Results for", "no \"Results for timespan\"");
    check("Total IO", "without the table");
    check("total:", "without a total");
}

#[test]
fn xml_is_read() {
    assert!(xml::is_xml(XML));
    let set = xml::read("a.xml", XML).unwrap();
    assert_eq!(set.version.as_deref(), Some("2.2.0"));
    let run = &set.runs[0];
    assert_eq!(
        (run.job.block_bytes, run.job.outstanding, run.job.read_share),
        (Some(4_096), Some(16.0), Some(0.0))
    );
    let total = run.total();
    assert_eq!((total.ios, total.iops, total.latency_s), (Some(100_000), Some(10_000.0), Some(0.0016)));
    assert_eq!(total.latencies.percentile(0.5).as_deref(), Some("1.50 ms"));
    assert_eq!(run.workers_iops, [6_000.0, 4_000.0]);
    assert_eq!((run.intervals[0].to_s, run.intervals[0].iops), (1.0, Some(9_000.0)));
    assert!(!run.directions.contains_key(&Direction::Read));
}

#[test]
fn xml_that_is_cut_off_or_deep_is_refused() {
    let error = xml::read("a.xml", &XML[..XML.len() / 2]).unwrap_err();
    assert!(error.line.is_some(), "{error}");
    let deep = format!("<Results>{}", "<TimeSpan>".repeat(100));
    assert!(xml::read("a.xml", &deep).unwrap_err().found.contains("deep"));
}
