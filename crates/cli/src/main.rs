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
use profile::Profiling;

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
    match run(&cli.command).and_then(|()| output::check_stdout()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

fn run(command: &Command) -> Outcome {
    // It ends with the command, also where that fails.
    let _log = cupola::profiler::log_from_env()?;
    let work = || match command {
        Command::Train(args) => train::run(args),
        Command::Classify(args) => classify::run(args),
        Command::Bench(args) => bench::run(args),
        Command::Explain(args) => explain::run(args),
        Command::Selftest(args) => selftest::run(args),
        Command::Devices(args) => devices::run(args),
        Command::Download(args) => download::run(args),
        Command::Inspect(args) => inspect::run(args),
        Command::Run(args) => run::run(args),
        Command::Convert(args) => convert::run(args),
        Command::Report(args) => report::run(args),
    };
    match command {
        // These have --profile, and see to it that the profile spares what they read and write.
        Command::Train(_) | Command::Run(_) => work(),
        _ => Profiling::new(None)?.record(work),
    }
}
