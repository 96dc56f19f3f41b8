"""A public project that nobody here wrote, driven the way an agent drives one: fetched from PyPI at a pinned version,
tested, broken on purpose, seen to fail, and put back.

Recording needs the network (the first command); replaying needs nothing but the recording. What is fetched and the
virtual environment lie in the temporary folder, which is no part of a recording; the project itself is unpacked in the
workspace, so its files and every change to them are.
"""

from __future__ import annotations

FETCH = (
    "python3 -m pip --disable-pip-version-check download --quiet --no-deps --no-binary :all: "
    '--dest "$TMPDIR" xmltodict==0.13.0 2>/dev/null'
)
#: Somebody packed caches of bytecode with it.
UNPACK = (
    'tar -xzf "$TMPDIR/xmltodict-0.13.0.tar.gz" --strip-components=1'
    " && find . -name __pycache__ -prune -exec rm -r {} +"
)
ENVIRONMENT = 'python3 -m venv --without-pip "$TMPDIR/venv"'
TESTS = '"$TMPDIR/venv/bin/python" -B -m unittest discover -q -s tests'
#: No ``sed -i``: the one of macOS wants another argument.
EDIT = "sed 's/strip_whitespace={0},/strip_whitespace={1},/' xmltodict.py > edited && mv edited xmltodict.py"
BREAK, RESTORE = EDIT.format("True", "False"), EDIT.format("False", "True")


def test_break_a_line_see_it_fail_put_it_back(veil_run, expect):
    expect(veil_run(FETCH, timeout=300)).ok().changed_nothing()
    unpacked = veil_run(UNPACK)
    expect(unpacked).ok().created("xmltodict.py", "tests/test_xmltodict.py").file("xmltodict.py").contains("def parse(")
    expect(veil_run(ENVIRONMENT, timeout=300)).ok().changed_nothing()

    expect(veil_run(TESTS)).ok().stderr.contains("OK").changed_nothing()

    original = (veil_run.root / "xmltodict.py").read_bytes()
    expect(veil_run(BREAK)).ok().changed_only("xmltodict.py")
    expect(veil_run(TESTS)).failed().stderr.matches(r"FAILED \((failures|errors)=\d+").changed_nothing()

    expect(veil_run(RESTORE)).ok().modified("xmltodict.py")
    assert (veil_run.root / "xmltodict.py").read_bytes() == original
    expect(veil_run(TESTS)).ok().stderr.contains("OK").changed_nothing()
