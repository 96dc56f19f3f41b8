"""Package managers."""

from __future__ import annotations

from typing import Any

Row = dict[str, Any]
_FETCH: Row = {"category": "network", "why": "fetches packages"}
_REMOVE: Row = {"category": "destructive", "why": "removes packages", "lost": "installed packages and their files"}
_TELL: Row = {"why": "tells"}
_CHANGE: Row = {"category": "mutating", "why": "changes settings or files"}
_RUN: Row = {"category": "unknown", "why": "runs the project's own scripts"}


def _subs(*pairs: tuple[str, Row]) -> dict[str, Row]:
    return {name: found for names, found in pairs for name in names.split()}


_NPM: Row = {
    "judge": "subs",
    "default": "unknown",
    "bare": "read-only",
    "probe": "-v version help",
    "read": "-C= -w= --prefix= --workspace= --filter= --cwd= --loglevel= --registry= --userconfig=",
    "complex": "--script-shell= --shell=",
    "subs": {
        **_subs(
            (
                "install i ci add in it install-test update up upgrade audit outdated publish login "
                "logout adduser whoami search s "
                "view info show v ping owner access deprecate dist-tag profile token team exec x "
                "create  dlx fund star docs repo bugs "
                " link  dedupe hook org sbom import fetch",
                _FETCH,
            ),
            ("uninstall remove rm r un unlink prune unpublish", _REMOVE),
            ("ls list ll la root prefix bin why explain query licenses help-search completion", _TELL),
            ("help", {**_TELL, "most": 0, "extra": "complex"}),
            ("init  version pkg set  pack shrinkwrap  patch patch-commit ", _CHANGE),
            (
                "test t tst run run-script start stop restart rebuild build dev lint serve format "
                "typecheck workspaces workspace",
                _RUN,
            ),
        ),
        **_subs(("exec x dlx", {**_FETCH, "judge": "fetch_and_run"})),
        "config": _CHANGE,
        "config list": _TELL,
        "config ls": _TELL,
        "config get": _TELL,
        "get": _TELL,
        "config edit": {"category": "complex", "why": "starts an editor"},
        "edit": {"category": "complex"},
        "explore": {"category": "complex"},
        "cache": _CHANGE,
        "cache verify": _CHANGE,
        "cache clean": {"category": "destructive", "why": "deletes its cache", "lost": "its cache"},
        "version": {"category": "read-only", "why": "tells", "most": 0, "extra": "mutating"},
    },
}
_YARN: Row = {
    **_NPM,
    "bare": "network",
    "default": "unknown",
    "subs": {
        **_NPM["subs"],
        "global": _FETCH,
        "set": _FETCH,
        "why": _TELL,
        "node": _RUN,
        "store": _CHANGE,
        "store prune": _REMOVE,
        **_subs(("ls list ll la help root prefix bin why explain query licenses help-search completion", _RUN)),
        "config list": _RUN,
        "config ls": _RUN,
        "config get": _RUN,
        "get": _RUN,
    },
}
_PIP: Row = {
    "judge": "subs",
    "default": "unknown",
    "bare": "read-only",
    "probe": "-V",
    "complex": "--python=",
    "mutating": "--log=>",
    "read": "--cache-dir= --proxy= --timeout= --retries= -r= -c= -e= -t= -i=",
    "subs": {
        **_subs(
            ("install download wheel search index lock", _FETCH),
            ("uninstall", _REMOVE),
            (
                "list show freeze check help inspect hash debug completion",
                {
                    **_TELL,
                    "network": "-o --outdated -u --uptodate -i= --index-url=",
                    "mutating": "--log=>",
                    "complex": "--python=",
                },
            ),
        ),
        "config": _CHANGE,
        "config list": _TELL,
        "config get": _TELL,
        "config debug": _TELL,
        "config edit": {"category": "complex"},
        "cache": _CHANGE,
        "cache list": _TELL,
        "cache dir": _TELL,
        "cache info": _TELL,
        "cache purge": {"category": "destructive", "why": "deletes its cache", "lost": "its cache"},
    },
}
_APT: Row = {
    "judge": "subs",
    "default": "unknown",
    "bare": "read-only",
    "probe": "-v",
    "complex": "-o= -c= --option= --config-file=",
    "read": "-t= --target-release= -y -q",
    "subs": {
        **_subs(
            (
                "update install upgrade dist-upgrade full-upgrade source download build-dep "
                "build-deps changelog reinstall satisfy "
                "makecache localinstall groupinstall distro-sync system-upgrade check-update "
                "repoquery  ",
                _FETCH,
            ),
            ("remove purge autoremove autopurge erase", _REMOVE),
            ("clean autoclean mark hold unhold config-manager", _CHANGE),
            (
                "list show search policy depends rdepends showpkg stats madison pkgnames dumpavail "
                "unmet showsrc help info "
                "version moo",
                {**_TELL, "complex": "-o= -c= --option= --config-file="},
            ),
        ),
        "edit-sources": {"category": "complex", "why": "starts an editor"},
    },
}
_REMOTE_APT: Row = {
    **_APT,
    "subs": {**_APT["subs"], **_subs(("list show search info repolist history provides", _FETCH))},
}

ROWS: dict[str, Row] = {
    "npm pnpm": _NPM,
    "yarn": _YARN,
    "bun": {**_YARN, "bare": "read-only", "complex": "-e= -p= --eval="},
    "npx bunx pnpx pipx uvx": {
        **_FETCH,
        "why": "fetches a package and runs it",
        "bare": "read-only",
        "judge": "fetch_and_run",
    },
    "pip pip2 pip3": _PIP,
    "uv": {
        "judge": "subs",
        "default": "unknown",
        "bare": "read-only",
        "probe": "-V version help",
        "subs": {
            **_subs(
                ("sync add lock tree publish python tool  export", _FETCH),
                ("remove", _REMOVE),
                ("run build", {**_FETCH, "judge": "fetch_and_run"}),
                ("init venv", _CHANGE),
                ("help", _TELL),
                ("version", {**_TELL, "most": 0, "extra": "network", "network": "--bump="}),
            ),
            "pip": _FETCH,
            "pip list": _TELL,
            "pip show": _TELL,
            "pip freeze": _TELL,
            "pip check": _TELL,
            "pip tree": _TELL,
            "pip uninstall": _REMOVE,
            "python list": _FETCH,
            "python find": _TELL,
            "python dir": _TELL,
            "tool list": _TELL,
            "tool uninstall": _REMOVE,
            "python uninstall": _REMOVE,
            "cache": _CHANGE,
            "cache dir": _TELL,
            "cache clean": _REMOVE,
            "cache prune": _REMOVE,
        },
    },
    "poetry pdm pipenv hatch rye conda mamba micromamba": {
        "judge": "subs",
        "default": "unknown",
        "bare": "read-only",
        "probe": "-V",
        "subs": {
            **_subs(
                ("install add update lock publish sync create search self upgrade", _FETCH),
                ("remove uninstall", _REMOVE),
                ("list show info help", {**_TELL, "network": "-l --latest -o --outdated -a --all"}),
                ("run shell build test graph", _RUN),
                ("init new config version clean", _CHANGE),
            ),
            "env": _CHANGE,
            "env list": _TELL,
            "env remove": _REMOVE,
        },
    },
    "bundle bundler": {
        "judge": "subs",
        "category": "unknown",
        "default": "unknown",
        "bare": "network",
        "probe": "-v",
        "subs": {
            **_subs(
                ("install update add outdated lock cache package fund audit", _FETCH),
                ("remove clean", _REMOVE),
                ("init config", _CHANGE),
            ),
        },
    },
    "gem composer": {
        "judge": "subs",
        "default": "unknown",
        "bare": "network",
        "probe": "-v",
        "subs": {
            **_subs(
                (
                    "install update push add require fetch outdated search create-project self-update fund audit lock",
                    _FETCH,
                ),
                ("uninstall remove cleanup clean", _REMOVE),
                ("show licenses", _RUN),
                ("list info env which environment contents help", {**_TELL, "network": "-r --remote -b --both"}),
                ("exec run run-script test", _RUN),
                ("init build config dump-autoload", _CHANGE),
            )
        },
    },
    "cabal stack sdk asdf mise volta nvm corepack choco winget scoop": {
        "judge": "subs",
        "default": "network",
        "bare": "network",
        "why": "fetches packages",
        "subs": _subs(("uninstall remove delete purge", _REMOVE), ("current which", _TELL)),
    },
    "cpan cpanm luarocks opam nix nix-env nix-shell nix-build guix pyenv rbenv "
    "pkg flatpak snap port emerge zypper pacman yay paru apk mas krew": {
        "judge": "subs",
        "default": "network",
        "bare": "network",
        "why": "fetches packages",
        "subs": {
            **_subs(("uninstall remove del delete purge autoremove rm -R -Rs -Rns -Rsc gc", _REMOVE)),
            **_subs(("list versions which current  root --list --installed", _TELL)),
        },
    },
    "brew": {
        "judge": "subs",
        "default": "unknown",
        "bare": "read-only",
        "probe": "-v",
        "subs": {
            **_subs(
                (
                    "install upgrade update reinstall tap search info home fetch bundle outdated doctor "
                    "audit create cask desc deps uses",
                    _FETCH,
                ),
                ("uninstall remove rm cleanup untap autoremove", _REMOVE),
                ("list ls leaves config help commands --prefix --cellar --cache --repository", _TELL),
                ("link unlink pin unpin services", _CHANGE),
                ("edit sh", {"category": "complex"}),
            )
        },
    },
    "apt apt-get apt-cache aptitude": _APT,
    "dnf yum microdnf": _REMOTE_APT,
    "apt-key add-apt-repository apt-mark apt-file do-release-upgrade": _FETCH,
    "dpkg rpm": {"judge": "dpkg", "category": "mutating", "why": "installs packages"},
    "dpkg-query": _TELL,
}
