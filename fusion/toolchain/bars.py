"""The progress bar of an installation."""

from __future__ import annotations

from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TaskID, TextColumn, TimeElapsedColumn


class Bars:
    """An observer that draws one bar a step."""

    def __init__(self) -> None:
        columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeElapsedColumn())
        self._progress = Progress(*columns, console=Console(stderr=True))
        self._task: TaskID | None = None
        self._total = 0

    def __enter__(self) -> Bars:
        self._progress.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is None:
            self._finish()
        self._progress.stop()

    def say(self, text: str) -> None:
        self._progress.console.print(text, highlight=False, markup=False)

    def step(self, title: str, total: int) -> None:
        self._finish()
        self._total = total
        self._task = self._progress.add_task(title, total=total or None)

    def advance(self, done: int) -> None:
        if self._task is not None:
            self._progress.update(self._task, completed=min(done, self._total) if self._total else done)

    def _finish(self) -> None:
        if self._task is not None:
            self._progress.update(self._task, total=self._total or 1, completed=self._total or 1)
