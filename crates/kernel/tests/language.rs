//! Kernels of the language, run by the interpreter: values beside the same in Rust, and errors.

use cupola_kernel::{Array, Error, Parameter, Run, Scalar, Signature, parse};

fn array(name: &str, scalar: Scalar) -> Array {
    Array { name: name.into(), scalar, rank: 1 }
}

/// Runs a kernel from `x` to `out`, both of floats.
fn floats(source: &str, x: &[f32], len: usize, grid: u32, group: u32) -> Result<Vec<f32>, Error> {
    full(source, "", &[], x, len, [grid, 1, 1], [group, 1, 1])
}

fn full(
    source: &str,
    header: &str,
    template: &[(&str, Parameter)],
    x: &[f32],
    len: usize,
    grid: [u32; 3],
    threadgroup: [u32; 3],
) -> Result<Vec<f32>, Error> {
    let signature = Signature {
        inputs: vec![array("x", Scalar::F32)],
        outputs: vec![array("out", Scalar::F32)],
        template: template.iter().map(|&(name, p)| (name.to_owned(), p)).collect(),
    };
    let program = parse(source, header, &signature)?;
    let bytes: Vec<u8> = x.iter().flat_map(|v| v.to_le_bytes()).collect();
    let mut out = vec![0; 4 * len];
    let run = Run {
        shapes: vec![vec![x.len()], vec![len]],
        rounds: 10_000,
        ..Run::new(grid, threadgroup)
    };
    program.run(&run, &[&bytes], &mut [&mut out])?;
    Ok(out.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect())
}

fn error(source: &str) -> String {
    floats(source, &[1.0; 8], 8, 8, 8).expect_err("the source is wrong").to_string()
}

#[test]
fn an_elementwise_kernel_gives_what_rust_gives() -> Result<(), Error> {
    let x: Vec<f32> = (0..2000).map(|i| i as f32 / 100.0 - 10.0).collect();
    let source = "
        uint elem = thread_position_in_grid.x;
        float v = x[elem];
        // Softshrink
        out[elem] = v > 0.5f ? v - 0.5f : (v < -0.5f ? v + 0.5f : 0.0f);
    ";
    let want: Vec<f32> = x
        .iter()
        .map(|&v| {
            if v > 0.5 {
                v - 0.5
            } else if v < -0.5 {
                v + 0.5
            } else {
                0.0
            }
        })
        .collect();
    assert_eq!(floats(source, &x, 2000, 2000, 256)?, want);
    Ok(())
}

#[test]
fn loops_and_branches_are_each_threads_own() -> Result<(), Error> {
    // The sum of the odd numbers below i, but for multiples of 5, up to the first above 20.
    let source = "
        int i = (int)thread_position_in_grid.x, sum = 0;
        for (int j = 0; j < i; ++j) {
            if (j % 2 == 0 || j % 5 == 0) continue;
            if (j > 20) { break; }
            sum += j;
        }
        int k = 0;
        while (true) { if (k++ >= i) break; sum += 1; }
        do { sum -= 1; } while (--k > 0);
        out[i] = sum;
        if (i > 30) return;
        out[i] += x[i];
    ";
    let want: Vec<f32> = (0i32..40)
        .map(|i| {
            let own: i32 = (0..i).filter(|j| j % 2 != 0 && j % 5 != 0 && *j <= 20).sum();
            // The loops below add i and take i + 1 away.
            (own + i - (i + 1)) as f32 + if i > 30 { 0.0 } else { 0.5 }
        })
        .collect();
    assert_eq!(floats(source, &[0.5; 40], 40, 40, 7)?, want);
    Ok(())
}

#[test]
fn integers_are_those_of_c() -> Result<(), Error> {
    let source = "
        uint8_t small = 250; small += 10;
        int8_t signed_small = (int8_t)200;
        uint wraps = 0u - 1u;
        int shifted = -16 >> 2;
        ulong wide = (ulong)wraps + 1;
        bool yes = 3;
        half h = 2049.0f;
        out[0] = small; out[1] = signed_small; out[2] = wraps == 0xffffffffu; out[3] = shifted;
        out[4] = wide >> 32; out[5] = yes + yes; out[6] = 7 / 2 + 7 % 4; out[7] = h;
        out[8] = as_type<float>(0x40490fdbu); out[9] = ~5 & 0xf; out[10] = (1 << 4) | 3 ^ 1;
        out[11] = !x[0];
    ";
    let pi = std::f32::consts::PI;
    let want = [4.0, -56.0, 1.0, -4.0, 1.0, 2.0, 6.0, 2048.0, pi, 10.0, 18.0, 0.0];
    assert_eq!(floats(source, &[1.0], 12, 1, 1)?, want);
    Ok(())
}

#[test]
fn a_float_becomes_an_integer_as_arrays_cast_it() -> Result<(), Error> {
    let x = [1e20, -1e20, f32::NAN, -2.7, 300.0];
    let ints = [i32::MAX, i32::MIN, 0, -2, 300].map(|v| v as f32);
    let uints = [u32::MAX, 1 << 31, 0, u32::MAX - 1, 300].map(|v| v as f32);
    let wanted = [
        ("int", ints),
        ("uint", uints),
        ("char", [127.0, -128.0, 0.0, -2.0, 127.0]),
        ("uchar", [255.0, 0.0, 0.0, 254.0, 255.0]),
        ("short", [32767.0, -32768.0, 0.0, -2.0, 300.0]),
        ("ushort", [65535.0, 0.0, 0.0, 65534.0, 300.0]),
        ("long", [i64::MAX as f32, i64::MIN as f32, 0.0, -2.0, 300.0]),
        ("ulong", [u64::MAX as f32, 2f32.powi(63), 0.0, 2f32.powi(64), 300.0]),
    ];
    // A half of a double is rounded once: a little more than a tie goes up.
    let halves = "double v = as_type<double>(0x3ff0020000001000); half h = v; out[0] = h;";
    assert_eq!(floats(halves, &x, 1, 1, 1)?, [1.0 + 2f32.powi(-10)]);
    for (name, want) in wanted {
        let own = format!("uint i = thread_position_in_grid.x; {name} v");
        for source in [
            format!("{own} = x[i]; out[i] = v;"),
            format!("{own} = 0; v += x[i]; out[i] = v;"),
            format!("{own} = static_cast<{name}>(x[i]); out[i] = v;"),
            format!("{own} = 0; v = i == 0 ? ({name})1e20f : ({name})x[i]; out[i] = v;"),
        ] {
            assert_eq!(floats(&source, &x, 5, 5, 5)?, want, "{source}");
        }
    }
    Ok(())
}

#[test]
fn functions_go_by_their_usual_names() -> Result<(), Error> {
    let source = "
        float v = x[0];
        out[0] = metal::exp(v); out[1] = metal::precise::tanh(v); out[2] = fma(v, 2, 1);
        out[3] = max(v, 3); out[4] = clamp(v, 0.0f, 1.0f); out[5] = pow(v, 2.0f);
        out[6] = isnan(NAN) && isinf(INFINITY); out[7] = rsqrt(4.0f); out[8] = abs(-3);
        out[9] = round(2.5f) + rint(2.5f); out[10] = erf(v); out[11] = select(1.0f, 2.0f, v > 1);
    ";
    let v = 1.5f32;
    let want = [v.exp(), v.tanh(), 4.0, 3.0, 1.0, 2.25, 1.0, 0.5, 3.0, 5.0, libm::erff(v), 2.0];
    assert_eq!(floats(source, &[v], 12, 1, 1)?, want);
    Ok(())
}

#[test]
fn threads_of_a_group_share_memory_between_barriers() -> Result<(), Error> {
    let source = "
        threadgroup float sums[8];
        uint i = thread_position_in_threadgroup.x;
        sums[i] = x[thread_position_in_grid.x];
        threadgroup_barrier(mem_flags::mem_threadgroup);
        for (uint step = threads_per_threadgroup.x / 2; step > 0; step /= 2) {
            if (i < step) sums[i] += sums[i + step];
            threadgroup_barrier(mem_flags::mem_threadgroup);
        }
        if (i == 0) out[threadgroup_position_in_grid.x] = sums[0];
    ";
    let x: Vec<f32> = (0..32).map(|i| i as f32).collect();
    assert_eq!(floats(source, &x, 4, 32, 8)?, [28.0, 92.0, 156.0, 220.0]);
    let half = "if (thread_position_in_grid.x < 4) { threadgroup_barrier(0); }";
    assert_eq!(
        error(half),
        "line 1, column 38: only 4 of 8 threads of a threadgroup reach this barrier"
    );
    Ok(())
}

#[test]
fn atomics_lose_nothing() -> Result<(), Error> {
    let source = "
        uint i = thread_position_in_grid.x;
        atomic_fetch_add_explicit(&out[i % 2], x[i], memory_order_relaxed);
    ";
    assert_eq!(floats(source, &[1.0; 1001], 2, 1001, 32)?, [501.0, 500.0]);
    Ok(())
}

#[test]
fn templates_functions_pointers_and_arrays() -> Result<(), Error> {
    let header = "
        constant constexpr float HALF = 0.5f;
        inline float power(float base, int n) {
            float found = 1;
            for (int i = 0; ; i++) { if (i == n) return found; found *= base; }
        }
        float twice(float v) { return v + v; }
    ";
    let source = "
        uint3 at = thread_position_in_grid;
        T grid[2][N] = {1, 2, 3};
        const device float* row = x + at.y * 3;
        auto value = row[at.x];
        if (USE) { value = twice(power(value, N)) * HALF; }
        out[at.y * 3 + at.x] = value + grid[0][1] + grid[1][0] * 10 + x_shape[0] * 100 + x_strides[0] * 1000 + x_ndim;
    ";
    let template = [
        ("T", Parameter::Type(Scalar::I32)),
        ("N", Parameter::Integer(2)),
        ("USE", Parameter::Bool(true)),
    ];
    let x: Vec<f32> = (0..6).map(|i| i as f32).collect();
    let want: Vec<f32> = x.iter().map(|v| v * v + 2.0 + 30.0 + 600.0 + 1000.0 + 1.0).collect();
    assert_eq!(full(source, header, &template, &x, 6, [3, 2, 1], [2, 2, 1])?, want);
    Ok(())
}

#[test]
fn a_wrong_source_is_shown_with_its_line() {
    let said = error("uint i = thread_position_in_grid.x;\nout[i] = y[i];");
    assert_eq!(said, "line 2, column 10: there is no 'y' here\n    out[i] = y[i];\n             ^");
    let cases = [
        ("x[0] = 1;", "'x' is an input: it cannot be changed"),
        ("out[0] = 1", "there should be ';' before the end of the source"),
        ("out[0.5f] = 1;", "an index is a whole number, not a float"),
        ("out[0] = x;", "this is an array: an index in [] is missing"),
        ("out[0] = foo(1);", "there is no function 'foo' here"),
        ("out[0] = exp(1, 2);", "'exp' takes 1 arguments, here are 2"),
        ("break;", "'break' stands outside of loops"),
        ("if (true) { out[0] = 1;", "this bracket is not closed"),
        ("out[0] = thread_position_in_grid;", "these are three numbers"),
        ("float a[n];", "there is no 'n' here"),
        ("uint n = 3; float a[n];", "an array's length is a number"),
        ("out[0] = 1.0f & 2;", "bits are those of whole numbers"),
        ("#define N 3", "there is no preprocessor"),
        ("atomicAdd(&x[0], 1);", "atomics change an output"),
        ("out[0] = 12abc;", "'12abc' is not a number"),
        ("out[0] = 'a';", "a ''' stands for nothing here"),
        ("/* open", "this comment has no end"),
        ("switch (1) {}", "'switch' is not part of the language"),
        ("int i = 0; int i = 1;", "line 1, column 16: 'i' is declared here already"),
        ("int i = 0; auto i = 1;", "'i' is declared here already"),
        ("float a[2]; const float a = 1;", "'a' is declared here already"),
    ];
    for (source, want) in cases {
        let said = error(source);
        assert!(said.contains(want), "{source}: {said}");
    }
    // A scope within has names of its own.
    let inner = "int i = 1; for (int i = 5; i < 6; i++) { int i = 2; out[0] += i; } out[0] += i;";
    assert_eq!(floats(inner, &[0.0], 1, 1, 1).expect("it is right"), [3.0]);
    let twice = "float f(float v) { return v; } float f(float v) { return 2 * v; }";
    for (header, want) in [
        (twice, "header, line 1, column 38: 'f' is declared here already"),
        ("float f(float v, int v) { return v; }", "'v' is declared here already"),
        ("float f(float v) { int v = 2; return v; }", "'v' is declared here already"),
    ] {
        let said = full("out[0] = 1;", header, &[], &[1.0], 1, [1; 3], [1; 3]);
        let said = said.expect_err("the header is wrong").to_string();
        assert!(said.contains(want), "{header}: {said}");
    }
    let deep = format!("out[0] = {}1{};", "(".repeat(5000), ")".repeat(5000));
    assert!(error(&deep).contains("levels deep"));
}

#[test]
fn what_goes_wrong_in_a_thread_names_it() {
    assert_eq!(
        error("out[thread_position_in_grid.x + 1] = 1;"),
        "line 1, column 31: index 8 is outside 'out', which has 8 elements, in thread (7, 0, 0)"
    );
    assert!(error("int i = -1; out[0] = x[i];").contains("index -1 is outside 'x'"));
    assert!(error("float a[2]; a[2] = 1;").contains("index 2 is outside 'a'"));
    assert!(error("while (true) {}").contains("has not ended after 10000 rounds"));
    assert!(error("out[0] = x_shape[1];").contains("'x' has 1 axes, none is 1"));
}
