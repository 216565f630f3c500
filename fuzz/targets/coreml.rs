#![no_main]

cupola_fuzz::target!(coreml);
