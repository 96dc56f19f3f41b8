"""Programs of everyday work inside every backend of the sandbox: what a build or a test does has to work there.

What does not is stated, and that it still does not is a test as well: a page that says so must not grow old.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

import veil

pytestmark = [pytest.mark.linux, pytest.mark.needs("bash", "an interpreter outside /tmp")]
CONFINED = {
    "on": {"network": True},
    "off": {"network": False, "protect_secrets": True},
}


@pytest.fixture
def tree(elsewhere: Path) -> Path:
    """Not in /tmp, which is another one inside."""
    return elsewhere


def works(name: str, network: str, tree: Path, text: str) -> veil.Result:
    # whoever imports it inside would write its data where nothing may be written
    env = {key: None for key in os.environ if key.startswith(("COV_", "COVERAGE_"))}
    sandbox = {"backend": name, **CONFINED[network]}
    result = veil.run(text, cwd=tree, sandbox=sandbox, timeout=200, effects=False, env=env)
    assert result.ok, f"{result.stdout[-2000:]}\n{result.stderr[-2000:]}\n{result.sandbox}"
    return result


MAKEFILE = "all: a b c d\n%: %.c\n\tgcc -o $@ $<\n\t./$@\n"
WHEEL = "from setuptools import setup; setup(name='tiny', version='1', py_modules=['tiny'])"
TESTS = """
import pytest
@pytest.mark.parametrize("n", range(6))
def test_n(n, tmp_path):
    (tmp_path / "f").write_text("x")
"""
POOL = """
import multiprocessing as m, sys
def double(x): return 2 * x
if __name__ == "__main__":
    c = m.get_context(sys.argv[1])
    with c.Pool(2) as pool:
        assert pool.map(double, range(4)) == [0, 2, 4, 6]
    q = c.Queue(); q.put(1); assert q.get() == 1
    lock = c.Lock()
    with lock: pass
    print("fine")
"""
MANAGER = """
import multiprocessing as m
if __name__ == "__main__":
    with m.Manager() as manager:
        d = manager.dict(a=1)
        print(d["a"])
"""
SHARED = """
from multiprocessing.shared_memory import SharedMemory
s = SharedMemory(create=True, size=1000); s.buf[0] = 1; s.close(); s.unlink()
"""
SQLITE = """
import sqlite3
for mode in ("delete", "wal"):
    c = sqlite3.connect(f"{mode}.db"); c.execute(f"pragma journal_mode={mode}")
    c.execute("create table t(x)"); c.execute("insert into t values (1)"); c.commit(); c.close()
"""
LOOPBACK = """
import asyncio
async def main():
    server = await asyncio.start_server(lambda r, w: w.close(), "127.0.0.1", 0)
    r, w = await asyncio.open_connection(*server.sockets[0].getsockname())
    await r.read(); w.close(); server.close()
asyncio.run(main())
"""
NODE = "require('child_process').execSync('echo hi'); require('fs').writeFileSync('x','y');"
NODE += "new (require('worker_threads').Worker)('1',{eval:true}).on('exit',c=>process.exit(c))"


@pytest.mark.parametrize("network", CONFINED)
@pytest.mark.needs("make", "gcc")
def test_make_in_parallel(name: str, network: str, tree: Path) -> None:
    (tree / "Makefile").write_text(MAKEFILE)
    for program in "abcd":
        (tree / f"{program}.c").write_text("#include <stdio.h>\nint main(void){puts(__FILE__);return 0;}\n")
    assert sorted(works(name, network, tree, "make -s -j4").stdout.split()) == ["a.c", "b.c", "c.c", "d.c"]


@pytest.mark.parametrize("network", CONFINED)
@pytest.mark.needs("git")
def test_git_from_init_to_merge(name: str, network: str, tree: Path) -> None:
    text = """
    set -e
    git() { command git -c user.name=t -c user.email=t@example.org -c init.defaultBranch=main "$@"; }
    git init -q a; cd a; echo 1 >f; git add f; git commit -qm 1
    git checkout -qb side; echo 2 >>f; git commit -qam 2; git checkout -q main; echo 3 >g; git add g; git commit -qm 3
    git merge -q side -m merged; git stash list; git gc -q; git worktree add -q ../w side; cd ..
    git clone -q a b; git -C b log --oneline | wc -l
    """
    assert works(name, network, tree, text).stdout.strip() == "4"


@pytest.mark.parametrize("network", CONFINED)
def test_a_virtual_environment_and_a_local_wheel(name: str, network: str, tree: Path) -> None:
    project = tree / "tiny"
    project.mkdir()
    (project / "setup.py").write_text(WHEEL)
    (project / "tiny.py").write_text("x = 42\n")
    (tree / "make_wheel.py").write_text(
        "import zipfile\n"
        "with zipfile.ZipFile('tiny-1-py3-none-any.whl', 'w') as z:\n"
        "    z.writestr('tiny.py', 'x = 42')\n"
        "    z.writestr('tiny-1.dist-info/METADATA', 'Metadata-Version: 2.1\\nName: tiny\\nVersion: 1\\n')\n"
        "    z.writestr('tiny-1.dist-info/WHEEL', 'Wheel-Version: 1.0\\nGenerator: t\\nRoot-Is-Purelib: true\\n"
        "Tag: py3-none-any\\n')\n"
        "    z.writestr('tiny-1.dist-info/RECORD', '')\n"
    )
    text = f"""
    set -e
    {sys.executable} make_wheel.py
    {sys.executable} -m venv --system-site-packages v
    v/bin/python -m pip --disable-pip-version-check install -q --no-index --no-cache-dir ./tiny-1-py3-none-any.whl
    v/bin/python -c 'import tiny; print(tiny.x)'
    """
    assert works(name, network, tree, text).stdout.endswith("42\n")


@pytest.mark.parametrize("network", CONFINED)
def test_pytest_on_several_workers(name: str, network: str, tree: Path) -> None:
    (tree / "test_it.py").write_text(TESTS)
    text = f"{sys.executable} -m pytest -q -n 2 -p no:cacheprovider -p no:randomly test_it.py"
    assert "6 passed" in works(name, network, tree, text).stdout


@pytest.mark.parametrize("network", CONFINED)
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_multiprocessing(name: str, network: str, tree: Path, method: str) -> None:
    (tree / "pool.py").write_text(POOL)
    assert works(name, network, tree, f"{sys.executable} -W ignore pool.py {method}").stdout == "fine\n"


@pytest.mark.parametrize("program", [POOL, MANAGER], ids=["forkserver", "manager"])
def test_multiprocessing_by_unix_sockets_needs_the_network(name: str, tree: Path, program: str) -> None:
    """A filter of system calls cannot tell these sockets from others, so without network they are denied as well."""
    (tree / "it.py").write_text(program)
    text = f"{sys.executable} -W ignore it.py forkserver"
    if name == "landlock":
        # the machine's own sockets are in sight there, so one has to be granted to have any, with a network as well
        refused = veil.run(text, cwd=tree, sandbox={"backend": name}, timeout=100, effects=False)
        assert "Operation not permitted" in refused.stderr
        assert "unix_sockets" in str(refused.advice)
    else:
        works(name, "on", tree, text)
    denied = veil.run(text, cwd=tree, sandbox={"backend": name, "network": False}, timeout=100, effects=False)
    assert not denied.ok
    assert "Operation not permitted" in denied.stderr
    assert "network=False" in str(denied.advice)


@pytest.mark.parametrize("network", CONFINED)
def test_shared_memory_databases_and_terminals(name: str, network: str, tree: Path) -> None:
    (tree / "shared.py").write_text(SHARED)
    (tree / "lite.py").write_text(SQLITE)
    text = f"{sys.executable} shared.py && {sys.executable} lite.py && ls *.db | wc -l"
    assert works(name, network, tree, text).stdout.strip() == "2"


@pytest.mark.parametrize("network", CONFINED)
def test_a_server_and_its_client_inside(name: str, network: str, tree: Path) -> None:
    if name == "landlock" and network == "off":
        # a filter cannot tell the machine's loopback from another: a gap that the result names
        result = veil.run(
            [sys.executable, "-c", LOOPBACK], cwd=tree, sandbox={"backend": name, "network": False}, effects=False
        )
        assert not result.ok
        assert result.sandbox is not None
        assert any("loopback" in gap for gap in result.sandbox["gaps"])
        return
    (tree / "it.py").write_text(LOOPBACK)
    works(name, network, tree, f"{sys.executable} it.py")


@pytest.mark.parametrize("network", CONFINED)
@pytest.mark.needs("node")
def test_node_with_children_and_workers(name: str, network: str, tree: Path) -> None:
    (tree / "it.js").write_text(NODE)
    works(name, network, tree, "node it.js")


@pytest.mark.parametrize("network", CONFINED)
def test_archives_keep_modes_links_and_times(name: str, network: str, tree: Path) -> None:
    text = """
    set -e
    mkdir -p in/sub; echo x >in/f; chmod 640 in/f; ln -s f in/l; ln in/f in/h; touch -d 2001-02-03 in/sub
    tar czf a.tgz in; mkdir out; tar xzpf a.tgz -C out
    [ "$(cd in; stat -c '%a %Y %n' f sub)" = "$(cd out/in; stat -c '%a %Y %n' f sub)" ]
    [ "$(readlink out/in/l)" = f ]; [ "$(stat -c %h out/in/f)" = 2 ]
    """
    works(name, network, tree, text)


@pytest.mark.needs("root")
def test_root_inside_is_root_over_its_own_files_only(name: str, tree: Path) -> None:
    """Only one user exists inside: files of others stay theirs, and cannot be given away."""
    result = veil.run("touch f && chown 1234 f", cwd=tree, sandbox={"backend": name}, effects=False)
    assert not result.ok
    assert (tree / "f").stat().st_uid == 0
    text = "mkdir -p in && tar cf a.tar in && tar xf a.tar"
    works(name, "on", tree, text)


@pytest.mark.parametrize("network", CONFINED)
def test_shells_pipes_and_job_control(name: str, network: str, tree: Path) -> None:
    text = """
    set -e -o pipefail
    seq 100000 | sort -rn | head -1 | cat || [ $? = 141 ]
    mkfifo p; echo through >p & cat p; wait
    diff <(echo a) <(echo a)
    exec 5<>p; exec 5>&-
    sleep 0.1 & kill %1 || true
    id -un >/dev/null; getent passwd root >/dev/null; date >/dev/null; mktemp >/dev/null
    """
    assert "through" in works(name, network, tree, text).stdout


@pytest.mark.parametrize("network", CONFINED)
def test_a_pseudo_terminal(name: str, network: str, tree: Path) -> None:
    code = "import pty, sys; sys.exit(pty.spawn(['sh', '-c', 'tty; exit 3']) >> 8)"
    result = veil.run(
        [sys.executable, "-c", code], cwd=tree, sandbox={"backend": name, **CONFINED[network]}, effects=False
    )
    if name == "landlock":
        assert result.exit != 0  # terminals of others would be open as well
        return
    assert (result.exit, "/dev/pts/" in result.stdout) == (3, True), result.stdout + result.stderr


@pytest.mark.skipif(shutil.which("npm") is None, reason="needs npm: install it")
def test_npm_runs_a_script(name: str, tree: Path) -> None:
    (tree / "package.json").write_text('{"name": "x", "version": "1.0.0", "scripts": {"it": "echo ran"}}')
    assert "ran" in works(name, "off", tree, "npm run -s it").stdout
