//! How fast somebody may try to log in: five tries are free, then each failed one makes the next one wait longer.
//!
//! Tries are counted for the name that is tried and for the address that they come from, so that neither many passwords for one
//! name nor one password for many names is fast. A try counts as failed from its beginning, until it is said to be right: a
//! thousand at once are no more than one after the other. A try that is refused does not count, or whoever tries on would keep the
//! others out for good. Pure: the time is an argument.

use crate::limits::{TRIED_MAX, TRIES_FORGOTTEN, TRIES_FREE, TRY_PAUSE, TRY_PAUSE_MAX};
use ring::digest::{SHA256, digest};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::time::{Duration, Instant};

/// Bits of an IPv6 address that tell networks apart: whoever has one has all addresses of a /64.
const NETWORK_BITS: u128 = !((1 << 64) - 1);

type Key = [u8; 16];

/// How long the next try waits after so many failed ones.
fn pause_after(failed: u32) -> Duration {
    match failed.checked_sub(TRIES_FREE) {
        None => Duration::ZERO,
        Some(more) => TRY_PAUSE.saturating_mul(1 << more.min(16)).min(TRY_PAUSE_MAX),
    }
}

/// What failed of one name or one address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Tried {
    failed: u32,
    last: Instant,
}

impl Tried {
    fn is_forgotten(self, now: Instant) -> bool {
        now.saturating_duration_since(self.last) >= TRIES_FORGOTTEN
    }

    fn wait(self, now: Instant) -> Duration {
        match self.is_forgotten(now) {
            true => Duration::ZERO,
            false => (self.last + pause_after(self.failed)).saturating_duration_since(now),
        }
    }
}

/// Names, or addresses. Never more than [`TRIED_MAX`].
#[derive(Debug, Default)]
struct Table(BTreeMap<Key, Tried>);

impl Table {
    fn wait(&self, key: &Key, now: Instant) -> Duration {
        self.0.get(key).map_or(Duration::ZERO, |tried| tried.wait(now))
    }

    fn count(&mut self, key: Key, now: Instant) {
        let before =
            self.0.get(&key).filter(|tried| !tried.is_forgotten(now)).map_or(0, |tried| tried.failed);
        if before == 0 {
            self.make_room(now);
        }
        self.0.insert(key, Tried { failed: before.saturating_add(1), last: now });
        assert!(self.0.len() <= TRIED_MAX);
    }

    /// Those go first that count for nothing any more, then those with the fewest failed tries: nobody gets rid of a long pause by
    /// trying many names.
    fn make_room(&mut self, now: Instant) {
        if self.0.len() < TRIED_MAX {
            return;
        }
        self.0.retain(|_, tried| !tried.is_forgotten(now));
        if self.0.len() >= TRIED_MAX {
            let least =
                self.0.iter().min_by_key(|(_, tried)| (tried.failed, tried.last)).map(|(key, _)| *key);
            least.and_then(|key| self.0.remove(&key));
        }
    }
}

/// Tries of all names and from all addresses.
#[derive(Debug, Default)]
pub struct Tries {
    names: Table,
    addresses: Table,
}

/// A try that has begun.
#[derive(Debug, Clone, Copy)]
#[must_use]
pub struct Try {
    name: Option<Key>,
    address: Key,
}

impl Tries {
    /// Begins a try from an address, of a name if it is with one. It counts as failed.
    ///
    /// # Errors
    /// How long the next try waits.
    pub fn begin(&mut self, name: Option<&str>, from: IpAddr, now: Instant) -> Result<Try, Duration> {
        let (name, address) = (name.map(key_of_name), key_of_address(from));
        let of_name = name.map_or(Duration::ZERO, |key| self.names.wait(&key, now));
        let wait = of_name.max(self.addresses.wait(&address, now));
        if !wait.is_zero() {
            return Err(wait);
        }
        self.addresses.count(address, now);
        if let Some(name) = name {
            self.names.count(name, now);
        }
        Ok(Try { name, address })
    }

    /// A try was right: the name begins anew, and the address has one less that failed. What else failed from there goes on to count,
    /// for whoever has a password of their own could try those of others with it.
    pub fn was_right(&mut self, right: Try) {
        if let Some(name) = right.name {
            self.names.0.remove(&name);
        }
        if let Some(tried) = self.addresses.0.get_mut(&right.address) {
            tried.failed = tried.failed.saturating_sub(1);
        }
    }

    /// A try came to no end, for a reason that says nothing about it: it does not count.
    pub fn was_none(&mut self, ended: Try) {
        let name = ended.name.and_then(|name| self.names.0.get_mut(&name));
        for tried in name.into_iter().chain(self.addresses.0.get_mut(&ended.address)) {
            tried.failed = tried.failed.saturating_sub(1);
        }
    }
}

fn key_of_name(name: &str) -> Key {
    let hash = digest(&SHA256, name.as_bytes());
    let mut key = Key::default();
    key.copy_from_slice(&hash.as_ref()[..16]);
    key
}

fn key_of_address(from: IpAddr) -> Key {
    let bits = match from.to_canonical() {
        IpAddr::V4(address) => u128::from(address.to_ipv6_mapped()),
        IpAddr::V6(address) => u128::from(address) & NETWORK_BITS,
    };
    Ipv6Addr::from(bits).octets()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOME: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 7));

    fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    fn address(number: u32) -> IpAddr {
        IpAddr::V4(number.into())
    }

    #[test]
    fn five_tries_are_free_and_each_further_one_waits_twice_as_long() {
        let pauses: Vec<u64> = (0..=12).map(|failed| pause_after(failed).as_secs()).collect();
        assert_eq!(pauses, [0, 0, 0, 0, 0, 12, 24, 48, 96, 192, 300, 300, 300]);
        assert_eq!(pause_after(u32::MAX), TRY_PAUSE_MAX);
    }

    #[test]
    fn who_tries_on_and_on_gets_through_once_after_each_pause() {
        let (mut tries, start) = (Tries::default(), Instant::now());
        let mut let_in = Vec::new();
        for second in 0..900 {
            if tries.begin(Some("ann"), HOME, start + seconds(second)).is_ok() {
                let_in.push(second);
            }
        }
        assert_eq!(let_in, [0, 1, 2, 3, 4, 16, 40, 88, 184, 376, 676]);
        let told = tries.begin(Some("ann"), HOME, start + seconds(901)).expect_err("it is refused");
        assert_eq!(told, seconds(976 - 901), "when the next one may be");
    }

    #[test]
    fn a_name_is_slowed_from_wherever_it_is_tried_and_an_address_whatever_it_tries() {
        let (mut tries, now) = (Tries::default(), Instant::now());
        for number in 0..5 {
            let _failed = tries.begin(Some("ann"), address(number), now).expect("it is free");
        }
        tries.begin(Some("ann"), address(77), now).expect_err("of that name");
        let _failed = tries.begin(Some("bob"), address(77), now).expect("another name");
        for name in ["a", "b", "c", "d"] {
            let _failed = tries.begin(Some(name), address(77), now).expect("it is free");
        }
        tries.begin(Some("e"), address(77), now).expect_err("from that address");
        tries.begin(None, address(77), now).expect_err("a link's code from there, too");
        let _failed = tries.begin(None, address(78), now).expect("from elsewhere");
    }

    #[test]
    fn a_right_try_frees_its_name_and_gives_back_its_own_place_of_the_address() {
        let (mut tries, now) = (Tries::default(), Instant::now());
        for _ in 0..4 {
            let _failed = tries.begin(Some("ann"), HOME, now).expect("it is free");
        }
        for _ in 0..10 {
            let right = tries.begin(Some("bob"), HOME, now).expect("the fifth is free");
            tries.was_right(right);
        }
        let _failed = tries.begin(Some("ann"), HOME, now).expect("the fifth");
        tries.begin(Some("bob"), HOME, now).expect_err("the address has failed five times");
        let right = tries.begin(Some("carl"), address(1), now).expect("from elsewhere");
        tries.was_none(right);
        assert_eq!(tries.names.0[&key_of_name("carl")].failed, 0);
        assert!(tries.begin(Some("ann"), address(1), now).is_err());
    }

    #[test]
    fn what_failed_is_forgotten_after_a_quarter_of_an_hour_without_a_try() {
        let (mut tries, now) = (Tries::default(), Instant::now());
        for at in [0, 0, 0, 0, 0, 12, 36, 84] {
            let _failed = tries.begin(Some("ann"), HOME, now + seconds(at)).expect("after its pause");
        }
        let late = now + seconds(84) + TRIES_FORGOTTEN;
        for _ in 0..5 {
            let _failed = tries.begin(Some("ann"), HOME, late).expect("it is free again");
        }
        assert_eq!(tries.begin(Some("ann"), HOME, late).expect_err("slowed anew"), TRY_PAUSE);
    }

    #[test]
    fn an_address_of_ipv6_stands_for_its_network_and_one_of_ipv4_for_itself() {
        let key = |text: &str| key_of_address(text.parse().expect("an address"));
        assert_eq!(key("2001:db8:1:2::1"), key("2001:db8:1:2:ffff::9"));
        assert_ne!(key("2001:db8:1:2::1"), key("2001:db8:1:3::1"));
        assert_eq!(key("::ffff:10.0.0.7"), key("10.0.0.7"));
        assert_ne!(key("10.0.0.8"), key("10.0.0.7"));
    }

    #[test]
    fn many_names_and_addresses_take_bounded_room_and_end_no_pause() {
        let (mut tries, now) = (Tries::default(), Instant::now());
        for number in 0..5 {
            let _failed = tries.begin(Some("ann"), address(number), now).expect("it is free");
        }
        for number in 0..TRIED_MAX as u32 + 200 {
            let (name, from) = (format!("name-{number}"), address(1000 + number));
            let _failed = tries.begin(Some(&name), from, now + seconds(1)).expect("it is the first of both");
        }
        assert_eq!((tries.names.0.len(), tries.addresses.0.len()), (TRIED_MAX, TRIED_MAX));
        assert_eq!(tries.begin(Some("ann"), HOME, now + seconds(2)).expect_err("still"), seconds(10));
    }
}
