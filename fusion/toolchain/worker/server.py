# pyright: basic
"""The long-lived worker: imports the compiler once, then forks a warm process for every job that comes over a Unix socket.

Line-delimited JSON both ways. Requests: {"op": "ping"}, {"op": "stop"}, {"op": "lower", "id", "timeout", "job"}.
Answers: {"op": "pong", ...}, {"id", "state": "started"}, {"id", "result"}. The compiler's prints go to each job's own file, never here.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import resource
import selectors
import shutil
import signal
import socket
import sys
import time
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path

from . import children

WATCH_SECONDS = 0.1
"""How often the memory of a job with a limit is looked at."""


@dataclass
class Client:
    """A connected fusion-plan process, with what has been read of its next line."""

    sock: socket.socket
    pending: bytes = b""

    def send(self, message: dict) -> None:
        """A client that has gone meanwhile is no error: its end is read as such by the loop."""
        with contextlib.suppress(OSError):
            self.sock.setblocking(True)
            self.sock.sendall(json.dumps(message).encode() + b"\n")
            self.sock.setblocking(False)


@dataclass
class Request:
    client: Client
    id: int
    timeout: float
    job: dict


@dataclass
class Server:
    listener: socket.socket
    folder: Path
    slots: int
    idle: float
    clients: dict[int, Client] = field(default_factory=dict)
    queue: deque[Request] = field(default_factory=deque)
    running: dict[int, tuple[Request, children.Child]] = field(default_factory=dict)
    served: int = 0
    born: float = field(default_factory=time.monotonic)
    busy_until: float = field(default_factory=time.monotonic)
    stopping: bool = False

    def __post_init__(self) -> None:
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.listener, selectors.EVENT_READ, self._accept)

    def serve(self) -> None:
        """Until told to stop, or idle for `idle` seconds."""
        while not self.stopping:
            events = self.selector.select(self._patience())
            for key, _ in events:
                key.data(key.fileobj)
            self._kill_late()
            self._kill_overgrown()
            self._start_queued()
            if self.clients or self.running:
                self.busy_until = time.monotonic()
            elif time.monotonic() - self.busy_until >= self.idle:
                break
        for _, child in self.running.values():
            child.kill()

    def _patience(self) -> float:
        """Seconds until the next deadline: of a job, or of idleness."""
        now = time.monotonic()
        deadlines = [child.deadline for _, child in self.running.values() if not child.timed_out]
        if not self.running and not self.clients:
            deadlines.append(self.busy_until + self.idle)
        longest = WATCH_SECONDS if any(child.memory for _, child in self.running.values()) else 60.0
        return min(longest, max(0.0, min(deadlines) - now)) if deadlines else longest

    def _accept(self, _listener) -> None:
        sock, _ = self.listener.accept()
        sock.setblocking(False)
        self.clients[sock.fileno()] = Client(sock)
        self.selector.register(sock, selectors.EVENT_READ, self._read)

    def _read(self, sock) -> None:
        client = self.clients[sock.fileno()]
        try:
            data = sock.recv(1 << 20)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._forget(client)
            return
        *lines, client.pending = (client.pending + data).split(b"\n")
        try:
            for line in lines:
                self._handle(client, json.loads(line))
        except (ValueError, KeyError):
            self._forget(client)

    def _forget(self, client: Client) -> None:
        """A client has gone: so has the need for what it asked."""
        self.selector.unregister(client.sock)
        del self.clients[client.sock.fileno()]
        client.sock.close()
        self.queue = deque(request for request in self.queue if request.client is not client)
        for request, child in self.running.values():
            if request.client is client:
                child.kill()

    def _handle(self, client: Client, message: dict) -> None:
        if message["op"] == "lower":
            self.queue.append(Request(client, message["id"], message["timeout"], message["job"]))
        elif message["op"] == "stop":
            self.stopping = True
            client.send({"op": "stopping"})
        else:
            client.send(self._pong())

    def _pong(self) -> dict:
        age = time.monotonic() - self.born
        counts = {"running": len(self.running), "queued": len(self.queue), "served": self.served}
        return {"op": "pong", "pid": os.getpid(), "seconds_up": age, **counts}

    def _start_queued(self) -> None:
        from . import job

        while self.queue and len(self.running) < self.slots:
            request = self.queue.popleft()
            self.served += 1
            folder = self.folder / str(self.served)
            inherited = [self.listener.fileno(), self.selector.fileno(), *self.clients, *self.running]
            run, memory = (lambda path, request=request: job.run(request.job, path)), int(request.job.get("memory", 0))
            child = children.start(folder, request.timeout, run, inherited, memory)
            self.running[child.done] = (request, child)
            self.selector.register(child.done, selectors.EVENT_READ, self._finish)
            request.client.send({"id": request.id, "state": "started"})

    def _finish(self, done: int) -> None:
        request, child = self.running.pop(done)
        self.selector.unregister(done)
        request.client.send({"id": request.id, "result": children.finish(child)})

    def _kill_late(self) -> None:
        now = time.monotonic()
        for _, child in self.running.values():
            if now >= child.deadline and not child.timed_out:
                child.timed_out = True
                child.kill()

    def _kill_overgrown(self) -> None:
        for _, child in self.running.values():
            if child.memory and not child.overgrown and child.resident() > child.memory:
                child.overgrown = True
                child.kill()


def _arguments(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--listen-fd", type=int, required=True)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--slots", type=int, default=2)
    parser.add_argument("--idle", type=float, default=900.0)
    parser.add_argument("--stubs", action="store_true")
    return parser.parse_args(argv)


def _stop(*_args) -> None:
    raise SystemExit(0)


def main(argv: list[str]) -> None:
    arguments = _arguments(argv)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGTERM, _stop)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if arguments.stubs:
        from . import stubs

        stubs.install()
    from . import warmup

    listener = socket.socket(fileno=arguments.listen_fd)
    shutil.rmtree(arguments.folder, ignore_errors=True)
    arguments.folder.mkdir(parents=True)
    try:
        warmup.warm(arguments.folder)
        sys.stdout.flush()
        Server(listener, arguments.folder, arguments.slots, arguments.idle).serve()
    finally:
        shutil.rmtree(arguments.folder, ignore_errors=True)
