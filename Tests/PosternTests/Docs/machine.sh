#!/usr/bin/env bash
# machine.sh REPOSITORY POSTERN PAGE BLOCK: runs a shell block of a page as it stands, on a copy of this machine that no one else sees:
# files, processes and network are its own, and gone when it ends. As root, in new namespaces: unshare --mount --net --pid --fork --kill-child.
# Before/PAGE.sh, where there is one, makes what the reader of the page has by then. Stands in, as nothing else can be had here:
#   make, swift     only look whether the target, or the tests, exist
#   systemctl       starts and stops the relay as the unit does, without systemd
#   postern serve   and sandbox end once they answer
set -euo pipefail
repository=$1 program=$2 page=$3 block=$4

if [ "${5:-}" != inside ]; then
    copy=$(dirname "$block")/copy
    mkdir "$copy"
    mount --make-rprivate /
    mount -t tmpfs tmpfs "$copy"
    mkdir "$copy/changes" "$copy/work" "$copy/root"
    mount -t overlay overlay -o "lowerdir=/,upperdir=$copy/changes,workdir=$copy/work" "$copy/root"
    mount -t proc proc "$copy/root/proc"
    mount --rbind /dev "$copy/root/dev"
    # What changes beneath an overlay while others work is undefined, and /tmp is where they do.
    mount -t tmpfs -o mode=1777 tmpfs "$copy/root/tmp"
    mount -t tmpfs -o mode=0755 tmpfs "$copy/root/run"
    mkdir -p "$copy/root$repository" "$copy/root/usr/share/docs-test"
    mount --bind "$repository" "$copy/root$repository"
    touch "$copy/root/usr/bin/postern"
    mount --bind "$program" "$copy/root/usr/bin/postern"
    cp "$block" "$copy/root/usr/share/docs-test/block"
    exec chroot "$copy/root" /usr/bin/env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
        DEBIAN_FRONTEND=noninteractive bash "$repository/Tests/PosternTests/Docs/machine.sh" "$repository" "$program" "$page" \
        /usr/share/docs-test/block inside
fi

rm -rf /var/lib/postern
mkdir -p /run/lock /root/reader && cd /root/reader
records=/usr/share/docs-test/records
: >$records
echo 'nameserver 127.0.0.1' >/etc/resolv.conf
echo '127.0.0.1 localhost mx.relay.example mx db.example' >/etc/hosts
coproc WORLD { exec /usr/bin/python3 "$repository/scripts/world.py" $records; }
read -r -u "${WORLD[0]}" _

# What the blocks and Before use.
record() { echo "$*" >>$records; }   # OWNER TXT|A VALUE
replace() { sed -i "s|$1|$2|g" /usr/share/docs-test/block; }
until_true() { local -; set +x; for _ in $(seq 600); do "$@" >/dev/null 2>&1 && return; sleep 0.1; done; echo "never true: $*" >&2; return 1; }
answers() { command curl -fsS --max-time 2 "$@"; }

# An installation with a team, an app, and a user with an address.
installation() {
    command postern init --directory /var/lib/postern --relay-domain relay.example --operator-address you@home.example "$@" >/dev/null
    export POSTERN_CONFIG=/var/lib/postern/postern.yaml
    sed -i 's|^# hostname:.*|hostname: mx.relay.example|' $POSTERN_CONFIG
}
juice() {
    command postern team add juice --name "The Juice Company"
    command postern source add juice juice.example
    command postern app add juice com.example.juice --redirect-uri https://juice.example/signed-in
    command postern user add jane --name "Jane Doe" --inbox jane@home.example --verified
    address=$(command postern address issue juice jane)
}
set_key() { sed -i "/^$1:/a\\  $2: $3" "$POSTERN_CONFIG"; }   # SECTION KEY VALUE
# The package, built from the program under test, and the command as it installs it.
package() {
    umount /usr/bin/postern && rm /usr/bin/postern
    (cd "$repository" && DEB_COMPRESSION=none scripts/deb "$program" /root/reader >/dev/null)
    [ -e postern_0.1.0_amd64.deb ] || mv postern_*.deb postern_0.1.0_amd64.deb
    export POSTERN_CONFIG=/var/lib/postern/postern.yaml
}
# All that doctor may find by then is what its page says further down: records to publish, a mailbox for reports, a certificate,
# a page for users.
doctor() {
    command postern doctor >/tmp/doctor.log || [ $? = 1 ]
    ! grep -vE '^ok|^ |certificate|no key in the DNS|reports go to|no page is configured|^$' /tmp/doctor.log
}
own_user() {
    id postern >/dev/null 2>&1 || useradd --system --home-dir /var/lib/postern --shell /usr/sbin/nologin postern
    chown -R postern: /var/lib/postern
}
sandbox() {
    command postern sandbox >/tmp/sandbox.log &
    until_true answers http://127.0.0.1:8899/readyz
    until_true grep -q ' SMTP=' /tmp/sandbox.log
    eval "$(grep -E '^  [A-Z_]{2,}=' /tmp/sandbox.log)"
}
service() {
    command postern serve >/tmp/serve.log 2>&1 &
    until_true answers "${1:-http://127.0.0.1:8890}/readyz" || { cat /tmp/serve.log; return 1; }
}
mail_system() {
    postconf -e 'inet_interfaces=127.0.0.1, 192.0.2.1' inet_protocols=ipv4 myhostname=mx.relay.example maillog_file=/var/log/mail.log \
        smtp_host_lookup=dns
    postfix start 2>/dev/null
}
# A certificate that everyone here trusts, for names on an address that counts as public.
certificate() {
    local names="" host
    for host in "$@"; do names="$names,DNS:$host"; record "$host A 9.9.9.10"; echo "9.9.9.10 $host" >>/etc/hosts; done
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj "/CN=$1" -addext "subjectAltName=${names#,}" \
        -keyout /tmp/server.key -out /tmp/server.crt 2>/dev/null
    cat /tmp/server.crt >>/etc/ssl/certs/ca-certificates.crt
}
# Whoever is asked over HTTPS: answers every request with a file, and a POST with nothing.
https_server() {
    /usr/bin/python3 - "$1" <<'PYTHON' &
import http.server, ssl, sys
body = open(sys.argv[1], "rb").read()
class Handler(http.server.BaseHTTPRequestHandler):
    def answer(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    do_GET = do_POST = answer
    def log_message(self, *arguments): pass
server = http.server.ThreadingHTTPServer(("9.9.9.10", 443), Handler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain("/tmp/server.crt", "/tmp/server.key")
server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
PYTHON
    until_true answers "https://$2/"
}
postgres() {
    mkdir -p /tmp/postgres /run/postgresql && chown postgres /tmp/postgres /run/postgresql
    runuser -u postgres -- /usr/lib/postgresql/15/bin/initdb -A trust -D /tmp/postgres/data >/dev/null
    runuser -u postgres -- /usr/lib/postgresql/15/bin/pg_ctl -D /tmp/postgres/data -l /tmp/postgres/log -w start >/dev/null
    export PGUSER=postgres
}

make() { command make --no-print-directory -n -C "$repository" "$@" >/dev/null; }
swift() {
    [ "$1 $2" = "test --filter" ] || { echo "swift $*: not known here" >&2; return 1; }
    case "$3" in
    *.*) grep -rqE "(struct|class) ${3#*.}\b" "$repository/Tests/${3%%.*}" ;;
    *) [ -d "$repository/Tests/$3" ] ;;
    esac
}
until_it_answers() {
    command postern "$@" &
    local served=$! port=8890
    [ "$1" = serve ] || port=8899
    until_true answers http://127.0.0.1:$port/readyz
    kill -TERM $served
    wait $served
}
postern() {
    case "$1" in
    serve | sandbox) until_it_answers "$@" ;;
    doctor) doctor ;;
    *) command postern "$@" ;;
    esac
}
# A refusal over HTTP is one of the block too.
curl() { command curl --fail-with-body "$@"; }
cat >/usr/local/bin/systemctl <<'SYSTEMCTL'
#!/usr/bin/env bash
set -eu
start() {
    runuser -u postern -- env POSTERN_CONFIG=/var/lib/postern/postern.yaml postern config check
    runuser -u postern -- env POSTERN_CONFIG=/var/lib/postern/postern.yaml postern serve >/tmp/serve.log 2>&1 &
    echo $! >/tmp/serve.pid
    for _ in $(seq 600); do curl -fs http://127.0.0.1:8890/readyz >/dev/null && return; sleep 0.1; done
    cat /tmp/serve.log; exit 1
}
stop() { pkill -TERM -f 'postern serve'; while pgrep -f 'postern serve' >/dev/null; do sleep 0.1; done; }
case "$*" in
"enable --now postern" | "start postern") start ;;
"stop postern") stop ;;
"restart postern") stop; start ;;
*) echo "systemctl $*: not known here" >&2; exit 64 ;;
esac
SYSTEMCTL
chmod +x /usr/local/bin/systemctl

echo 'APT::Get::Assume-Yes "true";' >/etc/apt/apt.conf.d/99-docs-test

first=$(head -1 /usr/share/docs-test/block)
# shellcheck source=/dev/null
before=$repository/Tests/PosternTests/Docs/Before/$page.sh
# The pages of a subject (OPERATING-KEYS, …) share one.
[ -e "$before" ] || before=$repository/Tests/PosternTests/Docs/Before/${page%%-*}.sh
[ ! -e "$before" ] || . "$before"
# Where a line fails, the reader stops; and so they do where the first half of one fails, which bash would forgive.
sed -i 's/ && /\n/g' /usr/share/docs-test/block
set -x
. /usr/share/docs-test/block
set +x
type afterwards >/dev/null 2>&1 && afterwards
echo "machine.sh: the block ran"
