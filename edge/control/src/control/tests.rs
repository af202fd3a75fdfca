//! The control plane with an engine in memory: what is recorded, what a crash leaves, what is refused.

use super::*;
use crate::fake::{self, Fake};
use api::types::{AddDevices, ChangeDisk, CreateDisk, CreatePolicy, DeleteDisk};
use engine::EngineError;
use failure::Code;
use std::sync::Mutex;
use tempfile::TempDir;

/// A host on a folder, with the engine that it talks to.
struct Host {
    control: Arc<Control>,
    fake: Arc<Mutex<Fake>>,
    folder: TempDir,
}

fn config(folder: &TempDir) -> Config {
    let text = format!("data_dir = \"{}\"\n[[group]]\nlog = \"/dev/log\"\n", folder.path().display());
    Config::parse(&text, folder.path(), false).expect("a configuration")
}

async fn start(folder: TempDir, former: Fake) -> Result<Host, Failure> {
    let config = config(&folder);
    let (engine, fake) = fake::restart(former);
    let control = fake::control(config, engine).await?;
    Ok(Host { control, fake, folder })
}

async fn host() -> Host {
    start(tempfile::tempdir().expect("a folder"), Fake::default()).await.expect("it starts")
}

/// A deletion that is confirmed with a name, or not.
fn named(confirm: Option<&str>) -> DeleteDisk {
    DeleteDisk { confirm: confirm.map(str::to_owned), detach_clients: false }
}

impl Host {
    /// Stops without a word, as a crash does, and starts again; `change` alters what is on the devices meanwhile.
    async fn crash(self, change: impl FnOnce(&mut Fake)) -> Host {
        let Host { control, fake, folder } = self;
        let mut former = std::mem::take(&mut *fake.lock().unwrap());
        fake.lock().unwrap().fail = None;
        // The sampler's task ends when the engine is gone; the directory must be closed before it is opened again.
        let _ = control.engine.call(|answer| Command::Stop { answer }).await;
        control.store.file().close();
        drop(control);
        change(&mut former);
        start(folder, former).await.expect("it starts again")
    }

    async fn create(&self, name: &str, policy: &str) -> Result<api::types::DiskView, Failure> {
        let policy = (!policy.is_empty()).then(|| policy.to_owned());
        let request = CreateDisk { name: name.to_owned(), size: 1 << 30, policy, ..CreateDisk::default() };
        self.control.create_disk(request).await
    }

    async fn resize(&self, name: &str, size: u64, confirm: Option<&str>) -> Result<(), Failure> {
        let confirm = confirm.map(str::to_owned);
        let request = ChangeDisk { size: Some(size), confirm, ..ChangeDisk::default() };
        self.control.change_disk(name, request).await.map(|_| ())
    }

    fn fail(&self, command: &'static str) {
        self.fake.lock().unwrap().fail = Some((command, EngineError::Device("it burns".to_owned())));
    }

    async fn names(&self) -> Vec<String> {
        self.control.disk_list().await.expect("a list").into_iter().map(|disk| disk.name).collect()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_is_made_listed_changed_and_deleted() {
    let host = host().await;
    let made = host.create("a", "").await.expect("made");
    assert_eq!((made.summary.policy.as_str(), made.summary.state.as_str()), ("single", "active"));
    assert!(made.layout[0].ends_with("/dev/log: active"), "{:?}", made.layout);
    assert!(made.addresses[0].starts_with("nbd://127.0.0.1:10809/a"), "{:?}", made.addresses);
    assert_eq!(host.create("a", "").await.expect_err("taken").code, Code::Conflict);
    host.create("b", "single,stripes=1").await.expect("made");
    assert_eq!(host.names().await, ["a", "b"]);

    let rename = ChangeDisk { name: Some("c".to_owned()), read_only: Some(true), ..ChangeDisk::default() };
    let renamed = host.control.change_disk("a", rename).await.expect("renamed");
    assert_eq!((renamed.summary.name.as_str(), renamed.summary.read_only), ("c", true));
    assert!(host.fake.lock().unwrap().disks.values().any(|disk| disk.name == "c" && disk.read_only));

    assert_eq!(
        host.control.delete_disk("c", &named(None)).await.expect_err("unconfirmed").code,
        Code::Refused
    );
    assert_eq!(
        host.control.delete_disk("c", &named(Some("b"))).await.expect_err("another").code,
        Code::Refused
    );
    host.control.delete_disk("c", &named(Some("c"))).await.expect("deleted");
    assert_eq!(host.names().await, ["b"]);
    assert_eq!(host.control.disk_view("c").await.expect_err("gone").code, Code::NotFound);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_grows_freely_and_shrinks_when_confirmed() {
    let host = host().await;
    host.create("a", "").await.expect("made");
    host.resize("a", 300 << 30, None).await.expect("grown");
    let failure = host.resize("a", 1 << 30, None).await.expect_err("unconfirmed");
    assert!(failure.hint.expect("a hint").contains("--confirm a"));
    host.resize("a", 1 << 30, Some("a")).await.expect("shrunk");
    assert_eq!(host.resize("a", 1000, None).await.expect_err("no size").code, Code::Usage);
    let fake = host.fake.lock().unwrap();
    let disk = fake.disks.values().next().expect("the disk");
    assert_eq!(disk.size, 1 << 30);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_that_cannot_be_made_leaves_no_trace() {
    let host = host().await;
    host.fail("create");
    assert_eq!(host.create("a", "").await.expect_err("it burns").code, Code::Refused);
    assert!(host.names().await.is_empty());
    host.create("a", "").await.expect("made");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_default_policy_is_refused_with_the_way_out_and_forced_with_a_debt() {
    let host = host().await;
    let failure = host.create("a", "default").await.expect_err("one host");
    assert_eq!(failure.code, Code::Refused);
    assert!(failure.error.contains("failures_to_tolerate=1 needs 2 disk groups"), "{failure}");
    assert!(failure.error.contains("there is 1"), "{failure}");
    assert!(failure.hint.expect("a hint").contains("--policy single"));
    let forced = host.create("a", "default,force_provisioning=on").await.expect("made");
    assert_eq!(forced.summary.debts, ["failures_to_tolerate is 0, the policy asks for 1"]);
    assert!(forced.why.iter().any(|line| line.starts_with("debt: ")), "{:?}", forced.why);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reservation_is_forced_as_far_as_it_fits_and_the_rest_is_a_debt() {
    let host = host().await;
    let request = |policy: &str| CreateDisk {
        name: "a".to_owned(),
        size: 2 * crate::fake::DEVICE_SIZE - (1 << 30),
        policy: Some(policy.to_owned()),
        ..CreateDisk::default()
    };
    let reserved = "single,stripes=1,space_reservation=100";
    let failure = host.control.create_disk(request(reserved)).await.expect_err("nearly twice what there is");
    assert!(failure.error.contains("space_reservation"), "{failure}");
    let forced = format!("{reserved},force_provisioning=on");
    let disk = host.control.create_disk(request(&forced)).await.expect("made");
    assert_eq!(disk.summary.debts, ["space_reservation is 50, the policy asks for 100"]);
    let at_engine = host.fake.lock().unwrap().disks.values().next().expect("it is there").space_reservation;
    assert_eq!(at_engine.get(), 50);
}

#[tokio::test(flavor = "multi_thread")]
async fn policies_are_made_used_and_deleted() {
    let host = host().await;
    let create = |name: &str, rules: &str| CreatePolicy { name: name.to_owned(), rules: rules.to_owned() };
    let made = host.control.create_policy(create("slow", "single,iops_limit=50")).await.expect("made");
    assert_eq!(made.rules["iops_limit"], "50");
    let disk = host.create("a", "slow,space_reservation=10").await.expect("made");
    assert_eq!(disk.summary.policy, "single,space_reservation=10,iops_limit=50");
    for (name, rules, code) in [
        ("slow", "single", Code::Conflict),
        ("single", "single", Code::Conflict),
        ("x", "speed=9", Code::Usage),
        ("x", "nobody", Code::NotFound),
    ] {
        let failure = host.control.create_policy(create(name, rules)).await.expect_err(rules);
        assert_eq!(failure.code, code, "{failure}");
    }
    host.control.delete_policy("slow").await.expect("deleted");
    assert_eq!(host.control.delete_policy("slow").await.expect_err("gone").code, Code::NotFound);
    assert_eq!(host.control.delete_policy("single").await.expect_err("built in").code, Code::Refused);
    let host = host.crash(|_| {}).await;
    let disk = host.control.disk_view("a").await.expect("there");
    assert_eq!(disk.rules["iops_limit"], "50", "a disk keeps its rules");
}

#[tokio::test(flavor = "multi_thread")]
async fn devices_are_added_removed_and_remembered() {
    let host = host().await;
    let add = |group: Option<String>, log: Option<&str>, capacity: &[&str]| AddDevices {
        host: None,
        group,
        log: log.map(str::to_owned),
        capacity: capacity.iter().map(|path| (*path).to_owned()).collect(),
        ..AddDevices::default()
    };
    let added = host.control.add_devices(add(None, Some("/dev/l2"), &["/dev/c1"])).await.expect("a group");
    assert_eq!(added.devices.len(), 2);
    host.control.add_devices(add(Some(added.group.clone()), None, &["/dev/c2"])).await.expect("one more");
    let host = host.crash(|_| {}).await;
    assert_eq!(host.control.devices().await.expect("devices").len(), 4);
    assert_eq!(host.fake.lock().unwrap().commands.iter().filter(|name| **name == "open_group").count(), 2);
    assert_eq!(host.control.remove_device("/dev/c2", false).await.expect("removed"), None);
    assert!(
        host.control
            .remove_device("/dev/c2", false)
            .await
            .is_err_and(|failure| failure.code == Code::NotFound)
    );
    host.control.remove_device("/dev/c1", false).await.expect("removed");
    host.control.remove_device("/dev/l2", true).await.expect("the whole group");
    let advice = host.control.remove_device("/dev/log", true).await.expect("removed");
    assert!(advice.expect("advice").contains("configuration file"));
    for wrong in
        [add(None, None, &["/c"]), add(Some("x".to_owned()), None, &["/c"]), add(None, Some("l"), &[])]
    {
        assert_eq!(host.control.add_devices(wrong).await.expect_err("nonsense").code, Code::Usage);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_whose_only_group_fails_does_not_start() {
    let folder = tempfile::tempdir().expect("a folder");
    let refused = EngineError::Refused("/dev/log holds an ext4 file system".to_owned());
    let config = config(&folder);
    let (engine, fake) = fake::start();
    fake.lock().unwrap().fail = Some(("open_group", refused));
    let failure = fake::control(config, engine).await.err().expect("it does not start");
    assert_eq!(failure.code, Code::Refused);
    assert_eq!(failure.error, "open the disk group of /dev/log: /dev/log holds an ext4 file system");
}
