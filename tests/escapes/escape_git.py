"""Left behind for somebody to run: what a repository in cwd tells git to start, when veil looks at it afterwards.

Each leaves a program that would make a file outside. Afterwards veil runs something there, unconfined and with effects,
which has it look at the repository. (Without a sandbox a plain git does the looking, and runs it all.)
"""

from __future__ import annotations

from attempts import Family

FAMILY = Family(__name__)

_BEGIN = "set -e; export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b; "
_BEGIN += "git init -q .; echo one > f; git add f; git commit -qm one; "
_PROGRAM = 'printf \'#!/bin/sh\\ntouch "%s/new"\\ncat\\n\' "$ESCAPE_OUTSIDE" > p; chmod +x p; P=$PWD/p; '
_CHANGED = "; echo two > f"
_NOT_ASKED = dict.fromkeys(("root", "user"), "the git that looks asks for none")


def planted(name: str, how: str, *, asked: bool = True) -> None:
    code = _BEGIN + _PROGRAM + how + _CHANGED
    FAMILY.shell(name, code, later=True, bare=None if asked else _NOT_ASKED)


planted("a monitor of files (core.fsmonitor)", "git config core.fsmonitor $P")
planted("an external diff (diff.external)", "git config diff.external $P")
planted("a way to show a file (textconv)", "git config diff.x.textconv $P; echo '* diff=x' > .git/info/attributes")
planted("a driver of diffs (diff.x.command)", "git config diff.x.command $P; echo '* diff=x' > .gitattributes")
planted("a filter (clean)", "git config filter.x.clean $P; echo '* filter=x' > .gitattributes")
planted(
    "a filter that stays (process)",
    "git config filter.x.process $P; git config filter.x.required true; echo '* filter=x' > .git/info/attributes",
)
planted("a hook of the index", "cp p .git/hooks/post-index-change")
planted(
    "hooks of checkouts and commits",
    "for h in pre-commit post-commit post-checkout post-merge reference-transaction; do cp p .git/hooks/$h; done",
    asked=False,
)
planted(
    "hooks in another folder (core.hooksPath)", "mkdir h; cp p h/post-index-change; git config core.hooksPath $PWD/h"
)
planted("a pager", "git config core.pager $P; git config pager.status $P; git config pager.diff $P", asked=False)
planted(
    "aliases of usual commands",
    "git config alias.st '!$P'; git config alias.status '!touch $ESCAPE_OUTSIDE/new'",
    asked=False,
)
planted("configuration that is included", "printf '[core]\\n\\tfsmonitor = %s\\n' $P > c; git config include.path ../c")
planted(
    "configuration of a work tree",
    "git config extensions.worktreeConfig true; git config --worktree core.fsmonitor $P",
)
planted("a program for signatures", "git config gpg.program $P; git config log.showSignature true", asked=False)
planted(
    "a repository elsewhere (.git as a file)",
    "mv .git g; echo 'gitdir: g' > .git; git config core.fsmonitor $P",
)
planted(
    "a submodule with a monitor",
    "git init -q s; (cd s; echo a > a; git add a; git commit -qm a; git config core.fsmonitor $P); "
    "git add s 2>/dev/null; git commit -qm s; echo b > s/a",
)
planted(
    "an index that is a link to a file outside", 'rm .git/index; ln -s "$ESCAPE_OUTSIDE/target" .git/index', asked=False
)
planted(
    "a work tree outside (core.worktree)",
    'git config core.worktree "$ESCAPE_OUTSIDE"; cp p .git/hooks/post-index-change',
    asked=False,
)
