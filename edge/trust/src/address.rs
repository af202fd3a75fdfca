//! Where a host is reached: a DNS name or an IP address, and with a port an endpoint.

use crate::limits::{DNS_LABEL_LENGTH_MAX, DNS_LENGTH_MAX};
use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

/// A DNS name, in lower case, or an IP address.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Address {
    /// Labels of letters, digits and `-`, at most 63 characters each and 253 together (RFC 1035, section 2.3).
    Dns(String),
    /// An IPv4 or IPv6 address.
    Ip(IpAddr),
}

/// A text that is no address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// Neither a DNS name nor an IP address.
    #[error("`{}` is neither a DNS name nor an IP address", .0.escape_default())]
    NotAnAddress(String),
    /// No port, or nothing before it.
    #[error("`{}` is not ADDRESS:PORT; an IPv6 address stands in brackets, like [::1]:7400", .0.escape_default())]
    NotAnEndpoint(String),
}

/// Characters of a text that errors repeat.
const SHOWN_MAX: usize = 80;

fn shown(text: &str) -> String {
    text.chars().take(SHOWN_MAX).collect()
}

impl FromStr for Address {
    type Err = AddressError;
    fn from_str(text: &str) -> Result<Address, AddressError> {
        if let Ok(ip) = text.parse::<IpAddr>() {
            return Ok(Address::Ip(ip));
        }
        let is_label = |label: &str| {
            !label.is_empty()
                && label.len() <= DNS_LABEL_LENGTH_MAX
                && !label.starts_with('-')
                && !label.ends_with('-')
                && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        };
        // What looks like an IPv4 address and is none (`10.0.0.256`) is no name: the last label of a name has a letter.
        let last = text.rsplit('.').next().unwrap_or_default();
        let is_numeric = last.bytes().all(|byte| byte.is_ascii_digit());
        if text.len() <= DNS_LENGTH_MAX && !is_numeric && text.split('.').all(is_label) {
            return Ok(Address::Dns(text.to_ascii_lowercase()));
        }
        Err(AddressError::NotAnAddress(shown(text)))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Dns(name) => formatter.write_str(name),
            Address::Ip(ip) => ip.fmt(formatter),
        }
    }
}

/// Where a host answers: `ADDRESS:PORT`, an IPv6 address in brackets.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Endpoint {
    /// The machine.
    pub address: Address,
    /// The TCP port, not 0.
    pub port: u16,
}

impl FromStr for Endpoint {
    type Err = AddressError;
    fn from_str(text: &str) -> Result<Endpoint, AddressError> {
        let error = || AddressError::NotAnEndpoint(shown(text));
        let (host, port) = text.rsplit_once(':').ok_or_else(error)?;
        let port = port.parse::<u16>().ok().filter(|port| *port != 0).ok_or_else(error)?;
        let bracketed = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        let address = match bracketed {
            Some(inner) => Address::Ip(IpAddr::V6(inner.parse::<Ipv6Addr>().map_err(|_| error())?)),
            None => host.parse::<Address>().map_err(|_| error())?,
        };
        if bracketed.is_none() && matches!(address, Address::Ip(IpAddr::V6(_))) {
            return Err(error());
        }
        Ok(Endpoint { address, port })
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.address {
            Address::Ip(IpAddr::V6(ip)) => write!(formatter, "[{ip}]:{}", self.port),
            address => write!(formatter, "{address}:{}", self.port),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_dns_names_or_ip_addresses() {
        assert_eq!("A.example".parse(), Ok(Address::Dns("a.example".to_owned())));
        assert_eq!("::1".parse(), Ok(Address::Ip(IpAddr::V6(Ipv6Addr::LOCALHOST))));
        for bad in
            ["", ".", "a..b", "-a", "a-", "10.0.0.256", "a_b", "a b", "*", "*.a", "ä.de", &"a.".repeat(200)]
        {
            let error = bad.parse::<Address>().expect_err(bad).to_string();
            assert!(error.contains("neither a DNS name nor an IP address"), "{error}");
        }
    }

    #[test]
    fn endpoints_have_a_port_and_read_back() {
        for text in ["a.example:7400", "10.0.0.1:1", "[::1]:65535"] {
            assert_eq!(text.parse::<Endpoint>().expect(text).to_string(), text);
        }
        for bad in
            ["", "a", "a:", "a:0", ":1", "a:65536", "::1:7400", "[10.0.0.1]:1", "[::1]", "[::1:1", "a b:1"]
        {
            let error = bad.parse::<Endpoint>().expect_err(bad).to_string();
            assert!(error.contains("is not ADDRESS:PORT"), "{error}");
        }
    }
}
