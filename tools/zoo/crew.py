"""Tasks in processes that may die or take too long: each worker does one after the other, and another one takes its place where it failed."""

import dataclasses
import multiprocessing
import multiprocessing.connection
import time

PRELOADED = ["numpy", "torch", "onnx", "onnxscript", "transformers", "timm"]  # once, before "forkserver" forks workers


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What became of a task: a value, or the sentence of a failure."""

    task: tuple
    value: object = None
    failure: str = ""


def sentence(error):
    """An error in one short line."""
    return f"{type(error).__name__}: {(str(error).strip() or '-').splitlines()[0][:160]}"


def serve(work, pipe):
    for task in iter(pipe.recv, None):
        try:
            outcome = Outcome(task, work(*task))
        except Exception as error:  # pylint: disable=broad-except
            outcome = Outcome(task, failure=sentence(error))
        pipe.send(outcome)


class Worker:
    """A process that waits for tasks."""

    def __init__(self, context, work):
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=serve, args=(work, theirs), daemon=True)
        self.process.start()
        theirs.close()
        self.task, self.end = None, 0

    def give(self, task, seconds):
        self.task, self.end = task, time.monotonic() + seconds
        self.pipe.send(task)

    def outcome(self):
        """Of the task, where it has ended in some way, else None."""
        if self.pipe.poll():
            try:
                return self.pipe.recv()
            except (EOFError, OSError):
                self.process.join()
                return Outcome(self.task, failure=f"the process ended with {self.process.exitcode}")
        return Outcome(self.task, failure="it took too long") if time.monotonic() > self.end else None

    def stop(self):
        self.process.kill()
        self.process.join()


class Crew:
    """So many workers for one kind of work; `tasks` may be added to while it runs."""

    def __init__(self, way, work, tasks, count, seconds, end):
        self.context = multiprocessing.get_context(way)
        self.context.set_forkserver_preload(PRELOADED)
        self.work, self.tasks, self.seconds, self.end = work, list(tasks), seconds, end
        self.idle = [self.worker() for _ in range(min(count, len(self.tasks)))]
        self.busy = []

    def worker(self):
        return Worker(self.context, self.work)

    def outcomes(self):
        """Each task's, as they end; those that time leaves none for stay in `tasks`."""
        while (self.tasks or self.busy) and time.monotonic() < self.end:
            self.share_out()
            multiprocessing.connection.wait([worker.pipe for worker in self.busy], timeout=0.5)
            for worker in list(self.busy):
                outcome = worker.outcome()
                if outcome is not None:
                    self.busy.remove(worker)
                    self.idle.append(self.after(worker, outcome))
                    yield outcome
        self.tasks += [worker.task for worker in self.busy]
        for worker in self.idle + self.busy:
            worker.stop()

    def after(self, worker, outcome):
        """Who goes on: what failed may have left its process in any state."""
        if not outcome.failure:
            return worker
        worker.stop()
        return self.worker()

    def share_out(self):
        while self.tasks and self.idle:
            worker = self.idle.pop(0)
            worker.give(self.tasks.pop(0), self.seconds)
            self.busy.append(worker)
