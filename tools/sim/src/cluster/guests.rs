//! What the guests of a run do next, and where: they ask, move, and start again elsewhere.

use super::plan::MS;
use super::world::{Event, NOTICED_AFTER, World};
use node::Token;

impl World {
    /// Tells the guest's host that its disk is in use there, or no more.
    pub(crate) fn use_disk(&mut self, guest: usize, is_used: bool) {
        let (host, disk) = (self.guests[guest].host, self.guests[guest].disk);
        self.with_node(host, |node, now, out| node.set_used(now, disk, is_used, out));
    }

    /// Somebody reads the guest's disk through another host: a former owner, perhaps.
    pub(crate) fn observe(&mut self, guest: usize) {
        let host = self.random.below(self.hosts.len() as u64) as usize;
        let cut_off = (0..self.hosts.len()).find(|&host| self.hosts[host].cut_off_until > self.now);
        let host = cut_off.filter(|_| self.random.chance(1, 2)).unwrap_or(host);
        let is_running = self.hosts[host].node.is_some() && self.hosts[host].paused_until <= self.now;
        if is_running && self.guests[guest].observers() < 4 {
            let (number, request) = self.guests[guest].observe(host, &mut self.random);
            self.asks(host, guest, number, request);
        }
    }

    /// Somebody writes through another host what the guest is writing.
    fn rival(&mut self, guest: usize) {
        let host = self.random.below(self.hosts.len() as u64) as usize;
        let is_running = self.hosts[host].node.is_some() && self.hosts[host].paused_until <= self.now;
        if host == self.guests[guest].host || !is_running || self.guests[guest].observers() >= 4 {
            return;
        }
        if let Some((number, request)) = self.guests[guest].rival(host, &mut self.random, &self.pool) {
            self.asks(host, guest, number, request);
        }
    }

    pub(crate) fn guest_turn(&mut self, guest: usize) {
        if guest >= self.guests.len() {
            return; // It is gone for good.
        }
        let rush_ns = if self.plan.rush_ns > 0 { self.plan.rush_ns } else { MS };
        let think_ns = if self.now < self.rush_until { rush_ns } else { self.plan.think_ns };
        let pause = 1 + self.random.below(think_ns);
        self.later(pause, Event::Guest { guest });
        if self.awaits_origin(guest) {
            return;
        }
        if self.has_load && self.random.chance(1, 8) {
            self.observe(guest);
        }
        if self.has_load && self.random.chance(1, 8) {
            self.rival(guest);
        }
        if self.has_load {
            self.read_view(guest);
        }
        let host = self.guests[guest].host;
        if self.hosts[host].node.is_none() {
            return self.guest_lost(guest);
        }
        if let Some(to) = self.guests[guest].moving_to {
            if self.hosts[to].node.is_none() {
                self.guests[guest].moving_to = None;
            } else if self.guests[guest].outstanding() == 0 {
                self.say(|| format!("guest {guest} moved from host {host} to {to}"));
                self.use_disk(guest, false);
                self.guests[guest].host = to;
                self.guests[guest].moving_to = None;
                self.use_disk(guest, true); // Its process there may have been started anew since.
            }
            return;
        }
        if !self.has_load || self.guests[guest].outstanding() as u64 >= self.plan.depth {
            return;
        }
        let now = self.now;
        let random = (&mut self.random, &mut self.plan.zeroes);
        let asked = self.guests[guest].ask(now, random, &self.pool);
        if let Some((number, request)) = asked {
            self.guest_asks(guest, number, request);
        }
    }

    pub(crate) fn guest_asks(&mut self, guest: usize, number: u64, request: base::request::Request) {
        self.asks(self.guests[guest].host, guest, number, request);
    }

    pub(crate) fn asks(&mut self, host: usize, guest: usize, number: u64, request: base::request::Request) {
        let disk = self.guests[guest].disk;
        let token = Token((guest as u64) << 40 | number);
        self.with_node(host, |node, now, out| {
            let key = node.disk(disk).expect("every host knows every disk");
            node.request(now, token, key, request, out);
        });
    }

    /// A manager takes a host for dead: its guests are started elsewhere.
    pub(crate) fn restart_guests(&mut self, host: usize) {
        let guests = (0..self.guests.len()).filter(|&guest| self.guests[guest].host == host);
        guests.collect::<Vec<_>>().into_iter().for_each(|guest| self.guest_lost(guest));
    }

    /// The host of a guest is gone, or taken to be: it starts on another that runs.
    pub(crate) fn guest_lost(&mut self, guest: usize) {
        let from = self.guests[guest].host;
        let running: Vec<usize> =
            (0..self.hosts.len()).filter(|&host| self.hosts[host].node.is_some() && host != from).collect();
        if running.is_empty() {
            return;
        }
        let to = running[self.random.below(running.len() as u64) as usize];
        self.say(|| format!("guest {guest} starts again on host {to}"));
        let (from, moving_to) = (self.guests[guest].host, self.guests[guest].moving_to);
        let disk = self.guests[guest].disk;
        for host in [Some(from), moving_to].into_iter().flatten().filter(|host| *host != to) {
            self.with_node(host, |node, now, out| node.set_used(now, disk, false, out));
        }
        let requests = self.guests[guest].own_requests();
        let known_at = self.now + NOTICED_AFTER;
        self.guests[guest].lose_host(to, known_at);
        for number in requests {
            let token = Token((guest as u64) << 40 | number);
            self.with_node(from, |node, now, out| node.abandon(now, token, out));
        }
        self.use_disk(guest, true);
    }
}
