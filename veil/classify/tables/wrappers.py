"""Programs that run another program which stands among their arguments. ``skip`` operands come before it."""

from __future__ import annotations

from typing import Any

Row = dict[str, Any]


def _wraps(values: str = "", skip: int = 0, **more: Any) -> Row:
    return {"judge": "wrapper", "read": values, "skip": skip, **more}


ROWS: dict[str, Row] = {
    "nohup setsid   catchsegv unbuffer fakeroot  setarch linux32 linux64 chronic  "
    "  dbus-run-session  setpriv   eatmydata nocache": _wraps("-e="),
    "sshpass": _wraps("-p= -f= -d= -P="),
    "nice": _wraps("-n= --adjustment="),
    "time gtime": _wraps("-f= --format=", mutating="-o=> --output=>", bare="read-only"),
    "timeout gtimeout": _wraps("-s= -k= --signal= --kill-after=", 1),
    "stdbuf": _wraps("-i= -o= -e= --input= --output= --error="),
    "ionice": _wraps("-c= -n= -p= -t --class= --classdata="),
    "chrt": _wraps("-T= -P= -D=", 1),
    "taskset": _wraps("-p= -c", 1),
    "numactl": _wraps("-N= -m= -i= -C= --cpunodebind= --membind= --interleave= --physcpubind="),
    "faketime": _wraps("-f=", 1),
    "prlimit cpulimit choom": _wraps("-p= --pid= -l= -n="),
    "sudo": _wraps(
        "-u= -g= -h= -p= -C= -r= -t= -T= -U= -R= -D= --user= --group= --host= --prompt= "
        "--chdir= --chroot= --role= "
        "--other-user= --close-from= --command-timeout=",
        judge="sudo",
        complex="-e --edit -s --shell -i --login",
    ),
    "doas": _wraps("-u= -C=", judge="sudo", complex="-s"),
    "pkexec gosu su-exec": _wraps("--user=", judge="sudo"),
    "su runuser": {"judge": "su", "read": "-c= -g= -G= -s= -u= -w= --command= --group= --shell= --user="},
    "chroot": _wraps("--userspec= --groups=", 1),
    "unshare": _wraps("-S= -G= -R= -w= --setuid= --setgid= --root= --wd="),
    "nsenter": _wraps("-t= -S= -G= --target= --setuid= --setgid="),
    "bwrap firejail": {"category": "complex", "why": "runs a program in a place of its own"},
    "strace ltrace": _wraps("-e= -s= -p= -P= -E= -u= -a= -b= -I= -O= -S= -X= -n= -l=", mutating="-o=> --output=>"),
    "flock": _wraps("-w= -E= --timeout= --wait= --conflict-exit-code=", 1, judge="flock"),
    "watch": _wraps("-n= --interval= -q=", judge="joined"),
    "script": {
        "judge": "script",
        "category": "mutating",
        "why": "writes a log",
        "operands": "write",
        "read": "-c= --command= -E= -o= -m= --echo=",
        "mutating": "-I= -O= -B= -T= -t --log-in= --log-out= --log-io= --log-timing=",
    },
    "systemd-run": _wraps(
        "-u= -p= -E= -M= -H= --unit= --property= --setenv= --uid= --gid= --slice= --description= --working-directory=",
        network="-H= --host=",
    ),
    "systemd-inhibit caffeinate": _wraps("-t= -w= --what= --who= --why= --mode="),
    "start-stop-daemon daemonize": {"category": "complex", "why": "starts a program"},
    "parallel": {"judge": "parallel", "category": "complex", "why": "runs commands made from its input"},
    "env": {
        "judge": "env",
        "read": "-u= -C= -S= --unset= --chdir= --split-string= -i -0 -v --ignore-environment --null "
        "--debug "
        "--block-signal --default-signal --ignore-signal",
    },
    "xargs gxargs": {
        "judge": "xargs",
        "why": "runs a command for its input",
        "read": "-a= -d= -E= -I= -L= -l -n= -P= -s= -i -e -J= -R= -S= --arg-file= --delimiter= --eof "
        "--replace --max-lines "
        "--max-args= --max-procs= --max-chars=",
        "complex": "--process-slot-var=",
    },
    "command": {"judge": "command", "read": "-p -v -V"},
    "builtin": _wraps(),
    "exec": _wraps("-a=", bare="read-only"),
    "coproc": _wraps(judge="coproc"),
    "eval": {"judge": "eval"},
    "trap": {"judge": "trap"},
    "source .": {"category": "unknown", "why": "runs a script", "judge": "source"},
    "busybox toybox": {"judge": "busybox"},
    "sh bash zsh dash ksh ash mksh fish csh tcsh yash rbash": {"judge": "shell"},
}
