"""Bundles: the zoo for machines without network, in folders of a limited size that need nothing beside them but a library.

A bundle holds models (NAME.onnx), the inputs that are timed (inputs/NAME-SIZE.npz), this checkout's scripts and Python
package (source/), and run.py, which runs them. With --drawn, models above so many bytes are without their large weights
(NAME.onnx.drawn), which are drawn where the bundle runs (drawn.py).
"""

import pathlib
import shutil

import numpy

import drawn
import models
import packages

ROOT = pathlib.Path(__file__).resolve().parents[2]
SOURCE = ("python/samebit/*.py", "bench/engines.py", "bench/cpu_bench.py", "bench/models/make_models.py", "tools/zoo/*.py")
MOST_MODELS = 40  # of a bundle: some three seconds each
DRAWN = ".drawn"  # behind the name of a model without its large weights


def models_in(folder):
    """{model's name: path} of a bundle; draws weights that were left out."""
    for path in folder.glob("*.onnx" + DRAWN):
        whole = path.with_suffix("")
        if not whole.exists():
            drawn.write_filled(path, whole)
    return {path.stem: path for path in sorted(folder.glob("*.onnx"))}


def is_drawn(path):
    """Whether a bundle's model has weights that were drawn."""
    return path.with_name(path.name + DRAWN).exists()


def by_variety(wanted):
    """Models in the order in which bundles take them: the first of each package before the second of any, small ones first."""
    ranked = [(rank, wanted[model.name]) for package in models.PACKAGES for rank, model in enumerate(package.models)
              if model.name in wanted]
    return [entry for _, entry in sorted(ranked, key=lambda pair: (pair[0], pair[1][0]))]


def packed(entries, most_bytes):
    """(bundles, left out): each entry (bytes, model) goes into the first bundle that has room."""
    bundles, left_out = [], []
    for entry in entries:
        if entry[0] > most_bytes:
            left_out.append(entry[1])
            continue
        room = (b for b in bundles if len(b) < MOST_MODELS and sum(size for size, _ in b) + entry[0] <= most_bytes)
        place = next(room, None)
        if place is None:
            place = []
            bundles.append(place)
        place.append(entry)
    return [[model for _, model in bundle] for bundle in bundles], left_out


def write_source(folder):
    for pattern in SOURCE:
        for path in ROOT.glob(pattern):
            copy = folder / "source" / path.relative_to(ROOT)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)
    shutil.copyfile(ROOT / "tools" / "zoo" / "run_bundle.py", folder / "run.py")


def bytes_of(folder):
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def write(zoo):
    """Bundles of all models that run, numbered from 1 below --folder; names what is too large for any."""
    folder, most_bytes = zoo.arguments.folder, zoo.arguments.mib << 20
    inputs, files, wanted = folder / "inputs", {}, {}
    inputs.mkdir(parents=True)
    for model in zoo.models:
        if model.refused:
            continue
        made = packages.saved(zoo.arguments.cache, model, model.sizes[0])
        numpy.savez_compressed(inputs / made.name, **numpy.load(made))
        files[model.name] = zoo.paths[model.name]
        if zoo.arguments.drawn is not None and packages.bytes_of(files[model.name]) > zoo.arguments.drawn:
            files[model.name] = inputs / f"{model.name}.onnx{DRAWN}"
            drawn.write_emptied(zoo.paths[model.name], files[model.name])
        size = packages.bytes_of(files[model.name]) + (inputs / made.name).stat().st_size
        wanted[model.name] = (size, model)
    write_source(folder)
    source_bytes = bytes_of(folder / "source")
    bundles, left_out = packed(by_variety(wanted), most_bytes - 2 * source_bytes)
    for number, bundle in enumerate(bundles, 1):
        place = folder / str(number)
        (place / "inputs").mkdir(parents=True)
        write_source(place)
        for model in bundle:
            suffix = DRAWN if files[model.name].parent == inputs else ""
            shutil.copyfile(files[model.name], place / f"{model.name}.onnx{suffix}")
            for beside in packages.files_of(files[model.name])[1:]:  # under its own name, by which the model calls it
                shutil.copyfile(beside, place / beside.name)
            made = packages.input_name(model, model.sizes[0])
            (inputs / made).rename(place / "inputs" / made)
        print(f"bundle {number} {bytes_of(place) / 2**20:.1f} MiB: {' '.join(model.name for model in bundle)}")
    for model in left_out:
        print(f"left out {model.name}: {wanted[model.name][0] / 2**20:.1f} MiB")
    for rest in (inputs, folder / "source"):
        shutil.rmtree(rest)
    (folder / "run.py").unlink()
