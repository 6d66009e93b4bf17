"""The commands that `status`, `doctor`, `config check` and `source check` propose: docs/OPERATING-DOCTOR.md lists them, and each is run here as it
stands, in the state that it is for. One without a state here is a fault."""
import contextlib, http.server, json, pathlib, re, socket, sqlite3, threading, time, urllib.request

from world import check

FOLDER = pathlib.Path(__file__).resolve().parent.parent
HOOK = 8099


def forms():
    """The list in docs/OPERATING-DOCTOR.md."""
    text = (FOLDER / "docs/OPERATING-DOCTOR.md").read_text()
    part = text[text.index("<!-- remedies:"):text.index("<!-- end of remedies -->")]
    return [line.split("`")[1] for line in part.splitlines() if line.startswith("| `")]


def fits(form, command):
    """Whether a command has a form: words in capitals stand for values, and where main.cf is may be added."""
    def plain(words):
        words = list(words)
        for option in ("--config-directory", "-c"):
            if option in words[:-1]: del words[words.index(option):words.index(option) + 2]
        return words
    form, command = form.split(), plain(command)
    return len(form) == len(command) and all(word.rstrip(":").isupper() or word == other for word, other in zip(form, command))


class Hook(http.server.BaseHTTPRequestHandler):
    """The endpoint of a team, which answers with a status of our choice."""
    status = 500

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(Hook.status)
        self.end_headers()

    def log_message(self, *_): pass


class Remedies:
    """`serve` begins the service and returns its process; `root` is the installation, with a team juice and a user jane."""

    def __init__(self, root, serve):
        self.root, self.serve, self.done, self.service = root, serve, set(), None

    # MARK: What is proposed

    def findings(self, *command):
        """What a command finds, as (sentence, commands)."""
        printed = json.loads(self.root.run("postern", *command, "--json", check=False).stdout)
        return [(item["sentence"], item.get("commands", [])) for item in (printed["warnings"] if isinstance(printed, dict) else printed)]

    def proposed(self, form, *command, wait=0):
        """The first proposal of a form. The service reports what it sees each few seconds: `wait` is how long it may take."""
        end = time.monotonic() + wait
        while True:
            found = self.findings(*command)
            for _, commands in found:
                for proposal in commands:
                    if fits(form, proposal): return proposal
            check(time.monotonic() < end, f"postern {' '.join(command)} proposes {form}: {found}")
            time.sleep(1)

    def take(self, form, *command, gone=True, wait=0, values={}):
        """Runs what is proposed, as it stands but for `values` of words in capitals. Afterwards it is no longer proposed (`gone`)."""
        proposal = self.proposed(form, *command, wait=wait)
        done = self.root.run(*[values.get(word, word) for word in proposal])
        self.done.add(form)
        print("    " + " ".join(proposal))
        end = time.monotonic() + wait
        while gone:
            left = [item for item in self.findings(*command) if proposal in item[1]]
            if not left: break
            check(time.monotonic() < end, f"{' '.join(proposal)} changes nothing: {left}")
            time.sleep(1)
        return done.stdout

    # MARK: States

    def store(self, statement):
        with contextlib.closing(sqlite3.connect(self.root.path / "var/lib/postern/postern.db", timeout=30)) as store, store:
            store.execute(statement)

    def configure(self, old, new):
        path = self.root.path / "var/lib/postern/postern.yaml"
        text = path.read_text()
        check(old in text, f"{old} stands in postern.yaml")
        path.write_text(text.replace(old, new, 1))

    def restart(self):
        self.service.terminate()
        check(self.service.wait(90) == 0, "postern serve ends with status 0")
        self.service = self.serve()

    def run(self, service, names, home):
        """All of them, with a service that runs and Postfix. Returns the service that runs then."""
        self.service, self.names, self.home = service, names, home
        for state in (self.files, self.postfix, self.keys, self.policies, self.events, self.users, self.rest): state()
        left = [form for form in forms() if form not in self.done]
        check(not left, f"no state here for {left}")
        return self.service

    def files(self):
        local = ("doctor", "--skip", "postfix", "--skip", "probe", "--skip", "outside")
        self.root.run("chmod", "644", "/var/lib/postern/postern.db")
        self.take("chmod 600 FILE", *local)
        self.root.run("chown", "root:", "/var/lib/postern/postern.keys")
        self.take("chown USER: FILE", *local)
        shown = self.take("postern config keys", *local, "--set", "log.level=loud", gone=False)
        check("log.level" in shown, "the keys are shown")
        with socket.create_server(("127.0.0.1", 8897)):
            listeners = self.take("ss -ltnp", "config", "check", "--set", "http.listen=127.0.0.1:8897", gone=False)
        check("127.0.0.1:8897" in listeners, f"what listens there is shown: {listeners}")
        # With one schema there is no older one. The tests have an artificial second one; a real
        # second one needs its state here.
        versions = sorted(path.name for path in (FOLDER / "Sources/Accounts/Schema").iterdir())
        check(versions == ["0001-schema"], f"a state for postern store migrate: {versions}")
        self.root.run("postern", "store", "migrate")
        self.done.add("postern store migrate")

    def postfix(self):
        outside = ("doctor", "--skip", "local", "--skip", "probe", "--skip", "outside")
        # Another Postfix, which was never set up for Postern.
        self.take("postern setup postfix", *outside, "--config-directory", "/etc/postfix-plain", gone=False)
        milters = self.root.run("postconf", "-h", "smtpd_milters").stdout.strip()
        self.root.run("postconf", "-e", f"smtpd_milters={milters}, inet:127.0.0.1:11332")
        reload = self.proposed("postfix reload", *outside)
        self.take("postern setup postfix --apply", *outside)
        self.root.run(*reload)
        self.done.add("postfix reload")
        check(self.root.run("postconf", "-h", "smtpd_milters").stdout.strip() == "inet:127.0.0.1:11332, " + milters, "Postern is the last filter")
        self.root.run("postconf", "-e", f"smtpd_milters={milters}")
        self.root.run("postfix", "stop")
        self.take("postfix start", *outside)
        self.root.run("postfix", "status")
        # After the first broken check, the others are checked only when it is fixed.
        self.service.terminate()
        self.service.wait(90)
        again = self.proposed("postern doctor", "doctor", "--skip", "outside")
        self.service = self.serve()
        check("a reply that was sent through Postfix" in self.root.run(*again, check=False).stdout, "doctor sends its messages when the rest is right")
        self.done.add("postern doctor")

    def queue(self):
        """Called with a message in the queue that no milter saw, and none in the way now."""
        shown = self.take("postern queue list", "doctor", "--skip", "outside", gone=False)
        self.take("postern queue send --all", "doctor", "--skip", "outside", wait=20)
        return shown

    def keys(self):
        self.configure('relay_domains: ["relay.example"]', 'relay_domains: ["relay.example", second.example]')
        printed = self.take("postern keys dkim generate --domain DOMAIN", "status")
        shown = self.take("postern keys dkim publish SELECTOR --domain DOMAIN", "doctor", "--skip", "local", "--skip", "postfix", "--skip", "probe", gone=False)
        check("._domainkey.second.example" in printed and "._domainkey.second.example" in shown, "the record is shown")
        self.names.publish(shown)
        self.take("postern keys dkim activate SELECTOR --domain DOMAIN", "status")
        # The next key; the first one made its last signature two weeks ago.
        self.names.publish(self.root.run("postern", "keys", "dkim", "generate", "--domain", "second.example", "--selector", "next").stdout)
        self.root.run("postern", "keys", "dkim", "activate", "next", "--domain", "second.example")
        self.store("UPDATE dkim_keys SET deactivated_at = deactivated_at - 15 * 86400 WHERE state = 'retiring'")
        self.take("postern keys dkim retire SELECTOR --domain DOMAIN", "doctor", "--skip", "local", "--skip", "postfix", "--skip", "probe")
        self.configure('relay_domains: ["relay.example", second.example]', 'relay_domains: ["relay.example"]')

    def policies(self):
        folder = self.root.path / "tmp/policy"
        folder.mkdir()
        (folder / "policy.yaml").write_text("""policy: risk-default
version: '9'
challenges: [{kind: email_code}]
defaults: {challenge: email_code}
signals: {event: string, context.ip: {type: "string?", max_length: 64}, context.sum: {type: "string?", max_length: 64}}
live_lists: {nets: range}
rules:
- {id: net, effect: require, events: [sign_up], challenge: email_code, reason: NET, condition: context.ip in lists.nets}
- {id: sum, effect: require, events: [sign_up], challenge: email_code, reason: SUM, condition: int(context.sum) > 5}
""")
        self.root.run("postern", "list", "create", "nets", "--kind", "range")
        self.root.run("postern", "policy", "activate", "/tmp/policy")
        self.root.run("postern", "list", "remove-list", "nets", "--yes")
        self.take("postern list create LIST --kind KIND", "status")
        self.root.run("postern", "app", "add", "juice", "com.example.juice")
        self.root.run("postern", "decide", "juice", "--app", "com.example.juice", "--event", "sign_up", "--sub", "001.new", "--context", "sum=much")
        shown = self.take("postern decision list --rule RULE", "status", gone=False)
        check("sign_up" in shown, f"the decision is listed: {shown}")
        # No policy is in force; the service activates the built-in one at its start.
        self.store("DELETE FROM policy_names")
        self.take("postern policy list", "doctor", "--skip", "outside", gone=False)
        self.restart()
        check("a policy is in force" in self.root.run("postern", "doctor", "--skip", "outside", check=False).stdout, "a policy is in force again")

    def events(self):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", HOOK), Hook)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.configure("# public_url: (none)", "public_url: https://relay.example")
        self.configure("# private_receivers: no", "private_receivers: yes")
        self.restart()
        self.root.run("postern", "endpoint", "set", "juice", f"http://127.0.0.1:{HOOK}/hook", "--allow-http", "--allow-private")
        key = self.root.run("postern", "api-key", "issue", "juice", "--scope", "ssf.manage").stdout.split()[-1]
        request = urllib.request.Request(
            "http://127.0.0.1:8890/ssf/stream", method="POST", headers={"Authorization": "Bearer " + key, "Content-Type": "application/json"},
            data=json.dumps({"delivery": {"method": "urn:ietf:rfc:8935", "endpoint_url": f"https://127.0.0.1:{HOOK + 1}/events"}}).encode())
        with urllib.request.urlopen(request, timeout=30) as answer: check(answer.status == 201, "a stream is made")
        self.root.run("postern", "user", "add", "ann", "--inbox", "ann@home.example", "--verified")
        address = self.root.run("postern", "address", "issue", "juice", "ann").stdout.strip()
        self.configure("private_receivers: yes", "private_receivers: no")
        self.restart()
        # An event that no endpoint accepts, and that has waited for two hours.
        self.root.run("postern", "address", "off", address)
        self.take("postern stream remove STREAM --yes", "status", wait=60)
        self.store("UPDATE outbox SET created_at = created_at - 7200, event_time = event_time - 7200000")
        shown = self.take("postern event list", "status", gone=False, wait=120)
        check("juice" in shown, f"the event is listed: {shown}")
        self.root.run("postern", "event", "park", "--team", "juice", "--yes")
        Hook.status = 202
        self.take("postern endpoint test TEAM", "status", gone=False)
        self.take("postern event retry --team TEAM", "status", wait=60)
        self.root.run("postern", "address", "on", address)
        server.shutdown()

    def users(self):
        self.root.run("postern", "user", "add", "joe", "--inbox", "joe@home.example")
        self.root.run("postern", "inbox", "verify", "joe", "1")
        _, message = self.home.next()
        code = re.search(r"Subject: (\d{3}) (\d{3}) ", message)
        check(code, f"the message has a code: {message}")
        self.take("postern inbox confirm USER INBOX --code CODE", "doctor", "--skip", "postfix", "--skip", "probe", "--skip", "outside", "--set", "http.listen=off",
                  gone=False, values={"USER": "joe", "INBOX": "1", "CODE": code[1] + code[2]})
        check("verified" in self.root.run("postern", "inbox", "list", "joe").stdout, "the inbox is verified")
        self.store("UPDATE inboxes SET suspended_at = created_at, suspended_failures = 5, suspended_rules = 1 WHERE user_id = (SELECT id FROM users WHERE handle = 'joe')")
        shown = self.take("postern inbox list USER", "status", gone=False)
        check("suspended" in shown, f"the inbox is shown: {shown}")
        self.root.run("postern", "hold", "add", "user", "joe", "--until", "3d", "--reason", "dispute 7")
        shown = self.take("postern hold list", "doctor", "--skip", "postfix", "--skip", "probe", "--skip", "outside", gone=False)
        check("dispute 7" in shown, f"the hold is shown: {shown}")
        self.root.run("postern", "hold", "end", "1", "--yes")
        self.root.run("postern", "user", "remove", "joe", "--yes")

    def rest(self):
        self.root.run("postern", "api-key", "issue", "juice", "--scope", "addresses:read", "--expires", "3d")
        self.take("postern api-key rotate KEY", "status")
        self.take("postern source add TEAM DOMAIN", "source", "check", "juice", "unknown.example", values={"TEAM": "juice"})
