//! Bytes as text: two lower-case hexadecimal digits each.

/// The digits of these bytes.
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        text.push(char::from(DIGITS[usize::from(byte >> 4)]));
        text.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
    text
}

/// The bytes of such digits, of either case; nothing if there is anything else, or half a byte.
pub fn unhex(text: &str) -> Option<Vec<u8>> {
    let digit = |of: u8| char::from(of).to_digit(16).map(|digit| digit as u8);
    let pairs = text.as_bytes().chunks_exact(2);
    let is_whole = pairs.remainder().is_empty();
    let bytes = pairs.map(|pair| Some(digit(pair[0])? << 4 | digit(pair[1])?)).collect();
    if is_whole { bytes } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_back_from_their_digits() {
        assert_eq!(hex(&[0, 9, 10, 255]), "00090aff");
        assert_eq!(unhex("00090aFF"), Some(vec![0, 9, 10, 255]));
        assert_eq!((unhex("0"), unhex("0g"), unhex("")), (None, None, Some(Vec::new())));
    }
}
