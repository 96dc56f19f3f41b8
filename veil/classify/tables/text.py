"""Tools that read text and print it, and those among them that can do more."""

from __future__ import annotations

from typing import Any

ROWS: dict[str, dict[str, Any]] = {
    "grep egrep fgrep zgrep zegrep zfgrep bzgrep xzgrep cut paste tr "
    "fold fmt pr expand unexpand column colrm comm "
    "join od hexdump hd jq look tsort numfmt zcat bzcat xzcat gzcat lzcat "
    "zstdcat readelf addr2line c++filt strings tokei cmark pdfinfo toilet figlet": {"why": "reads"},
    "pcregrep pcre2grep": {"category": "complex", "why": "a pattern can run a program"},
    "cloc": {
        "why": "counts",
        "only": True,
        "read": "--by-file --json --csv --xml --yaml --md --quiet --progress-rate= --exclude-dir= --include-lang= "
        "--exclude-lang= --exclude-ext= --include-ext= --hide-rate --by-percent= --sum-one --skip-uniqueness",
    },
    "scc": {"why": "counts", "mutating": "-o=> --output=> --format-multi="},
    "msgcat": {"why": "reads", "mutating": "-o=> --output-file=>"},
    "html2text": {"category": "unknown", "why": "reads pages, which may be on a server, and may write"},
    "wdiff": {"why": "compares", "complex": "-a --auto-pager -d --diff-input"},
    "cowsay cowthink": {"why": "prints", "complex": "-f="},
    "nm size": {"why": "reads", "complex": "--plugin=", "listed": True},
    "sort": {
        "why": "orders lines",
        "mutating": "-o=> --output=>",
        "complex": "--compress-program=",
        "read": "-k= -t= -S= -T= --key= --field-separator= --buffer-size= --temporary-directory= "
        "--files0-from= "
        "--parallel= --batch-size= --sort= --random-source=",
    },
    "uniq": {
        "why": "merges lines",
        "most": 1,
        "extra": "mutating",
        "operands": "write",
        "skip": 1,
        "read": "-f= -s= -w= --skip-fields= --skip-chars= --check-chars= --group= --all-repeated=",
    },
    "shuf": {
        "why": "shuffles lines",
        "mutating": "-o=> --output=>",
        "read": "-i= -n= --input-range= --head-count= --random-source=",
    },
    "xxd": {
        "why": "shows bytes",
        "most": 1,
        "extra": "mutating",
        "operands": "write",
        "skip": 1,
        "read": "-c= -g= -l= -s= -o= -n= -cols= -len= -seek=",
    },
    "sed gsed": {
        "judge": "sed",
        "why": "edits a stream",
        "complex": "-f= --file=",
        "mutating": "-i --in-place",
        "read": "-e= --expression= -l= --line-length= -E -r -n -s -u -z --debug --posix --sandbox "
        "--null-data --quiet --silent "
        "--regexp-extended --separate --unbuffered --follow-symlinks -b --binary --help "
        "--version",
    },
    "awk gawk mawk nawk original-awk": {
        "judge": "awk",
        "why": "reads",
        "complex": "-f= --file= -E= --exec= -l= --load= -i= --include= -D --debug -W=",
        "mutating": "-o --pretty-print -d --dump-variables -p --profile",
        "read": "-F= -v= --field-separator= --assign= -e= --source=",
    },
    "rg ripgrep": {
        "why": "searches",
        "complex": "--pre= --hostname-bin=",
        "read": "-e= -f= -g= -t= -T= -A= -B= -C= -m= -M= -j= -r= -d= -E= --regexp= --file= --glob= "
        "--iglob= --type= --type-not= "
        "--type-add= --type-clear= --after-context= --before-context= --context= "
        "--max-count= --max-columns= --threads= --replace= --max-depth= "
        "--encoding= --color= --colors= --sort= --sortr= --pre-glob= --engine= "
        "--ignore-file= --max-filesize= "
        "--context-separator= --path-separator= --field-match-separator= --dfa-size-limit= "
        "--regex-size-limit=",
    },
    "ag": {
        "why": "searches",
        "complex": "--pager=",
        "read": "-A= -B= -C= -G= -m= --ignore= --ignore-dir= --depth= --path-to-ignore=",
    },
    "ack ack-grep": {
        "why": "searches",
        "complex": "--pager= --ackrc= --output=",
        "read": "-A= -B= -C= -m= --type= --ignore-dir= -g=",
    },
    "bat batcat": {
        "why": "shows",
        "complex": "--pager= --paging= --lessopen",
        "mutating": "--generate-config-file",
        "read": "-l= -H= -r= -m= --language= --line-range= --style= --theme= --color= "
        "--highlight-line= --wrap= --tabs= --terminal-width= --map-syntax=",
        "judge": "subs",
        "subs": {"cache": {"category": "mutating", "why": "rebuilds its cache"}},
        "default": "read-only",
    },
    "less zless more zmore most pg": {
        "category": "complex",
        "why": "a pager: its keys, and what LESSOPEN names, run programs",
        "mutating": "-o=> -O=> --log-file=> --LOG-FILE=>",
        "complex": "-k= --lesskey-file= --lesskey-src= --lesskey-content= -t= --tag= -T= --tag-file=",
        "judge": "pager",
        "read": "-b= -h= -j= -p= -P= -x= -y= -z= -D= --pattern= --prompt= --shift= --tabs=",
    },
    "info": {"category": "complex", "why": "its keys run programs"},
    "tldr": {"category": "network", "why": "fetches pages"},
    "apropos whatis": {"why": "looks up manuals", "complex": "-C= --config-file=", "read": "-s= -m= -M= -L="},
    "man": {
        "category": "complex",
        "why": "starts a pager, whose keys run programs",
        "judge": "manual",
        "complex": "-P= --pager= -H --html -C= --config-file= -p= --preprocessor= --gxditview -X -T -t "
        "--troff "
        "--where-cat --restore=",
        "mutating": "-u --update --no-update",
        "read": "-s= -S= -M= -k -f -w -W --where --path --location --apropos --whatis -e= -L= -m= -l -a",
    },
    "yq": {
        "why": "reads",
        "mutating": "-i --inplace --in-place -s= --split-exp=",
        "complex": "--from-file= --security-enable-system-operator",
        "read": "-p= -o= -I= --input-format= --output-format= --indent= --arg= --argjson=",
    },
    "xmllint": {
        "why": "reads",
        "mutating": "--output=> -o=> ",
        "complex": "--shell --catalogs",
        "read": "--xpath= --encode= --pattern= --path= --maxmem=",
        "network": "--load-trace",
        "address": "network",
        "unknown": "--schema= --dtdvalid= --relaxng= --noent --valid --postvalid --xinclude --loaddtd",
    },
    "xsltproc": {"category": "unknown", "why": "runs a stylesheet, which may write files"},
    "iconv": {"why": "converts", "mutating": "-o=> --output=>", "read": "-f= -t= --from-code= --to-code="},
    "recode dos2unix unix2dos": {"category": "mutating", "why": "converts files in place", "operands": "write"},
    "pandoc": {"category": "unknown", "why": "converts; filters and options run programs"},
    "objdump": {"why": "reads", "read": "-b= -m= -j= -M= --section= --start-address= --stop-address= --disassemble="},
    "ldd": {"category": "unknown", "why": "may run the program that it is asked about"},
    "shellcheck": {
        "why": "reads",
        "read": "-e= -i= -f= -s= -S= -o= -P= --exclude= --include= --format= --shell= --severity=",
    },
    "hadolint yamllint codespell": {
        "why": "reads",
        "mutating": "-w --write-changes -i= --interactive=",
        "read": "-c= -d= -f= --config=",
    },
    "markdownlint vale": {"category": "unknown", "why": "its configuration may be code", "mutating": "--fix -o=>"},
    "msgfmt msgmerge xgettext": {"category": "mutating", "why": "writes catalogs"},
    "pdftotext": {"category": "mutating", "why": "writes a text file"},
    "fzf": {"category": "complex", "why": "runs commands that are bound to keys or given as preview"},
    "tput clear": {"why": "speaks to the terminal", "complex": "-S"},
    "reset": {"category": "complex", "why": "runs what the terminal's description names"},
    "ctags etags cscope gtags": {"category": "mutating", "why": "writes an index", "complex": "--options="},
    "diffstat lsdiff filterdiff grepdiff interdiff": {
        "why": "reads",
        "mutating": "-o=> --in-place",
        "read": "-p= -w=",
    },
    "delta": {"category": "complex", "why": "runs a pager that is set elsewhere"},
    "printf": {"judge": "printf", "why": "prints"},
    "vim vi nvim nano pico emacs emacsclient ed ex view rvim gvim code subl kak helix hx "
    "micro joe mcedit gedit kate "
    "red sam zed": {"category": "complex", "why": "an editor: what it does comes from keys or scripts"},
}
