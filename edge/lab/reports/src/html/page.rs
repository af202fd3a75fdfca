//! The frame of the page: head, contents, sections, and what the script needs at the end.

use super::write::{escaped, json};
use crate::chart::Chart;
use crate::report::Report;
use statistics::words::counted;
use std::fmt::Write;

/// The drawing library (assets/README.md says how it is made).
const LIBRARY: &str = include_str!("../../assets/charts.min.js");
/// Its licence, which goes where it goes.
const LIBRARY_LICENCE: &str = include_str!("../../assets/LICENSE.plotly.txt");
/// What makes option objects of our charts.
const SCRIPT: &str = include_str!("../../assets/report.js");
const STYLE: &str = include_str!("../../assets/report.css");

/// A page that grows.
pub struct Page {
    title: String,
    lead: String,
    footer: String,
    body: String,
    contents: Vec<(String, String)>,
    charts: Vec<Chart>,
    section_open: bool,
}

impl Page {
    /// A page with its title.
    pub fn new(report: &Report) -> Page {
        Page {
            title: report.title.clone(),
            lead: lead(report),
            footer: report.program.clone(),
            body: String::new(),
            contents: Vec::new(),
            charts: Vec::new(),
            section_open: false,
        }
    }

    /// Begins a section that the contents name.
    pub fn section(&mut self, title: &str) {
        self.end_section();
        let id = format!("s{}", self.contents.len() + 1);
        writeln!(self.body, "<section id=\"{id}\"><h2>{}</h2>", escaped(title)).expect("strings take all");
        self.contents.push((id, title.to_owned()));
        self.section_open = true;
    }

    /// A heading within a section.
    pub fn heading(&mut self, title: &str) {
        writeln!(self.body, "<h3>{}</h3>", escaped(title)).expect("strings take all");
    }

    /// A paragraph of plain words.
    pub fn paragraph(&mut self, text: &str) {
        writeln!(self.body, "<p>{}</p>", escaped(text)).expect("strings take all");
    }

    /// What is HTML already.
    pub fn raw(&mut self, html: &str) {
        self.body.push_str(html);
    }

    /// Charts beside one another where there is room.
    pub fn charts(&mut self, charts: Vec<Chart>) {
        if charts.is_empty() {
            return;
        }
        self.body.push_str("<div class=\"charts\">\n");
        for chart in charts {
            let html = super::charts::figure(&chart, self.charts.len());
            self.body.push_str(&html);
            self.charts.push(chart);
        }
        self.body.push_str("</div>\n");
    }

    /// Charts that are drawn once their heading is opened.
    pub fn folded_charts(&mut self, title: &str, charts: Vec<Chart>) {
        self.raw(&format!("<details class=\"folded\"><summary>{}</summary>\n", escaped(title)));
        self.charts(charts);
        self.raw("</details>\n");
    }

    fn end_section(&mut self) {
        if self.section_open {
            self.body.push_str("</section>\n");
            self.section_open = false;
        }
    }

    /// The whole file.
    pub fn finish(mut self) -> String {
        self.end_section();
        let contents: String = (self.contents.iter())
            .map(|(id, title)| format!("<li><a href=\"#{id}\">{}</a></li>", escaped(title)))
            .collect();
        let title = escaped(&self.title);
        let program = escaped(&self.footer);
        let mut page = String::with_capacity(self.body.len() + LIBRARY.len() + (1 << 20));
        write!(
            page,
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; \
             script-src 'unsafe-inline'; img-src data: blob:\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"generator\" content=\"{program}\">\n<meta name=\"color-scheme\" content=\"light dark\">\n\
             <title>{title}</title>\n<style>\n{STYLE}</style>\n\
             <noscript><style>.plot, .wide .plot {{ min-height: 0; }}</style></noscript>\n</head>\n<body>\n\
             <header><h1>{title}</h1>\n{}</header>\n<nav aria-label=\"Contents\"><ol>{contents}</ol></nav>\n<main>\n",
            self.lead
        )
        .expect("strings take all");
        page.push_str(&self.body);
        writeln!(page, "</main>\n<footer><p>{program}</p></footer>").expect("strings take all");
        if !self.charts.is_empty() {
            write!(
                page,
                "<script type=\"application/json\" id=\"charts\">{}</script>\n\
                 <script>/*\n{LIBRARY_LICENCE}*/\n{LIBRARY}</script>\n<script>\n{SCRIPT}</script>\n",
                json(&self.charts)
            )
            .expect("strings take all");
        }
        page.push_str("</body>\n</html>\n");
        page
    }
}

/// Under the title: what this is of.
fn lead(report: &Report) -> String {
    let mut parts = Vec::new();
    let runs = report.all_runs();
    if !report.experiments.is_empty() {
        let cells: usize = report.experiments.iter().map(|named| named.experiment.cells.len()).sum();
        parts.push(format!(
            "{} of {}",
            counted(report.experiments.len(), "experiment"),
            counted(cells, "cell")
        ));
    }
    if !runs.is_empty() {
        parts.push(counted(runs.len(), "run"));
    }
    let began = runs.iter().map(|(_, run)| run.started_unix_ms).min();
    if let Some(began) = began {
        parts.push(format!("started {}", crate::figures::moment(began)));
    }
    if !report.captures.is_empty() {
        parts.push(counted(report.captures.len(), "capture"));
    }
    let abouts = report.experiments.iter().map(|named| named.experiment.about.as_str());
    let abouts: String = abouts
        .filter(|about| !about.is_empty())
        .map(|about| format!("<p class=\"about\">{}</p>\n", escaped(about)))
        .collect();
    format!("<p class=\"lead\">{}</p>\n{abouts}", escaped(&parts.join(" · ")))
}
