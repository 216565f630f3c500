"""Files: what Cupola writes MLX and NumPy read, and the other way round."""

import io
import pathlib

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
