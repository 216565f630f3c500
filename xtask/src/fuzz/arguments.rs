//! What stands on the command line.

use std::path::PathBuf;
use std::time::Duration;

use super::KINDS;

pub const USAGE: &str = "usage: cargo xtask fuzz [--for TIME] [--seed N] [--only KIND...]
                        [--case I] [--json FILE] [--program FILE] [--site DIR]

  --for TIME      How long in all, such as 90s, 10m or 2h [default: 10m]
  --seed N        What the cases are drawn from [default: 0]
  --only KIND...  These kinds alone
  --case I        The case of that number alone, of one of the kinds runs and faults
  --json FILE     Write what was found to this file, too
  --program FILE  The program to look at, instead of building it
  --site DIR      The folder with the Python package, instead of building it

The status is 0 where nothing was found, 1 where something was, 2 where the arguments make no sense.
The kinds share the time:
";

/// What was asked for.
pub struct Arguments {
    pub time: Duration,
    pub seed: u64,
    /// The names of kinds; none is all.
    pub only: Vec<String>,
    pub case: Option<u64>,
    /// The most cases of a script, however fast the machine is.
    pub most: Option<u64>,
    pub json: Option<PathBuf>,
    pub program: Option<PathBuf>,
    pub site: Option<PathBuf>,
}

impl Default for Arguments {
    fn default() -> Self {
        Self {
            time: Duration::from_secs(600),
            seed: 0,
            only: Vec::new(),
            case: None,
            most: None,
            json: None,
            program: None,
            site: None,
        }
    }
}

impl Arguments {
    pub fn parse(words: &[String]) -> Result<Self, String> {
        let mut arguments = Self::default();
        let mut words = words.iter().map(String::as_str).peekable();
        while let Some(flag) = words.next() {
            let mut value = || words.next().ok_or_else(|| format!("{flag}: a value is missing"));
            match flag {
                "--for" => arguments.time = time(value()?)?,
                "--seed" => arguments.seed = number(flag, value()?)?,
                "--case" => arguments.case = Some(number(flag, value()?)?),
                "--json" => arguments.json = Some(value()?.into()),
                "--program" => arguments.program = Some(absolute(flag, value()?)?),
                "--site" => arguments.site = Some(absolute(flag, value()?)?),
                "--only" => {
                    arguments.only.push(kind(value()?)?);
                    while let Some(name) = words.next_if(|word| !word.starts_with("--")) {
                        arguments.only.push(kind(name)?);
                    }
                }
                other => return Err(format!("'{other}' is no option")),
            }
        }
        arguments.check().map(|()| arguments)
    }

    fn check(&self) -> Result<(), String> {
        let is_numbered = |name: &str| KINDS.iter().any(|kind| kind.name == name && kind.numbered);
        match (&self.case, &self.only[..]) {
            (None, _) => Ok(()),
            (Some(_), [name]) if is_numbered(name) => Ok(()),
            (Some(_), _) => Err("--case: goes with --only runs or --only faults".to_owned()),
        }
    }
}

fn kind(name: &str) -> Result<String, String> {
    match KINDS.iter().any(|kind| kind.name == name) {
        true => Ok(name.to_owned()),
        false => Err(format!("--only: '{name}' is no kind")),
    }
}

fn number(flag: &str, text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("{flag}: '{text}' is no whole number"))
}

fn absolute(flag: &str, text: &str) -> Result<PathBuf, String> {
    std::path::absolute(text).map_err(|cause| format!("{flag}: {text}: {cause}"))
}

fn time(text: &str) -> Result<Duration, String> {
    let wrong = || format!("--for: '{text}' is no time such as 90s, 10m or 2h");
    let (count, unit) = text.split_at_checked(text.len().saturating_sub(1)).ok_or_else(wrong)?;
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        _ => return Err(wrong()),
    };
    let count: u64 = count.parse().map_err(|_| wrong())?;
    match count.checked_mul(seconds) {
        Some(seconds @ 1..=31_536_000) => Ok(Duration::from_secs(seconds)),
        _ => Err(wrong()),
    }
}
