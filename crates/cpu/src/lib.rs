//! Every primitive on the CPU.
