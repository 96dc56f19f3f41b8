"""Archives and compression."""

from __future__ import annotations

from typing import Any

_COMPRESS: dict[str, Any] = {
    "judge": "compress",
    "category": "mutating",
    "why": "replaces files by their (un)compressed form",
    "operands": "write",
    "read": "-S= --suffix= -b= -T= --threads= -l --list -t --test -c --stdout --to-stdout -k",
}

ROWS: dict[str, dict[str, Any]] = {
    "tar gtar bsdtar": {"judge": "tar", "category": "mutating", "why": "writes"},
    "gzip gunzip bzip2 bunzip2 xz unxz lzma unlzma zstd unzstd lz4 unlz4 pigz pbzip2 "
    "compress uncompress brotli": _COMPRESS,
    "zip": {
        "category": "mutating",
        "why": "writes an archive",
        "destructive": "-m --move -d --delete",
        "lost": "files or entries",
        "complex": "-T -TT= --test --unzip-command=",
        "read": "-x= -i= -n= -b= -P= -t= -tt= -s=",
        "operands": "write",
    },
    "unzip": {
        "judge": "unzip",
        "category": "mutating",
        "why": "extracts files",
        "read": "-d= -x= -P= -l -v -t -p -Z -c -z",
    },
    "zipinfo zipgrep": {"why": "reads"},
    "7z 7za 7zr p7zip": {
        "judge": "subs",
        "category": "mutating",
        "default": "mutating",
        "subs": {
            "l": {"why": "lists"},
            "t": {"why": "tests"},
            "i": {"why": "tells"},
            "h": {"why": "sums", "mutating": ""},
            "d": {"category": "destructive", "why": "deletes entries", "lost": "entries of the archive"},
            "a": {"category": "mutating", "why": "adds", "destructive": "-sdel", "style": "single"},
            "x": {"category": "mutating", "why": "extracts"},
            "e": {"category": "mutating", "why": "extracts"},
        },
    },
    "unrar rar": {
        "judge": "subs",
        "category": "mutating",
        "default": "mutating",
        "subs": {"l": {"why": "lists"}, "t": {"why": "tests"}, "v": {"why": "lists"}, "d": {"category": "destructive"}},
    },
    "ar ranlib": {"judge": "ar", "category": "mutating", "why": "writes an archive"},
    "cpio pax": {
        "judge": "cpio",
        "category": "mutating",
        "why": "reads or writes an archive",
        "complex": "--rsh-command=",
    },
    "unsquashfs mksquashfs genisoimage mkisofs xorriso": {
        "category": "mutating",
        "why": "writes an image or its files",
    },
}
