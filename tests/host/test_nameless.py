"""Files without a name."""

from __future__ import annotations

import os
import resource
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from veil.host import nameless


@given(st.binary(max_size=5000))
def test_what_is_filled_in_is_read_from_its_beginning(content: bytes) -> None:
    with nameless.file() as descriptor:
        nameless.fill(descriptor, content)
        assert nameless.content_of(descriptor) == content
        assert os.read(descriptor, 10_000) == content
        assert nameless.content_of(descriptor) == content
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)


def test_numbers_are_high_and_not_inherited_unless_said() -> None:
    with nameless.file() as one, nameless.file() as two:
        assert one != two
        assert min(one, two) >= 220
        done = subprocess.run(["sh", "-c", "ls /dev/fd"], capture_output=True, text=True, check=True, close_fds=False)
        assert not {str(one), str(two)} & set(done.stdout.split())
        nameless.fill(one, b"handed down")
        words = [sys.executable, "-c", f"print(open('/dev/fd/{one}').read())"]
        assert subprocess.run(words, capture_output=True, pass_fds=[one], check=True).stdout == b"handed down\n"


def test_where_high_numbers_are_not_to_be_had() -> None:
    code = "from veil.host import nameless\nwith nameless.file() as fd: print(fd)"

    def few() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, preexec_fn=few, check=True)
    assert 20 <= int(done.stdout) < 100
