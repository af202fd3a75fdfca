//! Join tokens: one line that lets a host or a person get its certificate, once.
//!
//! The text is for who joins; [`TokenRecord`] is what the directory keeps. Must never show the secret in an error or in
//! `Debug`.

mod record;

pub use record::{Kind, Purpose, TokenRecord, TokenRefusal};

use crate::address::Endpoint;
use crate::fingerprint::Fingerprint;
use crate::limits::{ENDPOINTS_MAX, TOKEN_LIFETIME_MAX, TOKEN_TEXT_LENGTH_MAX};
use crate::random::random;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// What every token begins with; the number is that of the form.
const PREFIX: &str = "drystone-join-1/";
/// Bytes of a token's id: enough that no two are alike by chance.
const ID_BYTES: usize = 8;
/// Bytes of a secret. With 128 bits nobody tries them all, so SHA-256 without salt or stretching is enough to keep it by.
const SECRET_BYTES: usize = 16;
/// Bytes of the checksum, CRC-32C.
const CHECKSUM_BYTES: usize = 4;

/// Names a token; no secret. As text: 16 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TokenId(pub [u8; ID_BYTES]);

impl fmt::Display for TokenId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&base::hex(&self.0))
    }
}

impl fmt::Debug for TokenId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "TokenId({self})")
    }
}

impl FromStr for TokenId {
    type Err = TokenError;
    fn from_str(text: &str) -> Result<TokenId, TokenError> {
        Ok(TokenId(bytes(text).ok_or(TokenError::Part("id"))?))
    }
}

impl TryFrom<String> for TokenId {
    type Error = TokenError;
    fn try_from(text: String) -> Result<TokenId, TokenError> {
        text.parse()
    }
}

impl From<TokenId> for String {
    fn from(id: TokenId) -> String {
        id.to_string()
    }
}

/// What only who was given the token knows: 128 random bits. Not shown by `Debug`; as text (`to_text`, `parse`)
/// 32 hexadecimal digits.
#[derive(Clone)]
pub struct Secret([u8; SECRET_BYTES]);

impl Secret {
    /// As text. **Secret**: for the request that redeems it.
    pub fn to_text(&self) -> String {
        base::hex(&self.0)
    }

    /// By what it is kept.
    fn digest(&self) -> Fingerprint {
        Fingerprint::of(&self.0)
    }
}

impl FromStr for Secret {
    type Err = TokenError;
    fn from_str(text: &str) -> Result<Secret, TokenError> {
        Ok(Secret(bytes(text).ok_or(TokenError::Part("secret"))?))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Secret(..)")
    }
}

/// What who joins is given: where to ask, whom to believe there, and what to say.
#[derive(Debug, Clone)]
pub struct JoinToken {
    /// Hosts that answer: 1 to [`ENDPOINTS_MAX`].
    pub endpoints: Vec<Endpoint>,
    /// SHA-256 of the authority's certificate.
    pub authority: Fingerprint,
    /// Which token it is.
    pub id: TokenId,
    /// What shows that the asker was given it.
    pub secret: Secret,
}

/// A text that is no token, or a token that cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// Something else.
    #[error("this is not a join token: give the whole line that begins with `{PREFIX}`")]
    NotAToken,
    /// Of a later form.
    #[error(
        "this join token is of another version of Drystone: have one made by this version, or use that one"
    )]
    OtherVersion,
    /// A character is wrong.
    #[error(
        "a character of the join token is wrong or missing: its checksum does not match; copy the whole line again"
    )]
    Checksum,
    /// A part cannot be read, although the checksum matches.
    #[error("the {0} of the join token cannot be read: have a new one made")]
    Part(&'static str),
    /// Too many or no endpoints.
    #[error("a join token names 1 to {ENDPOINTS_MAX} endpoints, not {0}")]
    Endpoints(usize),
    /// A lifetime that makes no sense.
    #[error(
        "a join token cannot be good for {} seconds: 1 to {} can be asked for",
        .0.as_secs(), TOKEN_LIFETIME_MAX.as_secs()
    )]
    Lifetime(Duration),
    /// The kernel gives no random bytes.
    #[error("make a join token: the kernel gives no random bytes")]
    NotMade,
}

impl JoinToken {
    /// A new one with a new id and secret.
    fn create(endpoints: Vec<Endpoint>, authority: Fingerprint) -> Result<JoinToken, TokenError> {
        check_count(endpoints.len())?;
        let id = TokenId(random().ok_or(TokenError::NotMade)?);
        let secret = Secret(random().ok_or(TokenError::NotMade)?);
        Ok(JoinToken { endpoints, authority, id, secret })
    }

    /// One line without spaces:
    /// `drystone-join-1/ADDRESS:PORT,…/FINGERPRINT-ID-SECRET-CHECKSUM`. **Secret**: for who joins.
    ///
    /// # Panics
    /// When there are no endpoints or more than [`ENDPOINTS_MAX`].
    pub fn to_text(&self) -> String {
        assert!(check_count(self.endpoints.len()).is_ok(), "a token names some endpoints and not too many");
        let endpoints: Vec<String> = self.endpoints.iter().map(Endpoint::to_string).collect();
        let endpoints = endpoints.join(",");
        let (authority, id, secret) = (self.authority, self.id, self.secret.to_text());
        let text = format!("{PREFIX}{endpoints}/{authority}-{id}-{secret}").to_ascii_lowercase();
        let checksum = base::checksum::crc32c(text.as_bytes()).to_be_bytes();
        format!("{text}-{}", base::hex(&checksum))
    }
}

impl FromStr for JoinToken {
    type Err = TokenError;
    fn from_str(text: &str) -> Result<JoinToken, TokenError> {
        if text.len() > TOKEN_TEXT_LENGTH_MAX || !text.is_ascii() {
            return Err(TokenError::NotAToken);
        }
        // Letters of either case are the same: all parts are, in any of their forms.
        let text = text.trim().to_ascii_lowercase();
        check_prefix(&text)?;
        let (sealed, checksum) = text.rsplit_once('-').ok_or(TokenError::Checksum)?;
        let checksum = bytes::<CHECKSUM_BYTES>(checksum).ok_or(TokenError::Checksum)?;
        if u32::from_be_bytes(checksum) != base::checksum::crc32c(sealed.as_bytes()) {
            return Err(TokenError::Checksum);
        }
        let sealed = sealed.strip_prefix(PREFIX).ok_or(TokenError::Checksum)?;
        let (endpoints, rest) = sealed.split_once('/').ok_or(TokenError::Part("form"))?;
        let endpoints: Result<Vec<Endpoint>, _> = endpoints.split(',').map(str::parse).collect();
        let endpoints = endpoints.map_err(|_| TokenError::Part("endpoints"))?;
        check_count(endpoints.len())?;
        let parts: Vec<&str> = rest.split('-').collect();
        let [authority, id, secret] = parts.as_slice() else { return Err(TokenError::Part("form")) };
        let authority = authority.parse().map_err(|_| TokenError::Part("fingerprint"))?;
        Ok(JoinToken { endpoints, authority, id: id.parse()?, secret: secret.parse()? })
    }
}

/// Tells a token of another version, and something else, from one with a wrong character.
fn check_prefix(text: &str) -> Result<(), TokenError> {
    if text.starts_with(PREFIX) {
        return Ok(());
    }
    let version = text.strip_prefix("drystone-join-").and_then(|rest| rest.split_once('/'));
    match version {
        Some((version, _)) if version.parse::<u16>().is_ok() => Err(TokenError::OtherVersion),
        _ => Err(TokenError::NotAToken),
    }
}

fn check_count(endpoints: usize) -> Result<(), TokenError> {
    match endpoints {
        1..=ENDPOINTS_MAX => Ok(()),
        count => Err(TokenError::Endpoints(count)),
    }
}

fn bytes<const N: usize>(text: &str) -> Option<[u8; N]> {
    base::unhex(text)?.try_into().ok()
}

#[cfg(test)]
mod tests;
