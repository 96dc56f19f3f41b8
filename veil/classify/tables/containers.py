"""Containers, clusters, machines described as code."""

from __future__ import annotations

from typing import Any

Row = dict[str, Any]
_TELL: Row = {"why": "tells", "network": "--bootstrap", "address": "network"}
_CHANGE: Row = {"category": "mutating", "why": "changes containers or images"}
_NET: Row = {"category": "network", "why": "connects or fetches images"}
_GONE: Row = {"category": "destructive", "why": "removes", "lost": "containers, images, volumes or what is in them"}


def _subs(*pairs: tuple[str, Row]) -> dict[str, Row]:
    return {name: found for names, found in pairs for name in names.split(",")}


_OBJECTS = (
    "container",
    "image",
    "volume",
    "network",
    "context",
    "builder",
    "buildx",
    "plugin",
    "secret",
    "config",
    "node",
    "service",
    "stack",
    "swarm",
    "system",
    "manifest",
    "pod",
)
_DOCKER: Row = {
    "judge": "subs",
    "default": "unknown",
    "bare": "read-only",
    "probe": "-v version",
    "why": "tells",
    "network": "-H= --host= -c= --context= --remote -r --url= --connection=",
    "complex": "--config= --conmon= --runtime= --hooks-dir= --network-cmd-path= --storage-opt=",
    "address": "network",
    "read": "-l= --log-level= --tlscacert= --tlscert= --tlskey=",
    "subs": {
        **{
            f"{thing} {verb}": _TELL
            for thing in _OBJECTS
            for verb in (
                "ls",
                "list",
                "inspect",
                "ps",
                "logs",
                "top",
                "stats",
                "df",
                "info",
                "history",
                "port",
                "diff",
                "exists",
                "events",
            )
        },
        **{f"{thing} {verb}": _GONE for thing in _OBJECTS for verb in ("rm", "remove", "prune", "delete", "leave")},
        **{
            f"{thing} {verb}": _CHANGE
            for thing in _OBJECTS
            for verb in (
                "create",
                "stop",
                "start",
                "restart",
                "kill",
                "pause",
                "unpause",
                "rename",
                "update",
                "tag",
                "commit",
                "use",
                "connect",
                "disconnect",
                "load",
                "save",
                "import",
                "export",
                "cp",
            )
        },
        **{
            f"{thing} {verb}": _NET
            for thing in _OBJECTS
            for verb in ("pull", "push", "build", "run", "install", "init", "join", "deploy")
        },
        **_subs(
            ("ps,images,logs,inspect,info,version,top,stats,port,diff,history,events,help,wait", _TELL),
            (
                "stop,start,restart,kill,pause,unpause,rename,update,tag,commit,create,save,load,import,export,cp,attach",
                _CHANGE,
            ),
            ("pull,push,login,logout,search,build,scan,scout,deploy,buildx,bake", _NET),
            ("rm,rmi", _GONE),
        ),
        "run": {**_NET, "judge": "container_run"},
        "container run": {**_NET, "judge": "container_run"},
        "exec": {"judge": "container_exec", "why": "runs in a container"},
        "container exec": {"judge": "container_exec", "why": "runs in a container"},
        **{f"compose {verb}": _TELL for verb in ("ps", "logs", "images", "ls", "top", "version", "port", "events")},
        **{
            f"compose {verb}": _CHANGE
            for verb in ("stop", "start", "restart", "kill", "pause", "unpause", "create", "cp")
        },
        **{f"compose {verb}": _NET for verb in ("up", "pull", "push", "build", "run", "watch")},
        "compose down": {**_GONE, "why": "removes containers and networks"},
        "compose rm": _GONE,
        "compose config": {**_TELL, "mutating": "-o=> --output=> --lock-image-digests"},
        "manifest inspect": _NET,
        "compose exec": {"judge": "container_exec", "why": "runs in a container"},
        "compose": {"category": "unknown"},
    },
}
_COMPOSE: Row = {
    **_DOCKER,
    "read": "-f= -p= --file= --project-name= --profile= --env-file=",
    "subs": {name[8:]: found for name, found in _DOCKER["subs"].items() if name.startswith("compose ")},
}
_CLUSTER: Row = {"category": "network", "why": "talks to a cluster"}
_CLUSTER_GONE: Row = {"category": "destructive", "why": "deletes in a cluster", "lost": "what it names in the cluster"}

ROWS: dict[str, Row] = {
    "docker podman nerdctl": _DOCKER,
    "docker-compose podman-compose": _COMPOSE,
    "buildah skopeo crane kaniko ko": _NET,
    "kubectl oc k3s kubecolor": {
        "judge": "subs",
        "default": "network",
        "bare": "read-only",
        "why": "talks to a cluster",
        "read": "-n= --namespace= --context= --cluster= --kubeconfig= -s= --server= --user= --token= --as=",
        "subs": {
            "delete": _CLUSTER_GONE,
            "drain": _CLUSTER_GONE,
            "replace": {**_CLUSTER, "destructive": "--force", "lost": "the object"},
            "exec": {**_CLUSTER, "judge": "cluster_exec"},
            "edit": _CLUSTER,
            "config": {"category": "mutating", "why": "changes its settings"},
            "config view": _TELL,
            "config get-contexts": _TELL,
            "config current-context": _TELL,
            "help": _TELL,
            "completion": _TELL,
            "apply": {**_CLUSTER, "destructive": "--prune", "lost": "objects that the files do not name"},
        },
    },
    "helm helmfile": {
        "judge": "subs",
        "default": "network",
        "bare": "read-only",
        "subs": {
            "uninstall": _CLUSTER_GONE,
            "delete": _CLUSTER_GONE,
            "destroy": _CLUSTER_GONE,
            "help": _TELL,
            "env": _TELL,
            "version": _TELL,
            "create": {"category": "mutating", "why": "makes a chart"},
            "lint": {"category": "unknown"},
            "template": _CLUSTER,
        },
    },
    "minikube kind k9s argocd flux istioctl kubeadm kustomize skaffold tilt": {
        "judge": "subs",
        "default": "network",
        "bare": "network",
        "subs": {"delete": _CLUSTER_GONE, "reset": _CLUSTER_GONE},
    },
    "terraform tofu pulumi terragrunt": {
        "judge": "subs",
        "default": "network",
        "bare": "read-only",
        "probe": "-v -version version",
        "asks": "network",
        "style": "single",
        "read": "-chdir=",
        "subs": {
            "destroy": {"category": "destructive", "why": "destroys what was built", "lost": "what the state names"},
            "apply": {
                "category": "network",
                "why": "changes machines",
                "destructive": "-destroy --destroy",
                "style": "single",
                "lost": "what the state names",
            },
            "state rm": _CLUSTER_GONE,
            "workspace delete": _CLUSTER_GONE,
            "fmt": {"category": "mutating", "why": "rewrites sources", "reversible": None},
            "version": {"category": "network", "why": "asks whether there is a newer one"},
            "down": _CLUSTER_GONE,
            "untaint": _CLUSTER,
            "force-unlock": _CLUSTER,
        },
    },
    "qemu-img": {"category": "unknown", "why": "an image may name another one anywhere, also on a server"},
    "virsh vboxmanage VBoxManage multipass lxc lxd incus limactl colima": {
        "judge": "subs",
        "default": "unknown",
        "bare": "unknown",
        "network": "-c= --connect=",
        "subs": {
            "list": {**_TELL, "most": 0, "extra": "network"},
            "info": {**_TELL, "most": 0, "extra": "network"},
            "ls": _TELL,
            "destroy": _GONE,
            "undefine": _GONE,
            "delete": _GONE,
            "rm": _GONE,
            "purge": _GONE,
            "vol-delete": _GONE,
            "unregistervm": _GONE,
        },
    },
    "qemu-system-x86_64 qemu-system-aarch64 qemu-x86_64 firecracker": {"category": "unknown", "why": "runs a machine"},
}
