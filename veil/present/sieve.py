"""The coarse sieve before the grammar of ``signals``: cheap to compile, cheap to run, never holding back a report."""

from __future__ import annotations

import re

from veil.present.idioms import FRAGMENTS, trie

#: For the lower-cased line: without one of these fragments, and not starting like one of ``STARTS``, it is no trouble.
GATE = re.compile(trie(FRAGMENTS.split(" | ")))
STARTS = re.compile(
    r"""(?x)\s*(?:
        \S+:\d+:\d+ | e\s{3} | [ef]\d{4}\s | e:\s | \d+\)\s | [a-z]{1,4}\d{3,4}\s | \w[\w.-]*:\s(?:\(\d|[ef]\d{4}|no\s)
      | \S+:\d+\s[a-z]{1,3}\d{3} | \*\*\s\( | ![!\s] | >\s\[ | [a-z-]+\[[a-z-]+\]:\s | >>\sissue | \S+\s+\[\S+:\d+\]:$
      | (?:received|got|actual):\s | (?:\S+\.py\s)?[.sxfeu,]{1,300}(?:\s*\[\s*\d+%\])?$
    )"""
)
