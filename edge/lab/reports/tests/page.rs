//! The HTML file: what it holds and in which order, and that nothing from outside becomes HTML.
#![allow(clippy::unwrap_used, reason = "in tests, what is missing shall stop them")]

mod common;

use measured::Conclusion;
use reports::{NamedExperiment, NamedRun, Report, Section, html};
use statistics::compare::Verdict;

fn full(run: &measured::Run, experiment: &measured::ExperimentRun) -> String {
    html(&Report {
        title: "two machines".into(),
        program: "drystone 0.1".into(),
        runs: vec![NamedRun { name: "first", run }],
        experiments: vec![NamedExperiment { name: "a sweep", experiment }],
        sections: vec![Section { title: "Interference".into(), lines: vec!["vm2 is the cause".into()] }],
        captures: Vec::new(),
    })
}

/// The page without its library and script.
fn body(page: &str) -> &str {
    page.split("<script type=\"application/json\"").next().expect("the fixture is as it is")
}

fn text_between<'a>(page: &'a str, from: &str, to: &str) -> &'a str {
    let begin = page.find(from).unwrap_or_else(|| panic!("{from} is on the page")) + from.len();
    let length = page[begin..].find(to).unwrap_or_else(|| panic!("{to} follows {from}"));
    &page[begin..begin + length]
}

#[test]
fn conclusions_come_first_and_the_method_last() {
    let page = full(&common::run("mix", &[("vm1", 8, 200), ("vm2", 4, 100)], 20), &common::experiment());
    let headings = [
        "<h2>Conclusions</h2>",
        "sweet spot N = 8",
        "does not hold",
        "vm2 is the cause",
        "Doubts about these figures",
        "<h2>Figures</h2>",
        "<h2>Experiment: a sweep</h2>",
        "<h3>B against A</h3>",
        "Throughput by load",
        "Figures of every run",
        // Two disks beside one another are what this is about.
        "<h2>Disk histograms over time</h2>",
        "<h2>Over time</h2>",
        "Heat map of latency",
        "<h2>How it was measured</h2>",
        "host1",
    ];
    let mut at = 0;
    for heading in headings {
        let found = page[at..]
            .find(heading)
            .unwrap_or_else(|| panic!("{heading} comes after {}", &page[at..at + 80]));
        at += found;
    }
}

#[test]
fn every_chart_has_its_data_as_a_table() {
    let page = full(&common::run("mix", &[("vm1", 8, 200)], 20), &common::experiment());
    let charts: serde_json::Value = serde_json::from_str(text_between(&page, "id=\"charts\">", "</script>"))
        .expect("the fixture is as it is");
    let count = charts.as_array().expect("the fixture is as it is").len();
    assert!(count > 10, "{count}");
    let figures: Vec<&str> = body(&page).split("<figure ").skip(1).collect();
    assert_eq!(figures.len(), count);
    for figure in figures {
        let table = text_between(figure, "<details>", "</details>");
        assert!(table.matches("<tr>").count() > 1, "{figure}");
    }
}

#[test]
fn a_verdict_is_the_experiments_own_and_its_cells_are_folded() {
    let mut experiment = common::experiment();
    let verdict = Verdict::CannotTell { more_runs: 6 };
    experiment.conclusions.push(common::compared(&experiment, 8, verdict));
    for cell in &experiment.cells {
        experiment.conclusions.push(Conclusion::new(cell.label(), "of one cell alone"));
    }
    let page = html(&Report::of_experiment(&experiment));
    // By its figures alone B would be faster: the experiment knows of other comparisons.
    let row = |outstanding: u64| {
        let begin = format!("<th scope=\"row\">4k random read, outstanding {outstanding}</th><td>IOPS</td>");
        text_between(&page, &begin, "</tr>").to_owned()
    };
    assert!(row(8).contains("cannot tell") && !row(8).contains("faster"), "{}", row(8));
    assert!(row(16).contains("faster"), "{}", row(16));
    let folded = text_between(&page, "<summary>Conclusions of each cell</summary>", "</details>");
    assert_eq!(folded.matches("of one cell alone").count(), experiment.cells.len());
    assert_eq!(page.matches("of one cell alone").count(), experiment.cells.len());
}

#[test]
fn what_a_section_repeats_of_the_conclusions_is_told_once() {
    let experiment = common::experiment();
    let lines = vec!["sweet spot N = 8".to_owned(), "and this is new".to_owned()];
    let sections = vec![Section { title: "Who slows whom".into(), lines }];
    let page = html(&Report { sections, ..Report::of_experiment(&experiment) });
    assert_eq!(body(&page).matches("sweet spot N = 8").count(), 1);
    assert!(page.contains("and this is new"));
}

#[test]
fn runs_go_by_their_names_and_not_by_their_paths() {
    let run = common::run("mix", &[("vm1", 8, 200)], 5);
    let page = html(&Report::of_runs("t", [("out/before.json", &run), ("out/after.json", &run)]));
    assert!(page.contains("<h3>before</h3>") && page.contains("<h3>after</h3>"));
    assert!(!body(&page).contains("out/"), "a path tells nobody anything");
}

#[test]
fn names_from_outside_become_text() {
    let evil = "</script><script>alert(1)</script><img src=x onerror=\"alert(2)\">";
    let mut run = common::run(evil, &[(evil, 8, 200)], 3);
    run.targets[0].name = evil.into();
    run.notes = vec![evil.into()];
    let mut experiment = common::experiment();
    experiment.cells[0].workload = evil.into();
    experiment.conclusions[0].text = evil.into();
    let page = full(&run, &experiment);
    assert!(!page.contains("<script>alert"));
    assert!(!page.contains("<img"));
    assert!(page.contains("&lt;img src=x onerror=&quot;alert(2)&quot;&gt;"));
    // The data, the library and the script: nothing else opens a script.
    assert_eq!(page.matches("<script").count(), 3);
}

#[test]
fn nothing_is_fetched_from_anywhere() {
    let page = full(&common::run("mix", &[("vm1", 8, 200)], 20), &common::experiment());
    assert!(page.contains("default-src 'none'"), "the browser itself refuses connections");
    for outside in ["src=\"", "href=\"http", "url(", "@import", "<link"] {
        assert!(!body(&page).contains(outside), "{outside}");
    }
}

#[test]
fn a_report_of_nothing_is_a_page_too() {
    let page = html(&Report { title: "empty".into(), ..Report::default() });
    assert!(page.contains("<h1>empty</h1>") && page.ends_with("</html>\n"));
    assert!(!page.contains("<script"), "without charts nothing draws");
    let mut stopped = common::run("stopped", &[("vm1", 1, 100)], 2);
    stopped.stages[0].groups[0].intervals.clear();
    stopped.stages[0].groups[0].operations = Default::default();
    stopped.stages[0].disks.clear();
    stopped.stages[0].seconds = 0.0;
    stopped.stages[0].stage = 7;
    let page = html(&Report::of_runs("stopped", [("a", &stopped)]));
    assert!(page.contains("stage 8"));
}

#[test]
fn a_long_run_stays_small_and_says_what_was_joined() {
    let run = common::run("soak", &[("vm1", 8, 200), ("vm2", 8, 300)], 4_000);
    let page = html(&Report::of_runs("soak", [("soak", &run)]));
    assert!(page.len() < 5_000_000, "{}", page.len());
    assert!(page.contains("Each point covers 7 s."));
    assert!(page.contains("Each column covers 27 samples."));
}

#[test]
fn many_runs_stay_below_ten_megabytes() {
    let runs: Vec<measured::Run> = (0..60)
        .map(|index| common::run(&format!("run {index}"), &[("vm1", 8, 200), ("vm2", 4, 90 + index)], 300))
        .collect();
    let names: Vec<String> = (0..60).map(|index| format!("file {index}")).collect();
    let page = html(&Report::of_runs("many", names.iter().map(String::as_str).zip(&runs)));
    assert!(page.len() < 10_000_000, "{}", page.len());
    assert!(page.contains("Not drawn: 30 stages"));
}

/// Of the repeats of a cell the first alone was drawn, and of errors nobody saw when they came.
#[test]
fn all_repeats_of_a_cell_are_drawn_and_errors_stand_over_time() {
    let page = full(&common::run("mix", &[("vm1", 8, 200)], 20), &common::experiment());
    assert!(!body(&page).contains("Errors over time"), "there are none");
    assert!(body(&page).contains("Throughput of every run"));
    let data = page.split("<script type=\"application/json\" id=\"charts\">").nth(1).expect("charts");
    let every = text_between(data, "\"title\":\"Throughput of every run\"", "p99 of every run");
    assert_eq!(every.matches("\"name\":\"run ").count(), 3, "three runs a cell");

    let mut run = common::run("mix", &[("vm1", 8, 200)], 20);
    run.stages[0].groups[0].intervals[7].errors = [0, 5, 0];
    run.expectations.push(measured::Expected {
        text: "errors at most 0".into(),
        measured: Some(5.0),
        holds: false,
    });
    let page = full(&run, &common::experiment());
    assert!(body(&page).contains("Errors over time"));
    assert!(body(&page).contains("errors at most 0"), "thresholds of a run are told");
}
