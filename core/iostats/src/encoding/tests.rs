//! Encoding there and back, and bytes that are not statistics.

use super::*;
use crate::recorder::tests::sample;

#[test]
fn statistics_come_back_from_their_bytes() {
    for (seed, ios) in [(0, 0), (1, 1), (2, 10), (3, 1_000), (4, 20_000)] {
        let statistics = sample(seed, ios);
        let bytes = statistics.encode();
        assert_eq!(Statistics::decode(&bytes).as_ref(), Ok(&statistics));
    }
    assert!(Statistics::default().encode().len() <= 64);
    let later = sample(9, 1_000);
    assert_eq!(
        Statistics::decode(&later.difference(&sample(9, 10)).encode()),
        Ok(later.difference(&sample(9, 10)))
    );
}

#[test]
fn a_released_version_stays_readable() {
    // Version 1 of one 4 KiB read that took 20 us; never to be changed.
    let hex = "01000000f3b5e41c802000000000000001040180408040804000000000000102012828280001000102020200\
               010001020202000000018f0201a09c01a09c01a09c0100";
    let bytes: Vec<u8> = (0..hex.len())
        .step_by(2)
        .map(|place| u8::from_str_radix(&hex[place..place + 2], 16).expect("the fixture is hexadecimal"))
        .collect();
    let mut recorder = crate::Recorder::new();
    let arrival = recorder.arrive(base::Instant(0), crate::Operation::Read, 0, 8);
    recorder.complete(base::Instant(20_000), arrival, true);
    assert_eq!(Statistics::decode(&bytes), Ok(recorder.statistics()));
    assert_eq!(recorder.statistics().encode(), bytes);
}

#[test]
fn changed_bytes_are_refused() {
    let bytes = sample(5, 300).encode();
    for index in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[index] ^= 1;
        assert!(Statistics::decode(&changed).is_err(), "byte {index}");
        assert!(Statistics::decode(&bytes[..index]).is_err(), "first {index} bytes");
    }
}

#[test]
fn hostile_bytes_with_a_good_checksum_are_refused_or_are_the_one_form_of_their_value() {
    let good = sample(6, 300).encode();
    let mut random = base::Random::new(11);
    for round in 0..20_000 {
        let mut bytes = good.clone();
        for _ in 0..random.range(1..6) {
            let place = random.range(8..bytes.len() as u64) as usize;
            match random.below(4) {
                0 => bytes[place] = random.bits() as u8,
                1 => bytes[place] = 0xff,
                2 => bytes.truncate(place + 1),
                _ => bytes.insert(place, random.bits() as u8),
            }
            if bytes.len() <= 9 {
                break;
            }
        }
        seal(&mut bytes, CHECKSUM_PLACE);
        if let Ok(statistics) = Statistics::decode(&bytes) {
            assert_eq!(statistics.encode(), bytes, "round {round}");
            let _ = statistics.percentile(crate::Operations::Both, 0.99);
            statistics.histograms().for_each(drop);
        }
    }
    let mut newer = good.clone();
    newer[0] = 2;
    seal(&mut newer, CHECKSUM_PLACE);
    assert_eq!(Statistics::decode(&newer), Err(DecodeError::Version { found: 2 }));
}
