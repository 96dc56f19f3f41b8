"""Rights gained, the kernel's settings, and calls that reach the kernel itself.

Nothing is changed where it gets through: values are only opened, modules come from a descriptor that is none, and
arguments are such that the kernel refuses them after it has looked at the rights.
"""

# over 300 lines because: it is one table of attempts, each with its short function

from __future__ import annotations

import ctypes
import errno
import os
import stat
import struct
import subprocess

from attempts import LANDLOCK, Family, Through
from calls import NEWNET, NEWNS, WORK, Cannot, called, known, libc, nested, syscall, through

FAMILY = Family(__name__)
attempt, shell = FAMILY.attempt, FAMILY.shell

NEEDS_ROOT = {"user": "needs root"}
FOR_A_USER = {"root": "root is root already"}
BOTH = ("root", "user")


def status() -> dict[str, str]:
    with open("/proc/self/status") as file:
        return dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)


def opened(path: str, flags: int = os.O_WRONLY) -> bool:
    """Only opened, never written."""
    try:
        os.close(os.open(path, flags | os.O_NONBLOCK | os.O_NOCTTY))
    except OSError:
        return False
    return True


def allowed(name: str, *arguments: object) -> None:
    """The call with arguments that the kernel refuses once it has found the caller to have the right."""
    try:
        syscall(name, *arguments)
    except OSError as error:
        if error.errno in (errno.EPERM, errno.EACCES, errno.ENOSYS):
            raise
        through(error)
    else:
        through(name)


@attempt("a capability", bare={"user": "has none anyway"})
def capabilities() -> None:
    found = status()
    for name in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
        if int(found[name], 16):
            through(f"{name} {found[name]}")


@attempt(
    "capabilities that a program could bring",
    through=Through(LANDLOCK, "the bound is left as it is; no program brings any all the same", gap=None),
)
def bounding() -> None:
    if int(status()["CapBnd"], 16):
        through(status()["CapBnd"])


@attempt("programs that gain rights (no_new_privs)")
def no_new_privileges() -> None:
    if status()["NoNewPrivs"] != "1":
        through("programs may gain rights")


@attempt("system calls without a filter")
def unfiltered() -> None:
    if status()["Seccomp"] != "2":
        through("no filter")


@attempt("capabilities taken back (capset)", bare={"user": "has none anyway"})
def capset() -> None:
    called("capset", struct.pack("=Ii", 0x20080522, 0), struct.pack("=6I", *(0x3FFF,) * 2, 0, 0, 0, 0))
    through("capabilities")


@attempt("a set-user-id program", bare=FOR_A_USER)
def set_user_id() -> None:
    done = subprocess.run([known("SUID"), "-u"], capture_output=True, text=True)
    if done.stdout.strip() == "0" and os.getuid() != 0:
        through("root")


@attempt("a program with file capabilities", bare=FOR_A_USER)
def file_capabilities() -> None:
    done = subprocess.run([known("CAPABLE"), "/etc/shadow"], capture_output=True, text=True)
    if done.stdout:
        through("it read what only root may")


@attempt("root's password file", bare=NEEDS_ROOT)
def shadow() -> None:
    with open("/etc/shadow", "rb") as file:
        if file.read(1):
            through("read")


@attempt("become root, or any other user (setresuid, setgroups)", bare=NEEDS_ROOT)
def other_user() -> None:
    other = 0 if os.getuid() else 12345
    try:
        os.setgroups([other])
    except OSError:
        os.setresuid(other, other, other)
    through(f"{os.getuid()} {os.getgroups()}")


@attempt("a device made (mknod)", bare=NEEDS_ROOT)
def device() -> None:
    os.mknod(f"{WORK}/null", stat.S_IFCHR | 0o600, os.makedev(1, 3))
    through("a device")


@attempt("a device made, in namespaces of one's own")
def nested_device() -> None:
    nested()
    os.mknod(f"{WORK}/null", stat.S_IFCHR | 0o600, os.makedev(1, 3))
    through("a device")


FAMILY.attempts[-1].bare = dict.fromkeys(BOTH, "the kernel asks the first user namespace")


@attempt("disks opened", bare=NEEDS_ROOT)
def disks() -> None:
    found = []
    for folder in ("/dev", "/dev/mapper", "/dev/block"):
        if os.path.isdir(folder):
            found += [f"{folder}/{name}" for name in os.listdir(folder)]
    blocks = [path for path in found if os.path.exists(path) and stat.S_ISBLK(os.stat(path).st_mode)]
    for path in blocks:
        if opened(path, os.O_RDONLY):
            through(path)


@attempt("memory, ports and the kernel's log opened", bare={"user": "needs root"})
def memory() -> None:
    for path in ("/dev/mem", "/dev/port", "/dev/kmem", "/proc/kcore", "/dev/kmsg"):
        if opened(path, os.O_RDONLY) or opened(path):
            through(path)


@attempt("the program for core files (/proc/sys/kernel/core_pattern)", bare=NEEDS_ROOT)
def core_pattern() -> None:
    os.close(os.open("/proc/sys/kernel/core_pattern", os.O_WRONLY))
    through("it can be written")


@attempt("any setting of the kernel (/proc/sys)", bare=NEEDS_ROOT)
def settings() -> None:
    for folder, _, names in os.walk("/proc/sys"):
        for name in names:
            if opened(f"{folder}/{name}"):
                return through(f"{folder}/{name}")
    return None


@attempt("settings written back as they are", bare=NEEDS_ROOT)
def written_back() -> None:
    for name in ("kernel/hostname", "kernel/panic", "vm/swappiness", "net/ipv4/ip_forward", "fs/pipe-max-size"):
        try:
            with open(f"/proc/sys/{name}") as file:
                value = file.read()
            with open(f"/proc/sys/{name}", "w") as file:
                file.write(value)
        except OSError:
            continue
        through(name)


@attempt("anything in /proc that is of no process", harmless=False)
def machine_proc() -> None:
    for entry in os.listdir("/proc"):
        path = f"/proc/{entry}"
        if entry.isdigit() or os.path.islink(path) or entry == "pressure":
            continue  # who writes there is told of pressure, and so may everybody be
        if not os.path.isdir(path):
            if opened(path):
                through(path)
            continue
        for folder, _, names in os.walk(path):
            for name in names:
                if opened(f"{folder}/{name}"):
                    through(f"{folder}/{name}")


@attempt("anything in /sys", harmless=False)
def machine_sys() -> None:
    for top in ("power", "kernel", "fs", "module", "class", "bus"):
        for folder, _, names in os.walk(f"/sys/{top}"):
            for name in names:
                if opened(f"{folder}/{name}"):
                    return through(f"{folder}/{name}")
    return None


@attempt("control groups", bare=NEEDS_ROOT)
def control_groups() -> None:
    for folder, _, _ in os.walk("/sys/fs/cgroup"):
        if opened(f"{folder}/cgroup.procs"):
            return through(folder)
        try:
            os.rmdir(folder)
        except OSError as error:
            if error.errno in (errno.EBUSY, errno.ENOTEMPTY):
                continue
    return None


FAMILY.attempts[-1].harmless = False


@attempt("the magic key (/proc/sysrq-trigger) opened", bare=NEEDS_ROOT)
def sysrq() -> None:
    if not os.path.exists("/proc/sysrq-trigger"):
        raise Cannot("this kernel has none")
    os.close(os.open("/proc/sysrq-trigger", os.O_WRONLY))
    through("it can be pressed")


@attempt("the machine's name", bare=NEEDS_ROOT)
def hostname() -> None:
    name = os.uname().nodename.encode()
    called("sethostname", name, len(name))
    through("renamed")


@attempt("a kernel module (init_module)", bare=NEEDS_ROOT)
def init_module() -> None:
    allowed("init_module", None, 0, b"")


@attempt("a kernel module by descriptor (finit_module)", bare=NEEDS_ROOT)
def finit_module() -> None:
    allowed("finit_module", -1, b"", 0)


@attempt("a kernel module removed", bare=NEEDS_ROOT)
def delete_module() -> None:
    allowed("delete_module", b"no_such_module_at_all", os.O_NONBLOCK)


@attempt("another kernel (kexec_load)", bare=NEEDS_ROOT)
def kexec() -> None:
    allowed("kexec_load", 0, 0, None, 0xFFFF)


@attempt("another kernel by file (kexec_file_load)", bare=NEEDS_ROOT)
def kexec_file() -> None:
    allowed("kexec_file_load", -1, -1, 0, b"", 0xFFFF)


@attempt("a restart (reboot)", bare=NEEDS_ROOT)
def reboot() -> None:
    allowed("reboot", 1, 2, 3, None)


@attempt("accounting of all processes (acct)", bare=NEEDS_ROOT)
def accounting() -> None:
    try:
        called("acct", b"/nowhere/at/all")
    except OSError as error:
        if error.errno != errno.ENOENT:
            raise
        through(error)


@attempt("swapping (swapon)", bare=NEEDS_ROOT)
def swapping() -> None:
    try:
        called("swapon", b"/nowhere/at/all", 0)
    except OSError as error:
        if error.errno != errno.ENOENT:
            raise
        through(error)


@attempt("programs in the kernel (bpf)", bare={"user": "machines may forbid it"})
def bpf() -> None:
    attributes = struct.pack("=IIII", 2, 4, 4, 1) + bytes(112)  # an array of one element
    syscall("bpf", 0, attributes, len(attributes))
    through("a map in the kernel")


@attempt("measuring (perf_event_open)", bare={"user": "machines may forbid it"})
def perf() -> None:
    attributes = struct.pack("=IIQQQQQ", 1, 128, 0, 0, 0, 0, 0x60) + bytes(80)
    syscall("perf_event_open", attributes, 0, -1, -1, 0)
    through("a counter")


@attempt("page faults by oneself (userfaultfd)")
def userfault() -> None:
    syscall("userfaultfd", os.O_CLOEXEC | 1)
    through("a descriptor")


@attempt("ports of the machine (iopl)", bare=NEEDS_ROOT)
def iopl() -> None:
    if os.uname().machine != "x86_64":
        raise Cannot("only x86 has these")
    called("syscall", 172, 3)
    through("all ports")


@attempt("packets by a network of one's own")
def nested_packets() -> None:
    import socket

    nested(NEWNS | NEWNET)
    socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    through("the code for packets can be reached")


@attempt("another architecture's calls (x32)")
def x32() -> None:
    if os.uname().machine != "x86_64":
        raise Cannot("only x86-64 has these")
    called("syscall", 0x40000000 | 39)
    through("getpid by x32")


@attempt("a child that traces itself past the filter")
def traced() -> None:
    pid = os.fork()
    if pid == 0:
        libc.ptrace(0, 0, None, None)
        found = libc.syscall(ctypes.c_long(425), 0, None)
        os._exit(0 if found < 0 and ctypes.get_errno() == errno.ENOSYS else 1)
    if os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 1:
        through("the filter does not hold for it")
