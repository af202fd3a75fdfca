//! Clients that mean harm, or are broken: whatever they send, nothing panics and nothing grows without bound.

use super::*;
use crate::limits::PAYLOAD_OUTSTANDING_MAX;

fn valid(random: &mut Random) -> Vec<u8> {
    let mut bytes = 3u32.to_be_bytes().to_vec();
    bytes.extend(option(option::STRUCTURED_REPLY, &[]));
    if random.chance(1, 2) {
        bytes.extend(option(option::LIST, &[]));
        bytes.extend(option(option::LIST_META_CONTEXT, &meta("disk", &["base:", "x:y"])));
        bytes.extend(option(option::INFO, &go("disk", &[0, 1, 2, 3])));
    }
    bytes.extend(option(option::SET_META_CONTEXT, &meta("disk", &["base:allocation"])));
    bytes.extend(option(option::GO, &go("disk", &[3])));
    for cookie in 0..random.range(1..30) {
        let offset = random.below(200) * 512;
        match random.below(4) {
            0 => bytes.extend(write(cookie, 0, &pattern(1, 512))),
            1 => bytes.extend(write(cookie, offset, &pattern(1, 4096))),
            _ => bytes.extend(request(random.below(9) as u16, 0, cookie, offset, 4096)),
        }
    }
    bytes
}

fn mutate(bytes: &mut Vec<u8>, random: &mut Random) {
    for _ in 0..random.below(6) {
        let place = random.below(bytes.len() as u64) as usize;
        match random.below(6) {
            0 => bytes[place] ^= 1 << random.below(8),
            1 => bytes[place] = random.bits() as u8,
            2 => bytes[place] = 0xff,
            3 => drop(bytes.drain(place..(place + random.below(40) as usize).min(bytes.len()))),
            4 => bytes.insert(place, random.bits() as u8),
            _ => {
                let copy = bytes[place..(place + 60).min(bytes.len())].to_vec();
                bytes.splice(place..place, copy);
            }
        }
        if bytes.is_empty() {
            bytes.push(0);
        }
    }
}

#[test]
fn mutated_conversations_harm_nobody() {
    for seed in 0..4_000 {
        let mut random = Random::new(seed);
        let mut bytes = valid(&mut random);
        mutate(&mut bytes, &mut random);
        let mut wire = Wire::new(TlsPolicy::Off);
        wire.step = Step::Random(random.fork());
        let taken = wire.say(&bytes);
        wire.settle();
        assert!(
            taken == bytes.len() || wire.session.is_finished() || !wire.session.wants_receive(),
            "seed {seed}"
        );
        assert!(wire.pool.bytes_used() as u64 <= 2 * PAYLOAD_OUTSTANDING_MAX, "seed {seed}");
        wire.session.lost();
        assert!(wire.session.is_finished(), "seed {seed}");
    }
}

#[test]
fn noise_is_no_conversation() {
    for seed in 0..500 {
        let mut wire = if seed % 2 == 0 { Wire::attached(true) } else { Wire::new(TlsPolicy::Off) };
        wire.say(&pattern(seed, 5_000));
        assert!(wire.session.is_finished(), "seed {seed}");
    }
}

#[test]
fn a_write_that_announces_absurd_payload_is_cut_off() {
    let mut wire = Wire::attached(true);
    wire.say(&request(command::WRITE, 0, 1, 0, u32::MAX));
    assert!(wire.session.is_finished());
}

#[test]
fn the_payload_of_a_refused_write_is_skipped_with_little_memory() {
    let mut wire = Wire::attached(true);
    let before = wire.pool.bytes_used();
    wire.say(&request(command::WRITE, 0, 1, 0, 100 << 20));
    let part = vec![7; 1 << 20];
    for _ in 0..100 {
        assert_eq!(wire.say(&part), part.len());
        assert_eq!(wire.pool.bytes_used(), before);
    }
    wire.say(&request(command::FLUSH, 0, 2, 0, 0));
    assert_eq!(errors(&wire.sent), [(1, 22), (2, 0)]);
}
