//! Functions of the library, atomic exchange and first values of arrays: beside the same in Rust, on edge values.

use cupola_kernel::{Array, Run, Scalar, Signature, parse};

fn array(name: &str, scalar: Scalar) -> Array {
    Array { name: name.into(), scalar, rank: 1 }
}

/// Runs `source` for each element of inputs x, y and z, with an output of its own; elements are bytes.
fn run(source: &str, inputs: &[(Scalar, Vec<u8>)], output: Scalar, len: usize) -> Vec<u8> {
    let names = ["x", "y", "z"];
    let signature = Signature {
        inputs: inputs.iter().zip(names).map(|((scalar, _), name)| array(name, *scalar)).collect(),
        outputs: vec![array("out", output)],
        template: Vec::new(),
    };
    let program = parse(source, "", &signature).unwrap_or_else(|e| panic!("{source}: {e}"));
    let mut out = vec![0; len * output.size()];
    let lens = inputs.iter().map(|(scalar, bytes)| vec![bytes.len() / scalar.size()]);
    let run = Run {
        shapes: lens.chain([vec![len]]).collect(),
        ..Run::new([len as u32, 1, 1], [8, 1, 1])
    };
    let bytes: Vec<&[u8]> = inputs.iter().map(|(_, bytes)| &bytes[..]).collect();
    program.run(&run, &bytes, &mut [&mut out]).unwrap_or_else(|e| panic!("{source}: {e}"));
    out
}

fn wrong(source: &str) -> String {
    let signature = Signature { outputs: vec![array("out", Scalar::I32)], ..Signature::default() };
    parse(source, "", &signature).expect_err("the source is wrong").to_string()
}

macro_rules! numbers {
    ($to:ident, $from:ident, $t:ty) => {
        fn $to(values: &[$t]) -> Vec<u8> {
            values.iter().flat_map(|v| v.to_le_bytes()).collect()
        }

        fn $from(bytes: &[u8]) -> Vec<$t> {
            let one = |b: &[u8]| <$t>::from_le_bytes(b.try_into().expect("so many bytes"));
            bytes.chunks_exact(size_of::<$t>()).map(one).collect()
        }
    };
}

numbers!(of_f32, f32s, f32);
numbers!(of_f64, f64s, f64);
numbers!(of_u8, u8s, u8);
numbers!(of_i8, i8s, i8);
numbers!(of_i16, i16s, i16);
numbers!(of_u16, u16s, u16);
numbers!(of_i32, i32s, i32);
numbers!(of_u32, u32s, u32);
numbers!(of_i64, i64s, i64);
numbers!(of_u64, u64s, u64);

const FLOATS: [f32; 22] = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.25,
    -0.75,
    2.5,
    -3.5,
    1e-45,
    -1e-30,
    f32::MIN_POSITIVE,
    f32::MAX,
    f32::MIN,
    f32::INFINITY,
    f32::NEG_INFINITY,
    f32::NAN,
    0.999_999_94,
    16_777_215.0,
    8_388_607.5,
    1e20,
    3.0,
    4.0,
];

/// All pairs of these values, as two lists.
fn pairs<T: Copy>(values: &[T]) -> [Vec<T>; 2] {
    let all: Vec<(T, T)> =
        values.iter().flat_map(|&a| values.iter().map(move |&b| (a, b))).collect();
    let (first, second) = all.into_iter().unzip();
    [first, second]
}

/// Compares a function of two floats, in single and in double precision, by at most so many units in the last place.
fn floats(call: &str, single: fn(f32, f32) -> f32, double: fn(f64, f64) -> f64, units: f64) {
    let source = format!("uint i = thread_position_in_grid.x; out[i] = {call};");
    let [x, y] = pairs(&FLOATS);
    let own = [(Scalar::F32, of_f32(&x)), (Scalar::F32, of_f32(&y))];
    let found = f32s(&run(&source, &own, Scalar::F32, x.len()));
    let near = |got: f64, want: f64, epsilon: f64| {
        let same = got.to_bits() == want.to_bits() || got.is_nan() && want.is_nan();
        same || units > 0.0 && (got - want).abs() <= units * epsilon * want.abs()
    };
    for ((&x, &y), &got) in x.iter().zip(&y).zip(&found) {
        let want = single(x, y);
        let fits = near(got.into(), want.into(), f32::EPSILON.into());
        assert!(fits, "{call} of {x:?} and {y:?}: {got:?}, not {want:?}");
    }
    let [x, y] = [x, y].map(|all| all.iter().map(|&v| f64::from(v)).collect::<Vec<_>>());
    let own = [(Scalar::F64, of_f64(&x)), (Scalar::F64, of_f64(&y))];
    let found = f64s(&run(&source, &own, Scalar::F64, x.len()));
    for ((&x, &y), &got) in x.iter().zip(&y).zip(&found) {
        let want = double(x, y);
        assert!(near(got, want, f64::EPSILON), "{call} of {x:?} and {y:?}: {got:?}, not {want:?}");
    }
}

macro_rules! both {
    ($call:literal, $units:literal, |$x:ident, $y:ident| $want:expr) => {{
        fn single($x: f32, $y: f32) -> f32 {
            $want
        }
        fn double($x: f64, $y: f64) -> f64 {
            $want
        }
        floats($call, single, double, f64::from($units));
    }};
}

#[test]
fn functions_of_floats_give_what_rust_gives() {
    both!("sign(x[i])", 0, |x, _y| match x {
        _ if x.is_nan() => 0.0,
        _ if x == 0.0 => x,
        _ => x.signum(),
    });
    both!("fract(x[i])", 0, |x, _y| {
        let part = x - x.floor();
        if part == 1.0 { x.signum().abs().next_down() } else { part }
    });
    both!("saturate(x[i]) + 0", 0, |x, _y| if x > 0.0 { x.min(1.0) } else { 0.0 });
    both!("mix(x[i], y[i], 0.25f)", 0, |x, y| x + (y - x) * 0.25);
    both!("step(x[i], y[i])", 0, |x, y| if y < x { 0.0 } else { 1.0 });
    both!("smoothstep(-1.0f, 3.0f, x[i])", 0, |x, _y| {
        let t = (x + 1.0) / 4.0;
        let t = if t > 0.0 { t.min(1.0) } else { 0.0 };
        t * t * (3.0 - 2.0 * t)
    });
    both!("degrees(x[i])", 1, |x, _y| x.to_degrees());
    both!("radians(x[i])", 1, |x, _y| x.to_radians());
    both!("divide(x[i], y[i])", 0, |x, y| x / y);
    both!("fdim(x[i], y[i])", 0, |x, y| if x <= y { 0.0 } else { x - y });
    both!("hypot(x[i], y[i])", 2, |x, y| x.hypot(y));
    both!("copysign(x[i], y[i])", 0, |x, y| x.copysign(y));
    both!("signbit(x[i])", 0, |x, _y| if x.is_sign_negative() { 1.0 } else { 0.0 });
    both!("isnormal(x[i])", 0, |x, _y| if x.is_normal() { 1.0 } else { 0.0 });
    both!("isordered(x[i], y[i]) + 2 * isunordered(x[i], y[i])", 0, |x, y| {
        if x.is_nan() || y.is_nan() { 2.0 } else { 1.0 }
    });
    both!("max3(x[i], y[i], 1)", 0, |x, y| x.max(y.max(1.0)));
    both!("fmin3(x[i], y[i], 1) + 0", 0, |x, y| x.min(y.min(1.0)) + 0.0);
    both!("median3(x[i], y[i], 1.0f) + 0", 0, |x, y| x.min(y).max(x.max(y).min(1.0)) + 0.0);
}

#[test]
fn multiples_of_pi_are_exact_where_they_can_be() {
    let x =
        [0.0, 0.25, 0.5, 1.0, 1.5, 2.0, -0.5, -1.0, 1e6 + 0.5, 16_777_216.0, f32::MAX, 0.1, 7.3];
    let pi = std::f64::consts::PI;
    for (name, of) in [("sinpi", f64::sin as fn(f64) -> f64), ("cospi", f64::cos)] {
        let source = format!("uint i = thread_position_in_grid.x; out[i] = {name}(x[i]);");
        let found = f32s(&run(&source, &[(Scalar::F32, of_f32(&x))], Scalar::F32, x.len()));
        for (&x, &got) in x.iter().zip(&found) {
            let part = f64::from(x) % 2.0;
            let exact =
                if (4.0 * part) % 2.0 == 0.0 { of(pi * part).round() } else { of(pi * part) };
            let close = (f64::from(got) - exact).abs() <= 2e-7 * exact.abs();
            assert!(close, "{name}({x}): {got}, not {exact}");
        }
    }
    let source = "uint i = thread_position_in_grid.x; out[i] = sinpi(x[i]);";
    let whole = [0.0, 1.0, 2.0, -0.0, -1.0, -2.0];
    let found = f32s(&run(source, &[(Scalar::F32, of_f32(&whole))], Scalar::F32, whole.len()));
    assert!(
        found
            .iter()
            .zip(&whole)
            .all(|(y, x)| *y == 0.0 && y.is_sign_negative() == x.is_sign_negative())
    );
    let source = "out[0] = tanpi(0.25f); out[1] = tanpi(0.5f); out[2] = tanpi(1.5f); out[3] = sinpi(INFINITY);";
    let found = f32s(&run(source, &[], Scalar::F32, 4));
    assert!(
        (found[0] - 1.0).abs() < 2e-7 && found[1] == f32::INFINITY && found[2] == f32::NEG_INFINITY
    );
    assert!(found[3].is_nan());
}

macro_rules! whole {
    ($t:ty, $scalar:ident, $of:ident, $from:ident) => {{
        type Wide = i128;
        let bits = <$t>::BITS;
        let values: Vec<$t> = vec![
            0,
            1,
            2,
            3,
            5,
            100,
            127,
            <$t>::MAX,
            <$t>::MIN,
            <$t>::MAX - 1,
            <$t>::MAX / 3,
            (<$t>::MIN / 2).wrapping_add(1),
            (0 as $t).wrapping_sub(1),
            (0 as $t).wrapping_sub(7),
        ];
        let [x, y] = pairs(&values);
        let check = |call: &str, want: &dyn Fn($t, $t) -> $t| {
            let source = format!("uint i = thread_position_in_grid.x; out[i] = {call};");
            let own = [(Scalar::$scalar, $of(&x)), (Scalar::$scalar, $of(&y))];
            let found = $from(&run(&source, &own, Scalar::$scalar, x.len()));
            for ((&x, &y), &got) in x.iter().zip(&y).zip(&found) {
                assert_eq!(got, want(x, y), "{}: {call} of {x} and {y}", stringify!($t));
            }
        };
        check("popcount(x[i])", &|x, _| x.count_ones() as $t);
        check("clz(x[i])", &|x, _| x.leading_zeros() as $t);
        check("ctz(x[i])", &|x, _| x.trailing_zeros() as $t);
        check("reverse_bits(x[i])", &|x, _| x.reverse_bits());
        check("rotate(x[i], y[i])", &|x, y| {
            x.rotate_left((y as Wide).rem_euclid(bits as Wide) as u32)
        });
        check("rotate(x[i], 3)", &|x, _| x.rotate_left(3));
        check("absdiff(x[i], y[i])", &|x, y| x.abs_diff(y) as $t);
        check("addsat(x[i], y[i])", &|x, y| x.saturating_add(y));
        check("subsat(x[i], y[i])", &|x, y| x.saturating_sub(y));
        check("hadd(x[i], y[i])", &|x, y| ((x as Wide + y as Wide) >> 1) as $t);
        check("rhadd(x[i], y[i])", &|x, y| ((x as Wide + y as Wide + 1) >> 1) as $t);
        check("mulhi(x[i], y[i])", &|x, y| ((x as Wide * y as Wide) >> bits) as $t);
        check("madhi(x[i], y[i], x[i])", &|x, y| {
            (((x as Wide * y as Wide) >> bits) as $t).wrapping_add(x)
        });
        check("mad24(x[i], y[i], x[i])", &|x, y| x.wrapping_mul(y).wrapping_add(x));
        check("max3(x[i], y[i], 3)", &|x, y| x.max(y).max(3));
        check("median3(x[i], y[i], y[i])", &|_, y| y);
        check("extract_bits(x[i], 2, 5)", &|x, _| x << (bits - 7) >> (bits - 5));
        let none_and_all = format!("extract_bits(x[i], 0, 0) + extract_bits(x[i], 0, {bits})");
        check(&none_and_all, &|x, _| x);
        check("insert_bits(x[i], y[i], 1, 6)", &|x, y| (x & !(63 << 1)) | ((y << 1) & (63 << 1)));
        check("insert_bits(x[i], y[i], 0, 0)", &|x, _| x);
        // A cast has its type, a sum that of arithmetic.
        let cast = if <$t>::MIN == 0 { format!("uint{bits}") } else { format!("int{bits}") };
        check(&format!("clz(({cast}_t)(x[i] + y[i]))"), &|x, y| {
            x.wrapping_add(y).leading_zeros() as $t
        });
        let least = bits.max(32) - bits;
        check("clz(+x[i])", &|x, _| {
            if x < 1 && x != 0 { 0 } else { (x.leading_zeros() + least) as $t }
        });
    }};
}

#[test]
fn functions_of_whole_numbers_give_what_rust_gives() {
    whole!(u8, U8, of_u8, u8s);
    whole!(i8, I8, of_i8, i8s);
    whole!(u16, U16, of_u16, u16s);
    whole!(i16, I16, of_i16, i16s);
    whole!(u32, U32, of_u32, u32s);
    whole!(i32, I32, of_i32, i32s);
    whole!(i64, I64, of_i64, i64s);
    // The product of two of 64 bits without sign fits in no i128.
    let values = [0, 1, u64::MAX, u64::MAX - 1, 1 << 63, 0x1234_5678_9abc_def0];
    let [x, y] = pairs(&values);
    let source = "uint i = thread_position_in_grid.x; out[i] = mulhi(x[i], y[i]) ^ popcount(x[i]) ^ clz(y[i]);";
    let own = [(Scalar::U64, of_u64(&x)), (Scalar::U64, of_u64(&y))];
    let want = x.iter().zip(&y).map(|(&x, &y)| {
        let high = (u128::from(x) * u128::from(y)) >> 64;
        high as u64 ^ u64::from(x.count_ones()) ^ u64::from(y.leading_zeros())
    });
    assert_eq!(u64s(&run(source, &own, Scalar::U64, x.len())), want.collect::<Vec<_>>());
}

#[test]
fn names_of_cuda_and_those_of_the_source_itself() {
    let source = "
        out[0] = __popc(-1); out[1] = __clz(1); out[2] = __ffs(8); out[3] = __ffs(0); out[4] = __brev(1u) >> 31;
        out[5] = __mulhi(1 << 30, 8); out[6] = __umulhi(0x80000000u, 4u); out[7] = __popcll(-1L);
        out[8] = (int)metal::copysignf(3.0f, -0.0f); out[9] = __ffsll(1L << 40);
    ";
    assert_eq!(i32s(&run(source, &[], Scalar::I32, 10)), [32, 31, 4, 0, 1, 2, 2, 64, -3, 41]);
    // A function of the header comes before one of the library, which sees none of its names.
    let signature = Signature { outputs: vec![array("out", Scalar::I32)], ..Signature::default() };
    let header = "int sign(int x) { return 7; } float floor(float x) { return 9; } constant int PI = 3, BITS = 4;";
    let body = "int F = 5, x = 6; out[0] = sign(2); out[1] = (int)(8 * fract(2.25f)); out[2] = clz(1) + F + x;
                while (true) { out[3] = popcount(7); break; }";
    let program = parse(body, header, &signature).expect("it is right");
    let mut out = vec![0; 16];
    let run = Run { shapes: vec![vec![4]], ..Run::new([1, 1, 1], [1, 1, 1]) };
    program.run(&run, &[], &mut [&mut out]).expect("it runs");
    assert_eq!(i32s(&out), [7, 2, 42, 3]);
    // It is read once for each type.
    let twice = "out[0] = mix(0.0f, 1.0f, 0.5f) + mix(mix(1.0f, 2.0f, 0.5f), 2.0f, 0.5f) + popcount(1) + popcount(1u);";
    assert_eq!(parse(twice, "", &signature).expect("it is right").functions.len(), 3);
    for (source, want) in [
        (
            "out[0] = popcount(1.5f);",
            "line 1, column 10: 'popcount' takes whole numbers, not floats",
        ),
        ("out[0] = mix(1, 2);", "line 1, column 10: 'mix' takes 3 arguments, here are 2"),
        ("out[0] = return_(1);", "there is no function 'return_' here"),
        ("out[0] = __ones(1.0f);", "bits are those of whole numbers"),
    ] {
        assert!(wrong(source).contains(want), "{source}: {}", wrong(source));
    }
}

#[test]
fn an_exchange_that_compares_loses_nothing() {
    // Each thread adds 1, whichever is first.
    let source = "
        TYPE seen = 0;
        while (!atomic_compare_exchange_weak_explicit(&out[0], &seen, seen + 1, memory_order_relaxed, memory_order_relaxed)) {}
        TYPE found[2] = {5, 0};
        int n = 0;
        bool done = atomic_compare_exchange_weak_explicit(&out[1], &found[n++], 9, memory_order_relaxed, memory_order_relaxed);
        out[2] = done ? -1 : found[0] + n;
        out[3] = atomicCAS(&out[4], 0, 3);
    ";
    let int = run(&source.replace("TYPE", "int"), &[], Scalar::I32, 100);
    assert_eq!(i32s(&int)[..5], [100, 0, 1, 3, 3]);
    let float = run(&source.replace("TYPE", "float"), &[], Scalar::F32, 100);
    assert_eq!(f32s(&float)[..5], [100.0, 0.0, 1.0, 3.0, 3.0]);
    // Bits are compared: NaN is itself, 0 is not -0.
    let bits = "
        if (thread_position_in_grid.x > 0) return;
        float seen = NAN; out[0] = NAN; out[1] = -0.0f;
        bool is_nan = atomic_compare_exchange_weak_explicit(&out[0], &seen, 1, memory_order_relaxed, memory_order_relaxed);
        seen = 0;
        bool is_zero = atomic_compare_exchange_weak_explicit(&out[1], &seen, 1, memory_order_relaxed, memory_order_relaxed);
        out[2] = is_nan + 2 * is_zero + 4 * signbit(seen);
    ";
    assert_eq!(f32s(&run(bits, &[], Scalar::F32, 3))[2], 5.0);
    for (source, want) in [
        (
            "uint e = 0; atomic_compare_exchange_weak_explicit(&out[0], &e, 1, 0, 0);",
            "takes 3 arguments",
        ),
        (
            "uint e = 0; atomic_compare_exchange_weak_explicit(&out[0], &e, 1, memory_order_relaxed, memory_order_relaxed);",
            "line 1, column 60: what is expected is a variable of int: write &NAME",
        ),
        ("atomic_compare_exchange_weak_explicit(&out[0], 0, 1);", "is a variable of int"),
        ("atomic_compare_exchange_weak_explicit(&out[0], &out[1], 1);", "is a variable of int"),
        (
            "int e = 0; atomic_compare_exchange_weak_explicit(&e, &e, 1);",
            "atomics change an output",
        ),
    ] {
        assert!(wrong(source).contains(want), "{source}: {}", wrong(source));
    }
}

#[test]
fn first_values_are_those_of_c() {
    let all = |declared: &str, len: usize| {
        let (name, _) = declared.split_once('[').expect("an array");
        let name = name.rsplit(' ').next().unwrap_or_default();
        let axes = declared.split('=').next().unwrap_or_default().matches('[').count();
        let zeros = "[0]".repeat(axes - 1);
        let source =
            format!("{declared}; for (int i = 0; i < {len}; i++) out[i] = {name}{zeros}[i];");
        i32s(&run(&source, &[], Scalar::I32, len))
    };
    let rows = [1, 2, 3, 4, 5, 6];
    for same in [
        "{{1,2,3},{4,5,6}}",
        "{1,2,3,4,5,6}",
        "{{1,2,3,},{4,5,6},}",
        "{1,2,3,{4,5,6}}",
        "{{1,2,3},4,5,6}",
        "{{1,{2},3},{4,5,6}}",
    ] {
        assert_eq!(all(&format!("int a[2][3] = {same}"), 6), rows, "{same}");
    }
    for (given, want) in [
        ("{{1},{4,5}}", [1, 0, 0, 4, 5, 0]),
        ("{1,2}", [1, 2, 0, 0, 0, 0]),
        ("{{},{4}}", [0, 0, 0, 4, 0, 0]),
        ("{}", [0; 6]),
        ("{{1,2,3}}", [1, 2, 3, 0, 0, 0]),
        ("{1,{2}}", [1, 2, 0, 0, 0, 0]),
        ("{1,2,3,4,}", [1, 2, 3, 4, 0, 0]),
    ] {
        // What was there in the round before is gone.
        let source = format!(
            "for (int n = 0; n < 2; n++) {{ int a[2][3] = {given};
             for (int i = 0; i < 6; i++) {{ out[i] = a[0][i]; a[0][i] = 7; }} }}"
        );
        assert_eq!(i32s(&run(&source, &[], Scalar::I32, 6)), want, "{given}");
    }
    let cube = "int a[2][2][2] = {{{1,2},{3}},{5,6,7,8}}";
    assert_eq!(all(cube, 8), [1, 2, 3, 0, 5, 6, 7, 8]);
    assert_eq!(all("char a[1][2] = {{300, 1.9f}}", 2), [44, 1]);
    for (source, want) in [
        (
            "int a[2][3] = {{1,2,3},\n{4,5,6,7}};",
            "line 2, column 8: 'a' has only 3 elements in these braces",
        ),
        ("int a[2][3] = {{1},{2},{3}};", "line 1, column 24: 'a' has only 6 elements"),
        ("int a[2][3] = {1,2,3,4,5,6,7};", "'a' has only 6 elements\n"),
        ("int a[2] = {{1,2}};", "'a' has only 1 element in these braces"),
        ("int a[2] = {{1,2}, 3};", "'a' has only 1 element in these braces"),
        ("int a[2] = 1;", "there should be '{' before '1'"),
        ("int a[2] = {1 2};", "there should be ',' before '2'"),
        ("int a[2][2] = {{1,2}", "there should be ',' before the end of the source"),
        ("int a[2] = {,};", "there should be a value before ','"),
    ] {
        assert!(wrong(source).contains(want), "{source}: {}", wrong(source));
    }
    let deep = format!("int a{} = {}1{};", "[1]".repeat(5000), "{".repeat(5000), "}".repeat(5000));
    assert!(wrong(&deep).contains("levels deep"));
}
