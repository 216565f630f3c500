//! How the program fails: one line, and a status.

use std::fmt;
use std::process::ExitCode;

use cupola::on_one_line;

/// The status after Ctrl-C, as shells give it.
const INTERRUPTED: u8 = 130;

/// Why the program ends early.
#[derive(Debug)]
pub struct Failure {
    message: String,
    status: u8,
}

/// What most of the program returns.
pub type Outcome<T = ()> = Result<T, Failure>;

impl Failure {
    /// Something went wrong.
    pub fn new(message: impl fmt::Display) -> Self {
        Self { message: one_line(&message.to_string()), status: 1 }
    }

    /// The arguments make no sense.
    pub fn usage(message: impl fmt::Display) -> Self {
        Self { message: one_line(&message.to_string()), status: 2 }
    }

    /// The user pressed Ctrl-C.
    pub fn interrupted(message: impl fmt::Display) -> Self {
        Self { message: one_line(&message.to_string()), status: INTERRUPTED }
    }

    /// The same, with a hint behind it.
    pub fn hint(mut self, hint: impl fmt::Display) -> Self {
        self.message = format!("{}; {hint}", self.message);
        self
    }

    /// Whether the arguments make no sense.
    pub fn is_usage(&self) -> bool {
        self.status == 2
    }

    /// Whether the user asked for the end.
    pub fn is_interruption(&self) -> bool {
        self.status == INTERRUPTED
    }

    /// Says it, and gives the status to end with.
    pub fn report(&self) -> ExitCode {
        // The terminal may be gone; there is nobody left to tell.
        let _ = std::io::Write::write_fmt(
            &mut std::io::stderr().lock(),
            format_args!("error: {}\n", self.message),
        );
        ExitCode::from(self.status)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// One line, without what a terminal would obey: names of files may hold anything.
fn one_line(text: &str) -> String {
    let lines = text.split('\n').map(str::trim).filter(|line| !line.is_empty());
    on_one_line(&lines.collect::<Vec<_>>().join(" "))
}

impl From<cupola::Error> for Failure {
    fn from(error: cupola::Error) -> Self {
        match error {
            cupola::Error::Interrupted => Self::interrupted(error),
            _ => Self::new(error),
        }
    }
}

impl From<cupola::data::Error> for Failure {
    fn from(error: cupola::data::Error) -> Self {
        Self::new(error)
    }
}

/// What clap says, in one line.
impl From<clap::Error> for Failure {
    fn from(error: clap::Error) -> Self {
        let text = error.render().to_string();
        let said = text.split("\nUsage:").next().unwrap_or(&text);
        let said = said.split("\nFor more information").next().unwrap_or(said);
        let line = one_line(said);
        Self::usage(line.strip_prefix("error: ").unwrap_or(&line)).hint("try --help")
    }
}
