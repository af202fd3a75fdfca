//! The limits of this crate, each with its reason.

use std::time::Duration;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Characters of the name of a host, a person or a cluster: what X.520 allows in a common name (RFC 5280, appendix A.1,
/// `ub-common-name`), where other tools show it.
pub const NAME_LENGTH_MAX: usize = 64;
/// Addresses of one host in its certificate. A host has a few networks, and each has a name and two addresses at most.
pub const ADDRESSES_MAX: usize = 16;
/// Characters of a DNS name (RFC 1035, section 2.3.4, without the final dot).
pub(crate) const DNS_LENGTH_MAX: usize = 253;
/// Characters between two dots of a DNS name (RFC 1035, section 2.3.4).
pub(crate) const DNS_LABEL_LENGTH_MAX: usize = 63;

/// Bytes of a PEM text that is read at all. The certificate of a host with all its addresses has about 6 KB; eight
/// authorities have 8 KB.
pub const PEM_SIZE_MAX: usize = 64 << 10;
/// Authorities that are believed at once. A change of the authority needs two; one that was cut short may leave a few.
pub const ANCHORS_MAX: usize = 8;

/// How long an authority's certificate is valid: hosts outlive their first administrator, and changing it takes work.
pub const AUTHORITY_LIFETIME: Duration = Duration::from_secs(DAY.as_secs() * 3653);
/// How long a host's certificate is valid if nothing else is asked for. Hosts renew theirs by themselves after 60 of these
/// 90 days, so that one that was off for four weeks still gets in.
pub const HOST_LIFETIME: Duration = Duration::from_secs(DAY.as_secs() * 90);
/// The same for people, who have to do something for the next one.
pub const PERSON_LIFETIME: Duration = Duration::from_secs(DAY.as_secs() * 365);
/// The shortest lifetime of a certificate: below it, different clocks decide whether it is valid.
pub const LIFETIME_MIN: Duration = Duration::from_secs(60);
/// The longest: no certificate outlives an authority.
pub const LIFETIME_MAX: Duration = AUTHORITY_LIFETIME;
/// A certificate is valid from this long before it was issued, because the clocks of hosts differ.
pub const CLOCK_TOLERANCE: Duration = Duration::from_secs(5 * 60);

/// Hosts that a join token names: enough that one of them answers, few enough for a line.
pub const ENDPOINTS_MAX: usize = 8;
/// Characters of a join token's text: eight endpoints of the longest kind have about 2,100.
pub const TOKEN_TEXT_LENGTH_MAX: usize = 2400;
/// How long a join token is good for at most. It lies about in shells' histories and messages meanwhile.
pub const TOKEN_LIFETIME_MAX: Duration = Duration::from_secs(DAY.as_secs() * 7);

/// Characters of a password at least. NIST SP 800-63B-4 asks for 15 where a password is all there is, and OWASP for 8 beside something
/// else; with tries slowed to some 300 a day, 12 that nobody else uses are out of reach.
pub const PASSWORD_LENGTH_MIN: usize = 12;
/// Characters of a password at most: far beyond sentences, and nothing to hash for long.
pub const PASSWORD_LENGTH_MAX: usize = 256;
/// Tries to log in that nobody has to wait for: a person who mistypes needs three or four.
pub(crate) const TRIES_FREE: u32 = 5;
/// How long the next try waits after those, which makes five a minute; twice as long after each further one.
pub(crate) const TRY_PAUSE: Duration = Duration::from_secs(12);
/// The longest wait. Longer ones would hinder who guesses no more, and keep the right person out for longer.
pub(crate) const TRY_PAUSE_MAX: Duration = Duration::from_secs(5 * 60);
/// After how long without a try all that failed is forgotten; longer than any wait.
pub(crate) const TRIES_FORGOTTEN: Duration = Duration::from_secs(15 * 60);
/// Names whose failed tries are remembered, and as many addresses: some 400 KiB each.
pub(crate) const TRIED_MAX: usize = 4096;

const _: () = assert!(PASSWORD_LENGTH_MIN < PASSWORD_LENGTH_MAX);
const _: () = assert!(TRY_PAUSE.as_secs() < TRY_PAUSE_MAX.as_secs());
const _: () = assert!(TRY_PAUSE_MAX.as_secs() < TRIES_FORGOTTEN.as_secs());
const _: () = assert!(HOST_LIFETIME.as_secs() < AUTHORITY_LIFETIME.as_secs());
const _: () = assert!(PERSON_LIFETIME.as_secs() < AUTHORITY_LIFETIME.as_secs());
const _: () = assert!(TOKEN_TEXT_LENGTH_MAX > ENDPOINTS_MAX * (DNS_LENGTH_MAX + 7) + 200);
