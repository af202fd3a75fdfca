//! Encryption at rest of a device, by the block devices that it stands on.
//!
//! The edge reads the stack of block devices and asks here what it means. Drystone encrypts nothing itself: only dm-crypt
//! below a device counts. Must never read a device.

/// Encryption of what a device stores.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Encryption {
    /// It cannot be told: the file system or the device below hides where its data stands.
    #[default]
    Unknown,
    /// No data passes dm-crypt.
    None,
    /// Some of the data passes dm-crypt, and some does not.
    Partly,
    /// All data passes dm-crypt with LUKS2.
    Luks2,
    /// All data passes dm-crypt with LUKS1.
    Luks1,
    /// All data passes dm-crypt without a header.
    PlainDmCrypt,
    /// All data passes dm-crypt, in another form or in several.
    Other,
}

/// How cryptsetup begins the UUID of each device-mapper device that it makes; its type follows
/// (cryptsetup, `lib/libdevmapper.c`, `dm_prepare_uuid`).
const PREFIX: &str = "CRYPT-";

/// Types of cryptsetup whose devices protect integrity, or are only a layer below another device of cryptsetup.
const WITHOUT_ENCRYPTION: [&str; 3] = ["VERITY-", "INTEGRITY-", "SUBDEV-"];

impl Encryption {
    /// All of them.
    pub const ALL: [Encryption; 7] = [
        Encryption::Unknown,
        Encryption::None,
        Encryption::Partly,
        Encryption::Luks2,
        Encryption::Luks1,
        Encryption::PlainDmCrypt,
        Encryption::Other,
    ];

    /// What a device-mapper device with this UUID does to all data that passes it; nothing: the devices below decide.
    pub fn of_mapping(uuid: &str) -> Option<Encryption> {
        let kind = uuid.strip_prefix(PREFIX)?;
        if WITHOUT_ENCRYPTION.iter().any(|other| kind.starts_with(other)) {
            return None;
        }
        let known = [
            ("LUKS2-", Encryption::Luks2),
            ("LUKS1-", Encryption::Luks1),
            ("PLAIN-", Encryption::PlainDmCrypt),
        ];
        let found = known.into_iter().find(|(prefix, _)| kind.starts_with(prefix));
        Some(found.map_or(Encryption::Other, |(_, encryption)| encryption))
    }

    /// The encryption of a device whose data spreads over these paths. A device is encrypted only if every path is.
    pub fn of_paths(paths: &[Encryption]) -> Encryption {
        let Some(first) = paths.first() else { return Encryption::Unknown };
        if paths.iter().all(|one| one == first) {
            return *first;
        }
        let has = |wanted| paths.iter().any(|one| one.is_encrypted() == wanted);
        let is_partly = paths.contains(&Encryption::Partly) || has(Some(true)) && has(Some(false));
        match (is_partly, has(Some(false)), has(None)) {
            (true, _, _) => Encryption::Partly,
            // An unencrypted path is certain: the device as a whole is not encrypted, whatever the unknown paths are.
            (false, true, _) => Encryption::None,
            (false, false, true) => Encryption::Unknown,
            (false, false, false) => Encryption::Other,
        }
    }

    /// Whether all data is encrypted; nothing if that is not known.
    pub fn is_encrypted(self) -> Option<bool> {
        match self {
            Encryption::Unknown => None,
            Encryption::None | Encryption::Partly => Some(false),
            Encryption::Luks2 | Encryption::Luks1 | Encryption::PlainDmCrypt | Encryption::Other => {
                Some(true)
            }
        }
    }

    /// The text that programs rely on.
    pub fn as_str(self) -> &'static str {
        match self {
            Encryption::Unknown => "unknown",
            Encryption::None => "none",
            Encryption::Partly => "partly",
            Encryption::Luks2 => "luks2",
            Encryption::Luks1 => "luks1",
            Encryption::PlainDmCrypt => "plain-dm-crypt",
            Encryption::Other => "other",
        }
    }

    /// The encryption of a text. A text of a later release is unknown.
    pub fn read(text: &str) -> Encryption {
        Encryption::ALL.into_iter().find(|one| one.as_str() == text).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::Encryption::{Luks1, Luks2, None as Bare, Other, Partly, PlainDmCrypt, Unknown};
    use super::*;

    #[test]
    fn a_mapping_says_by_its_uuid_whether_it_encrypts() {
        for (uuid, expected) in [
            ("CRYPT-LUKS2-8c1e2d4f3f0b4a6e9d5b7a1c2e3f4a5b-store1", Some(Luks2)),
            ("CRYPT-LUKS1-8c1e2d4f3f0b4a6e9d5b7a1c2e3f4a5b-store1", Some(Luks1)),
            ("CRYPT-PLAIN-store1", Some(PlainDmCrypt)),
            ("CRYPT-BITLK-8c1e2d4f3f0b4a6e9d5b7a1c2e3f4a5b-store1", Some(Other)),
            ("CRYPT-TCRYPT-store1", Some(Other)),
            ("CRYPT-VERITY-8c1e2d4f3f0b4a6e9d5b7a1c2e3f4a5b-root", None),
            ("CRYPT-INTEGRITY-store1", None),
            ("CRYPT-SUBDEV-8c1e2d4f3f0b4a6e9d5b7a1c2e3f4a5b-store1_dif", None),
            ("LVM-Kx0d1cE8AqwvW0vAbC2ZNJGmAbUCxaJcLtGBnWz0lCnO2kGS5v3dPq2Bq0F0q0aP", None),
            ("part1-CRYPT-LUKS2-8c1e2d4f3f0b4a6e9d5b7a1c2e3f4a5b-store1", None),
            ("", None),
        ] {
            assert_eq!(Encryption::of_mapping(uuid), expected, "{uuid}");
        }
    }

    #[test]
    fn a_device_is_encrypted_only_if_every_path_is() {
        let check = |paths: &[Encryption], expected| {
            assert_eq!(Encryption::of_paths(paths), expected, "{paths:?}");
            let reversed: Vec<Encryption> = paths.iter().rev().copied().collect();
            assert_eq!(Encryption::of_paths(&reversed), expected, "{reversed:?}");
        };
        check(&[], Unknown);
        for one in Encryption::ALL {
            check(&[one, one, one], one);
        }
        check(&[Luks2, Luks1], Other);
        check(&[Luks2, Bare], Partly);
        check(&[Luks2, Bare, Unknown], Partly);
        check(&[Luks2, Partly], Partly);
        check(&[Bare, Partly], Partly);
        check(&[Luks2, Unknown], Unknown);
        check(&[Bare, Unknown], Bare);
    }

    #[test]
    fn every_text_is_read_back() {
        for one in Encryption::ALL {
            assert_eq!(Encryption::read(one.as_str()), one);
        }
        assert_eq!(Encryption::read("luks3"), Unknown, "of a later release");
        assert_eq!(Encryption::default(), Unknown);
    }
}
