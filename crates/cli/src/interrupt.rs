//! Ctrl-C: the first lets the work under way end, the second ends the program.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// A flag that turns true at the first Ctrl-C from now on.
pub fn flag() -> &'static AtomicBool {
    static FLAG: AtomicBool = AtomicBool::new(false);
    static SET: OnceLock<()> = OnceLock::new();
    SET.get_or_init(|| {
        let set = ctrlc::set_handler(|| {
            cupola::interrupt::give_up();
            if FLAG.swap(true, Ordering::Relaxed) {
                // Saves go to a temporary file first: what is on the disk is whole.
                std::process::exit(130);
            }
        });
        if let Err(error) = set {
            eprintln!("warning: Ctrl-C will end the program at once: {error}");
        }
    });
    &FLAG
}
