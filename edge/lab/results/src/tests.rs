//! Every reader against every kind, and against what is broken.

use super::*;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

const TABLE: &str = include_str!("../tests/data/striping-sweep-fio.csv");

fn valid() -> Vec<(&'static str, Kind, String)> {
    let histogram_line = |ms: u64| {
        let counts: Vec<String> = (0..1_856u64).map(|at| (at % 7).to_string()).collect();
        format!("{ms}, 0, 4096, {}\n", counts.join(", "))
    };
    let fio = fio_json::tests::document("", 5, 4, 1_000, "\"1004\" : 3, \"9984\" : 1")
        + &fio_json::tests::document("", 0, 9, 2_000, "\"1004\" : 8, \"9984\" : 1");
    vec![
        ("a.json", Kind::FioJson, fio),
        (
            "x_lat.1.log",
            Kind::FioLog,
            "10, 100000, 0, 4096, 0\n900, 300000, 1, 4096, 8192, 0x0000\n".to_owned(),
        ),
        ("x_clat_hist.1.log", Kind::FioHistogramLog, histogram_line(1_000) + &histogram_line(2_000)),
        ("n.txt", Kind::FioText, fio_text::tests::NORMAL.to_owned()),
        ("terse.txt", Kind::FioTerse, fio_text::tests::TERSE.to_owned()),
        ("esxtop.csv", Kind::EsxtopCsv, esxtop::tests::TEXT.to_owned()),
        ("a.txt", Kind::DiskspdText, diskspd::tests::TEXT.to_owned()),
        ("a.xml", Kind::DiskspdXml, diskspd::tests::XML.to_owned()),
        ("summary.html", Kind::VdbenchSummary, vdbench::tests::SUMMARY.to_owned()),
        ("flatfile.html", Kind::VdbenchFlatfile, vdbench::tests::FLATFILE.to_owned()),
        ("histogram.html", Kind::VdbenchHistogram, vdbench::tests::HISTOGRAM.to_owned()),
        ("results.csv", Kind::IometerCsv, iometer::tests::TEXT.to_owned()),
        ("c-res.txt", Kind::Hcibench, hcibench::tests::SUMMARY.to_owned()),
        ("t.csv", Kind::Table, TABLE.to_owned()),
    ]
}

#[test]
fn every_kind_is_told_by_its_content_and_read() {
    for (file, kind, text) in valid() {
        assert_eq!(kind_of(&text), Some(kind), "{file}");
        let set = read(file, &text, None).unwrap_or_else(|error| panic!("{error}"));
        assert!(!set.runs.is_empty(), "{file}");
        // Windows line ends and a byte-order mark make no difference.
        let windows = format!("\u{feff}{}", text.replace('\n', "\r\n"));
        let again = read(file, &windows, None).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(again.runs, set.runs, "{file}");
        // Figures that were computed have more digits than serde_json reads back to the last.
        if matches!(kind, Kind::FioText | Kind::FioTerse) {
            continue;
        }
        let written = serde_json::to_string(&set).unwrap();
        assert_eq!(serde_json::from_str::<ResultSet>(&written).unwrap(), set, "{file}");
    }
}

#[test]
fn what_is_nothing_known_is_refused_with_what_would_be() {
    for text in ["", "hello", "{\"a\": 1}", "<html></html>", "1,2\n"] {
        let error = read("a", text, None).unwrap_err();
        assert_eq!(error.kind, Kind::Unknown, "{text}");
        assert!(error.to_string().contains("DiskSPD text and XML"), "{error}");
    }
}

#[test]
fn what_a_file_begins_with_is_shown_fit_for_a_terminal() {
    let error = read("a", &format!("\u{1b}[2J\u{7}{}", "x".repeat(4_000)), None).unwrap_err().to_string();
    assert!(error.contains("\\u{1b}[2J\\u{7}xx") && error.contains("x…\""), "{error}");
    assert!(error.len() < 500 && !error.contains(char::is_control), "{error}");
}

/// What may happen to a file on its way.
#[derive(Debug, Clone)]
enum Damage {
    CutAt(usize),
    Remove(usize, usize),
    Replace(usize, char),
    Number(usize, &'static str),
    Repeat(usize, usize),
}

fn damage() -> impl Strategy<Value = Damage> {
    let at = any::<prop::sample::Index>().prop_map(|index| index.index(1 << 16));
    let odd = prop::sample::select(vec![
        "-1",
        "0",
        "18446744073709551615",
        "99999999999999999999999",
        "1e400",
        "NaN",
        "inf",
        "-0.0",
        "",
        "1e-320",
        "4294967296",
        "7,7",
    ]);
    prop_oneof![
        at.clone().prop_map(Damage::CutAt),
        (at.clone(), 1usize..40).prop_map(|(at, length)| Damage::Remove(at, length)),
        (at.clone(), any::<char>()).prop_map(|(at, with)| Damage::Replace(at, with)),
        (at.clone(), odd).prop_map(|(at, with)| Damage::Number(at, with)),
        (at, 1usize..400).prop_map(|(at, length)| Damage::Repeat(at, length)),
    ]
}

fn damaged(text: &str, damage: &Damage) -> String {
    let characters: Vec<char> = text.chars().collect();
    let place = |at: usize| at % characters.len().max(1);
    let string = |from: usize, to: usize| {
        characters[from.min(characters.len())..to.min(characters.len())].iter().collect::<String>()
    };
    let end = characters.len();
    match damage {
        Damage::CutAt(at) => string(0, place(*at)),
        Damage::Remove(at, length) => string(0, place(*at)) + &string(place(*at) + length, end),
        Damage::Replace(at, with) => {
            format!("{}{with}{}", string(0, place(*at)), string(place(*at) + 1, end))
        }
        Damage::Repeat(at, length) => string(0, place(*at) + length) + &string(place(*at), end),
        Damage::Number(at, with) => {
            // The next number from there on becomes another.
            let is_digit = |at: &usize| characters[*at].is_ascii_digit();
            let Some(from) = (place(*at)..end).find(is_digit) else { return text.to_owned() };
            let to = (from..end).find(|at| !is_digit(at)).unwrap_or(end);
            format!("{}{with}{}", string(0, from), string(to, end))
        }
    }
}

/// Damages a text of a kind again and again, 100 times unless PROPTEST_CASES asks for more: there is a result, or an error with
/// its file and the way out.
fn withstands(kind: Kind) {
    let config = ProptestConfig::default();
    let cases = if std::env::var_os("PROPTEST_CASES").is_some() { config.cases } else { 100 };
    let mut runner = TestRunner::new(ProptestConfig { cases, failure_persistence: None, ..config });
    let (file, _, text) =
        valid().into_iter().find(|(_, of, _)| *of == kind).expect("there is one of each kind");
    let damages = prop::collection::vec(damage(), 1..4);
    let done = runner.run(&damages, |damages| {
        let broken = damages.iter().fold(text.clone(), |text, damage| damaged(&text, damage));
        match read(file, &broken, None) {
            Ok(set) => {
                for run in &set.runs {
                    run.total();
                }
                let audit = audit(&[set], &Claims::default());
                prop_assert!(audit.to_string().starts_with("Audit of"));
            }
            Err(error) => {
                prop_assert!(error.to_string().starts_with(file) && !error.way_out.is_empty(), "{}", error);
                prop_assert!(error.line.is_none_or(|line| line <= broken.lines().count() + 1), "{}", error);
            }
        }
        let path = format!("t/c/{file}");
        let _ = read_folder(&[(&path, &broken), ("t/c-res.txt", &broken)]);
        Ok(())
    });
    done.unwrap_or_else(|error| panic!("{kind}: {error}"));
}

#[test]
fn no_damage_makes_the_reader_of_fio_json_panic() {
    withstands(Kind::FioJson);
}

#[test]
fn no_damage_makes_the_readers_of_fios_texts_panic() {
    withstands(Kind::FioText);
    withstands(Kind::FioTerse);
}

#[test]
fn no_damage_makes_the_reader_of_esxtop_panic() {
    withstands(Kind::EsxtopCsv);
}

#[test]
fn no_damage_makes_the_readers_of_fios_logs_panic() {
    withstands(Kind::FioLog);
    withstands(Kind::FioHistogramLog);
}

#[test]
fn no_damage_makes_the_readers_of_diskspd_panic() {
    withstands(Kind::DiskspdText);
    withstands(Kind::DiskspdXml);
}

#[test]
fn no_damage_makes_the_readers_of_vdbench_panic() {
    withstands(Kind::VdbenchSummary);
    withstands(Kind::VdbenchFlatfile);
    withstands(Kind::VdbenchHistogram);
}

#[test]
fn no_damage_makes_the_reader_of_iometer_panic() {
    withstands(Kind::IometerCsv);
}

#[test]
fn no_damage_makes_the_reader_of_hcibench_panic() {
    withstands(Kind::Hcibench);
}

#[test]
fn no_damage_makes_the_reader_of_tables_panic() {
    withstands(Kind::Table);
}

#[test]
fn what_is_cut_off_is_refused_with_its_place_or_read_as_far_as_it_goes() {
    const CUTS: usize = 200;
    for (file, kind, text) in valid() {
        for part in 1..CUTS {
            let cut = text.floor_char_boundary(text.len() * part / CUTS);
            let Err(error) = read(file, &text[..cut], None) else { continue };
            let message = error.to_string();
            assert!(message.starts_with(file) && !error.way_out.is_empty(), "{message}");
            // What is too short to be told apart has no line; all else says where.
            let lines = text[..cut].lines().count();
            let is_placed = match error.line {
                // A text may end with the end of a line: then the next is where it lacks something.
                Some(line) => (1..=lines + 1).contains(&line),
                None => error.kind == Kind::Unknown,
            };
            assert!(is_placed, "{kind} cut at {cut} of {}: {message}", text.len());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn no_text_makes_a_reader_panic(text in "\\PC{0,300}", caption in "\\PC{0,80}") {
        let _ = read("x_lat.1.log", &text, Some(&caption));
        let _ = kind_of(&caption);
    }
}
