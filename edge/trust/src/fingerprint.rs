//! By what people and tokens know a certificate: the SHA-256 of its DER bytes.

use std::fmt;
use std::str::FromStr;

/// Bytes of SHA-256.
const BYTES: usize = 32;

/// SHA-256 of something, most often of a certificate's DER bytes. As text: 64 lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Fingerprint(pub [u8; BYTES]);

/// A text that is no fingerprint.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("this is not a fingerprint: 64 hexadecimal digits are expected, {length} characters were given")]
pub struct FingerprintError {
    /// Characters that were given.
    pub length: usize,
}

impl Fingerprint {
    /// That of these bytes.
    pub fn of(bytes: &[u8]) -> Fingerprint {
        let digest = ring::digest::digest(&ring::digest::SHA256, bytes);
        Fingerprint(digest.as_ref().try_into().expect("SHA-256 has 32 bytes"))
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&base::hex(&self.0))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Fingerprint({self})")
    }
}

impl FromStr for Fingerprint {
    type Err = FingerprintError;
    fn from_str(text: &str) -> Result<Fingerprint, FingerprintError> {
        let error = || FingerprintError { length: text.chars().count() };
        let bytes = base::unhex(text).ok_or_else(error)?;
        Ok(Fingerprint(bytes.try_into().map_err(|_| error())?))
    }
}

impl TryFrom<String> for Fingerprint {
    type Error = FingerprintError;
    fn try_from(text: String) -> Result<Fingerprint, FingerprintError> {
        text.parse()
    }
}

impl From<Fingerprint> for String {
    fn from(fingerprint: Fingerprint) -> String {
        fingerprint.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_is_that_of_sha_256_and_reads_back() {
        // FIPS 180-2, appendix B.1.
        let text = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(Fingerprint::of(b"abc").to_string(), text);
        assert_eq!(text.parse(), Ok(Fingerprint::of(b"abc")));
        for bad in ["", &text[1..], &text[2..], &text.replace('b', "x")] {
            assert_eq!(bad.parse::<Fingerprint>(), Err(FingerprintError { length: bad.len() }));
        }
    }
}
