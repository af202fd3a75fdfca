//! Renders kept results as one HTML file: `cargo run -p reports --example render -- OUT.html RESULT.json …`.
//!
//! For work on the look of reports; people use `lab report`.

use measured::{ExperimentRun, Run};
use reports::{NamedExperiment, NamedRun, Report};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let out = arguments.next().expect("the first argument is the file to write");
    let texts: Vec<(String, String)> = arguments
        .map(|path| {
            let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("read {path}: {error}"));
            (path, text)
        })
        .collect();
    let (mut runs, mut experiments): (Vec<(String, Run)>, Vec<ExperimentRun>) = (Vec::new(), Vec::new());
    for (path, text) in &texts {
        match serde_json::from_str::<ExperimentRun>(text) {
            Ok(experiment) => experiments.push(experiment),
            Err(_) => {
                let run: Run =
                    serde_json::from_str(text).unwrap_or_else(|error| panic!("read {path}: {error}"));
                runs.push((run.plan.name.clone(), run));
            }
        }
    }
    let title = experiments.first().map(|of| of.name.clone()).or(runs.first().map(|(name, _)| name.clone()));
    let report = Report {
        title: title.unwrap_or_default(),
        program: "reports, rendered by its example".to_owned(),
        runs: runs.iter().map(|(name, run)| NamedRun { name, run }).collect(),
        experiments: (experiments.iter())
            .map(|experiment| NamedExperiment { name: &experiment.name, experiment })
            .collect(),
        ..Report::default()
    };
    std::fs::write(&out, reports::html(&report)).unwrap_or_else(|error| panic!("write {out}: {error}"));
}
