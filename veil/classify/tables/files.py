"""Files, folders and what is said about them."""

from __future__ import annotations

from typing import Any

ROWS: dict[str, dict[str, Any]] = {
    # no option and no operand of these writes, runs or connects
    "ls dir vdir cat head tail wc nl tac rev stat du df cksum md5sum md5 sha1sum "
    "sha224sum sha256sum sha384sum sha512sum "
    "shasum b2sum sum cmp basename dirname realpath readlink pwd pathchk mountpoint "
    "namei exa eza lsd": {"why": "reads"},
    "test [": {"why": "tests", "judge": "test"},
    "true false : sleep seq echo expr factor yes printenv whoami id groups users logname "
    "tty nproc arch uname uptime "
    "w": {"why": "tells"},
    "who last": {"why": "tells", "network": "--lookup -d --dns"},
    "finger": {"category": "network", "why": "asks the machine that stands behind the @"},
    "lastlog": {"why": "tells", "mutating": "-C --clear -S --set"},
    "cd pushd popd dirs": {"why": "changes the shell's own folder", "reversible": True},
    "tree": {"why": "lists", "mutating": "-o=> -R", "read": "-L= -P= -I= -H= -T= --filelimit= --charset= --sort="},
    "file": {
        "why": "tells file types",
        "mutating": "-C --compile",
        "complex": "-z -Z --uncompress --uncompress-noreport",
        "read": "-m= --magic-file= -f= --files-from= -F= -e= -P=",
    },
    "diff colordiff": {"why": "compares"},
    "diff3": {"why": "compares", "complex": "--diff-program="},
    "sdiff": {"why": "compares", "mutating": "-o=> --output=>", "complex": "--diff-program="},
    "vimdiff meld kdiff3 opendiff": {"why": "an editor", "category": "complex"},
    "mkdir": {
        "category": "mutating",
        "why": "makes folders",
        "read": "-m= --mode=",
        "operands": "create",
        "reversible": True,
    },
    "rmdir": {"category": "mutating", "why": "removes empty folders", "operands": "delete", "reversible": True},
    "touch": {
        "category": "mutating",
        "why": "makes files or changes their times",
        "operands": "write",
        "read": "-d= -r= -t= --date= --reference= --time=",
        "reversible": True,
    },
    "mkfifo mknod": {"category": "mutating", "why": "makes a special file", "read": "-m= --mode=", "reversible": True},
    "mktemp": {
        "category": "mutating",
        "why": "makes a temporary file",
        "read": "-p= --suffix= --tmpdir=",
        "reversible": True,
    },
    "cp": {"judge": "copies", "category": "mutating", "why": "copies", "read": "-S= --suffix= -t= --target-directory="},
    "mv": {"judge": "copies", "category": "mutating", "why": "moves", "read": "-S= --suffix= -t= --target-directory="},
    "install": {
        "judge": "copies",
        "category": "mutating",
        "why": "copies",
        "read": "-S= --suffix= -t= --target-directory= -m= --mode= -o= --owner= -g= --group=",
        "complex": "--strip-program=",
    },
    "ln link": {"category": "mutating", "why": "makes a link", "operands": "create", "last": True, "read": "-S= -t="},
    "rm": {"category": "destructive", "why": "deletes", "operands": "delete", "judge": "deletes"},
    "unlink": {"category": "destructive", "why": "deletes", "operands": "delete", "judge": "deletes"},
    "shred srm wipe": {
        "category": "destructive",
        "why": "overwrites and deletes",
        "operands": "delete",
        "judge": "deletes",
        "read": "-n= -s= --iterations= --size= --random-source=",
    },
    "trash trash-put gio": {"category": "mutating", "why": "moves to the trash", "operands": "delete"},
    "trash-empty": {"category": "destructive", "why": "empties the trash", "lost": "what is in the trash"},
    "truncate fallocate": {
        "category": "mutating",
        "why": "changes a file's size",
        "operands": "write",
        "judge": "targets",
        "read": "-s= --size= -r= --reference= -l= -o= -n=",
    },
    "chmod": {
        "judge": "modes",
        "category": "mutating",
        "why": "changes modes",
        "operands": "mode",
        "skip": 1,
        "read": "--reference=",
    },
    "chown chgrp": {
        "judge": "modes",
        "category": "mutating",
        "why": "changes owners",
        "operands": "mode",
        "skip": 1,
        "read": "--reference= --from=",
    },
    "chattr chflags": {"category": "mutating", "why": "changes attributes", "operands": "mode", "skip": 1},
    "setfacl setfattr xattr": {"category": "mutating", "why": "changes attributes"},
    "lsattr getfacl getfattr": {"why": "reads attributes"},
    "tee": {"category": "mutating", "why": "writes its input to files", "operands": "write", "judge": "targets"},
    "sponge": {"category": "mutating", "why": "writes its input to a file", "operands": "write", "judge": "targets"},
    "dd": {"category": "mutating", "why": "copies blocks", "judge": "blocks"},
    "split csplit": {"category": "mutating", "why": "writes pieces of a file", "complex": "--filter="},
    "patch": {
        "category": "mutating",
        "why": "changes files",
        "complex": "-e --ed",
        "read": "-p= -d= -i= -o=> -r= -B= -z=",
    },
    "rename prename": {"category": "mutating", "why": "renames", "complex": "-e= -E="},
    "sync": {"why": "flushes"},
    "basenc base64 base32": {"why": "encodes", "mutating": "-o=> --output=>", "read": "-w= --wrap= -i= --input="},
    "find": {"judge": "find", "why": "lists files"},
    "locate mlocate plocate": {"why": "looks up"},
    "updatedb": {"category": "mutating", "why": "writes the file index"},
    "fd fdfind": {
        "why": "lists files",
        "complex": "-x= -X= --exec= --exec-batch=",
        "read": "-e= -t= -d= -E= -c= -S= -o= -j= -C= --extension= --type= --max-depth= --exclude= "
        "--color= --size= "
        "--owner= --threads= --base-directory= --search-path= --max-results= "
        "--changed-within= --changed-before=",
    },
    "xdg-open open": {"category": "complex", "why": "starts whatever program is set for the file"},
    "rclone": {
        "category": "network",
        "why": "copies to and from servers",
        "judge": "subs",
        "subs": {
            "delete": {"category": "destructive", "why": "deletes on a server"},
            "purge": {"category": "destructive"},
            "deletefile": {"category": "destructive"},
            "sync": {"category": "destructive", "why": "deletes what the source lacks"},
            "move": {"category": "destructive", "why": "deletes the source"},
        },
        "default": "network",
    },
    "rsync": {
        "judge": "rsync",
        "category": "mutating",
        "why": "copies",
        "complex": "-e= --rsh= --rsync-path= --config= --daemon --server",
        "destructive": "--delete --del --delete-before --delete-during --delete-delay --delete-after "
        "--delete-excluded "
        "--delete-missing-args --remove-source-files --remove-sent-files",
        "mutating": "--log-file=> --write-batch=> --only-write-batch=>",
        "read": "-f= -B= -T= --exclude= --include= --exclude-from= --include-from= --filter= "
        "--files-from= --chmod= "
        "--bwlimit= --timeout= --port= --out-format= --compare-dest= --link-dest= "
        "--backup-dir= --suffix= --max-size= "
        "--min-size= --info= --debug= --partial-dir= --temp-dir= --block-size= "
        "--compress-level= --password-file= -n "
        "--dry-run --list-only ",
        "lost": "files that the source does not have, or the source files",
    },
}
