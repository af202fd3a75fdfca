//! How a driver is invited by an agent: `HOST:PORT/FINGERPRINT-SECRET`.

use std::fmt;

/// Bytes of the fingerprint: SHA-256 of the agent's certificate.
pub const FINGERPRINT_BYTES: usize = 32;
/// Bytes of the secret.
pub const SECRET_BYTES: usize = 16;

/// Where an agent is, how it is known, and what it must be told.
#[derive(Clone, PartialEq, Eq)]
pub struct Invitation {
    /// Host and port.
    pub address: String,
    /// SHA-256 of its certificate.
    pub fingerprint: [u8; FINGERPRINT_BYTES],
    /// Good for one session.
    pub secret: [u8; SECRET_BYTES],
}

/// A text that is no invitation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not an invitation of an agent: give the line that `drystone lab agent` printed, HOST:PORT/… with all its digits"
)]
pub struct InvitationError(pub String);

impl Invitation {
    /// Reads one.
    ///
    /// # Errors
    /// When it is none.
    pub fn parse(text: &str) -> Result<Invitation, InvitationError> {
        // What is wrong is shown without the secret, which may be whole.
        let error = || InvitationError(text.split('/').next().unwrap_or_default().to_owned());
        let (address, rest) = text.trim().rsplit_once('/').ok_or_else(error)?;
        let (fingerprint, secret) = rest.split_once('-').ok_or_else(error)?;
        let port =
            address.rsplit_once(':').and_then(|(host, port)| (!host.is_empty()).then(|| port.parse::<u16>()));
        if !matches!(port, Some(Ok(_))) {
            return Err(error());
        }
        Ok(Invitation {
            address: address.to_owned(),
            fingerprint: bytes(fingerprint).ok_or_else(error)?,
            secret: bytes(secret).ok_or_else(error)?,
        })
    }
}

fn bytes<const N: usize>(text: &str) -> Option<[u8; N]> {
    base::unhex(text)?.try_into().ok()
}

impl fmt::Display for Invitation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}-{}", self.address, base::hex(&self.fingerprint), base::hex(&self.secret))
    }
}

impl fmt::Debug for Invitation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Invitation({})", self.address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invitation_reads_back_and_errors_do_not_show_its_secret() {
        let invitation =
            Invitation { address: "[::1]:7410".into(), fingerprint: [0xab; 32], secret: [0x1f; 16] };
        assert_eq!(Invitation::parse(&invitation.to_string()), Ok(invitation.clone()));
        let text = invitation.to_string();
        for bad in [&text[..text.len() - 1], "host/ab-cd", "host:1", ":1/ab-cd", "", &text.replace('a', "x")]
        {
            let error = Invitation::parse(bad).expect_err(bad).to_string();
            assert!(!error.contains("1f1f"), "{error}");
        }
        assert!(!format!("{invitation:?}").contains("1f1f"));
    }
}
