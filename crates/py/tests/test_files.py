"""Files: what Cupola writes MLX and NumPy read, and the other way round."""

import concurrent.futures
import io
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time
import zipfile

import numpy as np
import pytest
from conftest import mlx, same, values

import cupola.core as cc

DTYPES = "bool_ uint8 uint16 uint32 uint64 int8 int16 int32 int64 float16 bfloat16 float32 complex64".split()


@pytest.mark.parametrize("dtype", DTYPES)
def test_round_trips(tmp_path, dtype):
    ours = cc.array(np.arange(6).reshape(2, 3)).astype(getattr(cc, dtype))
    theirs = mlx.array(np.arange(6).reshape(2, 3)).astype(getattr(mlx, dtype))
    for name, write, read in [
        ("a.npy", lambda m, p, x: m.save(p, x), lambda m, p: m.load(p)),
        ("a.npz", lambda m, p, x: m.savez(p, x, k=x), lambda m, p: m.load(p)),
        ("b.npz", lambda m, p, x: m.savez_compressed(p, x, k=x), lambda m, p: m.load(p)),
        ("a.safetensors", lambda m, p, x: m.save_safetensors(p, {"x": x}, {"k": "v"}),
         lambda m, p: m.load(p, return_metadata=True)),
    ]:
        path = str(tmp_path / name)
        write(cc, path, ours)
        want = read(mlx, path)
        same(read(cc, path), want)
        write(mlx, path, theirs)
        same(read(cc, path), read(mlx, path))


def test_numpy_files(tmp_path):
    for data in (np.asfortranarray(np.ones((2, 3), np.int16)), np.ones(2, ">f4"), np.array(3, np.int32)):
        np.save(tmp_path / "x.npy", data)
        assert values(cc.load(tmp_path / "x.npy")).tolist() == data.tolist()
    wide = np.array([[1 + 2j, -0.5j, 1e-300], [np.pi, 1e300j, 3]])
    for data in (wide, np.asfortranarray(wide), wide.astype(">c16"), wide[:, :0], wide[0, 0]):
        np.save(tmp_path / "x.npy", data)
        got = cc.load(tmp_path / "x.npy")
        assert got.dtype == cc.complex64 and got.shape == data.shape
        with np.errstate(over="ignore"):
            np.testing.assert_array_equal(np.array(got), data.astype(np.complex64))
    np.savez(tmp_path / "x.npz", z=wide[:, ::2])
    assert np.array_equal(np.array(cc.load(tmp_path / "x.npz")["z"]), wide[:, ::2].astype(np.complex64))
    (tmp_path / "short.npy").write_bytes((tmp_path / "x.npy").read_bytes()[:-1])
    with pytest.raises(Exception, match="do not fill"):
        cc.load(tmp_path / "short.npy")
    cc.save(str(tmp_path / "y"), cc.arange(4).reshape(2, 2).T)
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), np.arange(4).reshape(2, 2).T)
    buffer = io.BytesIO()
    cc.savez(buffer, a=cc.ones(2))
    buffer.seek(0)
    assert np.load(buffer)["a"].tolist() == [1, 1]


def test_file_objects():
    for form, write in [
        ("npy", lambda f: cc.save(f, cc.ones(2))),
        ("npz", lambda f: cc.savez(f, x=cc.ones(2))),
        ("safetensors", lambda f: cc.save_safetensors(f, {"x": cc.ones(2)})),
    ]:
        buffer = io.BytesIO()
        write(buffer)
        buffer.seek(0)
        loaded = cc.load(buffer, format=form)
        assert (loaded if form == "npy" else loaded["x"]).tolist() == [1, 1]


def test_errors(tmp_path):
    with pytest.raises(RuntimeError, match="nope.npy"):
        cc.load(tmp_path / "nope.npy")
    for name in ("x.foo", "x"):
        pathlib.Path(tmp_path / name).write_bytes(b"xx")
        with pytest.raises(ValueError):
            cc.load(str(tmp_path / name))
    for name, content in [
        ("a.npy", b""), ("a.npy", b"\x93NUMPY"), ("a.npy", b"\x93NUMPY\x01\x00\xff\xff{"), ("a.npz", b"PK"),
        ("a.safetensors", b"123"), ("a.safetensors", b"\xff" * 40),
        ("a.npy", b"\x93NUMPY\x01\x00\x46\x00" + b"{'descr': '<f4', 'fortran_order': False, 'shape': (9,), }".ljust(70)),
    ]:
        (tmp_path / name).write_bytes(content)
        with pytest.raises(RuntimeError):
            cc.load(tmp_path / name)
    with pytest.raises(ValueError):
        cc.load(tmp_path / "a.npy", return_metadata=True)
    with pytest.raises(ValueError):
        cc.save_safetensors(tmp_path / "s", {"a": cc.ones(1)}, {"k": 1})


def test_what_a_terminal_would_obey_is_shown(tmp_path):
    with pytest.raises(ValueError, match="Unknown file format") as raised:
        cc.load("x.\x1b[31m")
    assert "\x1b" not in str(raised.value) and r"\u{1b}[31m" in str(raised.value)
    with pytest.raises(ValueError, match="no array, no string") as raised:
        cc.save_gguf(str(tmp_path / "a.gguf"), {}, {"\x1b[31m": 1.5})
    assert "\x1b" not in str(raised.value)


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("second", ["a.npy", "a"])
def test_an_array_that_is_twice_in_an_archive_is_refused(tmp_path, second):
    path = tmp_path / "a.npz"
    cc.savez(path, a=cc.ones(2))
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(second, archive.read("a.npy"))
    with pytest.raises(RuntimeError, match="a.npz: the array a is there twice"):
        cc.load(path)


# The archive is not closed: the process ends as one that is killed does.
KILLED = """
import os, sys, zipfile
import cupola.core as cc
zipfile.ZipFile.close = lambda archive: os._exit(9)
cc.savez(sys.argv[1], cc.ones(1000))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="files in the making are not locked there")
def test_what_a_killed_process_left_goes(tmp_path):
    assert subprocess.run([sys.executable, "-c", KILLED, str(tmp_path / "a.npz")]).returncode == 9
    (left,) = tmp_path.iterdir()
    assert left.name.startswith(".cupola-")
    cc.save(tmp_path / "b.npy", cc.ones(2))
    assert [entry.name for entry in tmp_path.iterdir()] == ["b.npy"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes")
@pytest.mark.parametrize("name", ["a.npy", "a.npz", "a.safetensors", "a.gguf", "a.cupola"])
def test_pipes_are_refused_and_not_waited_at(tmp_path, name):
    path = str(tmp_path / name)
    os.mkfifo(path)
    read = cc.import_function if name == "a.cupola" else cc.load
    with pytest.raises(RuntimeError, match=f"{name}: cannot be read: .*it is no file"):
        read(path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes")
def test_a_pipe_is_written_to_when_somebody_reads_it(tmp_path):
    path = str(tmp_path / "x.npy")
    os.mkfifo(path)
    saver = threading.Thread(target=cc.save, args=(path, cc.ones(3)))
    saver.start()
    with open(path, "rb") as reader:
        assert np.load(io.BytesIO(reader.read())).tolist() == [1, 1, 1]
    saver.join()


def export_together(path):
    with cc.exporter(path, lambda x: x + 1) as traced:
        traced(cc.ones(3))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes")
@pytest.mark.parametrize(
    "export", [lambda path: cc.export_function(path, lambda x: x + 1, cc.ones(3)), export_together]
)
def test_a_function_is_exported_to_a_pipe(tmp_path, export):
    path = str(tmp_path / "pipe")
    os.mkfifo(path)
    with concurrent.futures.ThreadPoolExecutor() as pool:
        exported = pool.submit(export, path)
        with open(path, "rb") as reader:
            (tmp_path / "function").write_bytes(reader.read())
        exported.result(60)
    assert cc.import_function(str(tmp_path / "function"))(cc.ones(3))[0].tolist() == [2, 2, 2]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes")
@pytest.mark.parametrize("save", ["save('x.npy', x)", "savez('x.npz', x)", "save_safetensors('x.safetensors', {'x': x})"])
def test_waiting_for_who_reads_a_pipe_can_be_interrupted(tmp_path, save):
    os.mkfifo(tmp_path / save.split("'")[1])
    text = "import cupola.core as cc; x = cc.ones(3); cc.eval(x); print(0, flush=True); cc." + save
    waits = subprocess.Popen([sys.executable, "-c", text], cwd=tmp_path, stdout=-1, stderr=-1, text=True)
    waits.stdout.readline()
    time.sleep(0.3)
    waits.send_signal(signal.SIGINT)
    assert "KeyboardInterrupt" in waits.communicate(timeout=60)[1]


def test_archives_go_to_devices(tmp_path):
    os.symlink("/dev/null", tmp_path / "x.npz")
    for save in (cc.savez, cc.savez_compressed):
        save(tmp_path / "x.npz", a=cc.arange(1000.0))
    assert os.path.islink(tmp_path / "x.npz")


# A limit on the size of files stands in for a full disk.
FULL = """
import resource, signal, sys
import cupola.core as cc
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
path, big = sys.argv[1], cc.random.uniform(shape=(5000,))
calls = {
    "npy": lambda: cc.save(path, big),
    "npz": lambda: cc.savez(path, big),
    "compressed.npz": lambda: cc.savez_compressed(path, big),
    "safetensors": lambda: cc.save_safetensors(path, {"x": big}),
}
try:
    calls[path.split("/")[-1].split(".", 1)[1]]()
except Exception as error:
    print(type(error).__name__, error)
else:
    print("nothing was raised")
"""


@pytest.mark.parametrize("name", ["a.npy", "a.npz", "a.compressed.npz", "a.safetensors"])
def test_a_full_disk_leaves_the_old_file(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(b"what was there")
    command = [sys.executable, "-c", FULL, str(path)]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "File too large" in said, said
    assert path.read_bytes() == b"what was there"
    assert [entry.name for entry in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("name", ["a.npy", "a.npz", "a.safetensors"])
def test_links_and_permissions_stay(tmp_path, name):
    write = {
        "a.npy": lambda path: cc.save(path, cc.ones(3)),
        "a.npz": lambda path: cc.savez(path, x=cc.ones(3)),
        "a.safetensors": lambda path: cc.save_safetensors(path, {"x": cc.ones(3)}),
    }[name]
    file, link = tmp_path / "file", tmp_path / name
    file.write_bytes(b"old")
    file.chmod(0o640)
    link.symlink_to("file")
    write(str(link))
    assert link.is_symlink() and file.stat().st_mode & 0o777 == 0o640
    read = cc.load(str(link))
    assert values(read["x"] if isinstance(read, dict) else read).tolist() == [1, 1, 1]
    file.chmod(0o440)
    with pytest.raises(Exception, match="read-only"):
        write(str(link))


@pytest.mark.parametrize("size", [3, 100_000])
def test_what_numpy_gets_of_loaded_arrays_is_read_only(tmp_path, size):
    path = str(tmp_path / "a.npy")
    cc.save(path, cc.ones(size))
    with cc.stream(cc.cpu):
        view = np.asarray(cc.load(path))
        with pytest.raises(ValueError, match="read-only"):
            view[0] = 2
        copy = np.array(cc.load(path))
        copy[0] = 2
    assert cc.load(path)[0].item() == 1


@pytest.mark.skipif(sys.platform == "win32", reason="files are read there")
def test_a_file_that_is_changed_in_place_is_not_brought_to_a_gpu(tmp_path):
    path = str(tmp_path / "x.safetensors")
    cc.save_safetensors(path, {"x": cc.ones(100_000)})
    x = cc.load(path)["x"]
    with open(path, "r+b") as file:
        file.truncate(100)
    devices = [device for device in (cc.cpu, cc.wgpu, cc.cuda) if cc.is_available(device)]
    for device in [*devices, *devices]:
        with pytest.raises(RuntimeError, match="x.safetensors.*changed in place"):
            cc.eval(cc.multiply(x, 2, stream=device))


@pytest.mark.parametrize("mode", ["reflect", "symmetric"])
def test_a_padding_that_memory_does_not_hold_is_an_error(mode):
    with pytest.raises((MemoryError, ValueError)):
        cc.eval(cc.pad(cc.zeros(4), [(2**42, 2**42)], mode=mode))
    assert cc.pad(cc.arange(3), [(2, 2)], mode="reflect").tolist() == [2, 1, 0, 1, 2, 1, 0]
