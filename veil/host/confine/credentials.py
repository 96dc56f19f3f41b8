"""Where the credentials of a user lie: the folders and files that ``protect_secrets`` makes unreadable.

A path is on the list when its purpose is to hold keys, tokens or passwords, or when tools are known to write them
there. Shell histories are on it because passwords end up in them. A project's own ``.env`` is not: programs of the
project are meant to read it; ``deny_read`` names it where they are not.
"""

from __future__ import annotations

import contextlib
import functools
import os
import pwd
from collections.abc import Mapping
from typing import NamedTuple

#: Below each home folder.
_HOME = """
.ssh .gnupg .aws .azure .kube .docker .password-store .pki .fly .oci .aliyun .bluemix .minikube/profiles
.terraform.d .vagrant.d/insecure_private_key .sops .age
.config/gcloud .config/gh .config/glab-cli .config/hub .config/op .config/rclone .config/doctl .config/heroku
.config/sops .config/age .config/containers/auth.json .config/github-copilot .config/hcloud .config/scw
.config/configstore .config/git/credentials .config/pypoetry/auth.toml .config/pip/pip.conf .config/nix/netrc
.config/google-chrome .config/chromium .config/BraveSoftware .config/microsoft-edge .config/vivaldi
.mozilla .thunderbird
.config/1Password .config/Bitwarden .config/keepassxc .config/Signal .local/share/keyrings .local/share/kwalletd
.local/state/veil
.local/share/pypoetry/auth.toml .local/share/containers/auth.json
.netrc .git-credentials .npmrc .yarnrc .yarnrc.yml .pypirc .pgpass .my.cnf .mylogin.cnf .s3cfg .boto .passwd-s3fs
.databrickscfg .vault-token .terraformrc .dockercfg .htpasswd .kaggle .huggingface .snowflake .streamlit/secrets.toml
.cache/huggingface/token .cache/huggingface/stored_tokens .modal.toml .wandb .anthropic .openai
.cargo/credentials .cargo/credentials.toml .gem/credentials .bundle/config .composer/auth.json .m2/settings.xml
.m2/settings-security.xml .gradle/gradle.properties .ivy2/.credentials .sbt/.credentials .nuget/NuGet/NuGet.Config
.claude/.credentials.json .codex/auth.json .gemini/oauth_creds.json .config/goose/secrets.yaml .continue/config.json
.bash_history .zsh_history .zhistory .history .python_history .node_repl_history .psql_history .mysql_history
.rediscli_history .sqlite_history .lesshst .local/share/fish/fish_history
Library/Keychains Library/Cookies Library/Safari Library/Mail Library/Messages
Library/Application\\ Support/Google/Chrome Library/Application\\ Support/Firefox
Library/Application\\ Support/com.apple.TCC Library/Group\\ Containers/group.com.apple.notes
"""

#: Of the machine; most are readable by root alone, who may be the caller.
_MACHINE = """
/etc/shadow /etc/shadow- /etc/gshadow /etc/gshadow- /etc/sudoers /etc/sudoers.d /etc/ssl/private /etc/pki/tls/private
/etc/krb5.keytab /etc/wireguard /etc/NetworkManager/system-connections /etc/netplan
/etc/ssh/ssh_host_rsa_key /etc/ssh/ssh_host_ecdsa_key /etc/ssh/ssh_host_ed25519_key /etc/ssh/ssh_host_dsa_key
/etc/kubernetes /etc/docker/key.json /etc/rancher /var/lib/kubelet /var/lib/cloud/instance/user-data.txt
/var/lib/tailscale /run/secrets /var/run/secrets /kaniko/.docker
/Library/Keychains /private/etc/master.passwd
"""

#: Variables that name a file or folder of credentials (with ``:`` between several).
_NAMED = """
AWS_SHARED_CREDENTIALS_FILE AWS_CONFIG_FILE AWS_WEB_IDENTITY_TOKEN_FILE AZURE_CONFIG_DIR CLOUDSDK_CONFIG
GOOGLE_APPLICATION_CREDENTIALS KUBECONFIG DOCKER_CONFIG REGISTRY_AUTH_FILE GNUPGHOME NETRC NPM_CONFIG_USERCONFIG
npm_config_userconfig PGPASSFILE PGSERVICEFILE PASSWORD_STORE_DIR GH_CONFIG_DIR GLAB_CONFIG_DIR RCLONE_CONFIG
SOPS_AGE_KEY_FILE VAULT_TOKEN_PATH TF_CLI_CONFIG_FILE OCI_CLI_CONFIG_FILE KRB5_KTNAME BOTO_CONFIG
DATABRICKS_CONFIG_FILE HISTFILE MYSQL_TEST_LOGIN_FILE XAUTHORITY
"""

#: Folders that hold more than credentials, moved by a variable: (variable, names below it).
_MOVED = (
    ("CARGO_HOME", ("credentials", "credentials.toml")),
    ("HF_HOME", ("token", "stored_tokens")),
    ("GRADLE_USER_HOME", ("gradle.properties",)),
    ("COMPOSER_HOME", ("auth.json",)),
    ("CODEX_HOME", ("auth.json",)),
    ("CLAUDE_CONFIG_DIR", (".credentials.json",)),
)


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.replace("\0", " ") for word in text.replace("\\ ", "\0").split())


#: Names in one folder from which on it is listed instead of asking for each.
MANY = 2
HOME, MACHINE, NAMED = _words(_HOME), _words(_MACHINE), _words(_NAMED)


#: All that ``places`` reads of an environment.
_READ = ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", *NAMED, *(variable for variable, _ in _MOVED))


def homes(environment: Mapping[str, str]) -> tuple[str, ...]:
    """The home folder that programs are told, and the one that the user really has."""
    return _homes(environment.get("HOME", ""), os.getuid())


@functools.lru_cache(maxsize=8)
def _homes(told: str, user: int) -> tuple[str, ...]:
    found = dict.fromkeys(path for path in (told,) if os.path.isabs(path))
    with contextlib.suppress(KeyError):  # a user of whom the machine knows nothing but the number
        found[pwd.getpwuid(user).pw_dir] = None
    return tuple(path for path in found if path not in ("", "/"))


class Places(NamedTuple):
    """Places in one folder that may hold credentials, whether there is anything or not.

    Attributes:
        above, way: the nearest folder above that comes earlier and has ``MANY`` names, and the name in it that leads
            here; both empty when there is none.
    """

    folder: str
    names: tuple[str, ...]
    above: str
    way: str


def places(environment: Mapping[str, str]) -> tuple[Places, ...]:
    """Every place there may be, by folder."""
    return _places(tuple(environment.get(name, "") for name in _READ), homes(environment))


@functools.lru_cache(maxsize=8)
def _places(values: tuple[str, ...], those: tuple[str, ...]) -> tuple[Places, ...]:
    said = dict(zip(_READ, values, strict=True))
    found = [f"{home}/{name}" for home in those for name in HOME]
    for variable, usual in (("XDG_CONFIG_HOME", ".config/"), ("XDG_DATA_HOME", ".local/share/")):
        if os.path.isabs(said[variable]):
            found += [f"{said[variable]}/{name[len(usual) :]}" for name in HOME if name.startswith(usual)]
    for variable in NAMED:
        found += [path for path in said[variable].split(":") if os.path.isabs(path)]
    for variable, names in _MOVED:
        if os.path.isabs(said[variable]):
            found += [f"{said[variable]}/{name}" for name in names]
    folders: dict[str, list[str]] = {}
    for path in dict.fromkeys([*found, *MACHINE]):
        folder, _, name = path.rstrip("/").rpartition("/")
        folders.setdefault(folder or "/", []).append(name)
    told: dict[str, Places] = {}
    for folder in sorted(folders, key=lambda folder: folder.count("/")):  # what is around comes first
        above, way = os.path.split(folder)
        while above != "/" and not (above in told and len(folders[above]) >= MANY):
            above, way = os.path.split(above)
        if above not in told or len(folders[above]) < MANY:
            above = way = ""
        told[folder] = Places(folder, tuple(folders[folder]), above, way)
    return tuple(told.values())
