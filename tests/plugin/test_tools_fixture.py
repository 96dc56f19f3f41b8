"""The fixture ``veil_tools``: an agent's calls, recorded, replayed and verified like runs of ``veil_run``."""

from __future__ import annotations

from pathlib import Path

import pytest
from eval_projects import Project

pytestmark = pytest.mark.needs("bash")

#: A loop as an agent is driven: the model is a list of calls that looks at the replies.
AGENT = '''
    import json, os
    from veil import tools

    def agent(box):
        """Makes a file, looks at it, fixes what it did, starts a server and stops it."""
        said = []
        def call(name, **arguments):
            said.append(box.call(name, arguments))
            return said[-1]
        first = call("sh_run", command="seq 100 > numbers; cat numbers; date +%N", expect={"file_exists": "numbers"})
        found = call("sh_detail", id=first["id"], selector="stdout", match="^42$")
        call("sh_checkpoint", label="before")
        call("sh_run", command="rm numbers")
        call("sh_restore", label="ckpt1")
        call("sh_run", cmd="wc -l < numbers", description="count them", timeout="60000")
        call("sh_run", command="mkdir -p sub && cd sub && export A=1", session="s")
        call("sh_run", command="echo $A; basename $PWD", session="s")
        server = call("sh_run", command="echo up; sleep 60", run_in_background=True)
        while not box.call("sh_logs", {"id": server["id"]}).get("stdout_lines"):
            pass  # killed at once it would have said nothing in some runs
        call("sh_kill")
        call("sh_logs", id=server["id"])
        call("sh_run", command="true", timeout=30)
        call("sh_plan", command="rm -rf /")
        return said

    def told(reply):
        return {k: v for k, v in reply.items() if k not in ("ms", "running_ms", "created")}

    def test_agent(veil_tools):
        said = agent(veil_tools)
        assert [c.name for c in veil_tools.calls][:3] == ["sh_run", "sh_detail", "sh_checkpoint"]
        assert said[0]["id"] == "cmd1" and said[0]["assert_ok"] is True
        assert said[1]["stdout"]["matches"] == [{"line": 42, "text": "42"}]
        assert (veil_tools.root / "numbers").read_text().endswith("100\\n")
        assert said[5]["stdout"] == "100"
        assert said[7]["stdout"].split() == ["1", "sub"]
        assert said[8] == {"id": "cmd6", "status": "running", "background": True}
        assert said[9]["id"] == "cmd6"
        assert said[11]["error"] == "bad_input" and "30000" in said[11]["message"]
        assert said[12]["category"] == "destructive"
        assert {tool.name for tool in veil_tools.tools} >= {"sh_run", "sh_restore"}
        assert len(tools.openai_tools(veil_tools)) == len(veil_tools.tools)
        with open(os.path.join(os.environ["WORLD"], "said.json"), "a") as log:
            text = json.dumps([told(r) for r in said], sort_keys=True)
            # another test may have the folder that this one had last time
            log.write(text.replace(str(veil_tools.root), "<root>") + "\\n")
'''


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = Project(tmp_path)
    made.tests("\n".join(line[4:] for line in AGENT.split("\n")))
    return made


def test_an_agent_is_answered_the_same_live_recorded_and_replayed(project: Project) -> None:
    live = project.pytest("live")
    assert live.status == 0, live.text
    project.recorded()
    replayed = project.pytest("replay")
    assert replayed.status == 0, replayed.text
    assert set(replayed.words("test_agent")) == {"replayed"}
    said = (project.world / "said.json").read_text().splitlines()
    assert len(said) == 3
    recorded, again = said[1:]
    # also the nanoseconds that the command printed
    assert recorded == again


def test_what_an_agent_does_otherwise_is_a_miss_in_a_replay_and_a_word_in_verify(project: Project) -> None:
    project.recorded()
    source = (project.root / "test_it.py").read_text()
    project.tests(source.replace("wc -l < numbers", "wc -c < numbers"))
    missed = project.pytest("replay")
    assert missed.status == 1
    assert "wc -c < numbers" in missed.text
    project.tests(source)
    verified = project.pytest("verify")
    assert "step 1: unstable" in verified.text
    project.tests(source.replace("; date +%N", ""))
    project.recorded()
    verified = project.pytest("verify")
    assert verified.status == 0, verified.text
    assert set(verified.words("test_agent")) == {"exact"}


def test_detail_of_what_is_not_there_names_what_is(project: Project) -> None:
    project.tests(
        """
import asyncio

def test_names(veil_tools):
    assert veil_tools.call("sh_detail")["error"] == "not_found"
    ran = asyncio.run(veil_tools.acall("sh_run", {"command": "echo hi"}))
    assert ran["stdout"] == "hi"
    wrong = veil_tools.call("sh_detail", {"id": "cmd7"})
    assert wrong["facts"]["known"] == ["cmd1"]
    started = asyncio.run(veil_tools.acall("sh_run", {"command": "echo up; sleep 50", "background": True}))
    while not veil_tools.call("sh_logs").get("stdout_lines"):
        pass
    for asked in ({"id": started["id"]}, {}):
        told = veil_tools.call("sh_detail", {**asked, "selector": "full"})
        assert (told["id"], told["status"], told["stdout"]["text"]) == ("cmd2", "running", "up\\n")
    assert veil_tools.call("sh_kill", {"id": started["id"]})["status"] == "killed"
    told = veil_tools.call("sh_detail", {"selector": "stdout"})
    assert (told["id"], told["status"], told["stdout"]["text"]) == ("cmd2", "killed", "up\\n")
    wrong = veil_tools.call("sh_detail", {"id": "cmd7"})
    assert wrong["facts"]["known"] == ["cmd2", "cmd1"]
    assert veil_tools.call("sh_detail", {"selector": "stdouts"})["error"] == "bad_input"
    veil_tools.call("sh_run", {"command": "true"})
    assert veil_tools.call("sh_detail")["id"] == "cmd3"
    veil_tools.call("sh_run", {"command": "A=1", "session": "one"})
    assert veil_tools.call("sh_kill", {"session": "one"}) == {"session": "one", "status": "closed"}
    assert veil_tools.call("sh_run", {"command": "echo ${A-new}", "session": "one"})["stdout"] == "new"
    assert veil_tools.call("sh_kill", {"session": "two"})["facts"]["known"] == ["one"]
    veil_tools.calls.clear()
    assert veil_tools.call("sh_checkpoint", {"dir": "/"})["error"] == "bad_input"
    assert [call.reply.get("error") for call in veil_tools.calls] == ["bad_input"]
"""
    )
    done = project.pytest(None)
    assert done.status == 0, done.text
