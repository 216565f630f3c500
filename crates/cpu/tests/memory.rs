//! The allocator: statistics, reuse, limits and errors. One test, since the statistics are those
//! of the whole process.

use std::time::Instant;

use cupola_core::Error;
use cupola_core::backend::{Backend, Buffer};
use cupola_cpu::Cpu;
use cupola_cpu::memory::{ALIGN, set_cache_limit};

fn address(buffer: &Buffer) -> usize {
    buffer.host().unwrap().as_ptr() as usize
}

#[test]
fn memory_is_counted_reused_and_bounded() {
    let cpu = Cpu::new();
    let stats = || cpu.memory();
    assert_eq!((stats().active, stats().cached), (0, 0));

    // Nothing at all.
    let empty = cpu.alloc(0).unwrap();
    assert_eq!((empty.bytes(), empty.host().unwrap().len()), (0, 0));
    assert_eq!(cpu.upload(&[]).unwrap().bytes(), 0);
    assert_eq!(stats().active, 0);

    // Alignment and content.
    for bytes in [1, 63, 64, 65, 1000, 4096, 5000, 100_000, 5_000_000] {
        let data: Vec<u8> = (0..bytes).map(|i| i as u8).collect();
        let buffer = cpu.upload(&data).unwrap();
        assert_eq!(buffer.bytes(), bytes);
        assert_eq!(address(&buffer) % ALIGN, 0);
        assert!(buffer.is_unique() && stats().active >= bytes);
        let mut back = vec![0; bytes - bytes / 2];
        cpu.download(&buffer, bytes / 2, &mut back).unwrap();
        assert_eq!(back, data[bytes / 2..]);
        assert!(cpu.download(&buffer, bytes / 2 + 1, &mut back).is_err());
        assert!(cpu.download(&buffer, usize::MAX, &mut back).is_err());
    }
    assert_eq!(stats().active, 0);

    // The block freed last comes back, for the same size and one that is a little less.
    for bytes in [256, 4096, 40_000, 1 << 20, 16 << 20] {
        let (a, b) = (cpu.alloc(bytes).unwrap(), cpu.alloc(bytes).unwrap());
        let places = [address(&a), address(&b)];
        drop(a);
        drop(b);
        let cached = stats().cached;
        assert!(cached >= 2 * bytes);
        let (b, a) = (cpu.alloc(bytes).unwrap(), cpu.alloc(bytes - bytes / 32).unwrap());
        assert_eq!([address(&a), address(&b)], places, "{bytes}");
        assert!(stats().cached <= cached - 2 * bytes);
        assert_eq!(stats().active + stats().cached, cached);
    }

    // Trimming.
    cpu.trim();
    assert_eq!((stats().active, stats().cached), (0, 0));
    assert!(stats().peak >= 32 << 20);

    // A block that another thread freed.
    let big = cpu.alloc(1 << 20).unwrap();
    let place = address(&big);
    std::thread::spawn(move || drop(big)).join().unwrap();
    assert_eq!(address(&cpu.alloc(1 << 20).unwrap()), place);
    cpu.trim();

    // Many small blocks: a thread keeps few of them, and all of them are counted.
    let small: Vec<Buffer> = (0..5000).map(|_| cpu.alloc(1000).unwrap()).collect();
    assert_eq!(stats().active, 5000 * 1024);
    drop(small);
    assert_eq!((stats().active, stats().cached), (0, 5000 * 1024));
    std::thread::spawn(|| drop(Cpu::new().alloc(512).unwrap())).join().unwrap();
    cpu.trim();
    assert_eq!(stats().cached, 0);

    // The bounds: a set one, and the peak's.
    set_cache_limit(Some(3 << 20));
    drop((0..8).map(|_| cpu.alloc(1 << 20).unwrap()).collect::<Vec<_>>());
    assert_eq!(stats().cached, 3 << 20);
    set_cache_limit(None);
    cpu.trim();
    for i in 0..20 {
        drop(cpu.alloc((20 << 20) + (i << 22)).unwrap());
        let stats = stats();
        let bound = (stats.peak + stats.peak / 2).max(64 << 20);
        assert!(stats.active + stats.cached <= bound, "{stats:?}");
    }
    cpu.trim();

    // What cannot be.
    for bytes in [usize::MAX, isize::MAX as usize, 1 << 62, 1 << 46] {
        let kept = cpu.upload(&[7; 100]).unwrap();
        let error = cpu.alloc(bytes).unwrap_err();
        assert!(matches!(error, Error::OutOfMemory { bytes: b, .. } if b == bytes), "{error}");
        assert_eq!(kept.host().unwrap(), [7; 100]);
    }

    // Speed is reported, not judged: other work may share the machine.
    let start = Instant::now();
    for _ in 0..1_000_000 {
        drop(std::hint::black_box(cpu.alloc(256).unwrap()));
    }
    println!("a small buffer costs {:?}", start.elapsed() / 1_000_000);
}
