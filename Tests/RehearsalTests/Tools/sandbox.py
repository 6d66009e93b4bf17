"""A running `postern sandbox --as apple` for the scripts beside this one, and what their app needs around the library under test."""

import contextlib
import html.parser
import http.server
import json
import subprocess
import sys
import tempfile
import threading
import time

import jwt
import requests

TEAM, KEY, CLIENT = "TEAMAAAAAA", "KEYAAAAAAA", "com.example.web"
ISSUER = "https://appleid.apple.com"


def ok(name, condition, detail=""):
    """One line for each thing that was seen; the test counts them."""
    if not condition:
        sys.exit(f"failed {name}: {detail}")
    print(f"ok {name}", flush=True)


class Sandbox:
    def __init__(self, url):
        self.url = url
        self.private_key = self.key(KEY)

    def key(self, name):
        return requests.get(f"{self.url}/sandbox/keys/{name}").text

    def order(self, path, **body):
        response = requests.post(f"{self.url}/sandbox/{path}", json=body)
        if not response.ok:
            raise RuntimeError(f"{path}: {response.status_code} {response.text}")
        return response.json() if response.content else None

    def cause(self):
        """Why the newest request ended as it did."""
        return requests.get(f"{self.url}/sandbox/requests").json()[0]["cause"]

    def sub(self, user, team=TEAM):
        team = next(each for each in requests.get(f"{self.url}/sandbox").json()["teams"] if each["team_id"] == team)
        return next(each for each in team["users"] if each["id"] == user)

    def secret(self, client=CLIENT, header=None, **claims):
        """A client secret as an app makes it; claims are put over those that are right."""
        now = int(time.time())
        right = {"iss": TEAM, "iat": now, "exp": now + 3600, "aud": ISSUER, "sub": client}
        return jwt.encode(
            {name: value for name, value in {**right, **claims}.items() if value is not None},
            self.private_key, algorithm="ES256", headers={"kid": KEY, **(header or {})})

    def form(self, url):
        """What the browser posts to the app after it was sent to `url`."""
        page = requests.get(url)
        if not page.ok:
            raise RuntimeError(f"{page.status_code} {page.text}")
        return Form.of(page.text)


class Form(html.parser.HTMLParser):
    """Action and hidden fields of the page that posts itself."""

    def __init__(self):
        super().__init__()
        self.action, self.fields = None, {}

    @classmethod
    def of(cls, text):
        form = cls()
        form.feed(text)
        return form

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        if tag == "form":
            self.action = attributes["action"]
        elif tag == "input":
            self.fields[attributes["name"]] = attributes["value"]


class Receiver:
    """The app's endpoint for notifications: `handle(payload)` says which status is answered."""

    def __init__(self):
        outer = self
        self.handle = lambda payload: 200

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                assert self.headers["Content-Type"] == "application/json" and list(body) == ["payload"]
                self.send_response(outer.handle(body["payload"]))
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *arguments):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/apple/events"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@contextlib.contextmanager
def running(more="", receiver=None):
    """A sandbox of the program that the first argument names, with anna and ben, who sign in without being asked."""
    seed = f"""
{more}
teams:
  - id: {TEAM}
    keys: [{{id: {KEY}}}]
    clients:
      - id: {CLIENT}
        {f"notifications: {receiver.url}" if receiver else ""}
      - id: com.example.other
  - id: TEAMBBBBBB
    keys: [{{id: KEYBBBBBBB}}]
    clients: [{{id: com.example.buyer}}]
users:
  - {{id: anna, email: anna@example.com, first_name: Anna, last_name: Müller, hide_my_email: true}}
  - {{id: ben, email: ben@example.com, first_name: Ben, last_name: Okafor}}
"""
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        file.write(seed)
        file.flush()
        process = subprocess.Popen(
            [sys.argv[1], "sandbox", "--as", "apple", "--port", "0", "--auto", "--json", "--seed", file.name],
            stdout=subprocess.PIPE, text=True)
        try:
            text = ""
            for line in process.stdout:
                text += line
                with contextlib.suppress(ValueError):
                    facts = json.loads(text)
                    break
            else:
                sys.exit("the sandbox did not start")
            yield Sandbox(facts["url"])
        finally:
            process.terminate()
            process.wait()

