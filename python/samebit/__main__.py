"""python -m samebit: the command, which lies in the package, beside the library that was built, or on the PATH."""

import os
import shutil
import sys

from ._library import VARIABLE


def command():
    """The path of the command; None when there is none."""
    here = os.path.dirname(os.path.abspath(__file__))
    places = [os.path.join(here, "bin", "samebit")]
    named = os.environ.get(VARIABLE)
    if named:  # a build's folder has the command beside the library's
        places.append(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(named))), "samebit"))
    for place in places:
        if os.access(place, os.X_OK) and os.path.isfile(place):
            return place
    return shutil.which("samebit") if sys.argv[0].endswith("__main__.py") else None


def main():
    """Becomes the command, with this process's arguments."""
    found = command()
    if found is None:
        sys.exit("samebit: the command is not there: the package was installed without it. Install it with "
                 "`pip install .` in Samebit's folder, or build it with CMake")
    os.execv(found, ["samebit", *sys.argv[1:]])


if __name__ == "__main__":
    main()
