//! The engine with real files and real clients: what cannot be shown in the simulator.

use super::{Command, Create, DiskRecord, EngineHandle, GroupSpec, Listen, Settings, start};
use base::{ComponentId, DeviceId, DiskId};
use layout::{Component, Layout};
use placement::Policy;
use std::path::{Path, PathBuf};
use std::process::Command as Process;
use std::thread::JoinHandle;

struct Running {
    handle: EngineHandle,
    thread: JoinHandle<()>,
    runtime: tokio::runtime::Runtime,
}

impl Running {
    fn start(socket: &Path) -> Running {
        let settings = Settings {
            cluster: None,
            nbd: vec![Listen::Unix(socket.to_owned())],
            tls: None,
            cluster_tls: None,
            buffer_bytes: 64 << 20,
            table_bytes: 64 << 20,
            scrub_bytes_per_second: 0,
            shards: 1,
        };
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let (handle, thread) = start(settings).expect("the engine starts");
        Running { handle, thread, runtime }
    }

    fn call<T>(&self, make: impl FnOnce(super::Answer<T>) -> Command) -> T {
        self.runtime.block_on(self.handle.call(make)).expect("the engine answers")
    }

    fn open(&self, log: PathBuf, capacity: Vec<PathBuf>) -> DeviceId {
        let spec = GroupSpec {
            log,
            capacity,
            log_size: Some(32 << 20),
            file_size: Some(512 << 20),
            create: Create::IfBlank,
            remake: None,
        };
        self.call(|answer| Command::OpenGroup { spec, answer }).expect("the group opens");
        let host = self.call(|answer| Command::Host { answer });
        host.devices.iter().rfind(|device| device.is_capacity).expect("a capacity device").id
    }

    fn stop(self) {
        self.call(|answer| Command::Stop { answer });
        self.thread.join().expect("the thread ends");
    }
}

fn disk(device: DeviceId, epoch: u32) -> DiskRecord {
    DiskRecord {
        id: DiskId(7),
        name: "web".to_owned(),
        size: 100 << 20,
        policy: Policy::built_in("single").expect("it is built in"),
        space_reservation: placement::Percent::ZERO,
        layout: Layout::Component(Component { id: ComponentId(9), device, size: 100 << 20 }),
        epoch,
        read_only: false,
        access: ::cluster::Access::default(),
    }
}

fn run(program: &str, arguments: &[&str]) -> String {
    let output = Process::new(program).args(arguments).output();
    let output = output.unwrap_or_else(|error| panic!("{program}: {error}; `./x test` installs it"));
    let text =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}: {text}");
    text
}

#[test]
fn what_a_client_wrote_is_there_after_a_restart() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    let text = |name: &str| path(name).to_str().expect("plain text").to_owned();
    let mut content = vec![0u8; 40 << 20];
    base::Random::new(1).fill(&mut content[1 << 20..30 << 20]);
    std::fs::write(path("source"), &content).expect("room for a file");
    std::fs::File::options()
        .write(true)
        .open(path("source"))
        .expect("it is there")
        .set_len(100 << 20)
        .expect("room");

    let uri = format!("nbd+unix:///web?socket={}", text("nbd.sock"));
    let first = Running::start(&path("nbd.sock"));
    let device = first.open(path("log"), vec![path("data")]);
    first.call(|answer| Command::CreateDisk { disk: disk(device, 1), answer }).expect("the disk is made");
    let listing = run("nbdinfo", &[&uri]);
    assert!(listing.contains("can_multi_conn: true") && listing.contains("base:allocation"), "{listing}");
    run("nbdcopy", &[&text("source"), &uri]);
    first.stop();

    let second = Running::start(&path("nbd.sock"));
    assert_eq!(second.open(path("log"), vec![path("data")]), device);
    second.call(|answer| Command::OpenDisk { disk: disk(device, 2), answer }).expect("the disk opens");
    run("nbdcopy", &[&uri, &text("copy")]);
    let copy = std::fs::read(path("copy")).expect("it was copied");
    assert!(copy[..40 << 20] == content[..] && copy.len() == 100 << 20, "the copy differs");
    let state = second.call(|answer| Command::Disks { only: None, answer });
    assert!(state[0].allocated_bytes <= 30 << 20, "zeroes take no space: {}", state[0].allocated_bytes);
    second.stop();
}
