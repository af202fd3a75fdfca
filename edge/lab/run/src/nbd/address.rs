//! Where an NBD export is: the URIs that libnbd, QEMU and nbdkit print.
//!
//! `nbd://HOST[:PORT]/EXPORT`, `nbds://…` with TLS, `nbd+unix:///EXPORT?socket=PATH`, `nbds+unix://…`; `tls-certificates=DIR` names a
//! folder with `ca-cert.pem` and, where the server asks for it, `client-cert.pem` and `client-key.pem`; `tls-hostname=NAME` is what the server's certificate says
//! (<https://github.com/NetworkBlockDevice/nbd/blob/master/doc/uri.md>).

use std::fmt;
use std::path::PathBuf;

/// Where a server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// Host and port.
    Tcp(String, u16),
    /// A socket in the file system.
    Unix(PathBuf),
}

/// An export of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// Where the server is.
    pub place: Place,
    /// The export's name; empty for the server's default.
    pub export: String,
    /// Whether TLS is asked for, and the folder with its files.
    pub tls: Option<Option<PathBuf>>,
    /// The name that the server's certificate has to have, if it is not that of the host.
    pub tls_hostname: Option<String>,
    text: String,
}

/// Why a text is no such address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is not the address of an NBD export: {found}; write nbd://HOST:PORT/EXPORT or nbd+unix:///EXPORT?socket=PATH"
)]
pub struct AddressError {
    /// What was given.
    pub text: String,
    /// What is wrong with it.
    pub found: String,
}

/// The port that IANA gave to NBD.
const PORT: u16 = 10809;

impl Address {
    /// Whether a text looks like one.
    pub fn is_one(text: &str) -> bool {
        ["nbd://", "nbds://", "nbd+unix://", "nbds+unix://"].iter().any(|scheme| text.starts_with(scheme))
    }

    /// Reads an address.
    ///
    /// # Errors
    /// When it is none.
    pub fn parse(text: &str) -> Result<Address, AddressError> {
        let error = |found: &str| AddressError { text: text.to_owned(), found: found.to_owned() };
        let (scheme, rest) = text.split_once("://").ok_or_else(|| error("it has no `://`"))?;
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, export) = rest.split_once('/').unwrap_or((rest, ""));
        let export =
            decoded(export).ok_or_else(|| error("a `%` is not followed by two hexadecimal digits"))?;
        let mut socket = None;
        let mut certificates = None;
        let mut tls_hostname = None;
        for (key, value) in query.split('&').filter_map(|part| part.split_once('=')) {
            let value =
                decoded(value).ok_or_else(|| error("a `%` is not followed by two hexadecimal digits"))?;
            match key {
                "socket" => socket = Some(PathBuf::from(value)),
                "tls-hostname" => tls_hostname = Some(value),
                "tls-certificates" => certificates = Some(PathBuf::from(value)),
                _ => return Err(error(&format!("`{key}` is not known"))),
            }
        }
        let (tls, unix) = match scheme {
            "nbd" => (None, false),
            "nbds" => (Some(certificates), false),
            "nbd+unix" => (None, true),
            "nbds+unix" => (Some(certificates), true),
            _ => return Err(error(&format!("`{scheme}` is not a scheme of NBD"))),
        };
        let place = match (unix, socket) {
            (true, Some(socket)) => Place::Unix(socket),
            (true, None) => return Err(error("it names no socket")),
            (false, _) => {
                let (host, port) =
                    host_and_port(authority).ok_or_else(|| error("the host or the port is malformed"))?;
                Place::Tcp(host, port)
            }
        };
        Ok(Address { place, export, tls, tls_hostname, text: text.to_owned() })
    }
}

fn host_and_port(authority: &str) -> Option<(String, u16)> {
    if let Some(rest) = authority.strip_prefix('[') {
        let (host, port) = rest.split_once(']')?;
        let port = port.strip_prefix(':').map_or(Some(PORT), |port| port.parse().ok())?;
        return Some((host.to_owned(), port));
    }
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) => (host, port.parse().ok()?),
        None => (authority, PORT),
    };
    (!host.is_empty()).then(|| (host.to_owned(), port))
}

/// With `%41` and its like put back.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digits = [char::from(rest.next()?), char::from(rest.next()?)];
        bytes.push((digits[0].to_digit(16)? << 4 | digits[1].to_digit(16)?) as u8);
    }
    String::from_utf8(bytes).ok()
}

impl fmt::Display for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_libnbd_prints_are_understood() {
        let check = |text: &str, place: Place, export: &str, tls: Option<Option<&str>>| {
            let address = Address::parse(text).unwrap_or_else(|error| panic!("{error}"));
            let tls = tls.map(|folder| folder.map(PathBuf::from));
            assert_eq!((address.place, address.export.as_str(), address.tls), (place, export, tls), "{text}");
        };
        let tcp = |host: &str, port| Place::Tcp(host.to_owned(), port);
        check("nbd://localhost", tcp("localhost", 10809), "", None);
        check("nbd://[::1]:7/a%2fb", tcp("::1", 7), "a/b", None);
        check("nbds://h:1/x?tls-certificates=/pki", tcp("h", 1), "x", Some(Some("/pki")));
        check("nbd+unix:///disk?socket=/run/a.sock", Place::Unix("/run/a.sock".into()), "disk", None);
    }

    #[test]
    fn what_is_no_address_says_what_is_wrong() {
        for (text, found) in [
            ("nbd+unix:///x", "names no socket"),
            ("nbd://:1/x", "host or the port"),
            ("nbd://h:99999/x", "host or the port"),
            ("http://h/x", "not a scheme"),
            ("nbd://h/%zz", "hexadecimal"),
            ("nbd://h/x?colour=red", "`colour` is not known"),
        ] {
            let error = Address::parse(text).expect_err(text).to_string();
            assert!(error.contains(found), "{error}");
        }
    }
}
