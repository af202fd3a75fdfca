//! The driver: it connects to agents, aligns their clocks, starts them together and puts together what they measured.

use super::clocks::Offset;
use super::frame::{Frames, MESSAGE_MAX};
use super::invitation::Invitation;
use super::message::{ToAgent, ToDriver};
use super::place::Placement;
use super::{PROTOCOL, tls};
use crate::clock;
use crate::generator::stage::Second;
use crate::runner::Event;
use measured::{AgentPart, DiskSeries, Ended, GroupRun, Machine, Run, StageRun, TargetFacts, VERSION};
use rustls::{ClientConnection, StreamOwned};
use serde::Serialize;
use std::collections::BTreeMap;
use std::io;
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A connection that does not come about within this does not.
const CONNECT_WAIT: Duration = Duration::from_secs(10);
/// An agent that is silent for so long is lost; it tells that it is there once a second.
const SILENCE_MAX: Duration = Duration::from_secs(5);
/// Opening targets and filling files may take so long.
const PREPARE_WAIT: Duration = Duration::from_secs(3600);
/// Reads of a connection give up after so long, so that one thread can look after all agents.
const TURN: Duration = Duration::from_millis(2);
/// Readings of a clock that are exchanged before every stage.
const EXCHANGES: usize = 20;
/// A stage begins so long after all are told (ns): longer than a message takes.
const LEAD: u64 = 250_000_000;

/// Why agents cannot be driven.
#[derive(Debug, thiserror::Error)]
pub enum DriveError {
    /// An agent cannot be reached, is another, or refuses.
    #[error("agent {agent}: {reason}")]
    Agent {
        /// Which.
        agent: String,
        /// Why not.
        reason: String,
    },
    /// None is left.
    #[error("all agents were lost: {0}")]
    None(String),
}

struct Agent {
    name: String,
    frames: Frames<StreamOwned<ClientConnection, TcpStream>>,
    machine: Machine,
    offset: Offset,
    heard: Instant,
    lost: Option<String>,
}

/// Agents that answer.
pub struct Driver {
    agents: Vec<Agent>,
}

impl Driver {
    /// Connects to all who sent an invitation.
    ///
    /// # Errors
    /// When one of them cannot be reached, is not who it should be, or refuses the secret.
    pub fn connect(invitations: &[Invitation]) -> Result<Driver, DriveError> {
        let agents = invitations.iter().map(|invitation| {
            Agent::connect(invitation)
                .map_err(|reason| DriveError::Agent { agent: invitation.address.clone(), reason })
        });
        let mut driver = Driver { agents: agents.collect::<Result<_, _>>()? };
        driver.tell_names_apart();
        Ok(driver)
    }

    /// Two agents on machines of the same name are told apart by their addresses.
    fn tell_names_apart(&mut self) {
        let names: Vec<String> = self.agents.iter().map(|agent| agent.machine.name.clone()).collect();
        for agent in &mut self.agents {
            let alike = names.iter().filter(|name| **name == agent.machine.name).count();
            if alike == 1 && !agent.machine.name.is_empty() {
                agent.name.clone_from(&agent.machine.name);
            }
            agent.machine.name.clone_from(&agent.name);
        }
    }

    /// The agents' names, in order.
    pub fn names(&self) -> Vec<String> {
        self.agents.iter().map(|agent| agent.name.clone()).collect()
    }

    /// Has every agent find the targets of its part, and drop what its kernel caches of them if `drop_caches`. Returns what they found,
    /// for the plan's targets.
    ///
    /// # Errors
    /// What an agent refuses.
    pub fn find(
        &mut self,
        placement: &Placement,
        destroy: &[String],
        drop_caches: bool,
    ) -> Result<Vec<TargetFacts>, DriveError> {
        let mut facts: Vec<TargetFacts> = (placement.plan.targets.iter())
            .map(|target| TargetFacts {
                name: target.name.clone(),
                opened: "nothing".to_owned(),
                kind: "not used".to_owned(),
                size: 0,
                about: Vec::new(),
            })
            .collect();
        for (index, agent) in self.agents.iter_mut().enumerate() {
            let refused =
                |reason: String, agent: &Agent| DriveError::Agent { agent: agent.name.clone(), reason };
            let plan = Box::new(placement.part(index));
            agent
                .send(&ToAgent::Find { plan, destroy: destroy.to_vec(), drop_caches })
                .map_err(|reason| refused(reason, agent))?;
            match agent.wait(PREPARE_WAIT, |message| matches!(message, ToDriver::Found { .. })) {
                Ok(ToDriver::Found { targets }) => {
                    for (fact, found) in facts.iter_mut().zip(targets) {
                        if let Some(found) = found {
                            fact.opened = match fact.size {
                                0 => format!("{} on {}", found.opened, agent.name),
                                _ => format!("{}, {} on {}", fact.opened, found.opened, agent.name),
                            };
                            (fact.kind, fact.size) = (found.kind, found.size);
                            fact.about.extend(found.about);
                        }
                    }
                }
                Ok(_) => {}
                Err(reason) => return Err(refused(reason, agent)),
            }
        }
        Ok(facts)
    }

    /// Runs all stages.
    ///
    /// # Errors
    /// When a stage cannot begin, or no agent is left. Agents that are lost on the way are told of in the result.
    pub fn run(
        &mut self,
        placement: &Placement,
        targets: Vec<TargetFacts>,
        settings: &DriveSettings,
        observe: &mut dyn FnMut(Event),
    ) -> Result<Run, DriveError> {
        let started = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap_or_default()
            .as_millis();
        let origin = clock::now();
        let plan = &placement.plan;
        let mut run = Run {
            version: VERSION,
            program: settings.program.clone(),
            started_unix_ms: u64::try_from(started).unwrap_or(u64::MAX),
            plan: plan.clone(),
            targets,
            machines: Vec::new(),
            stages: Vec::new(),
            notes: left_out(plan),
            system: measured::System::default(),
            expectations: Vec::new(),
            sources: Vec::new(),
        };
        let mut reached = Vec::new();
        'stages: for (index, stage) in plan.stages.iter().enumerate() {
            let mut last = 0.0;
            for repeat in 0..stage.repeats {
                std::thread::sleep(stage.pause);
                if settings.interrupted.load(Ordering::Relaxed) {
                    break 'stages;
                }
                observe(Event::Begins { stage: index, repeat });
                let began = clock::now();
                let mut measured = self.run_stage(placement, index, &reached, settings, observe)?;
                measured.repeat = repeat;
                measured.started = (began - origin) as f64 / 1e9;
                last = measured.iops();
                observe(Event::Ended(&measured));
                let failed = matches!(measured.ended, Ended::Failed(_));
                run.stages.push(measured);
                if failed && !settings.go_on {
                    break 'stages;
                }
            }
            reached.push(last);
        }
        for agent in &mut self.agents {
            run.machines
                .push(Machine { clock_error: agent.offset.error_ns as f64 / 1e9, ..agent.machine.clone() });
            if let Some(reason) = &agent.lost {
                run.notes.push(format!("agent {} was lost: {reason}", agent.name));
            }
        }
        Ok(run)
    }

    fn run_stage(
        &mut self,
        placement: &Placement,
        stage: usize,
        reached: &[f64],
        settings: &DriveSettings,
        observe: &mut dyn FnMut(Event),
    ) -> Result<StageRun, DriveError> {
        let taking_part: Vec<usize> =
            (0..self.agents.len()).filter(|&agent| !placement.groups(stage, agent).is_empty()).collect();
        for &index in &taking_part {
            self.agents[index].prepare(stage, reached, settings.go_on)?;
        }
        if taking_part.iter().all(|&index| self.agents[index].lost.is_some()) {
            let reasons: Vec<String> = self.agents.iter().filter_map(|agent| agent.lost.clone()).collect();
            return Err(DriveError::None(reasons.join("; ")));
        }
        let begin = clock::now() + LEAD;
        for &index in &taking_part {
            let agent = &mut self.agents[index];
            let at = agent.offset.there(begin);
            agent.tell(&ToAgent::Begin { at });
        }
        let done = self.watch(placement, stage, &taking_part, settings, observe);
        Ok(self.put_together(placement, stage, &taking_part, done))
    }

    /// Listens to all agents until each has ended or is lost.
    fn watch(
        &mut self,
        placement: &Placement,
        stage: usize,
        taking_part: &[usize],
        settings: &DriveSettings,
        observe: &mut dyn FnMut(Event),
    ) -> BTreeMap<usize, StageRun> {
        let mut done = BTreeMap::new();
        let mut told_to_stop = false;
        loop {
            let mut waiting = false;
            for &index in taking_part {
                let agent = &mut self.agents[index];
                if agent.lost.is_some() || done.contains_key(&index) {
                    continue;
                }
                waiting = true;
                match agent.receive() {
                    Some(ToDriver::Done { run }) => {
                        done.insert(index, *run);
                    }
                    Some(ToDriver::Second { group, mut interval }) => {
                        interval.at += placement.counts_later(stage, index);
                        if let Some(&group) = placement.groups(stage, index).get(group) {
                            observe(Event::Second(Second { group, interval }));
                        }
                    }
                    Some(ToDriver::Refused { reason }) => agent.lost = Some(reason),
                    Some(_) | None => {}
                }
            }
            if !waiting {
                return done;
            }
            if !told_to_stop && settings.interrupted.load(Ordering::Relaxed) {
                told_to_stop = true;
                taking_part.iter().for_each(|&index| self.agents[index].tell(&ToAgent::Stop));
            }
        }
    }

    fn put_together(
        &self,
        placement: &Placement,
        stage: usize,
        taking_part: &[usize],
        mut done: BTreeMap<usize, StageRun>,
    ) -> StageRun {
        let mut groups: Vec<(usize, GroupRun)> = Vec::new();
        let mut whole = StageRun {
            stage,
            repeat: 0,
            started: 0.0,
            seconds: 0.0,
            ended: Ended::Done,
            first_error: None,
            groups: Vec::new(),
            disks: Vec::new(),
            stalls: Vec::new(),
            cpu_user: 0.0,
            cpu_system: 0.0,
            start_late: 0.0,
            agents: Vec::new(),
        };
        for &index in taking_part {
            let agent = &self.agents[index];
            let part = done.remove(&index);
            whole.agents.push(AgentPart {
                agent: agent.name.clone(),
                clock_error: agent.offset.error_ns as f64 / 1e9,
                start_late: part.as_ref().map_or(0.0, |part| part.start_late),
                lost: match part {
                    Some(_) => None,
                    None => Some(agent.lost.clone().unwrap_or_else(|| "it did not end".to_owned())),
                },
            });
            // Each agent counts from when the first of its own groups does.
            let Some(part) = part.map(|part| part.begun_later(placement.counts_later(stage, index))) else {
                continue;
            };
            groups.extend(placement.groups(stage, index).into_iter().zip(part.groups));
            whole.seconds = whole.seconds.max(part.seconds);
            whole.cpu_user += part.cpu_user;
            whole.cpu_system += part.cpu_system;
            whole.start_late = whole.start_late.max(part.start_late);
            whole.stalls.extend(part.stalls);
            if let Some(error) = part.first_error {
                whole.first_error.get_or_insert(error);
            }
            if whole.ended == Ended::Done {
                whole.ended = part.ended;
            }
            whole.disks.extend(part.disks.into_iter().map(|disk| {
                let machine = placement.machine_of(stage, index, &disk.name).filter(|vm| *vm != agent.name);
                let machine = machine.map_or(String::new(), |vm| format!("{vm}: "));
                DiskSeries { name: format!("{machine}{} on {}", disk.name, agent.name), ..disk }
            }));
        }
        groups.sort_by_key(|(index, _)| *index);
        whole.groups = groups.into_iter().map(|(_, group)| group).collect();
        whole.stalls.sort_by(|a, b| a.at.total_cmp(&b.at));
        whole
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        // Whoever is gone need not be told.
        self.agents.iter_mut().for_each(|agent| agent.tell(&ToAgent::Bye));
    }
}

/// How stages are driven.
#[derive(Debug, Clone)]
pub struct DriveSettings {
    /// The driver's program and version.
    pub program: String,
    /// Whether I/Os that fail are counted, instead of ending the run.
    pub go_on: bool,
    /// Set to end the run.
    pub interrupted: Arc<AtomicBool>,
}

impl Agent {
    fn connect(invitation: &Invitation) -> Result<Agent, String> {
        let address = (invitation.address.to_socket_addrs())
            .map_err(|error| format!("find its address: {error}"))?
            .next()
            .ok_or("its name does not resolve to an address")?;
        let socket = TcpStream::connect_timeout(&address, CONNECT_WAIT).map_err(|error| {
            format!("connect: {error}; check that the agent runs and that no firewall blocks it")
        })?;
        let set_up = || -> io::Result<()> {
            socket.set_nodelay(true)?;
            socket.set_read_timeout(Some(CONNECT_WAIT))?;
            socket.set_write_timeout(Some(CONNECT_WAIT))
        };
        set_up().map_err(|error| format!("set up the socket: {error}"))?;
        let session = tls::client(invitation.fingerprint)?;
        let stream = socket.try_clone().map_err(|error| format!("set up the socket: {error}"))?;
        let mut frames = Frames::new(StreamOwned::new(session, stream));
        frames.longest = MESSAGE_MAX;
        let secret = base::hex(&invitation.secret);
        frames.send(&ToAgent::Hello { protocol: PROTOCOL, secret }).map_err(|error| {
            format!("TLS handshake: {error}; the agent may not be the one that printed the invitation")
        })?;
        let machine = match frames.receive::<ToDriver>().map_err(|error| format!("shake hands: {error}"))? {
            Some(ToDriver::Welcome { machine, .. }) => machine,
            Some(ToDriver::Refused { reason }) => return Err(reason),
            _ => return Err("it does not answer".to_owned()),
        };
        socket.set_read_timeout(Some(TURN)).map_err(|error| format!("set up the socket: {error}"))?;
        let offset = Offset { ns: 0, error_ns: u64::MAX };
        Ok(Agent {
            name: invitation.address.clone(),
            frames,
            machine,
            offset,
            heard: Instant::now(),
            lost: None,
        })
    }

    fn send(&mut self, message: &impl Serialize) -> Result<(), String> {
        self.frames.send(message).map_err(|error| format!("the connection was lost: {error}"))
    }

    /// Sends; an agent that cannot be told is lost.
    fn tell(&mut self, message: &ToAgent) {
        if self.lost.is_none()
            && let Err(reason) = self.send(message)
        {
            self.lost = Some(reason);
        }
    }

    /// The next message, if there is one; an agent that is gone or silent is lost.
    fn receive(&mut self) -> Option<ToDriver> {
        match self.frames.receive() {
            Ok(Some(message)) => {
                self.heard = Instant::now();
                Some(message)
            }
            Ok(None) if self.heard.elapsed() > SILENCE_MAX => {
                self.lost = Some(format!("no message for {} s", SILENCE_MAX.as_secs()));
                None
            }
            Ok(None) => None,
            Err(error) => {
                self.lost = Some(match error.kind() {
                    io::ErrorKind::UnexpectedEof => "it ended its connection".to_owned(),
                    _ => format!("the connection was lost: {error}"),
                });
                None
            }
        }
    }

    /// Waits for a message; what else comes meanwhile is dropped.
    fn wait(&mut self, longest: Duration, wanted: impl Fn(&ToDriver) -> bool) -> Result<ToDriver, String> {
        let until = Instant::now() + longest;
        self.heard = Instant::now();
        while Instant::now() < until {
            match self.receive() {
                Some(ToDriver::Refused { reason }) => return Err(reason),
                Some(message) if wanted(&message) => return Ok(message),
                Some(_) => {}
                None => {
                    if let Some(reason) = &self.lost {
                        return Err(reason.clone());
                    }
                }
            }
        }
        Err(format!("no answer within {} s", longest.as_secs()))
    }

    /// Aligns the clock and has a stage made ready. An agent that is gone is lost; one that refuses ends the run.
    fn prepare(&mut self, stage: usize, reached: &[f64], go_on: bool) -> Result<(), DriveError> {
        if self.lost.is_some() {
            return Ok(());
        }
        let prepared = self.align().and_then(|()| {
            self.send(&ToAgent::Prepare { stage, reached: reached.to_vec(), go_on })?;
            self.wait(PREPARE_WAIT, |message| matches!(message, ToDriver::Ready))
        });
        match prepared {
            Ok(_) => Ok(()),
            Err(_) if self.lost.is_some() => Ok(()),
            Err(reason) => Err(DriveError::Agent { agent: self.name.clone(), reason }),
        }
    }

    fn align(&mut self) -> Result<(), String> {
        let mut exchanges = Vec::new();
        for _ in 0..EXCHANGES {
            let asked = clock::now();
            self.send(&ToAgent::Clock)?;
            if let ToDriver::Clock { now } =
                self.wait(SILENCE_MAX, |message| matches!(message, ToDriver::Clock { .. }))?
            {
                exchanges.push((asked, now, clock::now()));
            }
        }
        self.offset = Offset::of(&exchanges).ok_or("its clock cannot be read")?;
        Ok(())
    }
}

/// What agents do not do of a plan, for each of them knows only its part: it is told with the result.
fn left_out(plan: &plan::Plan) -> Vec<String> {
    let mut notes = Vec::new();
    for stage in &plan.stages {
        if stage.search.is_some() {
            notes.push(format!(
                "{}: agents do not search for a queue depth, so the job ran at its own depth; use an experiment to search",
                stage.name
            ));
        }
        if stage.steady.is_some() {
            notes.push(format!(
                "{}: agents do not judge the steady state, so the stage ran for its whole duration",
                stage.name
            ));
        }
    }
    notes
}
