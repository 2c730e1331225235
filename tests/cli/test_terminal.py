"""A conversation on a terminal: editing, Ctrl-C once and twice, and the terminal as it was afterwards, whatever ends the program.

    test_terminal.py SAMEBIT MODEL
"""
import fcntl
import os
import pty
import select
import signal
import subprocess
import sys
import termios
import time
import unittest

SAMEBIT, MODEL = sys.argv[1:3]
WAIT = 60.0


class Terminal:
    """The program on a terminal of its own, whose other end this is."""

    def __init__(self, *options):
        self.ours, self.its = pty.openpty()
        self.before = termios.tcgetattr(self.its)
        environment = {**os.environ, "TERM": "xterm", "HOME": "/nonexistent", "LC_ALL": "C.UTF-8"}
        self.process = subprocess.Popen(
            [SAMEBIT, "generate", MODEL, "--chat", "--date", "2026-02-28", "--context", "20000", "--threads", "1", "--ignore-stops",
             *options],
            stdin=self.its, stdout=self.its, stderr=subprocess.PIPE, env=environment, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        self.said = b""

    def read(self, until, behind=0):
        """What it writes, until that text is there behind so many bytes."""
        end = time.monotonic() + WAIT
        while until not in self.said[behind:]:
            ready, _, _ = select.select([self.ours], [], [], max(0, end - time.monotonic()))
            if not ready:
                raise AssertionError(f"{until!r} does not come; there is {self.said[-500:]!r}")
            self.said += os.read(self.ours, 65536)
        return self.said

    def type(self, text):
        """Types, when it is ready to read."""
        behind = len(self.said)
        os.write(self.ours, text)
        return behind

    def ends(self):
        """The exit status; the terminal has to be as it was."""
        end = time.monotonic() + WAIT
        while self.process.poll() is None and time.monotonic() < end:
            if select.select([self.ours], [], [], 0.05)[0]:
                self.said += os.read(self.ours, 65536)
        if self.process.poll() is None:
            self.process.kill()
            raise AssertionError("it does not end")
        after = termios.tcgetattr(self.its)
        if after != self.before:
            raise AssertionError(f"the terminal was {self.before} and is {after}")
        return self.process.returncode

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.process.stderr.close()
        os.close(self.ours)
        os.close(self.its)


class Conversations(unittest.TestCase):
    def begin(self, *options):
        made = Terminal(*options)
        self.addCleanup(made.close)
        made.read(b"> ")
        return made

    def test_messages(self):
        """Two messages, the second typed with a mistake that is taken back, and Ctrl-D."""
        terminal = self.begin("--count", "9", "--digest")
        terminal.type(b"Hi\n")
        first = terminal.read(b"\n> ", len(terminal.said)) and len(terminal.said)
        terminal.type(b"Hox\x7f\n")
        terminal.read(b"\n> ", first)
        terminal.type(b"\x04")
        self.assertEqual(terminal.ends(), 0)
        piped = subprocess.run([SAMEBIT, "generate", MODEL, "--chat", "--date", "2026-02-28", "--context", "20000",
                                "--ignore-stops", "--count", "9", "--digest", "--threads", "1"], input=b"Hi\nHo\n", stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, check=True).stdout
        for line in piped.split(b"\n"):
            if len(line) == 64:  # the digests: the text may have what a terminal shows in another way
                self.assertIn(line, terminal.said)

    def test_interrupts(self):
        """Ctrl-C ends an answer, and the conversation goes on."""
        terminal = self.begin("--count", "15000")
        behind = terminal.type(b"Hi\n")
        terminal.read(b"Hi\r\n", behind)
        time.sleep(1.0)
        behind = len(terminal.said)
        terminal.type(b"\x03")
        terminal.read(b"\n> ", behind)
        behind = terminal.type(b"/quit\n")
        self.assertEqual(terminal.ends(), 0)
        self.assertIn(b"(cut off)", terminal.process.stderr.read())

    def test_twice(self):
        for after in (b"", b"half a line"):
            terminal = self.begin("--count", "9")
            if after:
                terminal.type(after)
                terminal.read(after)
            behind = len(terminal.said)
            terminal.type(b"\x03")
            terminal.read(b"\n> ", behind)
            terminal.type(b"\x03")
            self.assertEqual(terminal.ends(), -signal.SIGINT)

    def test_signals(self):
        """At the prompt, where the terminal is not as it was."""
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
            terminal = self.begin("--count", "9")
            end = time.monotonic() + WAIT
            while termios.tcgetattr(terminal.its) == terminal.before and time.monotonic() < end:
                time.sleep(0.01)
            self.assertNotEqual(termios.tcgetattr(terminal.its), terminal.before)
            terminal.process.send_signal(number)
            self.assertEqual(terminal.ends(), -number)

    def test_edit(self):
        """/edit shows the last message to go on with."""
        terminal = self.begin("--count", "3")
        terminal.type(b"Hello\n")
        behind = terminal.read(b"\n> ", len(terminal.said)) and len(terminal.said)
        terminal.type(b"/edit\n")
        terminal.read(b"edit> Hello", behind)
        behind = len(terminal.said)
        terminal.type(b" you\n")
        terminal.read(b"\n> ", behind)
        terminal.type(b"/save edited.json\n/quit\n")
        self.assertEqual(terminal.ends(), 0)
        with open("edited.json", encoding="utf-8") as file:
            self.assertIn('"Hello you"', file.read())
        os.remove("edited.json")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
