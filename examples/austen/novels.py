#!/usr/bin/env python3
"""The text of Jane Austen's six novels, out of Debian 12's package r-cran-janeaustenr.

    apt-get download r-cran-janeaustenr
    python novels.py r-cran-janeaustenr_1.0.0-1_all.deb austen.txt

Takes the package, or the file Rdata.rdb of an installed one. R is not needed: the file is a row of records, each four bytes
(the length of what is in it, big-endian) and a zlib stream, which holds a vector of lines as R's serialize() writes it in XDR.
"""

import argparse
import hashlib
import io
import pathlib
import re
import struct
import subprocess
import sys
import tarfile
import zlib

MEMBER = "usr/lib/R/site-library/janeaustenr/data/Rdata.rdb"
# Of version 1.0.0-1, and of the text made from it. Another version may have other words, and then other numbers of tokens.
RDB_SHA256 = "8fb5198960d0da724b1562f96e4221e5c1b41ff455000280b02c55980c3d8f21"
TEXT_SHA256 = "d767038af35b06c2cbb6b39a7e934e0e36b457348966a9d94272e4897074eef4"
# The order of the records in the file.
NOVELS = ["Emma", "Mansfield Park", "Northanger Abbey", "Persuasion", "Pride and Prejudice", "Sense and Sensibility"]
ENDS = ["FINIS", "Finis", "THE END", "A NOTE ON THE TEXT"]
STRINGS, STRING = 16, 9  # R's types of a vector of texts and of one of its texts


def lines_of(record):
    """The texts in a serialized vector of texts."""
    stream = io.BytesIO(record)
    if stream.read(2) != b"X\n":
        raise ValueError("not R's XDR format")

    def integer():
        return struct.unpack(">i", stream.read(4))[0]

    version = integer()
    stream.read(8)  # the versions of R that wrote it and that can read it
    if version == 3:
        stream.read(integer())  # the name of the encoding
    if integer() & 0xFF != STRINGS:
        raise ValueError("not a vector of texts")
    lines = []
    for _ in range(integer()):
        if integer() & 0xFF != STRING:
            raise ValueError("an element of the vector is not a text")
        length = integer()
        lines.append(stream.read(length).decode("utf-8") if length >= 0 else "")
    return lines


def records_of(rdb):
    while rdb:
        inflate = zlib.decompressobj()
        record = inflate.decompress(rdb[4:])
        if len(record) != struct.unpack(">I", rdb[:4])[0]:
            raise ValueError("a record has another length than it says")
        yield record
        rdb = inflate.unused_data


def paragraphs_of(lines):
    """Each paragraph as one line, since where the lines of the file break says nothing about the novel; without the
    underscores of emphasis, and without what a later editor says behind the end."""
    text = "\n".join(line.strip() for line in lines).replace("_", "")
    for paragraph in re.split(r"\n{2,}", text):
        paragraph = re.sub(r"\s+", " ", paragraph).strip()
        if paragraph in ENDS:
            return
        if re.search(r"\w", paragraph):
            yield paragraph


def read_rdb(path):
    if path.suffix != ".deb":
        return path.read_bytes()
    package = subprocess.run(["dpkg-deb", "--fsys-tarfile", str(path)], check=True, stdout=subprocess.PIPE).stdout
    with tarfile.open(fileobj=io.BytesIO(package)) as archive:
        return archive.extractfile("./" + MEMBER).read()


def novels(path):
    """The novels in the file at `path`, each as a text with a paragraph a line; their digest is checked."""
    rdb = read_rdb(pathlib.Path(path))
    if hashlib.sha256(rdb).hexdigest() != RDB_SHA256:
        sys.exit(f"{path}: not version 1.0.0-1 of r-cran-janeaustenr, whose {MEMBER} has the SHA-256 {RDB_SHA256}")
    texts = ["\n".join(paragraphs_of(lines_of(record))) + "\n" for record in records_of(rdb)]
    if hashlib.sha256("".join(texts).encode()).hexdigest() != TEXT_SHA256:
        sys.exit(f"{path}: this script has made another text of it than the model was trained on")
    return texts


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("package", help="r-cran-janeaustenr_1.0.0-1_all.deb, or the file Rdata.rdb in it")
    parser.add_argument("text", type=pathlib.Path, help="the file to write")
    options = parser.parse_args()
    options.text.write_text("".join(novels(options.package)), encoding="utf-8")


if __name__ == "__main__":
    main()
