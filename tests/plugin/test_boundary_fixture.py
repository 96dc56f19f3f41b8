"""The fixture ``veil_boundary``: a policy in a test, recorded and replayed."""

from __future__ import annotations

import pytest
from sessions import Suite, suite

__all__ = ["suite"]

pytestmark = pytest.mark.needs("bash")

GOVERNED = """
    import pytest
    from veil.governed import Denied, Policy, Rule

    POLICY = Policy("allowlist", (Rule("read", "allow", prefix=("cat",)), Rule("no rm", "deny", prefix=("rm",))))

    def test_it(veil_run, veil_boundary):
        (veil_run.root / "in").write_text("inside\\\\n")
        boundary = veil_boundary(POLICY, answers=[True])
        assert boundary.run(["nice", "cat", "in"]).stdout == "inside\\\\n"
        assert boundary.run(["cp", "in", "out"]).returncode == 0
        assert (veil_run.root / "out").read_text() == "inside\\\\n"
        assert [question.argv for question in boundary.approver.questions] == [("cp", "in", "out")]
        for argv in (["rm", "in"], ["env", "rm", "in"], ["cat", "/etc/passwd"], ["mv", "in", "x"]):
            with pytest.raises(Denied):
                boundary.run(argv)
        assert [result.argv for result in veil_run.results] == [("nice", "cat", "in"), ("cp", "in", "out")]
    """


def test_recorded_replayed_verified(suite: Suite) -> None:
    suite.write("test_it.py", GOVERNED)
    suite.run("--veil-mode=record").assert_outcomes(passed=1)
    recorded = suite.cassettes()
    for mode in ("replay", "live", "verify", "record"):
        suite.run(f"--veil-mode={mode}").assert_outcomes(passed=1)
    suite.run().assert_outcomes(passed=1)
    assert suite.cassettes() == recorded
    (text,) = recorded.values()
    assert str(suite.path).encode() not in text
    assert b"/usr/bin" not in text


def test_what_was_not_recorded_is_a_miss(suite: Suite) -> None:
    suite.write("test_it.py", GOVERNED)
    suite.run("--veil-mode=record").assert_outcomes(passed=1)
    suite.write("test_it.py", GOVERNED.replace('"nice", ', ""))
    suite.run("--veil-mode=replay").assert_outcomes(failed=1)
