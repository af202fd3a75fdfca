//! Sessions of the console: who has one, since when, and the codes by which they begin.
//!
//! A session acts for its holder, with their rights and no longer than their certificate, where it began with one. It is kept in memory
//! alone: a start of the host ends all. Of codes and tokens only their SHA-256 is kept, so that neither the memory nor the time
//! that a comparison takes tells one.

use crate::limits::{SESSION_CODE_WAIT, SESSION_CODES_MAX, SESSION_IDLE_MAX, SESSION_LIFETIME, SESSIONS_MAX};
use crate::system::random_bits;
use failure::{Code, Failure};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

type Print = [u8; 32];

/// The sessions of a host, each with its holder.
#[derive(Debug)]
pub struct Sessions<T> {
    inner: Mutex<Inner<T>>,
}

#[derive(Debug)]
struct Inner<T> {
    codes: BTreeMap<Print, Waiting<T>>,
    open: BTreeMap<Print, Arc<Session<T>>>,
}

/// A code that was not used yet.
#[derive(Debug)]
struct Waiting<T> {
    holder: T,
    until: Instant,
    ends: Instant,
}

/// How a session began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum BegunBy {
    /// With a link.
    Link,
    /// With a name and a password.
    Password,
    /// At an issuer of OpenID Connect.
    Issuer,
}

/// One session.
#[derive(Debug)]
pub struct Session<T> {
    /// Whom it acts for.
    pub holder: T,
    /// How it began.
    pub begun_by: BegunBy,
    print: Print,
    ends: Instant,
    used: Mutex<Instant>,
}

impl<T> Default for Sessions<T> {
    fn default() -> Sessions<T> {
        Sessions { inner: Mutex::new(Inner { codes: BTreeMap::new(), open: BTreeMap::new() }) }
    }
}

impl<T> PartialEq for Session<T> {
    fn eq(&self, other: &Session<T>) -> bool {
        self.print == other.print
    }
}

impl<T> Eq for Session<T> {}

impl<T> Session<T> {
    fn used(&self) -> Instant {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_over(&self, now: Instant) -> bool {
        now >= self.ends || now.saturating_duration_since(self.used()) >= SESSION_IDLE_MAX
    }

    /// When it ends however much it is used, in seconds since 1970.
    pub fn ends(&self) -> u64 {
        let left = self.ends.saturating_duration_since(Instant::now());
        (SystemTime::now() + left).duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
    }
}

impl<T> Sessions<T> {
    fn lock(&self) -> MutexGuard<'_, Inner<T>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A code by which a session of `holder` begins: once, and within a minute. It ends after `left`, if it would last longer.
    ///
    /// # Errors
    /// When the system has no randomness, or too many codes wait to be used.
    pub fn make_code(&self, holder: T, left: Duration, now: Instant) -> Result<String, Failure> {
        let code = format!("{:032x}", random_bits()?);
        let mut inner = self.lock();
        inner.codes.retain(|_, waiting| now < waiting.until);
        if inner.codes.len() == SESSION_CODES_MAX {
            return Err(Failure::refused(format!("{SESSION_CODES_MAX} links wait to be opened"))
                .hint(format!("try again in {} seconds", SESSION_CODE_WAIT.as_secs())));
        }
        let (until, ends) = (now + SESSION_CODE_WAIT, now + left.min(SESSION_LIFETIME));
        inner.codes.insert(print_of(&code), Waiting { holder, until, ends });
        Ok(code)
    }

    /// Begins the session that a code is for: its token, and the session. For more than a host has, the one ends that was idle longest.
    ///
    /// # Errors
    /// When the code is none, was used, or is too old, or the system has no randomness.
    pub fn redeem(&self, code: &str, now: Instant) -> Result<(String, Arc<Session<T>>), Failure> {
        let waiting = self.lock().codes.remove(&print_of(code)).filter(|waiting| now < waiting.until);
        let Some(Waiting { holder, ends, .. }) = waiting else {
            return Err(Failure::new(Code::Denied, "the link was used already, or is too old")
                .hint("make another one with `drystone console`"));
        };
        self.open(holder, BegunBy::Link, ends, now)
    }

    /// Begins a session of somebody who has proved who they are by other means than a link: its token, and the session.
    ///
    /// # Errors
    /// When the system has no randomness.
    pub fn begin(
        &self,
        holder: T,
        begun_by: BegunBy,
        now: Instant,
    ) -> Result<(String, Arc<Session<T>>), Failure> {
        self.open(holder, begun_by, now + SESSION_LIFETIME, now)
    }

    fn open(
        &self,
        holder: T,
        begun_by: BegunBy,
        ends: Instant,
        now: Instant,
    ) -> Result<(String, Arc<Session<T>>), Failure> {
        let token = format!("{:032x}{:032x}", random_bits()?, random_bits()?);
        let print = print_of(&token);
        let mut inner = self.lock();
        inner.open.retain(|_, session| !session.is_over(now));
        if inner.open.len() == SESSIONS_MAX {
            let oldest = inner.open.iter().min_by_key(|(_, session)| session.used()).map(|(print, _)| *print);
            oldest.and_then(|print| inner.open.remove(&print));
        }
        let session = Arc::new(Session { holder, begun_by, print, ends, used: Mutex::new(now) });
        inner.open.insert(print, Arc::clone(&session));
        Ok((token, session))
    }

    /// The session of a token, which is in use now.
    pub fn find(&self, token: &str, now: Instant) -> Option<Arc<Session<T>>> {
        let session = Arc::clone(self.lock().open.get(&print_of(token))?);
        if session.is_over(now) {
            self.end(&session);
            return None;
        }
        *session.used.lock().unwrap_or_else(PoisonError::into_inner) = now;
        Some(session)
    }

    /// How many there are.
    pub fn count(&self, now: Instant) -> usize {
        self.lock().open.values().filter(|session| !session.is_over(now)).count()
    }

    /// Whether a session goes on.
    pub fn is_open(&self, session: &Session<T>, now: Instant) -> bool {
        self.lock().open.contains_key(&session.print) && !session.is_over(now)
    }

    /// Ends a session.
    pub fn end(&self, session: &Session<T>) {
        self.lock().open.remove(&session.print);
    }
}

fn print_of(text: &str) -> Print {
    Sha256::digest(text.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begin(sessions: &Sessions<u8>, left: Duration, now: Instant) -> (String, Arc<Session<u8>>) {
        let code = sessions.make_code(7, left, now).expect("a code");
        sessions.redeem(&code, now).expect("a session")
    }

    #[test]
    fn a_code_is_good_once_and_for_a_minute() {
        let (sessions, now) = (Sessions::default(), Instant::now());
        let code = sessions.make_code(7, SESSION_LIFETIME, now).expect("a code");
        let (token, session) = sessions.redeem(&code, now).expect("a session");
        assert_eq!(session.holder, 7);
        assert_eq!(sessions.redeem(&code, now).expect_err("once").code, Code::Denied);
        assert_eq!(sessions.find(&token, now), Some(session));
        assert_eq!(sessions.find(&code, now), None, "a code is no token");
        let late = sessions.make_code(7, SESSION_LIFETIME, now).expect("a code");
        sessions.redeem(&late, now + SESSION_CODE_WAIT).expect_err("it is too old");
    }

    #[test]
    fn a_session_ends_when_it_is_idle_when_it_is_old_and_with_the_certificate() {
        let (sessions, now) = (Sessions::default(), Instant::now());
        let (token, session) = begin(&sessions, 2 * SESSION_LIFETIME, now);
        let mut later = now;
        while later + SESSION_IDLE_MAX < now + SESSION_LIFETIME {
            later += SESSION_IDLE_MAX / 2;
            assert!(sessions.find(&token, later).is_some(), "it is used");
        }
        assert!(sessions.is_open(&session, later));
        assert_eq!(sessions.find(&token, now + SESSION_LIFETIME), None, "it is old");
        assert!(!sessions.is_open(&session, later));
        let (idle, _) = begin(&sessions, SESSION_LIFETIME, now);
        assert_eq!(sessions.find(&idle, now + SESSION_IDLE_MAX), None);
        let (brief, _) = begin(&sessions, Duration::from_secs(600), now);
        assert!(sessions.find(&brief, now + Duration::from_secs(500)).is_some());
        assert_eq!(sessions.find(&brief, now + Duration::from_secs(600)), None, "the certificate has ended");
    }

    #[test]
    fn a_session_without_a_link_has_a_token_of_its_own_and_is_counted_while_it_lasts() {
        let (sessions, now) = (Sessions::default(), Instant::now());
        let (token, session) = sessions.begin(7, BegunBy::Password, now).expect("a session");
        assert_eq!((session.holder, session.begun_by), (7, BegunBy::Password));
        assert_eq!(sessions.find(&token, now), Some(session));
        begin(&sessions, SESSION_LIFETIME, now);
        assert_eq!(sessions.count(now), 2);
        assert_eq!(sessions.count(now + SESSION_IDLE_MAX), 0);
    }

    #[test]
    fn who_logs_out_is_out_and_room_is_made_for_new_ones() {
        let (sessions, now) = (Sessions::default(), Instant::now());
        let (token, session) = begin(&sessions, SESSION_LIFETIME, now);
        sessions.end(&session);
        assert_eq!(sessions.find(&token, now), None);
        let (first, _) = begin(&sessions, SESSION_LIFETIME, now);
        let (second, _) = begin(&sessions, SESSION_LIFETIME, now);
        assert!(sessions.find(&first, now + Duration::from_secs(1)).is_some());
        for _ in 0..SESSIONS_MAX - 1 {
            begin(&sessions, SESSION_LIFETIME, now + Duration::from_secs(2));
        }
        let later = now + Duration::from_secs(3);
        assert_eq!(sessions.find(&second, later), None, "it was idle longest");
        assert!(sessions.find(&first, later).is_some());
        for _ in 0..SESSION_CODES_MAX {
            sessions.make_code(7, SESSION_LIFETIME, now + SESSION_CODE_WAIT).expect("those before were used");
        }
        let again = |at| sessions.make_code(7, SESSION_LIFETIME, at);
        assert_eq!(again(now + SESSION_CODE_WAIT).expect_err("too many").code, Code::Refused);
        again(now + 2 * SESSION_CODE_WAIT).expect("those before are too old");
    }
}
