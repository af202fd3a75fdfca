//! Pages of mapped parts, which have whatever body the bytes say, below a header that is right.

use base::DeviceId;
use base::checksum::seal;
use diskgroup::format::FORMAT_VERSION;
use diskgroup::format::map::{DeltaPage, Entry};
use diskgroup::format::page::{Copy, PAGE_SIZE, Page, PageContent};

/// Where the body of a page begins.
const BODY_AT: usize = 64;

/// The first byte decides which of the three kinds the page has, all others are its body. Panics where a page is taken that is not
/// the one form of its content, or that cannot be worked with.
pub fn page(bytes: &[u8]) {
    let [kind, body @ ..] = bytes else { return };
    let copy = whole(4 + kind % 3, &body[..body.len().min(PAGE_SIZE - BODY_AT)]);
    let Copy::Valid(page) = Page::decode(&copy, DeviceId(1), 7) else { return };
    assert!(page.encode() == copy, "one form for one value");
    match page.content {
        PageContent::Delta(mut delta) => work_with(&mut delta),
        PageContent::Snapshots(list) => {
            assert!(list.snapshots.is_sorted_by(|a, b| a.number < b.number), "numbers ascend");
            assert!(list.snapshots.iter().all(|one| (1..=list.last_number).contains(&one.number)));
        }
        PageContent::Map(map) => {
            assert!(map.regions.contains(&map.write_id()));
            map.entries.iter().for_each(check);
        }
        PageContent::Descriptors(_) | PageContent::Component(_) => unreachable!("it is of another kind"),
    }
}

/// A page with this body, and with checksums that match.
fn whole(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(PAGE_SIZE);
    bytes.extend_from_slice(b"DPGE");
    bytes.extend_from_slice(&FORMAT_VERSION.to_le_bytes());
    bytes.resize(16, 0);
    bytes.extend_from_slice(&1u128.to_le_bytes());
    bytes.extend_from_slice(&7u32.to_le_bytes());
    bytes.extend_from_slice(&u32::from(kind).to_le_bytes());
    bytes.extend_from_slice(&3u64.to_le_bytes());
    bytes.extend_from_slice(&9u64.to_le_bytes());
    bytes.resize(BODY_AT, 0);
    bytes.extend_from_slice(body);
    bytes.resize(PAGE_SIZE, 0);
    seal(&mut bytes[..BODY_AT], 8);
    seal(&mut bytes, 12);
    bytes
}

/// An entry is of one of three sorts, and a stored block lies within its frame.
fn check(entry: &Entry) {
    let sorts = [entry.is_hole(), entry.is_lost(), entry.unit().is_some()];
    assert!(sorts.into_iter().filter(|is_one| *is_one).count() == 1, "{entry:?}");
    if let Some(unit) = entry.unit() {
        assert!(unit % 8 + u64::from(entry.units()) <= 8, "{entry:?} crosses a frame");
        assert!(entry.form().is_packed() == (entry.units() < 8), "{entry:?}");
    }
}

/// Each entry is found, taken and put back. Another one goes in exactly if there is room.
fn work_with(delta: &mut DeltaPage) {
    let before = delta.clone();
    for group in &before.groups {
        for (block, entry) in &group.entries {
            check(entry);
            assert!(delta.find(group.snapshot, *block) == Some(*entry));
            assert!(delta.take_block(group.snapshot, *block) == Some(*entry));
            assert!(delta.find(group.snapshot, *block).is_none());
            assert!(delta.put(group.snapshot, *block, *entry), "what was there has room");
        }
    }
    assert!(*delta == before);
    let newest = before.groups.last().map_or(0, |group| group.snapshot);
    if let Some(next) = newest.checked_add(1) {
        let room = delta.room();
        let put = (0..=255u8).take_while(|block| delta.put(next, *block, Entry::HOLE)).count();
        assert!(put == room.min(256), "{put} went in, where there was room for {room}");
        assert!(delta.take(next).len() == put);
        assert!(*delta == before);
    }
}
