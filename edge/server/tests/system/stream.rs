//! The stream: what changes and what guests do at all hosts, as it happens.

use super::cluster::{Cluster, SECONDS};
use super::nbd::Client;
use super::tools::{command, text, wait_for};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// A stream that `curl` follows. Dropped, it ends.
struct Stream {
    curl: Child,
    events: Receiver<(String, Value)>,
}

impl Drop for Stream {
    fn drop(&mut self) {
        let _ = self.curl.kill();
        let _ = self.curl.wait();
    }
}

impl Stream {
    fn of(cluster: &Cluster, host: &str, query: &str) -> Stream {
        let mut curl = command("curl");
        curl.args(["-sSN", "--unix-socket", text(&cluster.path(host).join("d/api.sock"))]);
        curl.arg(format!("http://localhost/api/v1/stream?{query}")).stdout(Stdio::piped());
        let mut curl = curl.spawn().expect("curl, of the Debian package curl");
        let output = BufReader::new(curl.stdout.take().expect("it is piped"));
        let (sender, events) = channel();
        std::thread::spawn(move || {
            let mut name = String::new();
            for line in output.lines().map_while(Result::ok) {
                if let Some(event) = line.strip_prefix("event: ") {
                    event.clone_into(&mut name);
                } else if let Some(data) = line.strip_prefix("data: ") {
                    let data = serde_json::from_str(data).expect("JSON");
                    if sender.send((name.clone(), data)).is_err() {
                        return;
                    }
                }
            }
        });
        Stream { curl, events }
    }

    /// The next event that is looked for, and how long it took.
    #[track_caller]
    fn until(&self, what: &str, is_it: impl Fn(&str, &Value) -> bool) -> (Value, Duration) {
        let began = Instant::now();
        loop {
            let left = Duration::from_secs(SECONDS).saturating_sub(began.elapsed());
            let (name, data) =
                self.events.recv_timeout(left).unwrap_or_else(|_| panic!("{what} does not come"));
            if is_it(&name, &data) {
                return (data, began.elapsed());
            }
        }
    }

    #[track_caller]
    fn until_changed(&self, changed: &Value) -> Duration {
        self.until(&changed.to_string(), |name, data| name == "changed" && data == changed).1
    }
}

#[test]
fn a_stream_tells_what_changes_and_what_guests_do_at_every_host() {
    let cluster = Cluster::start(3);
    let stream = Stream::of(&cluster, "a", "figures=cluster,host/b,host/c,disk/web,disk/none");
    assert_eq!(stream.events.recv_timeout(Duration::from_secs(SECONDS)), Ok(("all".to_owned(), json!({}))));
    cluster.json("c", &["disk", "create", "web", "64MiB"]);
    stream.until_changed(&json!({"topic": "disks", "key": "web"}));
    let socket = cluster.path("b").join("d/nbd.sock");
    let mut client = wait_for("host b serves it", SECONDS, || Client::attach(&socket, "web").ok());
    let writing = std::thread::spawn(move || {
        let until = Instant::now() + Duration::from_secs(8);
        while Instant::now() < until {
            client.write(0, &[7; 4096]).expect("it writes");
        }
        client
    });
    // The guest is at host b, and host a tells; a host that a busy machine held up for a second is silent for it.
    let (figures, _) = stream.until("what the guest does", |name, data| {
        let iops = data["of"]["disk/web"]["write"]["iops"].as_f64();
        name == "figures" && data["silent"] == json!([]) && iops.is_some_and(|iops| iops > 1.0)
    });
    let of = |key: &str| figures["of"][key].clone();
    assert!(of("disk/none").is_null(), "{figures}");
    assert_eq!(of("host/b"), of("disk/web"), "{figures}");
    assert_eq!(of("cluster"), of("disk/web"), "{figures}");
    assert_eq!(of("host/c")["write"]["iops"], json!(0.0), "{figures}");
    assert_eq!(of("disk/web")["client_count"], 1, "{figures}");
    assert!(of("disk/web")["write"]["latency_us_p99"].as_f64().is_some_and(|p99| p99 > 1.0), "{figures}");
    let client = writing.join().expect("it ends");
    // A host that dies.
    cluster.order("kill", "c");
    let took = stream.until_changed(&json!({"topic": "hosts", "key": "c"}));
    assert!(took < Duration::from_secs(20), "{took:?}");
    stream.until_changed(&json!({"topic": "health"}));
    stream.until("its silence", |name, data| name == "figures" && data["silent"] == json!(["c"]));
    drop(client);
    // Only what is asked for; and an open stream holds no stop up.
    let narrow = Stream::of(&cluster, "a", "topics=policies");
    cluster.json("b", &["policy", "create", "gold", "failures_to_tolerate=1"]);
    let (all, _) = narrow.until("the first change", |name, _| name != "all");
    assert_eq!(all, json!({"topic": "policies", "key": "gold"}));
    std::thread::scope(|scope| {
        let began = Instant::now();
        scope.spawn(|| cluster.order("stop", "a"));
        while narrow.events.recv_timeout(Duration::from_secs(SECONDS)).is_ok() {}
        assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
    });
}
