//! Safetensors files, whole and damaged.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use cupola::io::{npy, safetensors};
use cupola::nn::{self, Module};
use cupola::{Array, DType, Result, ops};

/// An array of every dtype that the format has.
fn every_dtype() -> Result<BTreeMap<String, Array>> {
    DType::ALL
        .into_iter()
        .filter(|dtype| *dtype != DType::C32)
        .map(|dtype| {
            let x = Array::from_slice(&[0.0f32, 1.0, 2.5, 100.0, 0.0, 7.0], [2, 3])?;
            Ok((format!("x.{dtype}"), ops::astype(&x, dtype)?))
        })
        .chain([Ok(("empty".to_owned(), ops::zeros([0, 3], DType::F16)?))])
        .chain([Ok(("scalar \"q\"".to_owned(), Array::scalar(2.5f64)))])
        .collect()
}

fn message<T>(result: Result<T>) -> String {
    let text = result.err().expect("it fails").to_string();
    assert!(!text.contains('\n'), "{text}");
    text
}

#[test]
fn every_dtype_comes_back_and_the_bytes_repeat() -> Result<()> {
    let folder = tempfile::tempdir().expect("a folder");
    let (a, b) = (folder.path().join("a"), folder.path().join("b"));
    let tensors = every_dtype()?;
    let notes: BTreeMap<String, String> =
        ["z", "a", "m", "k"].map(|k| (k.to_owned(), format!("note\n{k}"))).into();
    safetensors::save(&a, &tensors, &notes)?;
    safetensors::save(&b, &tensors, &notes)?;
    assert_eq!(fs::read(&a).unwrap(), fs::read(&b).unwrap());
    let (loaded, metadata) = safetensors::load(&a)?;
    assert_eq!(metadata, notes);
    assert_eq!(loaded.len(), tensors.len());
    for (name, tensor) in &tensors {
        assert_eq!(loaded[name].aval(), tensor.aval(), "{name}");
        assert_eq!(loaded[name].to_bytes()?, tensor.to_bytes()?, "{name}");
    }
    // The crate's own reader agrees.
    let bytes = fs::read(&a).unwrap();
    let file = ::safetensors::SafeTensors::deserialize(&bytes).expect("a valid file");
    assert_eq!(file.len(), tensors.len());
    // Nothing else is left in the folder, and others may read the file.
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = fs::metadata(&a).unwrap().permissions().mode();
        assert_ne!(mode & 0o440, 0, "{mode:o}");
    }
    Ok(())
}

#[test]
fn half_complex_numbers_have_no_place() -> Result<()> {
    let folder = tempfile::tempdir().expect("a folder");
    let tensors = BTreeMap::from([("z".to_owned(), ops::ones([2], DType::C32)?)]);
    let error = message(safetensors::save(folder.path().join("a"), &tensors, &BTreeMap::new()));
    assert!(error.contains("'z', complex32[2]"), "{error}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    Ok(())
}

#[test]
fn a_failed_save_leaves_the_old_file() -> Result<()> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a");
    let tensors = every_dtype()?;
    safetensors::save(&path, &tensors, &BTreeMap::new())?;
    let before = fs::read(&path).unwrap();
    let bad = BTreeMap::from([("__metadata__".to_owned(), Array::scalar(1.0f32))]);
    assert!(message(safetensors::save(&path, &bad, &BTreeMap::new())).contains("__metadata__"));
    assert_eq!(fs::read(&path).unwrap(), before);
    let nowhere = folder.path().join("missing").join("a");
    let text = message(safetensors::save(&nowhere, &tensors, &BTreeMap::new()));
    assert!(text.contains("missing") && text.contains("cannot be written"), "{text}");
    assert!(message(safetensors::load(&nowhere)).contains("cannot be read"));
    assert!(message(safetensors::load(folder.path())).contains("cannot be read"));
    Ok(())
}

/// A tensor of a header.
fn entry(dtype: &str, shape: &str, from: u64, to: u64) -> String {
    format!(r#"{{"dtype":"{dtype}","shape":{shape},"data_offsets":[{from},{to}]}}"#)
}

/// The header of one tensor.
fn one(entry: String) -> String {
    format!(r#"{{"x":{entry}}}"#)
}

/// A file with this header and so many bytes after it.
fn write(path: &Path, header: &str, data: usize) {
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header.as_bytes());
    bytes.resize(bytes.len() + data, 0);
    fs::write(path, bytes).expect("a file");
}

#[test]
fn damaged_files_are_errors_that_say_where() -> Result<()> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("bad.safetensors");
    let two = |a: String, b: String| format!(r#"{{"x":{a},"y":{b}}}"#);
    let cases = [
        ("not json".to_owned(), 0, "damaged header"),
        ("[]".to_owned(), 0, "damaged header"),
        (one(entry("F32", "[2]", 0, 8)), 4, "tells of 8 bytes, 4 follow"),
        (one(entry("F32", "[2]", 0, 8)), 12, "tells of 8 bytes, 12 follow"),
        (one(entry("F32", "[3]", 0, 8)), 8, "damaged header"),
        (one(entry("F32", "[2]", 8, 0)), 8, "damaged header"),
        (one(entry("F32", "[2]", 4, 12)), 12, "damaged header"),
        (two(entry("F32", "[2]", 0, 8), entry("F32", "[2]", 4, 12)), 12, "damaged header"),
        (one(entry("F32", "[4611686018427387904,4]", 0, 8)), 8, "damaged header"),
        (one(entry("F32", "[-1]", 0, 8)), 8, "damaged header"),
        (one(entry("F99", "[2]", 0, 8)), 8, "damaged header"),
        (one(entry("F4", "[16]", 0, 8)), 8, "F4: no such dtype"),
        (format!(r#"{{"x\n":{}}}"#, entry("F4", "[16]", 0, 8)), 8, "no such dtype"),
        ("[".repeat(100_000), 0, "damaged header"),
        (
            format!(r#"{{"x":{0},"x":{0}}}"#, entry("F32", "[2]", 0, 8)),
            8,
            "damaged header: 'x' is there twice",
        ),
        (
            r#"{"__metadata__":{"a":"1","b":"2","a":"3"}}"#.to_owned(),
            0,
            "damaged header: 'a' is there twice",
        ),
    ];
    for (header, data, want) in cases {
        write(&path, &header, data);
        let text = message(safetensors::load(&path));
        assert!(text.contains("bad.safetensors: byte ") && text.contains(want), "{text}");
    }
    for bytes in [&b""[..], b"1234", &u64::MAX.to_le_bytes(), &100u64.to_le_bytes()] {
        fs::write(&path, bytes).unwrap();
        assert!(message(safetensors::load(&path)).contains("byte 0"));
    }
    // What a file claims is not asked of the machine, and a long header not read.
    let hole = |header: &str, length: u64| {
        write(&path, header, 0);
        let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
        file.set_len(8 + header.len() as u64 + length).unwrap();
        // A mapped file takes no memory until somebody reads it.
        message(safetensors::load(&path).and_then(|(all, _)| all["x"].to_bytes()))
    };
    let tera = 8u64 << 40;
    let text = hole(&one(entry("U8", &format!("[{tera}]"), 0, tera)), tera);
    assert!(text.contains("out of memory"), "{text}");
    fs::write(&path, 99_000_000u64.to_le_bytes()).unwrap();
    let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.set_len(100_000_000).unwrap();
    assert!(message(safetensors::load(&path)).contains("longer than the limit"));
    // Cut anywhere, a good file is an error, not a panic.
    safetensors::save(&path, &every_dtype()?, &BTreeMap::new())?;
    let whole = fs::read(&path).unwrap();
    for length in (0..whole.len()).step_by(37) {
        fs::write(&path, &whole[..length]).unwrap();
        message(safetensors::load(&path));
    }
    // A changed byte is read as something else or refused, and never a panic.
    for at in (0..whole.len().min(600)).step_by(7) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x15;
        fs::write(&path, bytes).unwrap();
        let _ = safetensors::load(&path);
    }
    Ok(())
}

#[test]
fn models_load_by_name_and_say_what_does_not_fit() -> Result<()> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("model.safetensors");
    let a = (nn::Conv2d::new(1, 2, 3)?, nn::BatchNorm::new(2)?);
    let b = (nn::Conv2d::new(1, 2, 3)?, nn::BatchNorm::new(2)?);
    a.1.update(&BTreeMap::from([("running_mean".to_owned(), ops::ones([2], DType::F32)?)]))?;
    a.save_safetensors(&path)?;
    b.load_safetensors(&path, true)?;
    for (name, value) in a.state() {
        assert_eq!(value.to_bytes()?, b.state()[&name].to_bytes()?, "{name}");
    }
    let other = (nn::Conv2d::new(1, 2, 3)?.bias(false), nn::Linear::new(2, 2)?);
    let text = message(other.load_safetensors(&path, true));
    assert!(text.contains("[2], the module expects [2, 2]"), "{text}");
    let other =
        (nn::Conv2d::new(1, 2, 3)?.bias(false), nn::LayerNorm::new(2)?, nn::Linear::new(1, 1)?);
    let text = message(other.load_safetensors(&path, true));
    assert!(text.contains("missing 2.weight, 2.bias"), "{text}");
    assert!(text.contains("unexpected 0.bias, 1.running_mean, 1.running_var"), "{text}");
    other.load_safetensors(&path, false)?;
    assert_eq!(other.0.weight.get().to_bytes()?, a.0.weight.get().to_bytes()?);
    Ok(())
}

#[test]
fn tied_parameters_are_saved_once() -> Result<()> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("tied.safetensors");
    let embedding = nn::Embedding::new(3, 2)?;
    let tied = (embedding.clone(), nn::Linear { weight: embedding.weight.clone(), bias: None });
    tied.save_safetensors(&path)?;
    assert_eq!(safetensors::load(&path)?.0.len(), 1);
    tied.load_safetensors(&path, true)?;
    // A file that holds both places will do, too.
    let both = ["0.weight", "1.weight"].map(|name| (name.to_owned(), embedding.weight.get()));
    safetensors::save(&path, &both.into(), &BTreeMap::new())?;
    tied.load_safetensors(&path, true)
}

#[test]
fn other_floats_are_converted() -> Result<()> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("half.safetensors");
    let model = nn::LayerNorm::new(2)?.bias(false);
    let half = ops::full_like(&ops::zeros([2], DType::BF16)?, 0.5)?;
    safetensors::save(&path, &[("weight".to_owned(), half)].into(), &BTreeMap::new())?;
    model.load_safetensors(&path, true)?;
    assert_eq!(model.weight.unwrap().get().to_vec::<f32>()?, [0.5, 0.5]);
    Ok(())
}

/// The numbers of 8 bits: two stay as they are, three become `float16`.
#[test]
fn floats_of_eight_bits_are_read() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("eight.safetensors");
    let bytes = [0u8, 1, 8, 0x38, 0x40, 0x7b, 0x80, 0xb8];
    // From the definitions: sign, exponent less the bias, and what is behind the point.
    let cases: [(&str, [f32; 8]); 5] = [
        ("F8_E4M3", bytes.map(f32::from)),
        ("F8_E8M0", bytes.map(f32::from)),
        ("F8_E5M2", [0.0, 2f32.powi(-16), 2f32.powi(-13), 0.5, 2.0, 57344.0, -0.0, -0.5]),
        ("F8_E4M3FNUZ", [0.0, 2f32.powi(-10), 2f32.powi(-7), 0.5, 1.0, 176.0, f32::NAN, -0.5]),
        ("F8_E5M2FNUZ", [0.0, 2f32.powi(-17), 2f32.powi(-14), 0.25, 1.0, 28672.0, f32::NAN, -0.25]),
    ];
    for (name, want) in cases {
        let header = one(entry(name, "[8]", 0, 8));
        write(&path, &header, 0);
        let mut content = fs::read(&path).unwrap();
        content.extend(bytes);
        fs::write(&path, content).unwrap();
        let (tensors, _) = safetensors::load(&path)?;
        let found = tensors["x"].astype(DType::F32)?.to_vec::<f32>()?;
        let bits = |all: &[f32]| -> Vec<u32> {
            all.iter().map(|v| if v.is_nan() { u32::MAX } else { v.to_bits() }).collect()
        };
        assert_eq!(bits(&found), bits(&want), "{name}: {found:?}");
        assert_eq!(tensors["x"].dtype() == DType::U8, want[3] == 56.0, "{name}");
    }
    Ok(())
}

/// A large file's arrays lie in it; what takes its name afterwards changes nothing.
#[test]
fn large_files_are_read_in_place() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("large.safetensors");
    let x = ops::astype(&ops::arange(0, 100_000, 1)?, DType::F32)?;
    let odd = Array::from_slice(&[true, false, true], [3])?;
    let small = Array::from_slice(&[7u8], [1])?;
    let save = |x: &Array| {
        let all = [("x", x), ("odd", &odd), ("small", &small)];
        let all = all.map(|(name, array)| (name.to_owned(), array.clone()));
        safetensors::save(&path, &BTreeMap::from(all), &BTreeMap::new())
    };
    save(&x)?;
    let (loaded, _) = safetensors::load(&path)?;
    assert_eq!(loaded["x"].storage()?.0.is_lent(), cfg!(unix));
    save(&ops::negative(&x)?)?;
    assert_eq!(loaded["x"].to_vec::<f32>()?, x.to_vec::<f32>()?);
    assert_eq!(loaded["odd"].to_vec::<bool>()?, [true, false, true]);
    assert_eq!(loaded["small"].to_vec::<u8>()?, [7]);
    // Updating it in a graph never writes to the file.
    let doubled = &loaded["x"] * 2.0;
    drop(loaded);
    assert_eq!(doubled.to_vec::<f32>()?[99_999], 199_998.0);
    assert_eq!(safetensors::load(&path)?.0["x"].to_vec::<f32>()?[3], -3.0);
    Ok(())
}

#[cfg(unix)]
#[test]
fn a_file_that_is_changed_in_place_takes_its_arrays_away() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("large.npy");
    fs::write(&path, npy::write(&ops::ones([100_000], DType::F32)?)?).unwrap();
    let x = npy::load(&path)?;
    let doubled = ops::multiply(&x, 2.0)?;
    assert_eq!(x.to_vec::<f32>()?[0], 1.0);
    // Cut short under another name: to read what was there would end the program.
    let other = folder.path().join("other.npy");
    fs::rename(&path, &other).unwrap();
    fs::OpenOptions::new().write(true).open(&other).unwrap().set_len(100).unwrap();
    for array in [x, doubled] {
        let error = array.to_vec::<f32>().unwrap_err().to_string();
        assert!(error.contains("large.npy") && error.contains("changed in place"), "{error}");
    }
    Ok(())
}
