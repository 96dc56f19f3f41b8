"""The small program that encloses one command in namespaces of its own. Run for ``namespaces``; nothing imports it.

Its compiled code and its orders come through a descriptor, so that nothing is searched for or compiled at every run,
and it uses only what is built into the interpreter: importing ``os`` and ``ctypes`` takes longer than all that it does.

Three processes: the *outer* one, which was started, makes the namespaces and ends as the command ended; the *first* one
of the new pid namespace, which stays until nobody else is in there; and the command. On the status descriptor they
write lines of JSON: ``child-pid`` at the beginning; ``broken`` with a text, or ``errno`` with the ``program``, when the
command has not taken over (texts in hexadecimal).
"""

# over 300 lines because: it is one program that can import nothing else of veil

from __future__ import annotations

import _ctypes
import _signal  # type: ignore[import-not-found]
import posix
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    #: What ``namespaces`` sends: see ``OwnNamespaces.confine``.
    Orders = dict[str, Any]

CLONE_NEWNS, CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC = 0x00020000, 0x02000000, 0x04000000, 0x08000000
CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = 0x10000000, 0x20000000, 0x40000000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REC, MS_PRIVATE = 1, 2, 4, 8, 16384, 1 << 18
ATTR_RDONLY, ATTR_NOSUID, ATTR_NODEV, ATTR_NOEXEC = 1, 2, 4, 8
#: The same numbers on every architecture. Linux 5.2, 5.2, 5.6 and 5.12.
OPEN_TREE, MOVE_MOUNT, OPENAT2, MOUNT_SETATTR = 428, 429, 437, 442
AT_FDCWD, AT_EMPTY_PATH, AT_RECURSIVE, OPEN_TREE_CLONE, MOVE_MOUNT_BY_FDS = -100, 0x1000, 0x8000, 1, 0x44
PR_SET_PDEATHSIG, PR_SET_SECCOMP, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS, PR_CAP_AMBIENT = 1, 22, 24, 38, 47
SIGINT, SIGHUP, SIGQUIT, SIGKILL, SIGPIPE, SIGTERM, SIGXFSZ = 2, 1, 3, 9, 13, 15, 25
ENOENT, EACCES, ENOTDIR = 2, 13, 20
RLIMIT_CORE = 4
DEVICES = (b"null", b"zero", b"full", b"random", b"urandom", b"tty")
LINKS = ((b"/proc/self/fd", b"fd"), (b"fd/0", b"stdin"), (b"fd/1", b"stdout"), (b"fd/2", b"stderr"))


class Long(_ctypes._SimpleCData):  # type: ignore[type-arg]
    _type_ = "l"


class Short(_ctypes._SimpleCData):  # type: ignore[type-arg]
    _type_ = "H"


class Bytes(_ctypes._SimpleCData):  # type: ignore[type-arg]
    _type_ = "z"


class Program(_ctypes.Structure):
    """``struct sock_fprog``."""

    _fields_ = (("length", Short), ("code", Bytes))


class Function(_ctypes.CFuncPtr):
    _flags_ = _ctypes.FUNCFLAG_CDECL | _ctypes.FUNCFLAG_USE_ERRNO
    _restype_ = Long


LIBRARY = _ctypes.dlopen(None, 2)  # type: ignore[arg-type]
FUNCTIONS: dict[str, Function] = {}


def call(name: str, *arguments: object, about: object = None) -> int:
    """A function of the C library; numbers go as ``long``, bytes as they are. Raises ``OSError``."""
    function = FUNCTIONS.get(name)
    if function is None:
        function = FUNCTIONS[name] = Function(_ctypes.dlsym(LIBRARY, name))
    result: int = function(*(Long(one) if isinstance(one, int) else one for one in arguments))
    if result < 0:
        number = _ctypes.get_errno()
        shown = about or name
        raise OSError(number, f"{shown}: {posix.strerror(number)}")
    return result


def word(number: int, size: int = 8) -> bytes:
    return number.to_bytes(size, sys.byteorder)


# -- mounts


def at(path: bytes) -> int:
    """A handle on what stands at a path that has no link in it, now as little as when it was looked at."""
    resolve_no_symlinks = 4
    how = word(posix.O_PATH | posix.O_CLOEXEC) + word(0) + word(resolve_no_symlinks)
    return call("syscall", OPENAT2, AT_FDCWD, path, how, len(how), about=f"open {path!r}")


def copied(path: bytes) -> int:
    """A tree that shows what stands at a path, with all that is mounted below it, attached nowhere yet."""
    handle = at(path)
    flags = OPEN_TREE_CLONE | AT_RECURSIVE | AT_EMPTY_PATH | posix.O_CLOEXEC
    tree = call("syscall", OPEN_TREE, handle, b"", flags, about=f"open_tree {path!r}")
    posix.close(handle)
    return tree


def attributes(tree: int, wanted: int) -> None:
    """Set these of a tree and of all that is mounted in it."""
    data = word(wanted) + word(0) * 3
    call("syscall", MOUNT_SETATTR, tree, b"", AT_EMPTY_PATH | AT_RECURSIVE, data, len(data), about="mount_setattr")


def shut(path: bytes) -> None:
    """Make one mount read-only, and nothing that is mounted in it."""
    data = word(ATTR_RDONLY) + word(0) * 3
    call("syscall", MOUNT_SETATTR, AT_FDCWD, path, 0, data, len(data), about=f"mount_setattr {path!r}")


def attach(tree: int, path: bytes) -> None:
    handle = at(path)
    call("syscall", MOVE_MOUNT, tree, b"", handle, b"", MOVE_MOUNT_BY_FDS, about=f"move_mount {path!r}")
    posix.close(handle)
    posix.close(tree)


def tmpfs(path: bytes, options: bytes, flags: int = 0) -> None:
    handle = at(path)
    place = b"/proc/self/fd/%d" % handle
    call("mount", b"tmpfs", place, b"tmpfs", MS_NOSUID | MS_NODEV | flags, options, about=f"tmpfs on {path!r}")
    posix.close(handle)


def there(path: bytes) -> bool:
    try:
        posix.lstat(path)
    except OSError as error:
        if error.errno in (ENOENT, ENOTDIR):
            return False
        raise
    return True


def stand(path: bytes, folder: bool) -> None:
    """Make a place to mount on where a fresh mount hides the one that was there."""
    if there(path):
        return
    parent = path.rpartition(b"/")[0]
    if parent:
        stand(parent, True)
    if folder:
        posix.mkdir(path, 0o755)
    else:
        posix.close(posix.open(path, posix.O_CREAT | posix.O_EXCL | posix.O_WRONLY | posix.O_CLOEXEC, 0o600))


def is_folder(tree: int) -> bool:
    return (posix.fstat(tree).st_mode & 0o170000) == 0o040000


def devices(trees: list[tuple[bytes, int]]) -> None:
    tmpfs(b"/dev", b"mode=0755,size=64k")
    for name, tree in trees:
        stand(b"/dev/" + name, False)
        attach(tree, b"/dev/" + name)
    for target, name in (*LINKS, (b"pts/ptmx", b"ptmx")):
        posix.symlink(target, b"/dev/" + name)
    for name in (b"pts", b"shm"):
        posix.mkdir(b"/dev/" + name, 0o755)
    tmpfs(b"/dev/shm", b"mode=1777", MS_NOEXEC)
    options = b"newinstance,ptmxmode=0666,mode=620"
    call("mount", b"devpts", b"/dev/pts", b"devpts", MS_NOSUID | MS_NOEXEC, options, about="devpts")
    shut(b"/dev")


def arrange(orders: Orders) -> None:
    """The view of the file system: all read-only but what is writable, nothing of what is hidden."""
    call("mount", None, b"/", None, MS_REC | MS_PRIVATE, None, about="private mounts")
    # taken before anything is made read-only or hidden: a tree remembers what it was
    temp = copied(orders["temp"])
    nodes = [(name, copied(b"/dev/" + name)) for name in DEVICES if there(b"/dev/" + name)]
    views = [(path, may_write, copied(path)) for path, may_write in orders["views"]]
    everything = posix.open(b"/", posix.O_PATH | posix.O_CLOEXEC)
    attributes(everything, ATTR_RDONLY | ATTR_NOSUID | ATTR_NODEV)
    posix.close(everything)
    devices(nodes)
    for path in orders["emptied"]:
        tmpfs(path, b"mode=0755,size=1m")
    for target, path in orders["links"]:
        posix.symlink(target, path)
    attributes(temp, ATTR_NOSUID | ATTR_NODEV)
    attach(temp, orders["tmp"])
    for path, may_write, tree in views:
        attributes(tree, ATTR_NOSUID | ATTR_NODEV | (0 if may_write else ATTR_RDONLY))
        stand(path, is_folder(tree))
        attach(tree, path)
    for path in orders["pinned"]:
        attach(copied(path), path)
    for path in orders["readonly"]:
        tree = copied(path)
        attributes(tree, ATTR_RDONLY)
        attach(tree, path)
    for path in orders["emptied"]:
        shut(path)


def own_proc() -> None:
    """A fresh /proc. What uid 0 could write to in it without any capability is made read-only: the kernel's settings
    always, and whatever else belongs to this user and is of no process."""
    call("mount", b"proc", b"/proc", b"proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, None, about="a fresh /proc")
    me = posix.getuid()
    for name in posix.listdir(b"/proc"):
        if name.isdigit():
            continue
        path = b"/proc/" + name
        found = posix.lstat(path)
        kind, mine = found.st_mode & 0o170000, found.st_uid == me
        if name == b"sys" or (mine and (kind == 0o040000 or (kind == 0o100000 and found.st_mode & 0o222))):
            tree = copied(path)
            attributes(tree, ATTR_RDONLY)
            attach(tree, path)


def mask(orders: Orders) -> None:
    """What is not to be read, wherever it is still in sight."""
    for path in orders["masked_folders"]:
        if there(path):
            tmpfs(path, b"mode=0000,size=4k,nr_inodes=2", MS_RDONLY | MS_NOEXEC)
    for path in orders["masked_files"]:
        if there(path):
            tree = copied(b"/dev/null")
            # a device on a mount without devices cannot be opened, whatever its permissions say
            attributes(tree, ATTR_RDONLY | ATTR_NODEV)
            attach(tree, path)


# -- namespaces and privileges


def write(path: bytes, text: bytes) -> None:
    handle = posix.open(path, posix.O_WRONLY | posix.O_CLOEXEC)
    try:
        posix.write(handle, text)
    finally:
        posix.close(handle)


def separate(network: bool) -> None:
    """New namespaces of every kind, with everybody who they were."""
    uid, gid = posix.geteuid(), posix.getegid()
    wanted = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS
    call("unshare", wanted | (0 if network else CLONE_NEWNET), about="new namespaces")
    write(b"/proc/self/setgroups", b"deny")
    write(b"/proc/self/uid_map", b"%d %d 1" % (uid, uid))
    write(b"/proc/self/gid_map", b"%d %d 1" % (gid, gid))
    try:  # noqa: SIM105  # contextlib would have to be imported
        call("unshare", CLONE_NEWCGROUP)
    except OSError:
        pass  # a kernel without control groups has nothing to hide
    if not network:
        loopback()


def loopback() -> None:
    """The new network's own interface is switched on: a server and its client may both be inside."""
    af_inet, datagrams, siocsifflags, up_running = 2, 2 | 0o2000000, 0x8914, 0x1 | 0x40
    handle = call("socket", af_inet, datagrams, 0)
    call("ioctl", handle, siocsifflags, b"lo".ljust(16, b"\0") + word(up_running, 2).ljust(24, b"\0"), about="loopback")
    posix.close(handle)


def give_up(program: bytes) -> None:
    """Every capability, for good, and the calls that the filter forbids."""
    for capability in range(64):
        try:
            call("prctl", PR_CAPBSET_DROP, capability, 0, 0, 0)
        except OSError:
            break  # the first that this kernel does not know
    call("prctl", PR_CAP_AMBIENT, 4, 0, 0, 0)
    call("capset", word(0x20080522, 4) + word(0, 4), bytes(24))
    call("prctl", PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    call("prctl", PR_SET_SECCOMP, 2, _ctypes.byref(Program(len(program) // 8, program)), 0, 0, about="seccomp")


# -- the three processes


def environment() -> dict[bytes, bytes]:
    """As it was handed over: a start of Python may have added to it."""
    data, handle = b"", posix.open(b"/proc/self/environ", posix.O_RDONLY | posix.O_CLOEXEC)
    while block := posix.read(handle, 1 << 16):
        data += block
    posix.close(handle)
    return {name: value for name, equals, value in (pair.partition(b"=") for pair in data.split(b"\0")) if equals}


def keep_only(kept: int, null: int) -> None:
    """Close all other descriptors, so that nobody waits for the end of a pipe that only this process still holds."""
    for standard in (0, 1, 2):
        posix.dup2(null, standard)
    posix.closerange(3, kept)
    posix.closerange(kept + 1, 1 << 20)


def become(words: list[str], env: dict[bytes, bytes], orders: Orders, status: int) -> None:
    """The command takes over. Returns only after having told why it could not."""
    for number in (SIGPIPE, SIGXFSZ, *orders["heeded"]):
        _signal.signal(number, _signal.SIG_DFL)
    posix.setsid()  # else a signal for its whole group would reach the outer process
    program, failed = words[0], ENOENT
    places = [b""] if "/" in program else env.get(b"PATH", b"/usr/local/bin:/bin:/usr/bin").split(b":")
    name = program.encode(sys.getfilesystemencoding(), "surrogateescape")
    for place in places:
        try:
            posix.execve((place + b"/" if place else b"") + name, words, env)
        except OSError as error:
            # one that is there but must not be run tells more than those that are not there
            if error.errno not in (ENOENT, ENOTDIR) or len(places) == 1:
                failed = error.errno or failed
    posix.write(status, b'{"errno": %d, "program": "%s"}\n' % (failed, name.hex().encode()))


def first(words: list[str], env: dict[bytes, bytes], orders: Orders, status: int, result: int, null: int) -> None:
    """The first process of the pid namespace: arranges all, starts the command, collects whatever ends."""
    call("prctl", PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0)
    arrange(orders)
    own_proc()
    mask(orders)
    posix.chdir(orders["cwd"])  # the old one still lies below what was mounted over it
    call("setrlimit", RLIMIT_CORE, bytes(16))
    give_up(orders["filter"])
    if not posix.read(orders["release"], 1):
        posix._exit(125)  # whoever wanted this is gone
    command = posix.fork()
    if command == 0:
        become(words, env, orders, status)
        posix._exit(125)
    keep_only(result, null)
    while True:
        try:
            pid, code = posix.wait()
        except ChildProcessError:  # nobody is left
            posix._exit(0)
        if pid == command:
            # what it left running is not for this program to end
            call("prctl", PR_SET_PDEATHSIG, 0, 0, 0, 0)
            posix.write(result, word(code, 4))


def outer(pid: int, result: int, null: int) -> None:
    """Waits for the end of the command, then ends as it did."""
    keep_only(result, null)
    told = posix.read(result, 4)
    if not told:  # killed, and all that was inside with it
        posix.waitpid(pid, 0)
    code = int.from_bytes(told, sys.byteorder) if told else SIGKILL
    if not code & 0x7F:
        posix._exit(code >> 8)
    call("setrlimit", RLIMIT_CORE, bytes(16))
    if code & 0x7F != SIGKILL:
        _signal.signal(code & 0x7F, _signal.SIG_DFL)
    posix.kill(posix.getpid(), code & 0x7F)
    posix._exit(128 + (code & 0x7F))


def main(orders: Orders, words: list[str]) -> None:
    status: int = orders["status"]
    try:
        heeded = [n for n in (SIGINT, SIGTERM, SIGHUP, SIGQUIT) if _signal.getsignal(n) != _signal.SIG_IGN]
        for number in heeded:
            _signal.signal(number, _signal.SIG_IGN)  # the command has its own opinion on these
        orders["heeded"] = heeded
        for handle in (status, orders["release"], orders["own"]):
            posix.set_inheritable(handle, False)
        env = environment()
        # before there are two who share the mounts: one of them takes /dev away for a moment
        null = posix.open(b"/dev/null", posix.O_RDWR | posix.O_CLOEXEC)
        separate(orders["network"])
        result, told = posix.pipe()
        pid = posix.fork()
        if pid == 0:
            posix.close(result)
            first(words, env, orders, status, told, null)
        posix.close(told)
        posix.write(status, b'{"child-pid": %d}\n' % pid)
        outer(pid, result, null)
    except BaseException as error:
        text = repr(error)
        if isinstance(error, OSError):
            text = str(error.strerror) if error.filename is None else f"{error.strerror}: {error.filename!r}"
        posix.write(status, b'{"broken": "%s"}\n' % text.encode("utf-8", "replace").hex().encode())
    posix._exit(125)
