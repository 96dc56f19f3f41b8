"""How long the condensed view of 5 MB of output takes, against only decoding it and splitting it into lines.

    python benchmarks/view.py

Medians of interleaved runs. Ratios matter, the milliseconds are this machine's.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from functools import partial

from veil.model.outcome import Stream
from veil.present.condense import condense

SIZE = 5_000_000
ROUNDS = 7

LINES = {
    "plain log": b"2024-05-02 10:11:12 INFO  step %d of the build took 12 ms and wrote 3 files\n",
    "numbers": b"%d\n",
    "coloured": b"\x1b[32m  ok\x1b[0m module %d \x1b[2m(12 ms)\x1b[0m\n",
    "progress frames": b"downloading %d of many\r",
    "full of traps": b"compiled src/error_utils_%d.py: 0 errors, 0 failed\n",
    "full of trouble": b"src/a.c:%d:4: error: expected ';' before '}' token\n",
}


def filled(line: bytes) -> bytes:
    pieces, size, number = [], 0, 0
    while size < SIZE:
        pieces.append(line % number)
        size += len(pieces[-1])
        number += 1
    return b"".join(pieces)


def _decode(data: bytes) -> list[str]:
    return data.decode("utf-8", "replace").splitlines()


def seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def main() -> None:
    print(f"{'5 MB of':<18}{'decode, split':>16}{'condense':>12}{'ratio':>8}")
    for name, line in LINES.items():
        data = filled(line)
        plain, ours = [], []
        for _ in range(ROUNDS):
            stream = Stream(data, b"", len(data), data.count(b"\n"))
            plain.append(seconds(partial(_decode, data)))
            ours.append(seconds(partial(condense, stream, failed=False, name="stdout", id="cmd1")))
        a, b = statistics.median(plain), statistics.median(ours)
        print(f"{name:<18}{a * 1000:>13.1f} ms{b * 1000:>9.0f} ms{b / a:>7.1f}x")


if __name__ == "__main__":
    main()
