//! The Python package in an environment under the build folder, with the module that cargo built for
//! the other steps; and its part of `cargo xtask ci`, pytest and stubtest.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::tools;

/// What the tests need, each in the version that they were written for.
const PACKAGES: &[&str] = &[
    "array-api-strict==2.6.1",
    "coremltools==9.0",
    "gguf==0.19.0",
    "ml_dtypes==0.6.0",
    "mlx[cpu]==0.32.4",
    "mypy==2.4.1",
    "numpy==2.4.6",
    "onnx==1.23.2",
    "pytest-xdist==3.8.0",
    "pytest==9.2.0",
    "scikit-learn==1.9.1",
    "scipy==1.17.1",
];

/// What cargo is to build first: with the tests, so that what was built for them is not built again
/// with fewer features.
pub const BUILD: [&str; 7] =
    ["build", "--workspace", "--lib", "--bins", "--tests", "--all-features", "--locked"];

/// Builds the program and the module.
pub fn build(root: &Path) -> Result<(), String> {
    let mut command = Command::new(tools::cargo());
    done(command.args(BUILD).current_dir(root), format!("cargo {}", BUILD.join(" ")))
}

/// An interpreter with what the tests need, and the folder that it imports the package from: the
/// sources with the module beside them, as in a wheel.
pub fn installed(root: &Path, target: &Path) -> Result<(PathBuf, PathBuf), String> {
    let python = environment(target)?;
    let site = target.join("python-site");
    let package = site.join("cupola");
    if package.exists() {
        std::fs::remove_dir_all(&package).map_err(|e| format!("{}: {e}", package.display()))?;
    }
    copy(&root.join("crates/py/python/cupola"), &package)?;
    let built = ["libcupola_py.so", "libcupola_py.dylib", "cupola_py.dll"]
        .map(|name| target.join("debug").join(name));
    let Some(built) = built.iter().find(|path| path.exists()) else {
        return Err(format!("no module of cupola-py in {}", target.join("debug").display()));
    };
    let name = if cfg!(windows) { "core.pyd" } else { "core.abi3.so" };
    std::fs::copy(built, package.join(name)).map_err(|e| format!("{name}: {e}"))?;
    Ok((python, site))
}

/// Runs the tests of the package on the module that was built.
pub fn run(root: &Path) -> Result<(), String> {
    let (python, site) = installed(root, &target(root)?)?;
    let tests = root.join("crates/py/tests");
    let run_on = |device: &str, arguments: &[&str]| {
        let mut command = Command::new(&python);
        command.args(arguments).env("PYTHONPATH", &site).current_dir(root);
        command.env("PYTHONDONTWRITEBYTECODE", "1").env("CUPOLA_TEST_DEVICE", device);
        done(&mut command, arguments.join(" "))
    };
    let run = |arguments: &[&str]| run_on("cpu", arguments);
    // Some files at a time, each in one process and in the order of their names.
    let several = ["-n", "auto", "--maxprocesses", "4", "--dist", "loadfile"];
    let pytest = [&["-m", "pytest", "-q", "-p", "no:cacheprovider"][..], &several].concat();
    run(&[&pytest[..], &[&tests.to_string_lossy()]].concat())?;
    // Every function once more on a GPU, if only one in software.
    let every = ["test_accuracy.py", "test_differential.py", "test_kernels.py"]
        .map(|name| tests.join(name));
    let every = every.each_ref().map(|path| path.to_string_lossy());
    let every: Vec<&str> = every.iter().map(|path| path.as_ref()).collect();
    run_on("wgpu", &[&pytest[..], &every].concat())?;
    let allowed = tests.join("stubtest.txt").to_string_lossy().into_owned();
    let mut stubtest = vec!["-m", "mypy.stubtest"];
    let modules =
        ["array_api", "core", "data", "graph", "mlcompute", "mlx", "nn", "optimizers", "utils"]
            .map(|m| format!("cupola.{m}"));
    stubtest.extend(modules.iter().map(String::as_str));
    stubtest.extend(["--concise", "--allowlist", &allowed]);
    run(&stubtest)
}

/// The build folder.
pub fn target(root: &Path) -> Result<PathBuf, String> {
    let output = Command::new(tools::cargo())
        .args(["metadata", "--format-version", "1", "--no-deps", "--locked"])
        .current_dir(root)
        .output()
        .map_err(|e| format!("cargo does not start: {e}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let folder = text
        .split_once("\"target_directory\":\"")
        .and_then(|(_, rest)| rest.split_once('"'))
        .map(|(folder, _)| PathBuf::from(folder.replace("\\\\", "\\")));
    folder.ok_or_else(|| "cargo metadata names no target folder".to_owned())
}

/// The interpreter of an environment with the packages; it is made once, and again where they change.
pub fn environment(target: &Path) -> Result<PathBuf, String> {
    let folder = target.join("python-env");
    let python = match cfg!(windows) {
        true => folder.join("Scripts").join("python.exe"),
        false => folder.join("bin").join("python"),
    };
    let stamp = folder.join("packages");
    let wanted = PACKAGES.join("\n");
    if python.exists() && std::fs::read_to_string(&stamp).is_ok_and(|have| have == wanted) {
        return Ok(python);
    }
    let system = if cfg!(windows) { "python" } else { "python3" };
    done(Command::new(system).args(["-m", "venv"]).arg(&folder), "python3 -m venv".into())?;
    let mut install = Command::new(&python);
    install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]).args(PACKAGES);
    done(&mut install, format!("pip install {}", PACKAGES.join(" ")))?;
    std::fs::write(&stamp, wanted).map_err(|e| format!("{}: {e}", stamp.display()))?;
    Ok(python)
}

fn done(command: &mut Command, what: String) -> Result<(), String> {
    println!("    {what}");
    let status = command.status().map_err(|e| format!("{what}: {e}"))?;
    match status.success() {
        true => Ok(()),
        false => Err(format!("{what}: {status}")),
    }
}

/// Copies a folder, but for what was built or cached in it.
fn copy(from: &Path, to: &Path) -> Result<(), String> {
    let failed = |e: std::io::Error| format!("{}: {e}", from.display());
    std::fs::create_dir_all(to).map_err(failed)?;
    for entry in std::fs::read_dir(from).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let (path, name) = (entry.path(), entry.file_name());
        let is_built = path.extension().is_some_and(|e| e == "so" || e == "pyd");
        if path.is_dir() && name != "__pycache__" {
            copy(&path, &to.join(name))?;
        } else if path.is_file() && !is_built {
            std::fs::copy(&path, to.join(name)).map_err(failed)?;
        }
    }
    Ok(())
}
