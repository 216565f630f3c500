//! The project's own chores: `cargo xtask ci` is what continuous integration runs, `cargo xtask fuzz`
//! looks further.

mod bind;
mod ci;
mod fuzz;
mod operations;
mod python;
mod tools;

use std::process::ExitCode;

const USAGE: &str = "usage: cargo xtask ci [STEP...]
       cargo xtask fuzz [OPTIONS]
       cargo xtask gen [--check]
       cargo xtask operations FILE...

`fuzz` looks for what no test thought of; `fuzz --help` lists its options. `gen` writes the Python
package's bindings and stubs, or checks that they are up to date. `operations` writes the table of
operations by device from what `cupola devices --ops --json` wrote. `ci` runs every step, or those
named, in this order, and stops at the first that fails:
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.split_first() {
        Some((command, steps)) if command == "ci" => ci::run(steps),
        Some((command, rest)) if command == "fuzz" => fuzz::run(rest),
        Some((command, rest)) if command == "gen" => {
            bind::run(&ci::root(), rest.iter().any(|argument| argument == "--check"))
        }
        Some((command, files)) if command == "operations" => operations::run(&ci::root(), files),
        Some((command, _)) if command == "--help" || command == "-h" || command == "help" => {
            println!("{USAGE}{}", ci::list());
            ExitCode::SUCCESS
        }
        _ => {
            eprintln!("{USAGE}{}", ci::list());
            ExitCode::from(2)
        }
    }
}
