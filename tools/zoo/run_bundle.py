#!/usr/bin/env python3
"""Runs a bundle of the zoo: python run.py --library libsamebit.so [--device cuda] [options of zoo.py machine].

A model that ends the process, or says nothing for too long, is named, and the ones behind it are run in a new process. Exit
status: 0 all is as it must be, 1 it is not.
"""

import pathlib
import re
import signal
import subprocess
import sys
import threading

HERE = pathlib.Path(__file__).resolve().parent
SILENT_SECONDS = 60


def run_once(arguments, done):
    """Runs what is not in `done`, and adds what was begun: the exit status, and the case at which it ended."""
    command = [sys.executable, "-X", "faulthandler", str(HERE / "source" / "tools" / "zoo" / "zoo.py"), "machine",
               "--folder", str(HERE), "--without", "^({})$".format("|".join(map(re.escape, sorted(done)))), *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    current, watch = None, None
    for line in process.stdout:
        if watch is not None:
            watch.cancel()
        watch = threading.Timer(SILENT_SECONDS, process.kill)
        watch.start()
        print(line, end="", flush=True)
        if line.startswith("begin "):
            current = line.split()[1]
            done.add(current)
    if watch is not None:
        watch.cancel()
    return process.wait(), current


def main():
    done, failed = set(), 0
    while True:
        status, last = run_once(["--threads", "8", "--seconds", "0.3", "--top", "4", *sys.argv[1:]], done)
        if status >= 0 or last is None:
            return failed or status
        failed = 1
        print(f"error: {last}: ended by {signal.Signals(-status).name}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
