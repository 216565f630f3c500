//! `cupola download`.

use cupola::data::{Downloader, Progress};

use crate::args::DownloadArgs;
use crate::failure::{Failure, Outcome};
use crate::interrupt;
use crate::output::{Output, bar};

pub fn run(args: &DownloadArgs) -> Outcome {
    let output = Output::new(None)?;
    let Some(set) = args.dataset.published() else {
        return Err(Failure::usage("digits: the program draws this set, nothing is to be fetched"));
    };
    let progress =
        bar(0, "{msg:<28} {wide_bar} {bytes:>10}/{total_bytes:<10} {bytes_per_sec:>12} {eta:>4}");
    let show = |step: Progress<'_>| match step {
        Progress::Present { file } => {
            progress.suspend(|| output.line(format!("{file}: is there")));
        }
        Progress::Received { file, bytes, total } => {
            if progress.message() != file {
                progress.set_message(file.to_owned());
                progress.reset_eta();
            }
            progress.set_length(total);
            progress.set_position(bytes);
        }
        Progress::Retrying { file, reason } => {
            progress.suspend(|| output.line(format!("{file}: {reason}; trying again")));
        }
        Progress::Checking { file } => {
            progress.suspend(|| output.line(format!("{file}: fetched")));
        }
        _ => {}
    };
    let fetched =
        Downloader::new().progress(show).stop(interrupt::flag()).fetch(set, &args.data_dir);
    progress.finish_and_clear();
    match fetched {
        Ok(folder) => {
            output.line(format!("{} is in {}", set.name(), folder.display()));
            Ok(())
        }
        Err(stopped @ cupola::data::Error::Stopped { .. }) => {
            Err(Failure::interrupted(format!("{stopped}; the same command goes on with it")))
        }
        Err(error) => Err(error.into()),
    }
}
