"""Sending jobs to a worker and collecting their results, with another worker if the first one is lost."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from fusion.toolchain import daemon
from fusion.toolchain.discover import Compiler

Json: TypeAlias = "dict[str, object]"
Started = Callable[[int], None]
Finished = Callable[[int, Json], None]

START_SECONDS = 300.0
"""How long a worker may take to import the compiler on a slow machine."""

GRACE_SECONDS = 30.0
"""How much longer than a job's own limit the worker may be silent before it counts as hung."""

LOST_LIMIT = 2
"""A job that loses its worker this often, and the last time with no other job beside it, is given up."""

SILENT_LIMIT = 2
"""Connections in a row that end without one answer before the worker counts as unable to start.

The first may still have gone to a worker that was just ending: a killed process keeps its socket for a moment.
"""


@dataclass
class Exchange:
    """Jobs on their way: at most `limit` are with the worker at once, each with `timeout` seconds.

    `lost` counts how often a job was with a worker that ended.
    """

    compiler: Compiler
    jobs: Sequence[Mapping[str, object]]
    timeout: float
    limit: int
    started: Started
    finished: Finished
    waiting: list[int] = field(default_factory=list[int])
    sent: set[int] = field(default_factory=set[int])
    lost: dict[int, int] = field(default_factory=dict[int, int])
    answered: bool = False
    silent: int = 0

    def run(self) -> None:
        """Call `finished` once for every job, in the order in which they end."""
        self.waiting = list(range(len(self.jobs)))
        while self.waiting:
            self.answered = False
            with daemon.connect(self.compiler) as connection:
                self._serve(connection)
            self._after_loss()

    def _serve(self, connection: socket.socket) -> None:
        """Until all is done or the connection is lost."""
        lines = connection.makefile("rb")
        try:
            while self._send_more(connection) or self.sent:
                connection.settimeout(self.timeout + GRACE_SECONDS if self.answered else START_SECONDS + self.timeout)
                line = lines.readline()
                if not line:
                    return
                self.answered = True
                self._receive(json.loads(line))
        except TimeoutError:
            daemon.kill(self.compiler)
        except (OSError, ValueError):
            return

    def _send_more(self, connection: socket.socket) -> bool:
        sent = False
        while self.waiting and len(self.sent) < self.limit:
            index = self.waiting.pop(0)
            self.sent.add(index)
            request = {"op": "lower", "id": index, "timeout": self.timeout, "job": self.jobs[index]}
            connection.sendall(json.dumps(request).encode() + b"\n")
            sent = True
        return sent

    def _receive(self, message: Json) -> None:
        index = int(str(message["id"]))
        if "result" not in message:
            self.started(index)
            return
        self.sent.discard(index)
        result = message["result"]
        assert isinstance(result, dict)
        self.finished(index, result)

    def _after_loss(self) -> None:
        """What was with a lost worker is sent again, one by one, to find out which job ends it.

        Raises FusionError for a worker that has not answered SILENT_LIMIT times in a row.
        """
        if not self.sent:
            return
        if not self.answered:
            self._send_again_after_silence()
            return
        self.silent = 0
        alone = len(self.sent) == 1
        unfinished, self.sent, self.limit = sorted(self.sent), set(), 1
        for index in unfinished:
            self.lost[index] = self.lost.get(index, 0) + 1
            if alone and self.lost[index] >= LOST_LIMIT:
                self.finished(index, {"error": _LOST, "seconds": 0.0})
            else:
                self.waiting.append(index)

    def _send_again_after_silence(self) -> None:
        """No job has begun, so none is to blame."""
        self.silent += 1
        if self.silent >= SILENT_LIMIT:
            raise daemon.not_running(self.compiler)
        self.waiting, self.sent = sorted((*self.waiting, *self.sent)), set()


_LOST: Json = {"kind": "crash", "message": "the compiler's worker ended twice while it had this kernel", "pass_name": "", "details": ""}
