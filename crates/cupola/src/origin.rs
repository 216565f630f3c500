//! The line of the Rust program that records an operation, and the layers that it is recorded in.
//!
//! Both are read from the stack, by the line tables of the program (`debug = "line-tables-only"` in its profile; without
//! them nothing is known). Layers are known by their types with `debug = true`, and by their files with less. A place in the program is looked up once; after that a recorded operation costs the walk, some
//! microseconds.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use cupola_core::holders::set_line;

/// Lets operations that are recorded know their line of the Rust program, where somebody wants it and no binding to
/// another language knows better.
pub fn note() {
    set_line(line);
}

/// The crates that are the library, in the folder that this file is of. What trains is made of the library, and shown.
const LIBRARY: [&str; 9] = [
    "core/src/",
    "cpu/src/",
    "cupola/src/",
    "gpu/src/",
    "import/src/",
    "kernel/src/",
    "linalg/src/",
    "macros/src/",
    "suite/src/",
];

/// The most places that are walked over.
const DEEPEST: usize = 256;

/// What an address in the program says. Functions that were inlined there share it.
#[derive(Default)]
struct Place {
    /// The innermost line that is of the program.
    line: Option<Arc<str>>,
    /// The types of the layers whose `forward` it is in, the innermost first.
    layers: Vec<Box<str>>,
    /// Whether the tables know a line of it.
    is_known: bool,
}

#[derive(Default)]
struct Known {
    places: HashMap<usize, Arc<Place>>,
    /// What is made of an own line and the layers around it, by their addresses.
    lines: HashMap<Vec<usize>, Arc<str>>,
    /// Whether walks say nothing: the program has no tables.
    is_blind: bool,
}

static KNOWN: Mutex<Option<Known>> = Mutex::new(None);

fn line() -> Option<Arc<str>> {
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let known = known.get_or_insert_default();
    if known.is_blind {
        return None;
    }
    let mut addresses = Vec::with_capacity(32);
    backtrace::trace(|frame| {
        addresses.push(frame.ip() as usize);
        addresses.len() < DEEPEST
    });
    // What matters of the stack: the innermost place of the program, and those of layers.
    let (mut key, mut own, mut layers) = (Vec::new(), None, Vec::new());
    let mut sees = false;
    for address in addresses {
        let place = known.places.entry(address).or_insert_with(|| Arc::new(Place::at(address)));
        sees |= place.is_known;
        let is_own = own.is_none() && place.line.is_some();
        if is_own {
            own.clone_from(&place.line);
        }
        if is_own || !place.layers.is_empty() {
            key.push(address);
            layers.push(place.clone());
        }
    }
    known.is_blind = !sees;
    let own = own?;
    if let Some(line) = known.lines.get(&key) {
        return Some(line.clone());
    }
    let layers: Vec<&str> =
        layers.iter().flat_map(|place| place.layers.iter().map(|name| &**name)).collect();
    let line: Arc<str> = match layers.is_empty() {
        true => own,
        false => {
            let path: Vec<&str> = layers.into_iter().rev().collect();
            format!("{own} ({})", path.join(".")).into()
        }
    };
    known.lines.insert(key, line.clone());
    Some(line)
}

impl Place {
    fn at(address: usize) -> Place {
        let mut place = Place::default();
        backtrace::resolve(address as *mut _, |symbol| {
            let Some(name) = symbol.name() else { return };
            let name = format!("{name:#}");
            // Of the libraries of the system there may be tables where the program has none.
            let is_rust = |file: &Path| file.extension().is_some_and(|kind| kind == "rs");
            let file = symbol.filename().filter(|file| is_rust(file));
            place.is_known |= file.is_some() && symbol.lineno().is_some();
            place.layers.extend(layer(&name, file).map(Into::into));
            if place.line.is_none()
                && let (Some(file), Some(number)) = (file, symbol.lineno())
                && !is_library(file)
                && let Some(file) = file.file_name()
            {
                place.line = Some(format!("{}:{number}", file.to_string_lossy()).into());
            }
        });
        place
    }
}

/// Whether a file is of the library, or of what it is made with: of a function that was inlined no more is known for
/// sure than its file.
fn is_library(file: &Path) -> bool {
    let file = file.to_string_lossy().replace('\\', "/");
    if file.contains("/registry/src/") || file.contains("/rustc/") && file.contains("/library/") {
        return true;
    }
    let own = file!().replace('\\', "/");
    let folder = own.strip_suffix("cupola/src/origin.rs").unwrap_or_default();
    let within = file.rsplit_once(folder).filter(|_| !folder.is_empty());
    within.is_some_and(|(_, rest)| {
        let is_ours = LIBRARY.iter().any(|part| rest.starts_with(part));
        is_ours && !rest.starts_with("cupola/src/train/")
    })
}

/// The type whose `Layer::forward` a function is. Where the tables have no types, and a function of that name is a
/// layer's, the name of its file.
fn layer<'a>(name: &'a str, file: Option<&'a Path>) -> Option<&'a str> {
    if name == "forward" {
        let file = file?;
        let is_layer = !is_library(file) || file.parent().is_some_and(|p| p.ends_with("src/nn"));
        return file.file_stem().filter(|_| is_layer)?.to_str();
    }
    let (of, rest) = name.strip_prefix('<')?.split_once(" as cupola::nn::module::Layer>::")?;
    let of = of.split('<').next().filter(|_| rest == "forward")?;
    let is_box = of.starts_with("alloc::") || of.starts_with("dyn ");
    of.rsplit("::").next().filter(|_| !is_box)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_of_the_library_is_known_by_its_file() {
        let own = file!().strip_suffix("cupola/src/origin.rs").unwrap();
        for file in ["core/src/ops/arithmetic.rs", "cupola/src/nn/linear.rs"] {
            assert!(is_library(Path::new(&format!("/somewhere/{own}{file}"))), "{file}");
        }
        for file in ["cupola/src/train/network.rs", "cupola/tests/profiler.rs", "cli/src/train.rs"]
        {
            assert!(!is_library(Path::new(&format!("/somewhere/{own}{file}"))), "{file}");
        }
        let of_others = "/home/me/.cargo/registry/src/index/rayon-1.0/src/lib.rs";
        assert!(is_library(Path::new(of_others)));
        assert!(is_library(Path::new("/rustc/0123/library/core/src/ops/function.rs")));
        assert!(!is_library(Path::new("/home/me/app/src/main.rs")));
    }

    #[test]
    fn layers_are_known_by_their_forward() {
        let forward = |of: &str| format!("<{of} as cupola::nn::module::Layer>::forward");
        let of = |name: &str| layer(&forward(name), None).map(str::to_owned);
        assert_eq!(of("app::nets::Net").as_deref(), Some("Net"));
        assert_eq!(of("app::Two<app::Net>").as_deref(), Some("Two"));
        assert_eq!(of("alloc::boxed::Box<dyn cupola::nn::module::Layer>"), None);
        assert_eq!(layer("app::Net::forward", None), None);
        let nn = Path::new("/x").join(file!().replace("origin.rs", "nn/linear.rs"));
        assert_eq!(layer("forward", Some(&nn)), Some("linear"));
        assert_eq!(layer("forward", Some(Path::new("/x/app/src/net.rs"))), Some("net"));
        assert_eq!(layer("forward", Some(&Path::new("/x").join(file!()))), None);
    }
}
