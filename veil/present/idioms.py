"""How tools report trouble: the tables behind ``signals``. Data only; lower case unless case itself is the sign.

The phrases are the fixed wordings of shared machinery (errno and signal texts, HTTP reasons) and the verbs and
adjectives with which programs say that something went wrong. They are not messages of particular tools, so a tool that
nobody thought of is read as well as the ones that were.
"""

from __future__ import annotations

import re
from typing import Any

#: Texts of ``strerror`` and ``getaddrinfo`` on Linux and macOS that tell of a failed call.
ERRNO = """
no such file or directory | permission denied | operation not permitted | no such process | interrupted system call
input/output error | no such device or address | argument list too long | exec format error | bad file descriptor
no child processes | resource temporarily unavailable | cannot allocate memory | bad address
device or resource busy | resource busy | file exists | invalid cross-device link | cross-device link
no such device | not a directory | is a directory | invalid argument | too many open files | inappropriate ioctl
text file busy | file too large | no space left on device | illegal seek | read-only file system | too many links
broken pipe | numerical argument out of domain | numerical result out of range | result too large
resource deadlock avoided | file name too long | no locks available | function not implemented | directory not empty
too many levels of symbolic links | value too large | protocol error | bad message | protocol not available
protocol not supported | operation not supported | address family not supported | address already in use
cannot assign requested address | can't assign requested address | network is down | network is unreachable
software caused connection abort | connection reset by peer | connection reset | no buffer space available
connection timed out | operation timed out | connection refused | host is down | no route to host
stale file handle | disk quota exceeded | operation canceled | required key not available
transport endpoint is not connected | remote i/o error | name or service not known
temporary failure in name resolution | no address associated with hostname | nodename nor servname provided
host unreachable | destination host unreachable | connection closed | no medium found | wrong medium type
key has expired | bad cpu type in executable | malformed mach-o file
"""

#: Texts of ``strsignal`` for deaths, as shells and debuggers print them.
SIGNALS = """
segmentation fault | segfault | bus error | illegal instruction | floating point exception | abort trap
trace/breakpoint trap | trace/bpt trap | bad system call | cpu time limit exceeded | cputime limit exceeded
file size limit exceeded | filesize limit exceeded | core dumped | segmentation violation | general protection fault
out of memory | stack overflow | stack smashing
"""

#: Reason phrases that follow a 4xx or 5xx status.
HTTP = """
bad request | unauthorized | payment required | forbidden | not found | method not allowed | not acceptable
proxy authentication required | request timeout | conflict | gone | length required | precondition failed
payload too large | unprocessable | too many requests | internal server error | not implemented | bad gateway
service unavailable | gateway time | http version not supported
"""

#: Said by a program about its own work: none of these stands in the report of a success, whatever surrounds it.
PLAIN = r"""
undefined (?:reference|symbols?) | multiple definition | duplicate symbols? | symbol\(s\) not found
relocation truncated | can ?not be used when making | no rule to make target | missing separator | no makefile found
waiting for unfinished jobs | failed to | unable to | failed (?:with|because|in|at|while|for|due|during)
is not recognized | command not found | syntax error | unbound variable | bad substitution | bad interpreter
parse error | must be run as root | merge conflict | conflicts? while merging | fix conflicts
both (?:modified|added|deleted): | unmerged (?:paths|files) | non-fast-forward | updates were rejected
does not apply | saving rejects | is corrupt | out of range | index out of bounds
traceback \(most recent call last\) | exception in thread | caused by:
unhandled (?:\w+ )?(?:exception|error|rejection|promise) | uncaught | panicked at | during handling of the above
the above exception was | exception was never retrieved | goroutine \d+ \[ | all goroutines are asleep
declared and not used | imported and not used | no required module provides | imported but unused
compilation (?:terminated|failed|aborted) | execution (?:failed|halted) | what went wrong | build (?:failed|failure)
warnings being treated as errors | did not (?:complete|run|finish) successfully | subcommand failed
has already been declared | violates \w+ | deadlock | data race | memory leaks? detected | detected memory leaks
double free | corrupted | use after free | (?:invalid|mismatched) (?:read|write|free)\b | uninitialised value
depends on uninitialised | terminate called | terminating (?:due|with default action) | kernel panic | soft lockup
hard lockup | hung task | blocked for more than | unable to handle | oom-kill | oom killer | killed process
not syncing | i/o error | call trace:.*<irq> | machine check exception | crashloopbackoff | imagepullbackoff
errimagepull | oomkilled | createcontainer(?:config)?error | invalidimagename | back-off restarting
insufficient (?:memory|cpu|resources) | exceeded its progress deadline | deadline exceeded | unmet dependencies
dependency problems | held broken packages | version solving failed | no solution found | are unsatisfiable
is incompatible with | which is incompatible | is not installable | no matching (?:distribution|versions?)
checksum mismatch | doesn't match the expected | did not match | does not match | could not resolve | can't resolve
cannot (?:find|open|stat|remove|create|read|write|access|load|connect|import|index|allocate)
cannot (?:execute|touch|move|copy|resolve)
access denied | (?:pull )?access denied | authentication failed | login failed | host key verification failed
host identification has changed | certificate (?:problem|has expired|verify failed|is not trusted)
verification failed | connection (?:closed by|unexpectedly|lost|aborted) | unexpectedly closed | closed unexpectedly
no longer reachable | timed out | timeout (?:of|exceeded|expired|after|waiting|while) | exceeded timeout
worker timeout | time limit exceeded | max(?:imum)? retries exceeded | max(?:imum)? recursion | gave up | giving up
too many (?:errors|failures|retries)
unexpected (?:token|end|eof|indent|character|symbol|operator|keyword|identifier|argument|string|number|newline|error)
unexpected `?"?\S{1,10} near | is not (?:defined|a function|iterable|assignable|callable|subscriptable)
undefined (?:method|variable|name|local|function|index|property|control) | undeclared
unresolved (?:reference|import|external) | no such (?:\w+ ){0,2}\w+ | does(?:n't| not) exist
unrecognized (?:option|argument|command|subcommand)
unknown (?:option|command|directive|revision|host|field|flag|argument|variable|type|function|column|key)
unknown (?:error|target|identifier)
invalid (?:option|argument|value|token|syntax|data|type|credentials|input|reference|configuration)
invalid (?:character|numeric|number|format|state|version|url|json|response|header|command|choice|signature)
assertion .{0,300}failed | assert(?:ion)? failed | bail out! | coverage of .* not reached | not properly terminated
not in gzip format | not a git repository | unexpected eof | signature not found | did you specify the right
is the server running | is the docker daemon running | port is already | address already in use | already allocated
killed by sig | killed signal | received signal | received sig(?:segv|abrt|bus|ill|fpe|kill|term)
signal: (?:killed|aborted|segm) | sending signal | core dump | no matches found | missing script
missing or invalid | nothing provides | worker .{0,60}crashed | crash report | crash backtrace | node down
aborting | process crashed | is unhealthy | errored | falsifying example | out of bounds | inconsistency
has (?:regressed|disappeared|died|gone away|crashed|stalled) | no module named
attempt to (?:index|call|perform|compare|concatenate) | called `(?:result|option):: | \w+sanitizer:
(?:wrote|got|received) only \d | issues found in | oh no! | is locked | is required to read | password is required
is not up to date | previous errors | cannot be represented | (?:rejected|refused) by | was refused | was rejected
connection was refused | is forbidden | permission .{0,80}denied | must be of type | is not available
not installed locally | would be overwritten | exceeded the maximum | exitfailure
would reformat | would be reformatted | never (?:closed|found)\b | is not set
not set, after | allocation failed | heap out of memory | refusing to | divide(?:d)? by zero | division by zero
buffer overflow | null ?pointer | nil pointer | segv | data loss | lost connection
"""

#: Words that mean trouble when they stand alone in a sentence; compounds and identifiers have been taken out before.
WORDS = r"""
errors? | failed | fails | failures? | failing | fatal | exceptions? | crashed | crashes | aborted | killed
panicked | panic | denied | refused | rejected | unreachable | unresolved | cannot | can't | couldn't | could not
not found | conflict(?:s|ing)? | mismatch(?:ed)? | corrupt | unauthorized | unsatisfiable | unexpectedly
unterminated | dubious | interrupted | abort | command failed | illegal | unsupported | violation | overflowed
misconfigured | malformed | undefined | incompatible | insufficient | already exists
"""

#: Nouns after "error" or "failure" that make it a subject and not a report ("error handling", "failure rate").
SUBJECTS = """
handling handler handlers message messages page pages reporting reporter report reports log logs logger logging
boundary boundaries tracking tracker recovery correction correcting detection detector collector code codes type
types class classes rate rates budget budgets template templates text texts utils util utility module modules mode
modes policy policies response responses docs documentation table tables threshold thresholds margin margins count
counts counter counters metric metrics hook hooks callback callbacks injection path paths format formatter level
levels bars bar domain domains scenario scenarios tolerance tolerant free safe prone case cases analysis monitoring
alerts notifications document documents map mapper stack model models enum struct interface prediction function
functions state states
"""


#: Fragments of lower-cased lines: every report has one, or starts with one of ``sieve.STARTS``. A coarse sieve.
#: Spaces count; the separator is exactly space, bar, space.
FRAGMENTS = (
    " died |  gone |  only  |  sig | *** | : got  | abort | address a | after free | alert | allocat | "
    "anitizer | assert | attempt to | back-off | bad | bail | both  | broken | bug: | busy | called ` | "
    "cancel | cannot | caused by | certif | closed | conflict | core dump | corrupt | could not | crash | "
    "crit | cross-dev | data loss | deadlock | declared | denied | depend | did  | disappeared | divi | "
    "double free | dubious | dumped | duplicate | during handling | elifecycle | emerg | eror | err | "
    "exceed | excep | exist | exit | expected | expire | fail | falsif | fatal | forbidden | gateway | "
    "gave up | general prot | giving up | gone away | goroutine | halted | hangup | http/ | hung | "
    "identification has | illegal | imagepull | imported but | inappropriate | incomp | inconsis | insuf | "
    "interrupt | inval | is a dir | is down | is the docker | is the server | issue | kill | leak | "
    "locked | lockup | lost | malformed | medium | misconf | mismatch | missing | multiple def | must be | "
    "n't | never  | overwritten | nil p | no buffer | no child | no locks | no longer | no make | no matches | "
    "no matching | no module | no route | no rule | no solution | no space | no such | node down | "
    "nodename | nodes are | non-fast | not  | null | oh no | oops | out of | overflow | panic | port is | "
    "provides | race | read-only | recursion | reformat | refus | regressed | reject | required | reset | "
    "return | segf | segm | segv | severe | sigsegv | smash | stale | stalled | status= | termin | timed | "
    "timeout | too l | too many | trap | una | unb | unca | undef | unfinished | unha | unhealthy | "
    "uninit | unk | unm | unr | uns | violat | what went | what() | × | ● | ✕ | ✖ | ✗ | ✘ | ❌ | ⨯ | 🔴"
)


def entries(*tables: str) -> list[str]:
    """The rows of tables, one entry each: lines and bars both separate."""
    found = {part.strip() for table in tables for row in table.splitlines() for part in row.split(" | ")}
    return sorted(found - {""})


def alternatives(*tables: str) -> str:
    """Tables as one regular expression, grouped by first letters: a word is then tried against few of them."""
    groups: dict[str, list[str]] = {}
    for entry in entries(*tables):
        letters = re.match(r"[a-z]{2}(?![?*+{])", entry)
        groups.setdefault(letters.group() if letters else "", []).append(entry)
    loose = groups.pop("", [])
    grouped = [f"{two}(?:{'|'.join(entry[2:] for entry in group)})" for two, group in groups.items()]
    return "|".join(grouped + loose)


def trie(fragments: list[str]) -> str:
    """Literal fragments as one regular expression in which each letter is looked at once, whatever their number."""
    root: dict[str, Any] = {}
    for fragment in fragments:
        node = root
        for letter in fragment:
            node = node.setdefault(letter, {})
        node[""] = {}

    def branch(node: dict[str, Any]) -> str:
        if "" in node:
            return ""
        ways = [re.escape(letter) + branch(below) for letter, below in node.items()]
        return ways[0] if len(ways) == 1 else f"(?:{'|'.join(ways)})"

    return branch(root)
