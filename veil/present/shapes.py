"""The compiled shapes that ``signals`` reads with. ``*_START`` are for ``match`` (cheap), ``*_ANY`` for ``search``.

Compiling them takes far longer than reading a log with them: import this only when a line has passed the sieve.
"""

from __future__ import annotations

import re

from veil.present.idioms import ERRNO, HTTP, PLAIN, SIGNALS, SUBJECTS, WORDS, alternatives

#: What stands before the report: time, build step, container name, quotation of a remote.
PREFIX = re.compile(
    r"""(?x)(?:
        \s+ | (?:\#\d+\s)?\d+\.\d{1,4}\s | \#\d+\s | [\w.-]+-\d+\s+\|\s
      | \[\s*\d+\.\d+\]\s | \[\d{4}-[^\]]{6,40}\]\s? | \[gw\d+\]\s | \[\d+\]\s
      | \d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d\S*\s | \d\d:\d\d:\d\d\S*\s | \d\d/\d\d/\d\d\s\d\d:\d\d:\d\d\s
      | (?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)\s+\d+\s\d\d:\d\d:\d\d\s
      | remote:\s | [│┃|]\s? | ➤\sYN\d{4}:\s | ts=\S+\s | INTERNALERROR>\s
    )+"""
)

# --- lines that tell of something else ------------------------------------------------------------------------------

SILENT_START = re.compile(
    r"""(?x)
      \S+:\d+(?::\d+)?:\s(?:note|remark|help|hint):                                      # the rest of a diagnostic
    | \s*>?\s*\d+\s\|(?:\s|$) | \s*(?:errors|failures|exceptions|conflicts)$              # code frame, heading
    | [-\#\s]*(?:\[gw\d+\]\s)?\[?\s*(?:✓|✔|√|☑|✅) | \s*(?:\[\s*)?(?:ok|OK|PASS)\b(?!.*\bFAIL)  # passed
    | \s*(?:not\s)?ok\s\d+.*\#\s*(?:TODO|SKIP) | \s*\[\s*(?:OK|RUN|PASSED|DISABLED|SKIPPED|-+|=+)\s*\]
    | =+\s(?:RUN|PAUSE|CONT|NAME)\s | \s*---\s(?:PASS|SKIP)
    | (?:configure:\s)?[cC]hecking\s(?!.*\b(?:failed|error:)) | --\s(?:Looking\sfor|Performing\sTest|Check|Detecting)\b
    | (?:Library|Program|Header|Dependency|Run-time\sdependency)\s\S+\sfound:\s           # probes
    | [\s*|\\/_]*[0-9a-f]{7,40}\s(?=.*[A-Za-z]{2}) | HEAD\sis\snow\sat\s                  # commits
    | \[[^\]\s]+\s(?:\(root-commit\)\s)?[0-9a-f]{7,}\]
    | (?:Switched\sto|Your\sbranch|Merge\s(?:branch|pull)|Revert\s"|Subject:|Already\son|Previous\sHEAD|Cherry-picked)\b
    | \s(?:create|delete|mode\schange|rename)\s | \s*(?:modified|new\sfile|deleted|renamed):\s
    | \++\s(?!killed\sby|exited\swith) | \$\s\S                                           # commands echoed
    | \s*(?:\S*/)?(?:gcc|g\+\+|cc|c\+\+|clang|clang\+\+|ld|ar|ranlib|rustc|javac|go|libtool|ccache|install|mkdir|rm|cp
        |mv|cd|nvcc|swiftc)(?:-[\d.]+)?\s(?!.*:\s(?:fatal\s)?error:)(?=.*(?:\s-|/))(?!\S+:)
    | CompileC\s | TASK\s\[ | (?:ok|changed|skipping|included):\s\[ | (?:CREATE|INSERT|SELECT|ALTER|DROP|GRANT)\s
    | [-dlbcps][-rwxsStT]{9}[.+@]?\s | [iurph][inufhc]\s\s\S                               # listings
    | [A-Z]{3,7}\s/\S*\s[123]\d\d\b | \s*<(?:testcase|property|system-(?:out|err))\b
    | [A-Za-z%_/()]+(?:\s{2,}[A-Za-z%_/()]+){3,}\s*$                                       # header of a table
    """
)
SILENT_ANY = re.compile(
    r"""(?x)
      \.{3,}\s*(?:\(.*\))?\s*(?:Passed|Skipped)\b
    | \.\.\.\s*(?:\(cached\)\s)?(?:ok|yes|no|done|found|passed|skipped|ignored|none|none\srequired|expected\sfailure
        |OK|Done|YES|NO)\s*$
    | \s-\s[^.]*\.\.\.\s(?:ok|ignored)$
    | \b(?:PASSED|XFAIL|SKIPPED)\b(?!.*\b(?:FAILED|ERROR)\b) | \|\sPASS\s\| | ,\s*skipping\b
    | \s\|\s+(?:\d+\s[-+]*|Bin\s.*)$                                                       # diffstat
    | \(ignored\)\s*$ | \.\.\.ignoring\s*$ | "[A-Z]{3,7}\s\S+\sHTTP/[\d.]+"\s[123]\d\d\b
    | ERROR\sSUMMARY:\s0\serrors | \b[1-9]\d*\sfixed,\s0\sremaining | \bYN0013:
    | \s=\s-1\s(?:ENOENT|EAGAIN|ENOTTY|EINTR|ENOSYS|EEXIST|ENODATA|ESRCH|ECHILD|EINPROGRESS|EINVAL|ENXIO|ERESTART\w*
        |EWOULDBLOCK|ESPIPE|EOPNOTSUPP|ENOTSUP|ENOTDIR)\b                                  # probes in a trace
    """
)

# --- lines in which only a plain report counts, not a word in passing: progress, notices, lower log levels ------------

QUIET_START = re.compile(
    r"""(?x)
      \s*(?:\S{0,20}\s)?\[?(?:(?i:info|debug\d?|trace|notice|verbose|hint)|note)\b | npm\swarn | [IWD]\d{4}\s\d\d:
    | \s*(?:\[\s*\d+(?:/\d+|%)\s*\]\s*|==>\s|->\s|[-*+]\s|=>\s)?
      (?:Compiling|Checking|Downloading|Downloaded|Collecting|Installing|Installed|Building|Built|Linking|Generating
        |Fetching|Fetched|Unpacking|Preparing|Setting\sup|Selecting|Processing|Using|Resolving|Resolved|Removing|Removed
        |Adding|Added|Updating|Updated|Upgrading|Copying|Creating|Created|Running|Scanning|Pulling|Pushing|Pouring
        |Extracting|inflating:|extracting:|Successfully|Saved|Get:\d+|Hit:\d+|Doc-tests|Documenting|Fresh|Locking
        |Loading|Loaded|Parsing|Reading|Writing|Starting|Started|Stopping|Executing|RUN|COPY|ADD|Reached|Listening|CC
        |CXX|LD|AR|GEN|upload:|download:|copy:|Start|Requirement|asset|adding:|creating:|Transforming|Bundling)\b
    """
)
QUIET_ANY = re.compile(
    r"""(?x)
      (?:^|[\s:])(?:[Ww]arning|WARNING|warn|WARN|note|NOTE|remark|info|help)(?:\[[\w:-]+\])?:
    | \[(?:warn|WARN|WARNING)\] | \b(?:level|lvl|severity)"?\s?[=:]\s?"?(?:info|debug|trace|notice|warn)
    | \s(?:INFO|DEBUG|TRACE)\s
    """
)

# --- what only names trouble ------------------------------------------------------------------------------------------

_NOUN = (
    r"(?:errors?|failures?|failed|failing|fails?|fatal|exceptions?|conflicts?|crash(?:es|ed)?|problems?|issues?|leaks?"
    r"|unreachable|error\(s\)|aborted|timeouts?|killed|rejected|bad|broken|denied|refused|unresolved)"
)
_SOFT = r"(?-i:(?!FAIL|ERROR|CRASH|FATAL))"  # capitals are a label and start a report

NOT_REPORTED = re.compile(
    rf"""(?xi)(?<!\w)(?:
      (?<![.=:])(?:0|no|zero|without(?:\sany)?|any|never|not\san?|non-?)[ -]{_SOFT}(?:\w+\s){{0,2}}?{_NOUN}(?![\w-])
    | {_NOUN}["']?\s*[:=]?\s*["']?(?<=[\s:="'])(?:0|none|null|nil|<nil>|false|no|\[\]|set\(\)|\{{\}}|""|\'\')
      (?=\s*(?:$|[,;)}}\]|"'])|\s\s|\s\w+=)
    | \w*err(?:ors?)?\s?[:=]\s?[-+]?\d*\.\d+(?:e[-+]?\d+)?%?(?=\s*(?:$|[,;)|]|\w+\s?[:=]))   # a measure
    | err(?:or)?["']?\s?[:=]\s?["']?(?:nil|<nil>|null|none|""|\'\')
    | {_SOFT}(?:errors?|failures?|failed|exceptions?|crash|abort|panic|timeout|conflicts?|fatal)[ -]
      (?:{"|".join(SUBJECTS.split())})(?![\w/])
    | (?:expected|known)\s(?:failures?|errors?)(?=[\s=:,)]|$)
    | (?:on|upon|in\scase\sof|after|for|if|when|whether|unless|until)\s(?:an?\s|any\s|the\s)?(?:\w+\s)?
      (?:errors?|failures?|failed|fails|fatal|exceptions?|crash|abort)\b
    | (?:fix|fixes|fixed|handle|handles|handled|avoid|avoids|prevent|prevents|ignore|ignores|ignored|ignoring
        |suppress\w*|improve[sd]?|catch|catches)\s(?:\w+\s){{0,2}}{_NOUN}
    | (?:shows|returns|throws|raises|rejects|reports|logs|displays|emits|gives|yields|renders)\s
      (?:an?\s|the\s)?(?:\w+\s)?{_NOUN}
    | memory\serror\sdetector | "(?!\d+")[^"]*"
    )"""
)
NAMES = re.compile(
    r"""(?x)
      `[^`\s]*[`'] | '[^'\s]*' | ‘[^’]*’ | (?<!\S)--?[A-Za-z]\S* | \$\w+ | (?<!\w)\w+=(?![\d\s])[^\s,;"']+
    | (?<![\w@~+])\w[\w@~+]*(?:[-_./\\@]|::)[\w@.+/\\:_~-]*\w | (?<![\w@~+])[./~]+\w[\w@.+/\\:_~-]*
    """
)

# --- reports ----------------------------------------------------------------------------------------------------------

#: On what the masks leave: a label with its colon, or an outcome in capitals.
LABEL = re.compile(
    r"""(?x)
      (?:^|(?<=[\s:=\]>(|\#\[]))
      (?i:(?:fatal|runtime|syntax|parse|internal|compilation|linker|compile|system|security|unhandled|type|module|job)\s)?
      (?i:errors?|fatal|failures?|failed|panic|exception|critical|crit|emerg|alert|abort|assertion|oops|severe|trap|err)
      (?:\s?[\[(][^\])\n]{1,60}[\])])?(?:\s\w{0,8}\d+(?:\s\(\w+\))?)?
      \s?(?::|!|\]|\s-\s)(?![\w:])
    | (?<![\w/.\-=])(?:FAILED|FAILURES?|FATAL|ERRORS?|FAIL|CRITICAL|EMERG|PANIC|ABORTED|CONFLICT|UNREACHABLE|SEVERE
        |CRASH|INTERNALERROR|DENIED|REJECTED)(?![\w/.\-=])
    """
)
REPORT_START = re.compile(
    r"""(?x)
      [EF]\d{4}\s\d\d: | E:\s | E\s{3} | Err:\d | \s*ERR_\w+ | \s?ELIFECYCLE\b | npm\s(?:ERR!|error)\s | !\s+\S | !!+\s
    | abort:\s | ::error | \w+:\s[EF]\d{4,}:\s | \#\#\[error\]                             # labels of single tools
    | (?:\d+:\d+\s+)?(?:error|✖|×|✘)\s+(?!=)\S | [\w.-]+:\sno\s(?!errors?|problems?|issues?|work|changes?|need)\w
    | (?:\w+\s)?(?:[\w$]+[.:\\]+)*(?:[A-Z]\w*)?(?:Error|Exception|Failure|Interrupt|Errno|Group)
      (?:\s\[\w+\])?(?::\s|:$|\s\()                                                        # exceptions
    | (?:[\w$]+[.\\])*[A-Z]\w*(?:Error|Exception|Failure|Interrupt)\s*$
    | (?:✗|✘|✖|✕|×|❌|⨯|🔴) | not\sok\b | \*\*\*\s | \*\*\s\( | !\s\[ | \d+\)\s\S | >\s\[.*\]\s[A-Z]+\s.*:$    # marks
    | (?:→\s|AssertionError:\s)*expected\s\S.*\sto\s | (?:[Ee]xpected|[Rr]eceived|got|[Aa]ctual):\s | what\(\):
    | \w[\w.\#/-]*\s+\[\S+:\d+\]:$                                                         # assertions
    | (?:\./)?[\w@./\\+-]+\.\w+:\d+:\d+:?\s
      (?!(?:warning|note|info|remark|hint|help|style|debug|INFO|WARNING)\b|\s|required\s|in\s)
    | [A-Z]{1,4}\d{3,4}\s(?:\[\*\]\s)?[A-Z`\[] | \S+:\d+\s[A-Z]{1,3}\d{3,5}\s | [a-z-]+\[[a-z-]+\]:\s[A-Z] | >>\sIssue:
    | (?:\S+\.py\s)[.sxXFEu,]*[FE][.sxXFEu,]*(?:\s*\[\s*\d+%\])?$                          # progress of test runs
    | (?=.*[FE])(?=.*\.)[.sxXFEu,]{4,}(?:\s*\[\s*\d+%\])?$
    | \w[\w.-]*:\s\((?!0\))\d+\)\s | 0/\d+\snodes\sare
    """
)
REPORT_ANY = re.compile(
    rf"""(?x)
      :\s(?:(?:[Bb]ad|BAD)\s\w | \*\*\*\s | \w*(?:Error|Exception|Failure)$ | [A-Z]\w+(?:Error|Exception)\(
        | got\s.*\s(?:want|expected)\s)
    | (?<!\w)(?:
        BUG: | (?i:failed|error|crashed|timed_out|unreachable)"?[=:]\s?true\b
      | (?:level|lvl|severity|Level|LEVEL)"?\s?[=:]\s?"?(?i:error|err|fatal|crit|critical|panic|emerg|alert|eror)\b
      | err(?:or)?=(?!nil|null|none|None|<nil>|0\b|""|\'\'|false)["']?\w
      | expect\(.*\)\.\w | SIG(?:SEGV|ABRT|BUS|ILL|FPE|SYS)\b | code=(?:killed|dumped) | status=(?!0/)\d+/[A-Z]
      | (?:Killed|Aborted|Terminated|Hangup)(?:\s\(core|\s{{2}}|$)
      | [Ee]xit(?:ed|s|ing)?(?:\swith)?(?:\snon-?zero)?(?:\s(?:error|exit))?(?:\s(?:code|status|value))?:?[\s=]+
        (?:[1-9]\d*|non-?zero)\b
      | [Rr]eturn(?:ed|s|ing)?\s(?:(?:code|status)\s[1-9] | (?:\w+\s){{0,3}}?(?:[1-9]\d*|non-?zero)(?:\s(?:exit|\()|$))
      | HTTP/[\d.]+\s[45]\d\d\b | (?<![./])[45]\d\d[\s:-]{{1,3}}(?i:{alternatives(HTTP).replace(" ", chr(92) + "s")})
      | (?:[Dd]efinitely|[Ii]ndirectly)\slost:\s[1-9] | (?:[Ii]nd|[Dd])irect\sleak\sof | 0/\d+\snodes\sare
      )
    | \(error\)\s | \s{{2}}Error\s{{2}} | _ABORT\b | [.*](?:Failed|FAILED|Timeout|Exception)(?:[\s:]|$)
    | (?:Error|Exception)(?:\)$ | \sat\s\S+:\d) | \s[a-z][\w.]+\.[A-Z]\w*(?:Error|Exception):\s
    """
)
#: A heading of jest; at the very start of a line the same bullet is systemd's, on a healthy unit.
BULLET = re.compile(r"\s+●\s|●.*›")
COUNT = re.compile(
    r"""(?xi)
      (?<![\w.:/-])[1-9][\d,]*\s(?:\w+\s)?(?:errors?|failed|failures?|failing|crashed|unreachable|error\(s\)|fails)(?![\w-])
    | (?<![\w.])(?:errors?|failures?|failed|unreachable|fail)["']?(?:\s?[:=]\s?["']?|\s)[1-9]\d*(?![\w./:])
    """
)
#: Both on lower-cased text.
PHRASE = re.compile(rf"(?<![\w./-])(?:{alternatives(ERRNO, SIGNALS, PLAIN)})(?![/_]|-\w|\.\w)")
WORD = re.compile(rf"(?<![\w-])(?:{alternatives(WORDS)})(?![\w-]|\.\w)")
