"""What connects."""

from __future__ import annotations

from typing import Any

#: Options of any sub-command that load code or start programs.
_HG_LOADS = "--config= --debugger --profile --pager= --tool="
_DELETES = {"category": "destructive", "why": "deletes on a server", "lost": "what it names on the server"}

ROWS: dict[str, dict[str, Any]] = {
    "curl": {
        "judge": "fetch",
        "category": "network",
        "why": "talks to a server",
        "mutating": "-o=> --output=> -c=> --cookie-jar=> -D=> --dump-header=> --trace=> --trace-ascii=> "
        "--stderr=> --etag-save=> "
        "--hsts=> --alt-svc=> --libcurl=>",
        "read": "-X= -H= -d= -u= -A= -e= -b= -F= -T= -K= -m= -x= -E= -w= -y= -Y= -z= -r= -C= -P= -Q= "
        "-t= -U= --request= --header= --data= "
        "--data-raw= --data-binary= --data-urlencode= --json= --user= --user-agent= "
        "--referer= --cookie= --form= --upload-file= "
        "--config= --max-time= --connect-timeout= --proxy= --cert= --key= --cacert= --retry= "
        "--write-out= --url= --output-dir= --resolve=",
    },
    "wget": {
        "judge": "fetch",
        "category": "network",
        "why": "downloads",
        "complex": "--use-askpass=",
        "mutating": "-O=> "
        "--output-document=> -o=> --output-file=> -a=> --append-output=> --save-cookies=> "
        "--warc-file=>",
        "read": "-P= -t= -T= -w= -Q= -i= -U= -e= --tries= --timeout= --header= --user= --password= "
        "--post-data= --directory-prefix=",
    },
    "wget2 aria2c axel http https httpie xh lynx w3m links elinks ftp lftp tftp sftp "
    "telnet nc ncat netcat socat ping ping6 "
    "fping dig nslookup host drill whois traceroute traceroute6 tracepath mtr nmap "
    "masscan zmap arping tcpdump tshark "
    "rlogin rsh rcp rexec svn  smbclient mail mailx mutt sendmail msmtp ssh-copy-id "
    "ssh-keyscan mosh "
    "iperf iperf3 ab wrk hey k6 siege websocat grpcurl openconnect openvpn wg-quick "
    "ngrok cloudflared tailscale rtorrent "
    "transmission-cli youtube-dl yt-dlp  ntpdate  resolvectl avahi-browse snmpget "
    "snmpwalk ldapsearch "
    "kinit  showmount rpcinfo adb fastboot vagrant packer ansible ansible-playbook salt "
    "puppet chef-client  "
    "doctl linode-cli hcloud oci ibmcloud openstack heroku flyctl fly vercel netlify "
    "wrangler firebase sentry-cli "
    "glab hub jira circleci travis nomad consul vault  mc s3cmd azcopy s5cmd": {
        "category": "network",
        "why": "connects",
    },
    "scp": {"category": "network", "why": "copies over the network", "complex": "-S= -o="},
    "ssh": {
        "judge": "ssh",
        "category": "network",
        "why": "connects",
        "read": "-b= -c= -D= -E= -e= -F= -I= -i= -J= -L= -l= -m= -O= -o= -p= -Q= -R= -S= -W= -w= -B= -P=",
    },
    "autossh": {"category": "network", "why": "connects"},
    "openssl": {
        "judge": "subs",
        "default": "unknown",
        "bare": "complex",
        "probe": "version",
        "subs": {
            **{
                name: {
                    "why": "works on keys and certificates",
                    "style": "single",
                    "mutating": "-out=> -keyout=> -CAcreateserial -CA= -CAserial=> -certsout=> -writerand=>",
                    "address": "network",
                    "complex": "-engine= -provider= -provider-path= -config=",
                    "network": "-url= -crl_download",
                    "read": "-in= -inform= -outform= -passin= -key=  -CAfile= ",
                }
                for name in [
                    "x509",
                    "req",
                    "rsa",
                    "pkey",
                    "ec",
                    "dsa",
                    "dgst",
                    "enc",
                    "rand",
                    "base64",
                    "verify",
                    "asn1parse",
                    "crl",
                    "pkcs12",
                    "pkcs7",
                    "pkcs8",
                    "cms",
                    "genrsa",
                    "genpkey",
                    "ecparam",
                    "passwd",
                    "sha256",
                    "sha1",
                    "md5",
                    "prime",
                    "list",
                    "ciphers",
                    "version",
                    "help",
                    "speed",
                    "errstr",
                ]
            },
            "s_client": {"category": "network", "why": "connects"},
            "s_server": {"category": "network"},
            "s_time": {"category": "network"},
            "ocsp": {"category": "network"},
            "cmp": {"category": "network"},
            "ca": {"category": "mutating", "why": "signs"},
            "engine": {"category": "complex"},
            "storeutl": {"category": "complex", "why": "an address may name an engine to load"},
        },
    },
    "gh": {
        "judge": "subs",
        "default": "network",
        "bare": "read-only",
        "probe": "version help",
        "subs": {
            "version": {"why": "tells"},
            "help": {"why": "tells"},
            "repo delete": _DELETES,
            "release delete": _DELETES,
            "issue delete": _DELETES,
            "gist delete": _DELETES,
            "run delete": _DELETES,
            "secret delete": _DELETES,
            "secret remove": _DELETES,
            "cache delete": _DELETES,
            "label delete": _DELETES,
            "workflow disable": {"category": "network"},
            "ssh-key delete": _DELETES,
            "variable delete": _DELETES,
            "release delete-asset": _DELETES,
            "codespace delete": _DELETES,
            "api": {
                "category": "network",
                "why": "talks to the service",
                "judge": "api",
                "read": "-X= -H= -f= -F= -q= -t= --method= --header= --field= --raw-field= --jq= --input=",
            },
        },
    },
    "aws gcloud az gsutil bq eksctl": {"judge": "cloud", "category": "network", "why": "talks to a cloud"},
    "s_client": {"category": "network", "why": "connects"},
    "hg": {
        "judge": "subs",
        "default": "unknown",
        "complex": _HG_LOADS,
        "read": "-R= --repository= --cwd=",
        "subs": {
            **{
                name: {"why": "reads", "complex": _HG_LOADS, "mutating": "-o=> --output=>", "network": "--remote"}
                for name in [
                    "status",
                    "st",
                    "log",
                    "diff",
                    "cat",
                    "annotate",
                    "branches",
                    "tags",
                    "heads",
                    "parents",
                    "summary",
                    "manifest",
                ]
            },
            **{
                name: {"category": "network", "why": "connects"}
                for name in ["pull", "push", "clone", "incoming", "outgoing", "in", "out"]
            },
            **{
                name: {"category": "mutating", "why": "records"}
                for name in ["add", "commit", "ci", "branch", "tag", "merge", "rebase", "init"]
            },
            "id": {"why": "tells", "complex": _HG_LOADS, "most": 0, "extra": "network"},
            "update": {"category": "destructive"},
            "revert": {"category": "destructive"},
            "strip": {"category": "destructive"},
            "purge": {"category": "destructive"},
        },
    },
}
