//! `drystone demo`: a datastore in a directory, real files in it, a real load on it, and what the disk saw.
//!
//! Everything goes the way that any user's requests go: the API, qemu-img, fio over NBD. Started again, it uses what is
//! there. Must never touch anything outside its directory.

mod cluster;
mod console;
mod files;
mod hosts;
mod load;

use api::client::Client;
use api::client::disk_path;
use api::types::{CreateDisk, DiskView, HistogramsView};
use base::units::{GIB, format_bytes};
use cli::demo::{DemoOptions, folder_of};
use cli::{Shell, histograms_text, import_image};
use control::config::Config;
use control::host::{self, Host, StartEngine};
use failure::{Code, Failure};
use load::unix_address;
use serde_json::json;
use std::io::Write;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};

/// The port that NBD clients try first.
const NBD_PORT: u16 = 10809;
/// Disk with the files.
const FILES: &str = "files";
/// Disk that the load runs on.
const LOAD: &str = "load";
/// Its size.
const LOAD_SIZE: u64 = 2 * GIB;
/// What the load reads and writes: written once before, or reads would find nothing to read.
const LOAD_AREA: u64 = GIB / 2;
/// Histograms that are shown; `disk histogram` has all.
const SHOWN: [&str; 4] = ["length", "seek_distance", "latency", "outstanding"];

/// Runs it. A demo of one host serves in this process, by an engine that `start_engine` starts.
///
/// # Errors
/// What stood in the way, and what to do.
pub fn run(options: &DemoOptions, json: bool, start_engine: StartEngine) -> Result<(), Failure> {
    let folder = folder_of(options.dir.as_deref(), options.hosts.is_some())?;
    if let Some(count) = options.hosts {
        return host::runtime()?.block_on(cluster::run(&folder, usize::from(count), options, json));
    }
    let config = config(&folder)?;
    host::runtime()?.block_on(async {
        let host = Host::start(config, start_engine).await?;
        let mut told = host::told_to_stop()?;
        let shown = tokio::select! {
            shown = show(&host, &folder, options, json) => shown,
            signal = &mut told => Err(Failure::new(Code::Failed, format!("ended by {signal}"))),
        };
        if shown.is_err() || options.exit {
            host.stop().await?;
            return shown;
        }
        host.serve_until(told).await
    })
}

/// One log file and one capacity file, both sparse.
fn config(folder: &Path) -> Result<Config, Failure> {
    let port = free_port()?;
    let text = format!(
        "name = \"demo\"\n\
         data_dir = \".\"\n\
         [listen]\n\
         nbd = [\"127.0.0.1:{port}\", \"unix:nbd.sock\"]\n\
         [[group]]\n\
         log = \"log.img\"\n\
         capacity = [\"capacity.img\"]\n\
         log_size = \"1GiB\"\n\
         file_size = \"16GiB\"\n\
         create = \"if-blank\"\n"
    );
    // `.` would stand in every path that is shown.
    Config::parse(&text.replace("\".\"", &format!("{:?}", folder.display().to_string())), folder, false)
}

/// The usual port, or one that is free.
fn free_port() -> Result<u16, Failure> {
    let bind =
        |port| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).and_then(|listener| listener.local_addr());
    let address = bind(NBD_PORT).or_else(|_| bind(0));
    address.map(|address| address.port()).map_err(|error| Failure::failed("find a free port", error))
}

async fn show(host: &Host, folder: &Path, options: &DemoOptions, json: bool) -> Result<(), Failure> {
    let mut quiet = std::io::sink();
    let mut stdout = std::io::stdout();
    let client = Client::Unix(folder.join("api.sock"));
    let out: &mut dyn Write = if json { &mut quiet } else { &mut stdout };
    let mut demo = Demo {
        shell: Shell { client, identity: None, json: false, out, interactive: false },
        folder: folder.to_owned(),
    };
    let view = host.control.host_view().await?;
    let capacity: u64 =
        view.groups.iter().flat_map(|group| &group.devices).map(|device| device.capacity_bytes).sum();
    demo.say(&format!(
        "Datastore in {}: {} in sparse files, {} disks so far",
        folder.display(),
        format_bytes(capacity),
        view.disk_count
    ))?;
    let files = demo.files().await?;
    let load = demo.disk(LOAD, LOAD_SIZE).await?;
    if load.summary.allocated_bytes < LOAD_AREA {
        demo.say(&format!("Filling {} of it", format_bytes(LOAD_AREA)))?;
        load::fill(unix_address(&load)?, LOAD_AREA).await?;
    }
    demo.say(&format!(
        "\nLoad on `{LOAD}`: fio over NBD, 4 KiB, 70 % reads, 32 at once, {} s",
        options.seconds
    ))?;
    let result = load::run_with_bar(unix_address(&load)?, LOAD_AREA, options.seconds).await?;
    // One second more than the load, for the sample that is under way.
    let address = format!("{}/histograms?since={}", disk_path(LOAD), options.seconds + 1);
    let mut histograms: HistogramsView = demo.shell.client.get(&address).await?;
    histograms.histograms.retain(|histogram| SHOWN.contains(&histogram.kind.as_str()));
    demo.say(&load::table(&result, &histograms))?;
    demo.say("\nWhat the disk saw, always recorded for every disk:\n")?;
    demo.say(&histograms_text(&histograms))?;
    demo.closing(&files, &load, options.exit).await?;
    if json {
        let report = json!({ "folder": folder, "files": files, "load": result, "histograms": histograms });
        println!("{report:#}");
    }
    Ok(())
}

struct Demo<'a> {
    shell: Shell<'a>,
    folder: PathBuf,
}

impl Demo<'_> {
    fn say(&mut self, text: &str) -> Result<(), Failure> {
        writeln!(self.shell.out, "{text}").map_err(|error| Failure::failed("write the report", error))
    }

    /// The disk of this name, made if it is not there.
    async fn disk(&mut self, name: &str, size: u64) -> Result<DiskView, Failure> {
        match self.shell.client.get(&disk_path(name)).await {
            Err(failure) if failure.code == Code::NotFound => {
                let policy = Some("single".to_owned());
                let request = CreateDisk { name: name.to_owned(), size, policy, ..CreateDisk::default() };
                let disk: DiskView = self.shell.client.post("/api/v1/disks", &request).await?;
                let policy = &disk.summary.policy;
                self.say(&format!("Created disk `{name}` of {} with policy {policy}", format_bytes(size)))?;
                Ok(disk)
            }
            other => other,
        }
    }

    /// The disk with a file system of real files.
    async fn files(&mut self) -> Result<DiskView, Failure> {
        match self.shell.client.get(&disk_path(FILES)).await {
            Err(failure) if failure.code == Code::NotFound => {}
            other => {
                self.say(&format!("Disk `{FILES}` is there from a former run"))?;
                return other;
            }
        }
        let image = self.folder.join("files.img");
        let made = files::make_image(&image).await?;
        self.say(&format!(
            "Made an ext4 image of the {} files below {}; importing it:",
            made.count,
            made.source.display()
        ))?;
        let imported = async {
            import_image(&mut self.shell, FILES, &image).await?;
            let disk: DiskView = self.shell.client.get(&disk_path(FILES)).await?;
            files::compare(&image, unix_address(&disk)?).await?;
            Ok(disk)
        };
        let imported = imported.await;
        std::fs::remove_file(&image).map_err(|error| Failure::failed("remove the image", error))?;
        if imported.is_ok() {
            self.say("Read back and compared with the image: identical")?;
        }
        imported
    }

    async fn closing(&mut self, files: &DiskView, load: &DiskView, exit: bool) -> Result<(), Failure> {
        let program =
            std::env::current_exe().map_or_else(|_| "drystone".to_owned(), |path| path.display().to_string());
        if exit {
            // Nothing is served from here on: an address would lead nowhere.
            return self
                .say(&format!("\nThe demo has ended. `{program} demo` serves the same disks until Ctrl-C."));
        }
        let api = &self.shell.client;
        let text = format!(
            "\nAttach by NBD:\n  {}\n  {}\n\nTry:\n  nbdinfo '{}'\n  {program} --api {api} top\n  {program} --api {api} \
             disk show {LOAD}",
            files.addresses.join("\n  "),
            load.addresses.join("\n  "),
            unix_address(files)?,
        );
        let console = console::text(api, &program).await?;
        self.say(&text)?;
        self.say(&console)?;
        self.say("\nServing until Ctrl-C.")
    }
}
