//! Log-in at an issuer of OpenID Connect: the authorization code flow with PKCE (RFC 7636), a state and a nonce.
//!
//! A log-in that has begun is kept here, bound to the browser by a secret that a cookie of it has, and ends once. Signature, issuer,
//! audience, time and nonce of what the issuer tells are checked by the crate `openidconnect`; what somebody may is decided by `claims`.
//! Must never believe a token that came by the browser: it comes from the issuer itself.

mod claims;
mod fetch;

use crate::config::IssuerConfig;
use crate::limits::{
    ISSUER_CLOCK_TOLERANCE, ISSUER_KEYS_PAUSE, ISSUER_KNOWN, ISSUER_LOG_IN_WAIT, ISSUER_LOG_INS_MAX,
    ISSUER_LOG_INS_PER_ADDRESS_MAX, ISSUER_RETRY,
};
use crate::log_ins::Outcome;
use crate::system::random_bits;
use claims::{Claims, person_of};
use failure::{Code, Failure};
use fetch::Fetcher;
use openidconnect::core::{
    CoreAuthDisplay, CoreAuthPrompt, CoreErrorResponseType, CoreGenderClaim, CoreJsonWebKey,
    CoreJweContentEncryptionAlgorithm, CoreJwsSigningAlgorithm, CoreProviderMetadata, CoreResponseType,
    CoreRevocableToken, CoreRevocationErrorResponse, CoreTokenIntrospectionResponse, CoreTokenType,
};
use openidconnect::{
    AdditionalClaims, AuthenticationFlow, AuthorizationCode, ClaimsVerificationError, Client, ClientId,
    ClientSecret, CsrfToken, EmptyExtraTokenFields, EndpointMaybeSet, EndpointNotSet, EndpointSet,
    HttpRequest, HttpResponse, IdTokenFields, IssuerUrl, Nonce, PkceCodeChallenge, PkceCodeVerifier,
    RedirectUrl, Scope, SignatureVerificationError, StandardErrorResponse, StandardTokenResponse,
};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::os::unix::fs::PermissionsExt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use trust::{Name, Role};

/// Where the issuer sends browsers back to, below the console's address.
pub const CALLBACK: &str = "/api/v1/session/oidc/callback";

/// Signatures with the issuer's own key. Those with the client's secret, which this host has as well, are none.
const ALGORITHMS: [CoreJwsSigningAlgorithm; 9] = [
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha256,
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha384,
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha512,
    CoreJwsSigningAlgorithm::RsaSsaPssSha256,
    CoreJwsSigningAlgorithm::RsaSsaPssSha384,
    CoreJwsSigningAlgorithm::RsaSsaPssSha512,
    CoreJwsSigningAlgorithm::EcdsaP256Sha256,
    CoreJwsSigningAlgorithm::EcdsaP384Sha384,
    CoreJwsSigningAlgorithm::EdDsa,
];

/// All that a token tells beyond what the standard names.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(transparent)]
struct Told(Claims);

impl AdditionalClaims for Told {}

type TokenAnswer = StandardTokenResponse<
    IdTokenFields<
        Told,
        EmptyExtraTokenFields,
        CoreGenderClaim,
        CoreJweContentEncryptionAlgorithm,
        CoreJwsSigningAlgorithm,
    >,
    CoreTokenType,
>;

type IssuerClient = Client<
    Told,
    CoreAuthDisplay,
    CoreGenderClaim,
    CoreJweContentEncryptionAlgorithm,
    CoreJsonWebKey,
    CoreAuthPrompt,
    StandardErrorResponse<CoreErrorResponseType>,
    TokenAnswer,
    CoreTokenIntrospectionResponse,
    CoreRevocableToken,
    CoreRevocationErrorResponse,
    EndpointSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointMaybeSet,
    EndpointMaybeSet,
>;

/// An answer of the issuer that is to come.
type Fetched = Pin<Box<dyn Future<Output = Result<HttpResponse, Failure>> + Send>>;

type Print = [u8; 32];

/// A log-in that has begun.
#[derive(Debug)]
struct Pending {
    browser: Print,
    nonce: Nonce,
    verifier: PkceCodeVerifier,
    from: IpAddr,
    until: Instant,
}

/// Where a browser goes to log in, and the secret by which it is known when it comes back.
#[derive(Debug)]
pub struct Sent {
    /// The issuer's page.
    pub to: String,
    /// The value of the browser's cookie.
    pub browser: String,
}

/// Why a browser that comes back is not logged in.
#[derive(Debug)]
pub struct NotLoggedIn {
    /// What is told.
    pub failure: Failure,
    /// What became of the log-in.
    pub outcome: Outcome,
}

impl From<Failure> for NotLoggedIn {
    fn from(failure: Failure) -> NotLoggedIn {
        NotLoggedIn { failure, outcome: Outcome::Wrong }
    }
}

/// What a browser comes back with.
#[derive(Debug, Default, Deserialize)]
pub struct Back {
    state: Option<String>,
    code: Option<String>,
    error: Option<String>,
    error_description: Option<String>,
    iss: Option<String>,
}

/// When an issuer was asked what it tells of itself, and the answer.
#[derive(Debug)]
struct Asked {
    at: Instant,
    answer: Result<Arc<CoreProviderMetadata>, Failure>,
}

/// An issuer, and log-ins there that have begun.
#[derive(Debug)]
pub struct Issuer {
    config: IssuerConfig,
    fetcher: Arc<Fetcher>,
    asked: tokio::sync::Mutex<Option<Asked>>,
    pending: Mutex<BTreeMap<Print, Pending>>,
}

impl Issuer {
    /// By the host's configuration. The issuer is asked when somebody logs in.
    ///
    /// # Errors
    /// When the client's secret cannot be read, or others may read it.
    pub fn new(config: IssuerConfig) -> Result<Issuer, Failure> {
        let fetcher = Arc::new(Fetcher { authorities: config.authorities.clone() });
        let issuer =
            Issuer { config, fetcher, asked: tokio::sync::Mutex::default(), pending: Mutex::default() };
        issuer.secret().map(|_| issuer)
    }

    /// What people call it.
    pub fn name(&self) -> &str {
        &self.config.name
    }

    fn pending(&self) -> MutexGuard<'_, BTreeMap<Print, Pending>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The client's secret as its file has it now.
    fn secret(&self) -> Result<ClientSecret, Failure> {
        let path = &self.config.secret;
        let failed = |error: std::io::Error| {
            Failure::failed(format!("read {}", path.display()), error)
                .hint("correct [console.oidc] client_secret_file in the host's configuration")
        };
        let mode = std::fs::metadata(path).map_err(failed)?.permissions().mode();
        if mode & 0o077 != 0 {
            return Err(Failure::refused(format!("others may read {}", path.display()))
                .hint(format!("chmod 600 {}", path.display())));
        }
        let text = std::fs::read_to_string(path).map_err(failed)?;
        Ok(ClientSecret::new(text.trim().to_owned()))
    }

    /// What the issuer tells of itself, asked anew if what is known is older than `age`. One asks at a time, and where it does not
    /// answer, those who waited for that are told so.
    async fn metadata(&self, age: Duration) -> Result<Arc<CoreProviderMetadata>, Failure> {
        let mut asked = self.asked.lock().await;
        match asked.as_ref() {
            Some(Asked { at, answer: Ok(metadata) }) if at.elapsed() < age => {
                return Ok(Arc::clone(metadata));
            }
            Some(Asked { at, answer: Err(failure) }) if at.elapsed() < ISSUER_RETRY => {
                return Err(failure.clone());
            }
            Some(_) | None => {}
        }
        let url =
            IssuerUrl::new(self.config.issuer.clone()).map_err(|error| Failure::usage(error.to_string()))?;
        let fetch = self.fetch();
        let found = CoreProviderMetadata::discover_async(url, &fetch).await;
        let answer =
            found.map(Arc::new).map_err(|error| self.unreached("read what it tells of itself", &error));
        *asked = Some(Asked { at: Instant::now(), answer: answer.clone() });
        answer
    }

    /// How requests are sent to it, as the crate wants it told.
    fn fetch(&self) -> impl Fn(HttpRequest) -> Fetched + Send + Sync + 'static {
        let fetcher = Arc::clone(&self.fetcher);
        move |request| {
            let fetcher = Arc::clone(&fetcher);
            Box::pin(async move { fetcher.fetch(request).await })
        }
    }

    fn unreached(&self, what: &str, error: &dyn std::error::Error) -> Failure {
        let Failure { error, .. } = Failure::because(format!("{}: {what}", self.config.name), error);
        Failure::new(Code::Unreachable, error)
            .hint("log in another way, and see [console.oidc] of the host's configuration")
    }

    fn client(&self, metadata: &CoreProviderMetadata) -> Result<IssuerClient, Failure> {
        let id = ClientId::new(self.config.client_id.clone());
        Ok(Client::from_provider_metadata(metadata.clone(), id, Some(self.secret()?)))
    }

    fn redirect(&self) -> Result<RedirectUrl, Failure> {
        RedirectUrl::new(format!("{}{CALLBACK}", self.config.url))
            .map_err(|error| Failure::failed("name the console's address", error))
    }

    /// Begins a log-in of a browser, which may have a secret from another tab.
    ///
    /// # Errors
    /// When the issuer does not answer.
    pub async fn begin(&self, browser: Option<String>, from: IpAddr) -> Result<Sent, Failure> {
        let client = self.client(&*self.metadata(ISSUER_KNOWN).await?)?.set_redirect_uri(self.redirect()?);
        let (challenge, verifier) = PkceCodeChallenge::new_random_sha256();
        let flow = AuthenticationFlow::<CoreResponseType>::AuthorizationCode;
        let mut asked = client.authorize_url(flow, CsrfToken::new_random, Nonce::new_random);
        for scope in self.config.scopes.iter().filter(|scope| *scope != "openid") {
            asked = asked.add_scope(Scope::new(scope.clone()));
        }
        let (to, state, nonce) = asked.set_pkce_challenge(challenge).url();
        let browser = match browser.filter(|text| is_secret(text)) {
            Some(browser) => browser,
            None => format!("{:032x}{:032x}", random_bits()?, random_bits()?),
        };
        let now = Instant::now();
        let pending =
            Pending { browser: print_of(&browser), nonce, verifier, from, until: now + ISSUER_LOG_IN_WAIT };
        keep(&mut self.pending(), print_of(state.secret()), pending, now);
        Ok(Sent { to: to.to_string(), browser })
    }

    /// Ends the log-in with which a browser comes back: who it is.
    ///
    /// # Errors
    /// When it is of another browser, too old or ended already; when the issuer refuses, or what it tells is not as it must be.
    pub async fn end(&self, back: &Back, browser: Option<&str>) -> Result<(Name, Role), NotLoggedIn> {
        let pending = self.take(back, browser, Instant::now())?;
        if let Some(error) = &back.error {
            let more = back.error_description.as_ref().map_or_else(String::new, |more| format!(" ({more})"));
            return Err(denied(format!("{} has not logged you in: {error}{more}", self.config.name)).into());
        }
        if back.iss.as_ref().is_some_and(|found| *found != self.config.issuer) {
            return Err(denied("the answer is of another issuer".to_owned()).into());
        }
        let code = back.code.clone().ok_or_else(|| denied("the issuer's answer has no code".to_owned()))?;
        let metadata = self.metadata(ISSUER_KNOWN).await?;
        let client = self.client(&metadata)?.set_redirect_uri(self.redirect()?);
        let exchange = client
            .exchange_code(AuthorizationCode::new(code))
            .map_err(|error| self.unreached("it names no place for codes", &error))?;
        let fetch = self.fetch();
        let answer: TokenAnswer =
            exchange.set_pkce_verifier(pending.verifier).request_async(&fetch).await.map_err(|error| {
                denied(Failure::because("the issuer does not take the code", &error).error)
            })?;
        let claims = self.checked(&answer, &pending.nonce, &metadata).await?;
        person_of(&self.config, &claims).map_err(|failure| NotLoggedIn { failure, outcome: Outcome::Denied })
    }

    /// The claims of a token that is right in all respects. One that is signed with a key that is not known has the issuer asked
    /// for its keys once more.
    async fn checked(
        &self,
        answer: &TokenAnswer,
        nonce: &Nonce,
        metadata: &CoreProviderMetadata,
    ) -> Result<Claims, Failure> {
        let first = check(&self.client(metadata)?, answer, nonce);
        let is_unknown_key = matches!(
            first,
            Err(ClaimsVerificationError::SignatureVerification(SignatureVerificationError::NoMatchingKey))
        );
        let found = match is_unknown_key {
            false => first,
            true => check(&self.client(&*self.metadata(ISSUER_KEYS_PAUSE).await?)?, answer, nonce),
        };
        found.map_err(|error| {
            let Failure { error, .. } =
                Failure::because(format!("what {} tells is not believed", self.config.name), &error);
            denied(error).hint("log in once more; if it stays so, compare the clocks, and [console.oidc] with the client at the issuer")
        })
    }

    /// Takes a log-in that has begun: it ends now, however that ends.
    fn take(&self, back: &Back, browser: Option<&str>, now: Instant) -> Result<Pending, Failure> {
        let found = back.state.as_ref().and_then(|state| self.pending().remove(&print_of(state)));
        let of_browser =
            |pending: &Pending| browser.is_some_and(|browser| print_of(browser) == pending.browser);
        found.filter(|pending| now < pending.until && of_browser(pending)).ok_or_else(|| {
            denied("this log-in was begun in another browser, has ended, or took too long".to_owned())
                .hint("log in once more, from the console's own page")
        })
    }
}

fn denied(text: String) -> Failure {
    Failure::new(Code::Denied, text)
}

/// Keeps a log-in that has begun; for too many of one address its oldest goes, and for too many of all the oldest of all.
fn keep(all: &mut BTreeMap<Print, Pending>, state: Print, pending: Pending, now: Instant) {
    all.retain(|_, one| now < one.until);
    let is_of_address = |one: &Pending| one.from == pending.from;
    let of_address = all.values().filter(|one| is_of_address(one)).count();
    let oldest = match (of_address >= ISSUER_LOG_INS_PER_ADDRESS_MAX, all.len() >= ISSUER_LOG_INS_MAX) {
        (true, _) => all.iter().filter(|(_, one)| is_of_address(one)).min_by_key(|(_, one)| one.until),
        (false, true) => all.iter().min_by_key(|(_, one)| one.until),
        (false, false) => None,
    };
    let oldest = oldest.map(|(print, _)| *print);
    oldest.and_then(|print| all.remove(&print));
    all.insert(state, pending);
    assert!(all.len() <= ISSUER_LOG_INS_MAX);
}

/// Whether a cookie has what this host gives.
fn is_secret(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn print_of(text: &str) -> Print {
    Sha256::digest(text.as_bytes()).into()
}

fn check(
    client: &IssuerClient,
    answer: &TokenAnswer,
    nonce: &Nonce,
) -> Result<Claims, ClaimsVerificationError> {
    let token = answer.extra_fields().id_token();
    let token = token.ok_or_else(|| ClaimsVerificationError::Other("there is no ID token".to_owned()))?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs() as i64;
    let (past, future) = (ISSUER_LOG_IN_WAIT + ISSUER_CLOCK_TOLERANCE, ISSUER_CLOCK_TOLERANCE);
    let verifier =
        client.id_token_verifier().set_allowed_algs(ALGORITHMS).set_issue_time_verifier_fn(move |issued| {
            match issued.timestamp() {
                at if at < now - past.as_secs() as i64 => Err("it was issued too long ago".to_owned()),
                at if at > now + future.as_secs() as i64 => {
                    Err("it was issued later than it is now here".to_owned())
                }
                _ => Ok(()),
            }
        });
    let found = token.claims(&verifier, nonce)?;
    let mut claims = found.additional_claims().0.clone();
    let standard = [
        ("sub", Some(found.subject().as_str())),
        ("preferred_username", found.preferred_username().map(|name| name.as_str())),
        ("email", found.email().map(|email| email.as_str())),
    ];
    for (claim, value) in standard {
        if let Some(value) = value {
            claims.insert(claim.to_owned(), value.into());
        }
    }
    Ok(claims)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    fn pending(from: u32, until: Instant) -> Pending {
        Pending {
            browser: print_of("browser"),
            nonce: Nonce::new_random(),
            verifier: PkceCodeChallenge::new_random_sha256().1,
            from: IpAddr::V4(Ipv4Addr::from(from)),
            until,
        }
    }

    #[test]
    fn log_ins_that_have_begun_are_bounded_and_one_address_takes_no_place_of_others() {
        let (mut all, now) = (BTreeMap::new(), Instant::now());
        let until = now + ISSUER_LOG_IN_WAIT;
        keep(&mut all, print_of("first"), pending(1, until), now);
        for number in 0..2 * ISSUER_LOG_INS_MAX {
            keep(
                &mut all,
                print_of(&format!("{number}")),
                pending(2, until + Duration::from_millis(number as u64)),
                now,
            );
        }
        assert_eq!(all.len(), 1 + ISSUER_LOG_INS_PER_ADDRESS_MAX);
        assert!(all.contains_key(&print_of("first")));
        for number in 0..2 * ISSUER_LOG_INS_MAX as u32 {
            keep(&mut all, print_of(&format!("of {number}")), pending(100 + number, until), now);
        }
        assert_eq!(all.len(), ISSUER_LOG_INS_MAX);
        keep(
            &mut all,
            print_of("late"),
            pending(3, until + ISSUER_LOG_IN_WAIT),
            now + 2 * ISSUER_LOG_IN_WAIT,
        );
        assert_eq!(all.len(), 1, "those before took too long");
    }

    #[test]
    fn only_a_secret_of_ours_is_taken_from_a_cookie() {
        assert!(is_secret(&"a0".repeat(32)));
        for odd in ["", &"a0".repeat(31), &"g0".repeat(32), &"a0".repeat(33)] {
            assert!(!is_secret(odd), "{odd}");
        }
    }
}
