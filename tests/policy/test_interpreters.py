"""Which words decide what an interpreter runs."""

from __future__ import annotations

import shlex

import pytest
from policies import allow, answer, deny

from veil.policy.interpreters import INTERPRETERS, code_of


@pytest.mark.parametrize(
    ("line", "at", "texts"),
    [
        ("python3 x.py a", 1, ()),
        ("python3 -c CODE a", 2, (2,)),
        ("python3 -cCODE", 1, (1,)),
        ("python3 -Ic CODE", 2, (2,)),
        ("python3 -W ignore -X dev x.py", 5, ()),
        ("python3 -m pytest -q", 2, (2,)),
        ("python3 -B -mpytest", 2, (2,)),
        ("python3 -- x.py", 2, ()),
        ("python3", 0, ()),
        ("python3 -V", None, ()),
        ("sh x.sh", 1, ()),
        ("sh -c CODE a", 2, (2,)),
        ("sh -ec CODE", 2, (2,)),
        ("sh -c -x CODE a", 3, (3,)),
        ("bash -o pipefail -c CODE", 4, (4,)),
        ("bash -co pipefail CODE", 3, (3,)),
        ("bash +x -c CODE", 3, (3,)),
        ("bash --rcfile RC -i", 2, (2,)),
        ("bash --init-file=RC -i", 1, (1,)),
        ("bash --rcfile RC x.sh", 3, (2,)),
        ("perl -Mx script.pl a", 2, (1,)),
        ("perl -we CODE file", 2, (2,)),
        ("perl -ne CODE -e MORE file", 4, (2, 4)),
        ("perl -I lib script.pl", 3, (2,)),
        ("node -r ./x app.js", 3, (2,)),
        ("node --require=./x app.js", 2, (1,)),
        ("node -e CODE", 2, (2,)),
        ("ruby -rx script.rb", 2, (1,)),
        ("php -d auto_prepend_file=x script.php", 3, (2,)),
        ("vim -u x f", 3, (1, 2, 3)),
        ("lua -l x", 2, (1, 2)),
    ],
)
def test_the_words_that_decide(line: str, at: int | None, texts: tuple[int, ...]) -> None:
    argv = shlex.split(line)
    code = code_of(argv, INTERPRETERS[argv[0].rstrip("3")])
    if code is None:
        assert at is None
    else:
        assert (code.at, code.texts) == (at, texts)


@pytest.mark.parametrize(
    "line",
    [
        "bash --rcfile x -i",
        "perl -Mx script.pl",
        "node -r ./x app.js",
        "ruby -rx script.rb",
        "php -d auto_prepend_file=x s.php",
        "sh -c -x CODE",
        "vim -u x",
        "lua x.lua",
    ],
)
def test_a_rule_has_to_name_all_of_them(line: str) -> None:
    argv = shlex.split(line)
    for length in range(1, len(argv)):
        if argv[length] != "-i":  # it brings no code
            assert answer(argv, allow(*argv[:length])) == "ask", argv[:length]
    assert answer(argv, allow(*argv)) == "allow"


@pytest.mark.parametrize(
    "line",
    [
        "sh -c -x 'rm f'",
        "sh -c 'exec \"$@\"' x rm f",
        "bash -co pipefail 'rm f'",
        "perl -e 'exec @ARGV' rm f",
        "perl -e'exec qw(rm f)'",
        "perl -lne 'system q(rm f)'",
        "perl -i.bak -pe 'system q(rm f)' x",
        "ruby -lne 'system %q(rm f)'",
        "python3 -c 'import os,sys; os.execvp(sys.argv[1], sys.argv[1:])' rm f",
        'node -e \'require("child_process").execSync("rm f")\'',
        "ruby -e 'system(\"rm f\")'",
        "vim -c '!rm f'",
        "lua -e 'os.execute(\"rm f\")'",
    ],
)
@pytest.mark.parametrize("level", ["allowlist", "blocklist", "always_allow"])
def test_what_is_forbidden_is_seen_in_texts_and_behind_them(line: str, level: str) -> None:
    argv = shlex.split(line)
    assert answer(argv, deny("rm"), allow(argv[0]), level=level) == "deny"
