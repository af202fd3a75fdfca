//! Several agents on this machine, driven from one place; one that is lost; strangers at the door.

use crate::fixtures::*;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

const JOB: &str = "[j]\nioengine=io_uring\nrw=randread\nbs=4k\niodepth=2\nsize=8m\nruntime=3\ntime_based\n";

struct Agent {
    child: Child,
    invitation: String,
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An agent in a process of its own: this test program again, as [`agent_process`].
fn agent() -> Agent {
    let mut child = Command::new(std::env::current_exe().expect("this program"))
        .args(["agents::agent_process", "--exact", "--nocapture", "--include-ignored"])
        .env("LAB_TEST_AGENT", "1")
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("this program runs");
    let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let invitation = lines
        .map_while(Result::ok)
        .find_map(|line| line.split_once("invitation=").map(|(_, text)| text.trim().to_owned()))
        .expect("an invitation");
    Agent { child, invitation }
}

/// Nothing by itself; an agent when another test starts it as one.
#[test]
fn agent_process() {
    if std::env::var_os("LAB_TEST_AGENT").is_none() {
        return;
    }
    struct Prefixed(Vec<u8>);
    impl Write for Prefixed {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            println!("invitation={}", String::from_utf8_lossy(&self.0).trim());
            std::io::stdout().flush()
        }
    }
    let mut world = lab::commands::World {
        out: &mut Prefixed(Vec::new()),
        json: false,
        interactive: false,
        program: "agent".to_owned(),
        disks: std::sync::Arc::new(lab::commands::NoDisks),
        keep: None,
    };
    #[derive(clap::Parser)]
    struct Cli {
        #[command(subcommand)]
        command: lab::commands::LabCommand,
    }
    let cli = <Cli as clap::Parser>::parse_from(["lab", "agent"]);
    let done = lab::commands::perform(cli.command, &mut world);
    assert!(done.is_ok(), "{done:?}");
}

fn words<'a>(job: &'a str, target: &'a str, agents: &'a [Agent]) -> Vec<&'a str> {
    let mut words = vec!["run", job, "--target", target];
    agents.iter().for_each(|agent| words.extend(["--agent", agent.invitation.as_str()]));
    words
}

#[test]
fn agents_begin_together_and_what_they_measured_is_one_result() {
    let folder = Folder::new();
    let target = text_of(&folder.file("target.img", 8 << 20));
    let job = folder.job("j.fio", JOB);
    let agents = [agent(), agent(), agent()];
    let (done, run) = kept_run(&folder, &words(&job, &target, &agents));
    done.expect("all agents are well");
    let stage = &run.stages[0];
    assert_eq!((stage.groups.len(), stage.agents.len(), stage.outstanding()), (3, 3, 6));
    assert!(
        stage.agents.iter().all(|part| part.lost.is_none() && part.clock_error < 0.005),
        "{:?}",
        stage.agents
    );
    let sum: u64 = stage.groups.iter().map(|group| group.operations[0].latency.count()).sum();
    assert_eq!(stage.total().latency.count(), sum);
}

#[test]
fn an_agent_that_is_killed_is_told_of_and_the_others_results_are_kept() {
    let folder = Folder::new();
    let target = text_of(&folder.file("target.img", 8 << 20));
    let job = folder.job("j.fio", JOB);
    let agents = [agent(), agent()];
    let (done, run) = std::thread::scope(|scope| {
        let victim = agents[1].child.id();
        scope.spawn(move || {
            std::thread::sleep(std::time::Duration::from_millis(1500));
            // SAFETY: the call takes numbers only; the child is waited for later, so its id is its own.
            unsafe { libc::kill(victim as i32, libc::SIGKILL) };
        });
        kept_run(&folder, &words(&job, &target, &agents))
    });
    assert!(done.expect_err("an agent was lost").text.contains("the results of the other agents are kept"));
    let stage = &run.stages[0];
    assert_eq!(stage.groups.len(), 1, "the lost agent's part is in no figure");
    assert!(stage.groups[0].operations[0].ios > 100);
    let lost: Vec<bool> = stage.agents.iter().map(|part| part.lost.is_some()).collect();
    assert_eq!(lost, [false, true]);
    assert!(run.notes.iter().any(|note| note.contains("was lost")), "{:?}", run.notes);
}

/// Each agent opens its own part alone, so nothing there told that the target is that of two machines.
#[test]
fn machines_of_two_agents_on_one_path_keep_their_names() {
    let folder = Folder::new();
    let file = folder.job(
        "fight.toml",
        "name = 'fight'\nseconds = 1\n[[vm]]\nname = 'vm'\ncount = 2\n[[workload]]\nname = 'w'\nreads = 100\ndepth = 2\n",
    );
    let target = text_of(&folder.file("target.img", 8 << 20));
    let (agents, out) = ([agent(), agent()], text_of(&folder.path("run.json")));
    let mut words = vec!["experiment", &file, "--target", &target, "--out", &out];
    agents.iter().for_each(|agent| words.extend(["--agent", agent.invitation.as_str()]));
    lab(&words).expect("it runs");
    let kept = std::fs::read_to_string(&out).expect("it is kept");
    let kept: measured::ExperimentRun = serde_json::from_str(&kept).expect("an experiment");
    let disks = &kept.cells[0].runs[0].stages[0].disks;
    let names: Vec<&str> = disks.iter().map(|disk| disk.name.as_str()).collect();
    assert!(names.len() == 2 && names[0].starts_with("vm1") && names[1].starts_with("vm2"), "{names:?}");
}

/// The driver dropped the caches of its own machine, which runs nothing.
#[test]
fn agents_drop_what_their_kernels_cache() {
    let folder = Folder::on_disk();
    let target = folder.file("target.img", 8 << 20);
    let cached = || {
        let done = Command::new("fincore")
            .args(["-b", "-n", "-o", "RES"])
            .arg(&target)
            .output()
            .expect("fincore runs");
        String::from_utf8_lossy(&done.stdout).trim().parse::<u64>().expect("a number of bytes")
    };
    let run = |drop_caches: bool| {
        std::fs::read(&target).expect("it is read");
        assert!(cached() >= 8 << 20, "reading fills the page cache: {}", cached());
        let text = format!(
            "name = 'e'\nseconds = 1\ndrop_caches = {drop_caches}\n[[vm]]\nname = 'vm'\n[[workload]]\nname = 'w'\nreads = 100\n"
        );
        let agents = [agent()];
        lab(&[
            "experiment",
            &folder.job("e.toml", &text),
            "--target",
            &text_of(&target),
            "--agent",
            &agents[0].invitation,
        ])
        .expect("it runs");
        cached()
    };
    assert!(run(false) >= 4 << 20, "nobody asked for it");
    assert!(run(true) < 1 << 20);
}

#[test]
fn an_invitation_is_good_for_one_session_and_strangers_get_nowhere() {
    let folder = Folder::new();
    let target = text_of(&folder.file("target.img", 8 << 20));
    let job = folder.job("j.fio", &JOB.replace("runtime=3", "runtime=1"));
    let agents = [agent()];
    let address = agents[0].invitation.split('/').next().expect("an address").to_owned();
    // Garbage, silence and a wrong secret at the same door.
    let mut garbage = TcpStream::connect(&address).expect("the agent listens");
    garbage.write_all(&[0xff; 4096]).expect("it takes bytes");
    let silence = TcpStream::connect(&address).expect("the agent listens");
    let wrong = format!("{}00", &agents[0].invitation[..agents[0].invitation.len() - 2]);
    let refused = |invitation: &str, words: &[&str]| {
        let error = lab(&["run", &job, "-t", &target, "--agent", invitation]).expect_err("it is no good");
        assert!(words.iter().any(|word| error.text.contains(word)), "{error}");
    };
    if wrong != agents[0].invitation {
        refused(&wrong, &["the invitation was already used"]);
    }
    let other = agent();
    let (_, rest) = other.invitation.split_once('/').expect("an invitation");
    refused(&format!("{address}/{rest}"), &["TLS handshake"]);
    lab(&words(&job, &target, &agents)).expect("the invited driver gets in");
    refused(&agents[0].invitation, &["connect", "the invitation was already used", "TLS handshake"]);
    drop((garbage, silence));
}
