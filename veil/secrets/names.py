"""Which environment variables hold a credential, told by name and by value.

A name is cut into words at ``_``, ``-``, ``.``, other signs and camel case, and judged by its words, so that
``GITHUB_TOKEN`` is one and ``TOKENIZERS_PARALLELISM`` or ``KEYBOARD_LAYOUT`` is none. Choices that could have gone the
other way:

- a name that ends like a path, an address or a measure stays (``PASSWD_FILE``, ``OAUTH_TOKEN_URL``, ``TOKEN_LIMIT``):
  its value is not the secret. ``KUBECONFIG`` stays for the same reason. That such files are not read is the work of a
  sandbox.
- ``GOOGLE_APPLICATION_CREDENTIALS`` and ``NETRC`` go although they are paths: programs use what they point to unasked.
- ``SSH_AUTH_SOCK`` stays: it is an address, git over SSH needs it, and cutting it off is a matter for a sandbox.
- ``AWS_*`` goes as a family, except settings that neither are a credential nor lead to one (``AWS_REGION``,
  ``AWS_EC2_METADATA_DISABLED``, ...).
- ``DATABASE_URL`` and its kind go by name, whatever they hold; any other variable goes when its value carries a
  password.
- public keys, cache keys and other keys that open nothing stay; ``GIT_CONFIG_KEY_0`` stays (git fails without it).
"""

from __future__ import annotations

import re
import urllib.parse
from functools import lru_cache

from veil.secrets.shapes import has_shape, shapes_in

_WORD = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_PLAIN_WORD = re.compile(r"[a-z]+|[0-9]+")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


#: Words that make a name secret wherever they stand.
_ALWAYS = _words(
    "secret secrets password passwords passwd passphrase passcode passwort credential credentials creds apikey "
    "apikeys apitoken accesskey secretkey privatekey authtoken accesstoken refreshtoken sessiontoken sshpass "
    "pgpassword mnemonic connectionstring connstr token jwt authorization"
)
#: Words that make a name secret when they stand last.
_LAST = _words("pat pwd pass auth bearer cookie cookies salt dsn pem pfx cred webhook webhooks sas")
#: Endings of a word written together (``DBPASSWORD``, ``MYTOKEN``).
_ENDINGS = ("password", "passwd", "passphrase", "secret", "apikey", "secretkey", "accesskey", "privatekey", "token")
#: Words before ``key`` or ``keys`` that make it one to a door, also when more words follow.
_KEY_OF = _words(
    "api access secret private signing signature encryption decryption master account auth license deploy service "
    "admin storage shared app application client consumer subscription webhook rsa ssh gpg pgp tls ssl hmac "
    "crypto session security integration ingest write"
)
#: Words before ``tokens`` that make them credentials (``MAX_TOKENS`` counts).
_TOKENS_OF = _words("api auth access secret refresh bearer service deploy bot user admin")
#: Words before ``key`` that make it a key of another kind.
_KEY_NOT = _words(
    "public pub primary foreign sort partition cache hot compose meta ctrl control shift alt arrow escape esc "
    "prefix leader routing group row shard lock object index map json yaml toml dict config idempotency dedup "
    "translation option modifier return enter tab space function special dead"
)
#: Last words of names whose value is about a secret and not the secret.
_ABOUT = _words(
    "file files filename path paths dir directory folder location store sock socket tty pid host hostname port "
    "server endpoint ttl expiry expires expiration lifetime timeout age interval length len size count limit max "
    "min budget window rate type kind name names algorithm alg algo mode format scope scopes helper provider "
    "manager policy version enabled disabled required check verify id ids url uri prefix suffix field parallelism "
    "issuer audience usage layout rotation backend cmd command program script"
)
#: Words in front of the secret one that make the name a switch or a measure.
_SWITCH = _words(
    "enable enabled disable disabled skip no use require requires allow is has with without ignore show hide ask "
    "max min num total insecure relax"
)
#: Services whose address carries a password by custom.
_SERVICES = _words(
    "database db postgres postgresql pg mysql mariadb mongo mongodb redis amqp cloudamqp rabbitmq clickhouse jdbc "
    "sqlalchemy cockroach broker cockroachdb mssql"
)
#: Whole names (words joined by ``_``) that the rules would miss.
_GO = frozenset({"netrc", "docker_auth_config", "google_application_credentials", "bw_session"})
_AWS_STAY = _words(
    "region default_region pager default_output ec_2_metadata_disabled sdk_load_config retry_mode max_attempts"
)
_PWD_NOT = _words("init old start orig original working work last prev previous project root")

_URL_PASSWORD = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,30}://[^\s/?#:@]{0,256}:([^\s/?#]{1,1024})@")
_SETTING_PASSWORD = re.compile(
    r"(?i)(?:^|[;?&\s])(?:password|passwd|pwd|accountkey|sharedaccesskey|sharedaccesssignature|access_token|api_key)"
    r"=([^;&\s$]{1,1024})"
)


@lru_cache(maxsize=4096)
def is_secret_name(name: str) -> bool:
    """Whether an environment variable of this name holds a credential. Case does not matter."""
    if name.isupper() or name.islower():
        return _judge(tuple(_PLAIN_WORD.findall(name.lower())))
    mixed = tuple(word.lower() for word in _WORD.findall(name))
    return _judge(mixed) or _judge(tuple(_PLAIN_WORD.findall(name.lower())))


def is_secret_value(name: str, value: str) -> bool:
    """Whether this variable holds a credential: by its name, or because its value carries one.

    A value does when it holds an address with a password (``scheme://user:password@host``), a ``Password=...`` setting
    of a connection string, or text in the shape of a known kind of credential (see ``veil.secrets.shapes``).
    """
    return is_secret_name(name) or carries_secret(value)


def carries_secret(value: str) -> bool:
    """Whether a text holds a credential, whatever it is called."""
    if len(value) < 8:
        return False
    if "://" in value and _URL_PASSWORD.search(value):
        return True
    return bool("=" in value and _SETTING_PASSWORD.search(value)) or has_shape(value)


def passwords_in(value: str) -> list[str]:
    """The credentials inside a longer text (an address, a connection string), without what frames them."""
    found = _URL_PASSWORD.findall(value) + _SETTING_PASSWORD.findall(value)
    return [*found, *(urllib.parse.unquote(password) for password in found), *shapes_in(value)]


def _judge(words: tuple[str, ...]) -> bool:
    while len(words) > 1 and words[-1].isdigit():  # API_KEY_2
        words = words[:-1]
    if not words:
        return False
    joined = "_".join(words)
    if joined in _GO or words[:2] == ("op", "session"):
        return True
    if words[:2] in (("password", "store"), ("git", "config")):
        return False
    if words[0] == "aws" and len(words) > 1:
        return "_".join(words[1:]) not in _AWS_STAY
    return _by_address(words) or _by_word(words)


def _by_address(words: tuple[str, ...]) -> bool:
    """Names of addresses that are secrets themselves."""
    if words[-1] == "dsn":
        return True
    if len(words) < 2:
        return False
    if words[-1] in ("url", "uri") and not _SERVICES.isdisjoint(words[:-1]):
        return True
    if words[-1] in ("url", "uri") and words[-2] in ("webhook", "hook"):
        return True
    return words[-2:] == ("connection", "string")


def _by_word(words: tuple[str, ...]) -> bool:
    # halves of a pair that log in together; other identifiers are no secrets
    login = words[-3:] == ("access", "key", "id") or words[-2:] == ("secret", "id")
    if words[-1] in _ABOUT and not login:
        return False
    for place, word in enumerate(words):
        if not _SWITCH.isdisjoint(words[:place]):
            return False
        if _is_secret_word(words, place, word):
            return True
    return False


def _is_secret_word(words: tuple[str, ...], place: int, word: str) -> bool:
    before = words[place - 1] if place else ""
    last = place == len(words) - 1
    if word in _ALWAYS or (word.endswith(_ENDINGS) and len(word) > 5):
        return True
    if word == "key":
        return before in _KEY_OF or (last and before not in _KEY_NOT)
    if word == "keys":
        return before in _KEY_OF
    if word == "tokens":
        return before in _TOKENS_OF
    if not last or word not in _LAST:
        return False
    if word == "pwd":
        return bool(before) and before not in _PWD_NOT
    return len(words) > 1 or word in ("pat", "bearer")
