"""check_gguf.py LLM_WEIGHTS FOLDER: what GGUF's formats mean in f32 is, bit for bit, what the gguf package makes of random blocks."""

import pathlib
import subprocess
import sys

try:
    import gguf
    import numpy
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

tool, folder = sys.argv[1], pathlib.Path(sys.argv[2])
folder.mkdir(parents=True, exist_ok=True)
NAMES = "F32 F16 BF16 Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 Q2_K Q3_K Q4_K Q5_K Q6_K".split()
random = numpy.random.default_rng(16)
writer = gguf.GGUFWriter(folder / "formats.gguf", "llama")
expected = {}
for name in NAMES:
    kind = gguf.GGMLQuantizationType[name]
    elements, size = gguf.GGML_QUANT_SIZES[kind]
    rows = random.integers(0, 256, (40, 1024 // elements * size), dtype=numpy.uint8)
    writer.add_tensor(name, rows, raw_dtype=kind)
    with numpy.errstate(all="ignore"):
        expected[name] = gguf.quants.dequantize(rows, kind).astype(numpy.float32)
writer.write_header_to_file()
writer.write_kv_data_to_file()
writer.write_tensors_to_file()
writer.close()
subprocess.run([tool, folder / "formats.gguf", folder / "formats.npz"], check=True)
found = numpy.load(folder / "formats.npz")
wrong = []
for name in NAMES:
    ours, theirs = found[name].reshape(-1), expected[name].reshape(-1)
    same = (ours.view(numpy.uint32) == theirs.view(numpy.uint32)) | (numpy.isnan(ours) & numpy.isnan(theirs))
    print(f"{name:5} {same.size} elements, {int((~same).sum())} different, {int(numpy.isnan(ours).sum())} NaN")
    if not same.all():
        wrong.append(name)
sys.exit(f"different: {wrong}" if wrong else 0)
