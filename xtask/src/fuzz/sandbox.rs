//! A folder with a small data set, and what a program in it comes to.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::random::Random;

/// Height and width of the images.
const SIDE: usize = 28;
/// How many images there are to train on: 36 and 4 to validate with.
pub const IMAGES: usize = 40;
/// How many there are to test with.
const TESTS: usize = 12;

/// A folder that goes when it is dropped.
pub struct Sandbox(PathBuf);

impl Sandbox {
    /// An empty folder; `name` is its own in this process.
    pub fn new(name: &str) -> Result<Self, String> {
        Self::within(&std::env::temp_dir(), name)
    }

    /// The same where nothing waits for a disk, if there is such a place; it is small.
    pub fn in_memory(name: &str) -> Result<Self, String> {
        let memory = Path::new("/dev/shm");
        match memory.is_dir() {
            true => Self::within(memory, name),
            false => Self::new(name),
        }
    }

    fn within(place: &Path, name: &str) -> Result<Self, String> {
        let folder = place.join(format!("cupola-fuzz-{}", std::process::id()));
        // What the system says of open files has no links in it.
        std::fs::create_dir_all(&folder)
            .and_then(|()| folder.canonicalize())
            .map(|folder| folder.join(name))
            .and_then(|folder| std::fs::create_dir(&folder).map(|()| Self(folder)))
            .map_err(|cause| format!("{}: {cause}", folder.display()))
    }

    /// A folder with the small data set in `data`.
    pub fn with_data(name: &str) -> Result<Self, String> {
        let sandbox = Self::new(name)?;
        let data = sandbox.path("data");
        write_data(&data).map_err(|cause| format!("{}: {cause}", data.display()))?;
        Ok(sandbox)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// The content of a file, if there is one.
    pub fn read(&self, name: &str) -> Option<Vec<u8>> {
        std::fs::read(self.path(name)).ok()
    }

    /// The names in a folder, in order.
    pub fn names(&self, folder: &str) -> Vec<String> {
        let entries = std::fs::read_dir(self.path(folder)).into_iter().flatten().flatten();
        let mut names: Vec<String> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
        // The last one takes the folder of them all with it.
        let _ = self.0.parent().map(std::fs::remove_dir);
    }
}

/// Writes a small set in the format of MNIST.
fn write_data(folder: &Path) -> std::io::Result<()> {
    std::fs::create_dir(folder)?;
    for (stem, count) in [("train", IMAGES), ("t10k", TESTS)] {
        let mut random = Random::of(0, count as u64);
        let pixels: Vec<u8> = (0..count * SIDE * SIDE).map(|_| random.next() as u8).collect();
        let labels: Vec<u8> = (0..count).map(|index| (index % 10) as u8).collect();
        let images = idx(&[count, SIDE, SIDE], &pixels);
        std::fs::write(folder.join(format!("{stem}-images-idx3-ubyte")), images)?;
        std::fs::write(folder.join(format!("{stem}-labels-idx1-ubyte")), idx(&[count], &labels))?;
    }
    Ok(())
}

fn idx(shape: &[usize], values: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0, 0, 8, shape.len() as u8];
    bytes.extend(shape.iter().flat_map(|&length| (length as u32).to_be_bytes()));
    bytes.extend(values);
    bytes
}

/// Where the tensors of a safetensors file begin; nothing if the file is no whole one.
pub fn tensors(file: &[u8]) -> Option<&[u8]> {
    let (length, rest) = file.split_first_chunk::<8>()?;
    let (header, tensors) =
        rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
    let header: serde_json::Value = serde_json::from_slice(header).ok()?;
    let ends = header.as_object()?.values().filter_map(|info| info["data_offsets"][1].as_u64());
    (ends.max().unwrap_or(0) == tensors.len() as u64).then_some(tensors)
}

/// A program that runs.
pub struct Running {
    child: Child,
    began: Instant,
    out: JoinHandle<String>,
    err: JoinHandle<String>,
}

/// What it came to.
pub struct Ran {
    /// Nothing: it did not end in time.
    pub status: Option<ExitStatus>,
    pub time: Duration,
    pub out: String,
    pub err: String,
}

/// How many lines of a program's words a finding has.
const MOST: usize = 12;
/// After that long a program hangs.
const PATIENCE: Duration = Duration::from_secs(60);

impl Running {
    pub fn start(command: &mut Command) -> Result<Self, String> {
        // What is said is compared: a panic in a line, too.
        command.env("RUST_BACKTRACE", "0");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command
            .spawn()
            .map_err(|cause| format!("{}: {cause}", command.get_program().display()))?;
        let (out, err) = (reader(child.stdout.take()), reader(child.stderr.take()));
        Ok(Self { child, began: Instant::now(), out, err })
    }

    /// Waits that long, or until the program is over.
    pub fn wait_for(&mut self, time: Duration) -> Option<ExitStatus> {
        let until = Instant::now() + time;
        loop {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Some(status);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            std::thread::sleep(left.min(Duration::from_millis(1)));
        }
    }

    /// Sends a signal to the program, if it is not over.
    pub fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        let _ =
            Command::new("kill").args([&format!("-{name}"), &pid]).stderr(Stdio::null()).status();
    }

    pub fn end(mut self) -> Ran {
        let status = self.wait_for(PATIENCE);
        if status.is_none() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
        let text = |reader: JoinHandle<String>| reader.join().unwrap_or_default();
        Ran { status, time: self.began.elapsed(), out: text(self.out), err: text(self.err) }
    }
}

fn reader(stream: Option<impl Read + Send + 'static>) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = stream.map(|mut stream| stream.read_to_end(&mut bytes));
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

impl Ran {
    pub fn code(&self) -> Option<i32> {
        self.status.and_then(|status| status.code())
    }

    /// The number of the signal that ended it.
    #[cfg(unix)]
    pub fn signal(&self) -> Option<i32> {
        self.status.and_then(|status| std::os::unix::process::ExitStatusExt::signal(&status))
    }

    #[cfg(not(unix))]
    pub fn signal(&self) -> Option<i32> {
        None
    }

    /// The one line of error.
    pub fn error(&self) -> Option<&str> {
        let mut lines = self.err.lines();
        let line = lines.next().filter(|line| line.starts_with("error: "));
        line.filter(|_| lines.next().is_none())
    }

    /// What no input, no signal and no fault may lead to.
    pub fn crashed(&self) -> Option<&'static str> {
        match self.code() {
            Some(101) => Some("a panic"),
            _ if self.status.is_none() => Some("it hangs"),
            _ if self.err.contains("panicked") || self.err.contains("PanicException") => {
                Some("a panic")
            }
            _ => None,
        }
    }

    /// All of it, for a finding.
    pub fn told(&self) -> String {
        let status = self.status.map_or("no end".to_owned(), |status| status.to_string());
        let indented = |text: &str| -> String {
            let lines: Vec<&str> = text.lines().collect();
            let end = lines.len().saturating_sub(MOST);
            let from = lines.iter().position(|line| line.contains("panicked")).unwrap_or(end);
            lines[from..].iter().take(MOST).map(|line| format!("\n    | {line}")).collect()
        };
        format!("{status}{}{}", indented(&self.out), indented(&self.err))
    }
}
