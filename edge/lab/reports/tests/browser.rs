//! The page in a real browser: all charts are drawn, surfaces show, nothing is complained about.
#![allow(clippy::unwrap_used, reason = "in tests, what is missing shall stop them")]

mod common;

use reports::{NamedExperiment, NamedRun, Report, html};
use std::path::Path;
use std::process::Command;

/// Collects complaints from the first moment on.
const WATCH: &str = "<script>
window.complaints = [];
addEventListener('error', (event) => complaints.push('error: ' + event.message));
addEventListener('unhandledrejection', (event) => complaints.push('rejection: ' + event.reason));
addEventListener('securitypolicyviolation', (event) => complaints.push('policy: ' + event.blockedURI + ' ' + event.violatedDirective));
const said = console.error;
console.error = (...words) => { complaints.push('console: ' + words.join(' ')); said(...words); };
</script>";

/// Once all is drawn: the colours of each surface's picture, as the library's own scene gives it.
const JUDGE: &str = "<script>
(async () => {
  const root = document.documentElement;
  await new Promise((resolve) => {
    const look = () => { if (root.dataset.charts === 'drawn') resolve(); };
    new MutationObserver(look).observe(root, { attributes: true });
    look();
  });
  // What is folded is drawn once it is opened.
  document.querySelectorAll('details.folded').forEach((folded) => { folded.open = true; });
  const places = [...document.querySelectorAll('[data-chart]')];
  await new Promise((resolve) => {
    const look = () => (places.every((place) => ['drawn', 'failed'].includes(place.dataset.state)) ? resolve() : setTimeout(look, 50));
    look();
  });
  const scenes = [...document.querySelectorAll('.solid')].map((solid) => {
    const { annotations, xaxis, yaxis, zaxis } = solid._fullLayout.scene;
    return {
      disks: annotations.map((note) => note.text), axes: [xaxis, yaxis, zaxis].map((axis) => axis.title.text),
      tops: solid.data.map((surface) => Math.max(...surface.z.flat())), range: zaxis.range[1], labels: yaxis.ticktext.length,
    };
  });
  const overlaps = [...document.querySelectorAll('figure.chart')].filter((figure) => {
    const plot = figure.querySelector('.plot'), caption = figure.querySelector('figcaption');
    const bottom = Math.max(...[...plot.querySelectorAll('.main-svg, canvas')].map((part) => part.getBoundingClientRect().bottom));
    return bottom > caption.getBoundingClientRect().top + 1;
  }).length;
  const wide = document.documentElement.scrollWidth > innerWidth;
  const colours = [];
  for (const solid of document.querySelectorAll('.solid')) {
    try {
    const picture = new Image();
    picture.src = solid._fullLayout.scene._scene.toImage('png');
    await new Promise((done, failed) => { picture.onload = done; picture.onerror = () => failed('no picture'); });
    const canvas = document.createElement('canvas');
    [canvas.width, canvas.height] = [700, 500];
    const context = canvas.getContext('2d', { willReadFrequently: true });
    context.drawImage(picture, 0, 0, 700, 500);
    // The middle of the picture: neither axes nor the scale of colours.
    const data = context.getImageData(150, 100, 350, 300).data;
    const seen = new Set();
    for (let at = 0; at < data.length; at += 4) if (data[at + 3] > 200) seen.add(data[at] << 16 | data[at + 1] << 8 | data[at + 2]);
    colours.push(seen.size);
    } catch (error) { complaints.push('picture: ' + error); }
  }
  // A chart by keyboard, and its points as a file.
  const walked = places.find((place) => place.getAttribute('aria-label') === 'Throughput over time');
  walked.focus();
  ['ArrowRight', 'ArrowRight', 'ArrowDown'].forEach((key) => walked.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true })));
  const spoken = walked.parentNode.querySelector('.spoken').textContent;
  const focused = document.activeElement === walked;
  let file = null;
  const made = URL.createObjectURL;
  URL.createObjectURL = (blob) => { file = blob; return made.call(URL, blob); };
  walked.parentNode.querySelector('[data-download]').click();
  const csv = file ? (await file.text()).split('\\r\\n').slice(0, 2) : [];
  const states = places.map((place) => place.dataset.state);
  const marks = [...document.querySelectorAll('.plot')].filter((place) => place.querySelector('.main-svg, canvas')).length;
  document.body.innerHTML = '';
  const verdict = document.createElement('pre');
  verdict.id = 'verdict';
  verdict.textContent = JSON.stringify({ colours, states, marks, complaints, scenes, overlaps, wide, spoken, focused, csv });
  document.body.appendChild(verdict);
})();
</script>";

/// What a headless browser makes of a page, once scripts are done.
fn rendered(folder: &Path, page: &str) -> String {
    let file = folder.join("report.html");
    std::fs::write(&file, page).unwrap();
    let done = Command::new("chromium")
        .args(["--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--use-angle=swiftshader"])
        .args([
            "--enable-unsafe-swiftshader",
            "--window-size=1400,3000",
            "--virtual-time-budget=600000",
            "--dump-dom",
        ])
        .arg(format!("--user-data-dir={}", folder.join("profile").display()))
        .arg(format!("file://{}", file.display()))
        .output()
        .unwrap_or_else(|error| {
            panic!(
                "run chromium: {error}; it is in the Debian package chromium, which `./x test -y` installs"
            )
        });
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap()
}

fn verdict(page: &str) -> serde_json::Value {
    let folder = tempfile::tempdir().unwrap();
    let page = page.replacen("<head>", &format!("<head>{WATCH}"), 1);
    let page = page.replacen("</body>", &format!("{JUDGE}</body>"), 1);
    let dom = rendered(folder.path(), &page);
    let text = dom.split("<pre id=\"verdict\">").nth(1).and_then(|rest| rest.split("</pre>").next());
    let text = text.unwrap_or_else(|| {
        let states = dom.split("data-state=\"").skip(1).filter_map(|rest| rest.split('"').next());
        panic!("charts were not drawn in time: {:?}", states.collect::<Vec<_>>())
    });
    serde_json::from_str(&text.replace("&gt;", ">").replace("&lt;", "<").replace("&amp;", "&")).unwrap()
}

#[test]
fn a_browser_draws_every_chart_without_complaint() {
    let run = common::run("mix", &[("vm1", 8, 200), ("vm2", 4, 100)], 30);
    let mut experiment = common::experiment();
    experiment.cells.truncate(4);
    // The surfaces of one run are enough: a software renderer is slow.
    let runs = experiment.cells.iter_mut().flat_map(|cell| &mut cell.runs);
    runs.for_each(|run| run.stages[0].disks.clear());
    let page = html(&Report {
        title: "two <machines>".into(),
        runs: vec![NamedRun { name: "first", run: &run }],
        experiments: vec![NamedExperiment { name: "a sweep", experiment: &experiment }],
        ..Report::default()
    });
    let charts = page.matches("data-chart=").count();
    let found = verdict(&page);
    assert_eq!(found["complaints"], serde_json::json!([]));
    let states: Vec<&str> =
        found["states"].as_array().unwrap().iter().map(|state| state.as_str().unwrap()).collect();
    assert_eq!(states, vec!["drawn"; charts]);
    assert_eq!(found["marks"], charts);
    let colours: Vec<u64> =
        found["colours"].as_array().unwrap().iter().map(|count| count.as_u64().unwrap()).collect();
    let scene = &found["scenes"][0];
    assert_eq!(scene["disks"], serde_json::json!(["<b>vm1</b>", "<b>vm2</b>"]));
    assert_eq!(scene["axes"], serde_json::json!(["seconds", "latency", "I/Os per s"]));
    let tops = scene["tops"].as_array().unwrap();
    let range = scene["range"].as_f64().unwrap();
    let stands = |top: &serde_json::Value| (range * 0.05..=range * 1.01).contains(&top.as_f64().unwrap());
    assert!(tops.len() == 2 && tops.iter().all(stands), "both disks stand on one scale: {scene}");
    assert!(scene["labels"].as_u64().unwrap() >= 6, "buckets of both disks are named: {scene}");
    assert_eq!(found["focused"], true, "a chart takes the keyboard");
    let spoken = found["spoken"].as_str().unwrap();
    assert!(spoken.contains(": 1 seconds, ") && spoken.contains("I/Os per second"), "{spoken}");
    assert_eq!(found["csv"][0], "\"line\",\"seconds\",\"I/Os per second\"");
    assert!(found["csv"][1].as_str().unwrap().starts_with("\"all\",0,"), "{}", found["csv"]);
    assert!(!page.contains("role=\"img\""), "what can be walked through is no picture");
    assert_eq!(found["overlaps"], 0, "pictures lie over what stands below them");
    assert_eq!(found["wide"], false, "the page is wider than the window");
    assert!(
        colours.len() == 1 && colours.iter().all(|&count| count > 200),
        "surfaces are flat or missing: {colours:?}"
    );
}
