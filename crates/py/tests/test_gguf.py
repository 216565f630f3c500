"""GGUF files: against MLX where it reads and writes them, else against the format's own package."""

import io

import gguf
import numpy as np
import pytest
from conftest import mlx

import cupola.core as cc
from gguf import GGMLQuantizationType as Type

PLAIN = {"float32": Type.F32, "float16": Type.F16, "int8": Type.I8, "int16": Type.I16, "int32": Type.I32}
PACKED = "Q4_0 Q4_1 Q8_0".split()
UNPACKED = """Q5_0 Q5_1 Q8_1 Q2_K Q3_K Q4_K Q5_K Q6_K Q8_K IQ2_XXS IQ2_XS IQ3_XXS IQ1_S IQ4_NL IQ3_S IQ2_S IQ4_XS IQ1_M
    TQ1_0 TQ2_0 MXFP4 NVFP4 Q1_0 Q2_0""".split()
# Q8_1 has another layout in the package, and Q2_0 is newer than that.
LAYOUTS = {"Q8_1": (9, 32, 36), "Q2_0": (42, 64, 18)}
REMOVED = {4: "Q4_2", 5: "Q4_3", 31: "Q4_0_4_4", 32: "Q4_0_4_8", 33: "Q4_0_8_8", 36: "IQ4_NL_4_4", 37: "IQ4_NL_4_8",
           38: "IQ4_NL_8_8"}


def layout(kind):
    """A type's number, and the weights and bytes of its blocks."""
    return LAYOUTS[kind] if kind in LAYOUTS else (int(Type[kind]), *gguf.GGML_QUANT_SIZES[Type[kind]])


def blocks(rng, kind, rows, columns):
    """Random blocks whose scales are finite, as rows of bytes."""
    _, size, width = layout(kind)
    data = rng.integers(0, 256, (rows, columns // size, width), dtype=np.uint8)
    # Where a block has its numbers with an exponent.
    halves = {"Q2_K": [80, 82], "Q3_K": [108], "Q6_K": [208], "TQ1_0": [52], "TQ2_0": [64], "Q8_K": [], "MXFP4": [],
              "NVFP4": [], "IQ1_M": [],
              "Q4_1": [0, 2], "Q5_1": [0, 2], "Q4_K": [0, 2], "Q5_K": [0, 2]}.get(kind, [0])
    for at in halves:
        half = rng.standard_normal(data.shape[:2]).astype(np.float16) / 64
        data[..., at:at + 2] = half.view(np.uint8).reshape(*half.shape, 2)
    if kind == "Q8_K":
        scale = rng.standard_normal(data.shape[:2]).astype(np.float32) / 64
        data[..., :4] = scale.view(np.uint8).reshape(*scale.shape, 4)
    if kind == "MXFP4":
        data[..., 0] = rng.integers(110, 135, data.shape[:2])
    if kind == "IQ1_M":
        # The scale lies in the upper halves of four bytes; the exponent's highest bit is zero.
        data[..., 55] &= 0xbf
    return data.reshape(rows, -1)


def unpacked(kind, data):
    """Weights by the format's package, or by the layout where that does not unpack them."""
    parts = data.reshape(-1, layout(kind)[2])
    scales = parts[:, :2].copy().view(np.float16).astype(np.float32)
    if kind == "Q8_K":
        scales, weights = parts[:, :4].copy().view(np.float32), parts[:, 4:260].view(np.int8)
    elif kind == "Q8_1":
        weights = parts[:, 4:].view(np.int8)
    elif kind == "Q1_0":
        weights = np.unpackbits(parts[:, 2:], axis=1, bitorder="little") * 2.0 - 1
    elif kind == "Q2_0":
        weights = (parts[:, 2:, None] >> np.array([0, 2, 4, 6], np.uint8) & 3).reshape(len(parts), -1) - 1.0
    else:
        return gguf.quants.dequantize(data, Type[kind])
    return (scales * weights).reshape(len(data), -1)


def write(path, tensors, settings=()):
    writer = gguf.GGUFWriter(str(path), "test")
    for add, name, value in settings:
        getattr(writer, f"add_{add}")(name, value)
    for name, (data, kind, *shape) in tensors.items():
        writer.add_tensor(name, data, *shape, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def equal(got, want):
    assert sorted(got) == sorted(want)
    for name in got:
        assert str(got[name].dtype).split(".")[-1] == str(want[name].dtype).split(".")[-1], name
        np.testing.assert_array_equal(np.array(got[name]), np.array(want[name]), err_msg=name)


@pytest.mark.parametrize("kind", PACKED)
def test_packed_blocks(kind, tmp_path, rng):
    path = tmp_path / "a.gguf"
    data = blocks(rng, kind, 6, 96)
    write(path, {"a.weight": (data, Type[kind]), "b.weight": (data[:1], Type[kind])})
    got = cc.load(str(path))
    equal(got, mlx.load(str(path)))
    bits = 8 if kind == "Q8_0" else 4
    whole = cc.dequantize(got["a.weight"], got["a.scales"], got["a.biases"], 32, bits)
    want = gguf.quants.dequantize(data, Type[kind])
    np.testing.assert_allclose(np.array(whole), want, 2e-3, 2e-3)


@pytest.mark.parametrize("kind", UNPACKED)
def test_other_blocks(kind, tmp_path, rng):
    path = tmp_path / "a.gguf"
    data = blocks(rng, kind, 300, 512)
    # Blocks in signed bytes are written as they are.
    write(path, {"a": (data.view(np.int8), layout(kind)[0], (300, 512))})
    got = cc.load(str(path))["a"]
    assert got.dtype == cc.float16 and got.shape == (300, 512)
    want = unpacked(kind, data).astype(np.float16)
    np.testing.assert_array_equal(np.array(got).view(np.uint16), want.view(np.uint16))


def test_every_type_is_known():
    assert {t.name for t in Type} <= {*PACKED, *UNPACKED, "F32", "F16", "BF16", "F64", "I8", "I16", "I32", "I64"}


@pytest.mark.parametrize("code", [*REMOVED, 43, 2**32 - 1])
def test_blocks_that_are_not_read(code, tmp_path):
    path = tmp_path / "a.gguf"
    write(path, {"some.name": (np.zeros((1, 256), np.int8), code)})
    words = f"{REMOVED[code]}, which the format no longer has" if code in REMOVED else f"{code}, which is not known"
    with pytest.raises(Exception, match=rf"a\.gguf: byte \d+: some\.name is of type {words}"):
        cc.load(str(path))


def test_plain_numbers_and_settings(tmp_path, rng):
    path = tmp_path / "a.gguf"
    tensors = {name: ((rng.standard_normal((2, 3, 5)) * 50).astype(name), kind) for name, kind in PLAIN.items()}
    settings = [
        ("string", "text", "hüt"), ("uint8", "u8", 200), ("int8", "i8", -5), ("uint16", "u16", 60000),
        ("int16", "i16", -3), ("uint32", "u32", 4_000_000_000), ("int32", "i32", -7), ("float32", "f32", 0.1),
        ("bool", "yes", True), ("array", "words", ["a", "", "c"]), ("array", "numbers", [1, 2, 3]),
        ("array", "floats", [0.5, 1.5]),
    ]
    write(path, tensors, settings)
    (got, ours), (want, theirs) = (m.load(str(path), return_metadata=True) for m in (cc, mlx))
    equal(got, want)
    assert sorted(ours) == sorted(theirs)
    for name, value in theirs.items():
        if isinstance(value, (str, list)):
            assert ours[name] == value
        else:
            equal({name: ours[name]}, {name: value})


def test_numbers_that_mlx_does_not_have(tmp_path, rng):
    path = tmp_path / "a.gguf"
    tensors = {"i64": (np.array([2**62 + 1]), Type.I64), "f64": (np.array([1e300]), Type.F64),
               "bf16": (np.array([0x3f81], np.uint16), Type.BF16)}
    write(path, tensors, [("uint64", "u64", 2**63 + 1), ("float64", "f64", 1e300)])
    got, settings = cc.load(str(path), return_metadata=True)
    assert got["i64"].tolist() == [2**62 + 1] and got["f64"].tolist() == [1e300]
    assert got["bf16"].dtype == cc.bfloat16 and got["bf16"].tolist() == [1.0078125]
    assert settings["u64"].item() == 2**63 + 1 and settings["f64"].item() == 1e300


def test_written_files(tmp_path, rng):
    """Each reads what the other writes, and the format's package reads both."""
    def of(m):
        arrays = {name: m.array((rng2.standard_normal((3, 4)) * 50).astype(name)) for name in PLAIN}
        arrays |= {"one": m.array(1.5), "none": m.zeros((0, 3)), "turned": m.arange(6.0).reshape(2, 3).T}
        settings = {"text": "x", "words": ["a", "b"], "number": m.array(3, dtype=m.uint32),
                    "vector": m.array([1.0, 2.0]), "no": m.array(False), "empty": []}
        return arrays, settings

    for writer, reader, name in ((cc, mlx, "a"), (mlx, cc, "b"), (cc, cc, "c")):
        rng2 = np.random.default_rng(1)
        arrays, settings = of(writer)
        writer.save_gguf(str(tmp_path / name), arrays, settings)
        got, found = reader.load(str(tmp_path / f"{name}.gguf"), return_metadata=True)
        equal(got, arrays)
        assert sorted(found) == sorted(settings) and found["words"] == ["a", "b"] and found["empty"] == []
        assert found["text"] == "x" and found["number"].item() == 3 and found["no"].item() is False
        read = gguf.GGUFReader(tmp_path / f"{name}.gguf")
        assert sorted(t.name for t in read.tensors) == sorted(arrays)
    file = io.BytesIO()
    cc.save_gguf(file, {"half": cc.array([1.0, 2.0]).astype(cc.bfloat16)})
    file.seek(0)
    assert cc.load(file, format="gguf")["half"].tolist() == [1.0, 2.0]


def test_what_cannot_be_written(tmp_path):
    path = str(tmp_path / "a.gguf")
    cc.save_gguf(path, {"x": cc.ones(3)})
    before = (tmp_path / "a.gguf").read_bytes()
    for arrays, settings, words in (
        ({"x": cc.array([True])}, {}, "x is .*bool.* no such tensors"),
        ({"x": cc.array([1], dtype=cc.uint8)}, {}, "x is .*uint8.* no such tensors"),
        ({}, {"a": cc.ones((2, 2))}, "a is .* at most one axis"),
        ({}, {"a": cc.ones(2).astype(cc.float16)}, "a is of float16"),
        ({}, {"a": 1}, "setting a is no array"), ({}, {"a": ["x", 1]}, "setting a is no array"),
        ({}, {"general.alignment": cc.array(64, dtype=cc.uint32)}, "alignment"),
    ):
        with pytest.raises(Exception, match=words):
            cc.save_gguf(path, arrays, settings)
    assert (tmp_path / "a.gguf").read_bytes() == before


def test_alignment(tmp_path, rng):
    path = tmp_path / "a.gguf"
    writer = gguf.GGUFWriter(str(path), "test")
    writer.add_custom_alignment(128)
    for name, size in (("a", 3), ("b", 70), ("c", 1)):
        writer.add_tensor(name, np.arange(size, dtype=np.float32))
    writer.write_header_to_file(), writer.write_kv_data_to_file(), writer.write_tensors_to_file(), writer.close()
    assert {name: a.tolist()[-1] for name, a in cc.load(str(path)).items()} == {"a": 2, "b": 69, "c": 0}


def test_tensors_that_overlap_are_refused(tmp_path):
    """The second tensor's place is made that of the first."""
    path = tmp_path / "a.gguf"
    write(path, {"a": (np.ones(8, np.float32), Type.F32), "b": (np.zeros(8, np.float32), Type.F32)}, [])
    whole = path.read_bytes()
    # Its name, the number of its axes, their size, its type: then its place.
    at = whole.index(b"\x01\0\0\0\0\0\0\0b") + 9 + 4 + 8 + 4
    assert int.from_bytes(whole[at:at + 8], "little") == 32
    path.write_bytes(whole[:at] + bytes(8) + whole[at + 8:])
    for source in (str(path), io.BytesIO(path.read_bytes())):
        with pytest.raises(RuntimeError, match="b is at byte"):
            cc.load(source, format="gguf")


def test_damaged_files(tmp_path, rng):
    """Every cut and every changed byte of the header gives arrays or an error that names the file."""
    path, damaged = tmp_path / "a.gguf", tmp_path / "b.gguf"
    write(path, {"a.weight": (blocks(rng, "Q4_0", 2, 64), Type.Q4_0), "b": (np.ones((2, 3), np.float32), Type.F32)},
          [("string", "text", "x"), ("array", "words", ["a", "b"]), ("uint32", "n", 3)])
    whole = path.read_bytes()
    def attempt(data):
        damaged.write_bytes(data)
        try:
            cc.load(str(damaged), return_metadata=True)
            return True
        except (RuntimeError, ValueError, OSError, MemoryError) as error:
            assert "b.gguf" in str(error) or isinstance(error, MemoryError), error
            return False

    assert not any(attempt(whole[:size]) for size in range(0, len(whole) - 40, 3))
    for at in range(min(400, len(whole))):
        for byte in (0, 0xff, whole[at] ^ 1):
            attempt(whole[:at] + bytes([byte]) + whole[at + 1:])
    for count in (2**31, 2**40, 2**63, 2**64 - 1):
        assert not attempt(whole[:8] + count.to_bytes(8, "little") + whole[16:])
        assert not attempt(whole[:16] + count.to_bytes(8, "little") + whole[24:])
    with pytest.raises(Exception, match="big-endian"):
        damaged.write_bytes(whole[:4] + whole[4:8][::-1] + whole[8:])
        cc.load(str(damaged))
    with pytest.raises(Exception, match="version 1 is not read"):
        damaged.write_bytes(whole[:4] + b"\x01\0\0\0" + whole[8:])
        cc.load(str(damaged))
    with pytest.raises(Exception, match="no GGUF file"):
        damaged.write_bytes(b"PK")
        cc.load(str(damaged))
