"""Compilers, interpreters, build tools, linters."""

from __future__ import annotations

from typing import Any

_GO_FETCHES = "may fetch modules, or the version of go that the module asks for"
_RUNS = "runs the project's own code"
_FORMATS: dict[str, Any] = {"category": "mutating", "why": "rewrites sources", "operands": "write"}

ROWS: dict[str, dict[str, Any]] = {
    "gcc cc g++ c++ clang clang++ tcc gfortran": {
        "category": "mutating",
        "why": "compiles",
        "probe": "-v -dumpversion -dumpmachine",
        "complex": "-wrapper= -B= -specs= -plugin= @",
        "judge": "compiler",
        "style": "single",
        "mutating": "-o=>",
    },
    "ld as gold lld ld.lld": {
        "category": "mutating",
        "why": "links",
        "complex": "-plugin= --plugin= -T=",
        "style": "single",
        "judge": "compiler",
        "mutating": "-o=>",
    },
    "strip objcopy": {"category": "mutating", "why": "rewrites an object file", "operands": "write"},
    "rustc swiftc ghc ocamlfind ocamlc nasm yasm nvcc dmd zig": {
        "category": "unknown",
        "why": "compiles and may run plugins",
        "probe": "-V -vV version",
    },
    "javac": {
        "category": "mutating",
        "why": "compiles",
        "judge": "compiler",
        "style": "single",
        "probe": "-version",
        "unknown": "-processor= -processorpath= --processor-path= -J",
    },
    "java kotlin scala groovy dotnet mono erl elixir iex mix jshell": {
        "category": "unknown",
        "why": "runs a program",
        "probe": "-version -v --info",
    },
    "jar": {"category": "mutating", "why": "writes an archive"},
    "python python2 python3 pypy pypy3": {
        "judge": "interpreter",
        "category": "unknown",
        "why": "runs a script",
        "probe": "-V -VV -h",
        "complex": "-c= -i",
        "read": "-m= -W= -X= -Q=",
    },
    "node nodejs deno  ts-node tsx": {
        "judge": "interpreter",
        "category": "unknown",
        "why": "runs a script",
        "probe": "-v -h",
        "complex": "-e= -p= --eval= --print= -i --interactive -r= --require= --import= --loader= "
        "--experimental-loader= -pe=",
        "read": "--inspect --env-file= --max-old-space-size=",
    },
    "perl": {
        "judge": "interpreter",
        "category": "unknown",
        "why": "runs a script",
        "probe": "-v -V -h",
        "complex": "-e= -E= -n -d",
        "read": "-I= -M= -m= -F= -C -w -l -a",
        "mutating": "-i",
    },
    "ruby irb": {
        "judge": "interpreter",
        "category": "unknown",
        "why": "runs a script",
        "probe": "-v -h",
        "complex": "-e= -n",
        "read": "-I= -r= -C= -F= -E= -W -w -l",
        "mutating": "-i",
    },
    "php": {
        "judge": "interpreter",
        "category": "unknown",
        "why": "runs a script",
        "probe": "-v -i -m -h",
        "complex": "-r= -R= -B= -E= -a",
        "network": "-S=",
        "read": "-d= -c= -t= -z= -f= -F=",
    },
    "lua luajit tclsh wish R_ Rscript julia osascript guile racket sbcl clisp jjs gjs "
    "swipl gst octave maxima  "
    "gnuplot m4 jython pwsh powershell  crystal nim raku": {
        "judge": "interpreter",
        "category": "unknown",
        "why": "runs a script",
        "probe": "-v -V -h",
        "complex": "-e= -E= -c= -i -l= -p=",
    },
    "R": {"category": "complex", "why": "an interpreter", "judge": "interpreter"},
    "bc dc": {"category": "read-only", "why": "computes", "judge": "calculator"},
    "make gmake bmake": {"category": "unknown", "why": _RUNS, "judge": "make"},
    "cmake ninja meson scons bazel buck tup just task rake gradle gradlew mvn mvnw ant "
    "sbt lein tox nox invoke "
    "pytest py.test unittest nose2 jest vitest mocha ava karma cypress playwright "
    "phpunit rspec cucumber behave ctest "
    "turbo nx lerna gulp grunt webpack vite rollup esbuild parcel tsc babel next nuxt ng "
    "vue-cli-service astro svelte-kit gatsby "
    "eslint stylelint tslint mypy pyright pylint flake8 pycodestyle pydocstyle bandit "
    "pre-commit golangci-lint clang-tidy rubocop "
    "phpstan psalm phpcs sphinx-build mkdocs jekyll hugo coverage django-admin flask "
    "uvicorn gunicorn celery alembic autoconf automake "
    "autoreconf aclocal libtoolize jupyter nodemon forever pm2 foreman honcho act "
    "storybook react-scripts scrapy "
    "locust dvc snakemake nextflow dbt airflow sam serverless cdk latexmk pdflatex "
    "xelatex lualatex latex tex ghostscript gs convert "
    "magick mogrify ffmpeg sox gimp inkscape blender libreoffice soffice": {
        "category": "unknown",
        "why": _RUNS,
        "probe": "-V version",
    },
    "black isort autopep8 yapf gofmt goimports rustfmt clang-format prettier shfmt "
    "dprint biome stylua terraform-fmt autoflake "
    "pyupgrade ormolu": {**_FORMATS, "probe": "-V version"},
    "ruff": {
        "judge": "subs",
        "category": "mutating",
        "default": "unknown",
        "probe": "-V",
        "subs": {
            "format": _FORMATS,
            "check": {"category": "mutating", "why": "writes its cache"},
            "version": {"why": "tells"},
            "rule": {"why": "tells"},
            "clean": {"category": "mutating", "why": "clears its cache"},
        },
    },
    "cargo": {
        "judge": "subs",
        "default": "unknown",
        "why": _RUNS,
        "probe": "-V version",
        "unknown": "--config= -Z=",
        "read": "--manifest-path= --color= -C= --target-dir= -p= --package= --features= -j=",
        "subs": {
            **{
                name: {"category": "unknown", "why": _RUNS}
                for name in [
                    "build",
                    "b",
                    "test",
                    "t",
                    "run",
                    "r",
                    "bench",
                    "check",
                    "c",
                    "clippy",
                    "doc",
                    "fix",
                    "rustc",
                    "nextest",
                ]
            },
            **{
                name: {"category": "network", "why": "fetches"}
                for name in [
                    "install",
                    "add",
                    "fetch",
                    "update",
                    "search",
                    "publish",
                    "login",
                    "owner",
                    "yank",
                    "vendor",
                    "generate-lockfile",
                    "tree",
                    "audit",
                    "outdated",
                    "upgrade",
                ]
            },
            **{name: {"why": "tells"} for name in ["version", "help", "locate-project"]},
            **{
                name: {"category": "mutating", "why": "changes the project"}
                for name in ["new", "init", "fmt", "remove", "uninstall", "package"]
            },
            "metadata": {"category": "network", "why": "fetches what the lock file names"},
            "clean": {"category": "destructive", "why": "deletes what was built", "lost": "what was built"},
        },
    },
    "rustup": {
        "category": "network",
        "why": "fetches toolchains",
        "judge": "subs",
        "default": "network",
        "subs": {
            "which": {"why": "tells"},
            "doc": {"category": "complex"},
            "run": {"category": "unknown"},
        },
    },
    "go": {
        "judge": "subs",
        "default": "unknown",
        "style": "single",
        "unknown": "-toolexec= -exec= -C=",
        "subs": {
            **{
                name: {"category": "unknown", "why": _RUNS}
                for name in ["build", "run", "test", "generate", "vet", "tool", "fix", "bug"]
            },
            **{
                name: {"category": "network", "why": "fetches"}
                for name in (
                    "get",
                    "install",
                    "mod download",
                    "mod tidy",
                    "mod vendor",
                    "mod why",
                    "mod graph",
                    "mod verify",
                    "work sync",
                )
            },
            # whatever is asked of it in a module: it may fetch what that needs, and the version of itself that it names
            **{name: {"category": "network", "why": _GO_FETCHES} for name in ("list", "env", "version", "doc")},
            "help": {"why": "tells"},
            "fmt": _FORMATS,
            "mod init": {"category": "mutating", "why": "makes a module"},
            "mod edit": {"category": "mutating"},
            "mod": {"category": "unknown"},
            "clean": {"category": "destructive", "lost": "what was built", "why": "deletes"},
        },
    },
}
