//! Prints the guide's page on keys: `cargo run -p jobs --example keys > docs/guide/job-keys.md`.

fn main() {
    print!("{}", jobs::key_table_markdown());
}
