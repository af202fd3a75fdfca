//! Log-ins to the console of this host: how fast they may be tried, the comparison of passwords, and what is told of those that
//! fail.
//!
//! The rule of slowing is `trust`'s. A comparison takes tens of milliseconds and 19 MiB, so few go on at once, on threads that may
//! wait. Whoever tries names that nobody has waits as long and is told the same as with those that somebody has.

use crate::limits::{
    FAILURES_FORGOTTEN, FAILURES_REMEMBERED, PASSWORD_WAIT, PASSWORDS_AT_ONCE, PASSWORDS_WAITING,
};
use crate::sessions::BegunBy;
use failure::{Code, Failure};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use trust::{Password, PasswordHash, Tries, Try};

/// What became of a log-in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// It began a session.
    Done,
    /// The link, the password or the issuer's word was wrong.
    Wrong,
    /// It came too soon after others that failed.
    Slowed,
    /// Who somebody is was proved, and they have no role here.
    Denied,
}

impl Outcome {
    /// All of them.
    pub const ALL: [Outcome; 4] = [Outcome::Done, Outcome::Wrong, Outcome::Slowed, Outcome::Denied];
}

/// Why a log-in is refused.
#[derive(Debug)]
pub struct Refused {
    /// What is told.
    pub failure: Failure,
    /// After how long it may be tried again, if that is why.
    pub retry_after: Option<Duration>,
}

impl From<Failure> for Refused {
    fn from(failure: Failure) -> Refused {
        Refused { failure, retry_after: None }
    }
}

impl Refused {
    /// It may be tried again after a while.
    pub fn until(wait: Duration, why: &str) -> Refused {
        // To whole seconds, and never too soon.
        let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
        let failure = Failure::new(Code::TooMany, why.to_owned())
            .hint(format!("try again in {seconds} {}", if seconds == 1 { "second" } else { "seconds" }));
        Refused { failure, retry_after: Some(Duration::from_secs(seconds)) }
    }
}

/// Log-ins that failed, of one name from one address; nothing is kept of names that nobody has.
type Subject = (Option<String>, IpAddr);

/// How often, and when last.
#[derive(Debug, Clone, Copy)]
struct Failed {
    count: u64,
    last: Instant,
}

/// Log-ins to the console of this host.
#[derive(Debug)]
pub struct LogIns {
    tries: Mutex<Tries>,
    at_once: Arc<Semaphore>,
    waiting: Arc<Semaphore>,
    nobody: PasswordHash,
    failed: Mutex<BTreeMap<Subject, Failed>>,
    counts: Mutex<BTreeMap<(BegunBy, Outcome), u64>>,
}

impl LogIns {
    /// None so far.
    ///
    /// # Errors
    /// When the system has no randomness.
    pub fn new() -> Result<LogIns, Failure> {
        let nobody = PasswordHash::of_nobody().map_err(|error| Failure::failed("prepare log-ins", error))?;
        Ok(LogIns {
            tries: Mutex::default(),
            at_once: Arc::new(Semaphore::new(PASSWORDS_AT_ONCE)),
            waiting: Arc::new(Semaphore::new(PASSWORDS_WAITING)),
            nobody,
            failed: Mutex::default(),
            counts: Mutex::default(),
        })
    }

    /// Begins a try from an address, of a name if it is with one. It counts as failed until it is said to be right.
    ///
    /// # Errors
    /// When the next one has to wait.
    pub fn begin(&self, name: Option<&str>, from: IpAddr, now: Instant) -> Result<Try, Refused> {
        let begun = lock(&self.tries).begin(name, from, now);
        begun.map_err(|wait| Refused::until(wait, "too many log-ins have failed"))
    }

    /// A try was right.
    pub fn was_right(&self, right: Try) {
        lock(&self.tries).was_right(right);
    }

    /// A try says nothing, since this host could not look at it.
    pub fn was_none(&self, ended: Try) {
        lock(&self.tries).was_none(ended);
    }

    /// What is kept of a password.
    ///
    /// # Errors
    /// When too many passwords are being looked at, or the system refuses.
    pub async fn hash(&self, password: Password) -> Result<PasswordHash, Failure> {
        let place = self.place().await.map_err(|refused| refused.failure)?;
        let hashed = tokio::task::spawn_blocking(move || {
            let _place = place;
            password.hash()
        });
        let hashed = hashed.await.map_err(|broken| Failure::failed("hash a password", broken))?;
        hashed.map_err(|error| Failure::failed("hash a password", error))
    }

    /// Whether a text is the password of somebody; where there is nobody, it takes as long to find out that it is not.
    ///
    /// # Errors
    /// When too many passwords are being looked at.
    pub async fn compare(&self, somebody: Option<PasswordHash>, text: String) -> Result<bool, Refused> {
        let place = self.place().await?;
        let hash = somebody.unwrap_or_else(|| self.nobody.clone());
        let compared = tokio::task::spawn_blocking(move || {
            let _place = place;
            hash.is_of(&text)
        });
        compared.await.map_err(|broken| Failure::failed("compare a password", broken).into())
    }

    /// A place to look at a password; the work keeps it to its end, even where whoever asked has gone.
    async fn place(&self) -> Result<OwnedSemaphorePermit, Refused> {
        let busy = || Refused::until(PASSWORD_WAIT, "too many passwords are being compared on this host");
        let _waiting = self.waiting.try_acquire().map_err(|_| busy())?;
        let place = Arc::clone(&self.at_once).acquire_owned();
        let place = tokio::time::timeout(PASSWORD_WAIT, place).await.map_err(|_| busy())?;
        place.map_err(|closed| Failure::failed("compare a password", closed).into())
    }

    /// Counts a log-in that ended.
    pub fn count(&self, begun_by: BegunBy, outcome: Outcome) {
        *lock(&self.counts).entry((begun_by, outcome)).or_default() += 1;
    }

    /// How many log-ins ended so, since the start of the host.
    pub fn counted(&self, begun_by: BegunBy, outcome: Outcome) -> u64 {
        lock(&self.counts).get(&(begun_by, outcome)).copied().unwrap_or(0)
    }

    /// One more that failed, of somebody if a name that somebody has was tried: how many did, if it is time to tell: the first, the
    /// tenth, the hundredth.
    pub fn failed(&self, somebody: Option<&str>, from: IpAddr, now: Instant) -> Option<u64> {
        let mut failed = lock(&self.failed);
        let subject = (somebody.map(str::to_owned), from);
        let is_over = |one: &Failed| now.saturating_duration_since(one.last) >= FAILURES_FORGOTTEN;
        if !failed.contains_key(&subject) && failed.len() >= FAILURES_REMEMBERED {
            failed.retain(|_, one| !is_over(one));
            let oldest = failed.iter().min_by_key(|(_, one)| one.last).map(|(subject, _)| subject.clone());
            if failed.len() >= FAILURES_REMEMBERED {
                oldest.and_then(|oldest| failed.remove(&oldest));
            }
        }
        let one = failed.entry(subject).or_insert(Failed { count: 0, last: now });
        let count = if is_over(one) { 1 } else { one.count + 1 };
        *one = Failed { count, last: now };
        is_power_of_ten(count).then_some(count)
    }

    /// Somebody has logged in: how many failed before, of that name from that address.
    pub fn succeeded(&self, somebody: &str, from: IpAddr, now: Instant) -> u64 {
        let before = lock(&self.failed).remove(&(Some(somebody.to_owned()), from));
        let recent = before.filter(|one| now.saturating_duration_since(one.last) < FAILURES_FORGOTTEN);
        recent.map_or(0, |one| one.count)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn is_power_of_ten(count: u64) -> bool {
    count.checked_ilog10().is_some_and(|power| 10u64.pow(power) == count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    const FROM: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 7));

    fn log_ins() -> LogIns {
        LogIns::new().expect("randomness")
    }

    #[test]
    fn failures_of_one_name_and_address_are_told_at_each_power_of_ten() {
        let (log_ins, now) = (log_ins(), Instant::now());
        let told: Vec<u64> = (0..120).filter_map(|_| log_ins.failed(Some("ann"), FROM, now)).collect();
        assert_eq!(told, [1, 10, 100]);
        assert_eq!(log_ins.failed(None, FROM, now), Some(1), "somebody else");
        assert_eq!(log_ins.succeeded("ann", FROM, now), 120);
        assert_eq!(log_ins.failed(Some("ann"), FROM, now), Some(1), "it begins anew");
        assert_eq!(log_ins.failed(Some("ann"), FROM, now + FAILURES_FORGOTTEN), Some(1), "and after a while");
        assert_eq!(log_ins.succeeded("ann", FROM, now + 2 * FAILURES_FORGOTTEN), 0);
    }

    #[test]
    fn what_is_remembered_of_failures_is_bounded() {
        let (log_ins, now) = (log_ins(), Instant::now());
        for number in 0..2 * FAILURES_REMEMBERED as u32 {
            log_ins.failed(None, IpAddr::V4(number.into()), now + Duration::from_millis(number.into()));
        }
        assert_eq!(lock(&log_ins.failed).len(), FAILURES_REMEMBERED);
    }

    #[test]
    fn who_has_to_wait_is_told_whole_seconds_and_never_too_few() {
        for (wait, seconds, text) in [(1, 1, "1 second"), (1001, 2, "2 seconds"), (12_000, 12, "12 seconds")]
        {
            let refused = Refused::until(Duration::from_millis(wait), "so it is");
            assert_eq!(refused.retry_after, Some(Duration::from_secs(seconds)));
            assert_eq!(refused.failure.hint.as_deref(), Some(format!("try again in {text}").as_str()));
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn passwords_are_compared_a_few_at_once_and_too_many_are_told_to_come_back() {
        let log_ins = Arc::new(log_ins());
        let password = Password::new("correct horse battery".to_owned()).expect("long enough");
        let hash = log_ins.hash(password).await.expect("a hash");
        let is_right = |text: &str| log_ins.compare(Some(hash.clone()), text.to_owned());
        assert!(is_right("correct horse battery").await.expect("it is compared"));
        assert!(!is_right("wrong").await.expect("it is compared"));
        assert!(!log_ins.compare(None, "wrong".to_owned()).await.expect("it is compared"));
        let held: Vec<_> = (0..PASSWORDS_AT_ONCE)
            .map(|_| Arc::clone(&log_ins.at_once).try_acquire_owned().expect("nobody has it"))
            .collect();
        let waiting: Vec<_> = (0..PASSWORDS_WAITING)
            .map(|_| {
                let log_ins = Arc::clone(&log_ins);
                tokio::spawn(async move { log_ins.compare(None, "wrong".to_owned()).await })
            })
            .collect();
        while log_ins.waiting.available_permits() > 0 {
            tokio::task::yield_now().await;
        }
        let refused = log_ins.compare(None, "wrong".to_owned()).await.expect_err("the queue is full");
        assert_eq!((refused.failure.code, refused.retry_after), (Code::TooMany, Some(PASSWORD_WAIT)));
        drop(held);
        for one in waiting {
            assert!(!one.await.expect("it ends").expect("it had its turn"));
        }
    }
}
