//! The program `cupola`: train, classify, run models, measure and test from the command line.

mod args;
mod bench;
mod classify;
mod convert;
mod data;
mod devices;
mod download;
mod explain;
mod failure;
mod figures;
mod inspect;
mod interrupt;
mod output;
mod package;
mod pictures;
mod profile;
mod report;
mod run;
mod selftest;
mod table;
mod train;

use std::process::ExitCode;

use args::{Cli, Command};
use clap::Parser;
use failure::{Failure, Outcome};

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) if !error.use_stderr() => {
            // Help or version, which were asked for.
            return match output::printed(error.print()) {
                Ok(()) => ExitCode::SUCCESS,
                Err(failure) => failure.report(),
            };
        }
        Err(error)
            if error.kind() == clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand =>
        {
            let _ = error.print();
            return ExitCode::from(2);
        }
        Err(error) => return Failure::from(error).report(),
    };
    let watched = cupola::profiler::from_env().map_err(Failure::from);
    let done = watched.and_then(|watched| {
        let done = run(cli.command);
        // What was recorded is of use where the command failed, too.
        let written =
            watched.finish().map_err(|error| Failure::new(format!("CUPOLA_PROFILE: {error}")));
        done.and(written)
    });
    match done.and_then(|()| output::check_stdout()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

fn run(command: Command) -> Outcome {
    match command {
        Command::Train(args) => train::run(&args),
        Command::Classify(args) => classify::run(&args),
        Command::Bench(args) => bench::run(&args),
        Command::Explain(args) => explain::run(&args),
        Command::Selftest(args) => selftest::run(&args),
        Command::Devices(args) => devices::run(&args),
        Command::Download(args) => download::run(&args),
        Command::Inspect(args) => inspect::run(&args),
        Command::Run(args) => run::run(&args),
        Command::Convert(args) => convert::run(&args),
        Command::Report(args) => report::run(&args),
    }
}
