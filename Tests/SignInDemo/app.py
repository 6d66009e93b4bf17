"""A small app that signs its users in with Postern: a page and a backend, by Authlib.

It asks at each sign-in and order whether an extra check is needed, and Postern carries that out. It shows the address for deliveries only to
those who signed in with a passkey.

Reads a JSON object on standard input (issuer, client_id, client_secret, api_key, smtp_port, port), prints `listening on PORT`, and serves until it is
ended. It keeps its users in memory.
"""
import html
import json
import os
import pathlib
import secrets
import smtplib
import string
import sys
from http.cookies import SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, urlencode, urlsplit

import requests
from authlib.integrations.requests_client import OAuth2Session
from authlib.jose import JsonWebKey, jwt
from authlib.oidc.core import CodeIDToken

# All is on loopback here: an app out there has https.
os.environ["AUTHLIB_INSECURE_TRANSPORT"] = "1"
setup = json.loads(sys.stdin.readline())
metadata = requests.get(setup["issuer"] + "/.well-known/openid-configuration", timeout=30).json()
layout = string.Template(pathlib.Path(__file__).with_name("index.html").read_text())
waiting, users, checking = {}, {}, {}


def client(state=None):
    return OAuth2Session(
        setup["client_id"], setup["client_secret"], scope="openid email profile", redirect_uri=f"{origin}/back", state=state,
        token_endpoint_auth_method="client_secret_basic", code_challenge_method="S256")


class App(BaseHTTPRequestHandler):
    def do_GET(self):
        path = urlsplit(self.path).path
        routes = {
            "/": self.home, "/sign-in": self.sign_in, "/back": self.back, "/sign-out": self.sign_out,
            "/welcome": self.welcome, "/checked": self.checked, "/delivery": self.delivery}
        routes.get(path, lambda: self.page("<p>There is no such page.</p>", 404))()

    def do_POST(self):
        routes = {"/write": self.write, "/order": self.order}
        routes[self.path]() if self.path in routes and self.user else self.redirect("/")

    @property
    def cookie(self):
        found = SimpleCookie(self.headers.get("Cookie", "")).get("juice")
        return found.value if found else None

    @property
    def user(self):
        return users.get(self.cookie)

    def home(self):
        if not self.user:
            return self.page('<p>Fresh every morning.</p><p><a class="button" id="in" href="/sign-in">Sign in with Postern</a></p>')
        known = "".join(
            f"<dt>{name}</dt><dd><code id=\"{name}\">{html.escape(str(value))}</code></dd>"
            for name, value in self.user.items() if name in ("sub", "email", "is_private_email", "amr", "acr"))
        self.page(
            f"<p>You are signed in. All that we know about you:</p><dl>{known}</dl>"
            '<form method="post" action="/write"><button id="write">Send me a message</button></form>'
            '<form method="post" action="/order"><button id="order">Order a hundred bottles</button></form>'
            '<p><a id="delivery" href="/delivery">Where it is delivered</a></p>'
            '<p><a id="out" href="/sign-out">Sign out</a></p>')

    def sign_in(self, **parameters):
        browser, nonce, verifier = secrets.token_urlsafe(16), secrets.token_urlsafe(16), secrets.token_urlsafe(48)
        url, state = client().create_authorization_url(
            metadata["authorization_endpoint"], nonce=nonce, code_verifier=verifier, **parameters)
        waiting[browser] = (state, nonce, verifier)
        self.redirect(url, browser)

    def back(self):
        state, nonce, verifier = waiting.pop(self.cookie, (None, None, None))
        if "error=" in self.path or state is None:
            return self.page('<p id="error">You did not sign in.</p><p><a href="/">Back</a></p>')
        # Authlib compares the state, and PKCE ties the code to this browser.
        token = client(state).fetch_token(
            metadata["token_endpoint"], authorization_response=origin + self.path, code_verifier=verifier)
        keys = JsonWebKey.import_key_set(requests.get(metadata["jwks_uri"], timeout=30).json())
        claims = jwt.decode(
            token["id_token"], keys, claims_cls=CodeIDToken,
            claims_options={"iss": {"essential": True, "value": setup["issuer"]}},
            claims_params={"client_id": setup["client_id"], "nonce": nonce})
        claims.validate()
        # Another session than before: what someone planted is worth nothing.
        session = secrets.token_urlsafe(16)
        users[session] = dict(claims, identity_token=token["id_token"], nonce=nonce)
        self.redirect("/welcome", session)

    def welcome(self):
        if not self.user:
            return self.redirect("/")
        # The first one is the sign-up.
        self.decide("sign_in", {name: self.user[name] for name in ("identity_token", "nonce")}, lambda app: app.redirect("/"))

    def order(self):
        self.decide("sensitive_action", {"sub": self.user["sub"]}, lambda app: app.page('<p id="ordered">Ordered.</p><p><a href="/">Back</a></p>'))

    # The whole integration of decisions and of checks: from here …
    def decide(self, event, account, then):
        state = secrets.token_urlsafe(16)
        question = {"event": event, "client_id": setup["client_id"], "challenge": {"redirect_uri": f"{origin}/checked", "state": state}}
        answer = requests.post(
            setup["issuer"] + "/v1/decisions", json=question | account, headers={"Authorization": f"Bearer {setup['api_key']}"}, timeout=1).json()
        if answer["decision"] == "allow":
            return then(self)
        checking[self.cookie] = (state, answer["decision_id"], then)
        self.redirect(answer["challenge_url"])

    def checked(self):
        answer = dict(parse_qsl(urlsplit(self.path).query))
        state, decision, then = checking.pop(self.cookie, (None, None, None))
        if state is None or answer.get("state") != state or "check_result" not in answer:
            return self.page('<p id="error">The check was not passed.</p><p><a href="/">Back</a></p>')
        keys = JsonWebKey.import_key_set(requests.get(metadata["jwks_uri"], timeout=30).json())
        expected = {"iss": setup["issuer"], "aud": setup["client_id"], "decision_id": decision, "outcome": "passed"}
        options = {name: {"essential": True, "value": value} for name, value in expected.items()}
        jwt.decode(answer["check_result"], keys, claims_options=options).validate()
        then(self)
    # … to here.

    def delivery(self):
        # A step up: who signed in by a code signs in once more, with a passkey (RFC 9470).
        if not self.user or self.user.get("acr") != "phr":
            return self.sign_in(acr_values="phr")
        self.page('<p id="place">12 Orchard Lane.</p><p><a href="/">Back</a></p>')

    def sign_out(self):
        user = users.pop(self.cookie, {})
        query = {"id_token_hint": user.get("identity_token", ""), "post_logout_redirect_uri": origin + "/"}
        self.redirect(metadata["end_session_endpoint"] + "?" + urlencode(query))

    def write(self):
        to = self.user["email"]
        text = f"From: The Juice Company <hello@juice.example>\r\nTo: {to}\r\nSubject: Your first juice\r\n\r\nIt is on the house.\r\n"
        try:
            with smtplib.SMTP("127.0.0.1", setup["smtp_port"], timeout=30) as server:
                server.sendmail("hello@juice.example", [to], text)
            self.page('<p id="sent">Sent.</p><p><a href="/">Back</a></p>')
        except smtplib.SMTPException as error:
            refused = getattr(error, "recipients", {}).get(to) or (getattr(error, "smtp_code", 0), getattr(error, "smtp_error", b""))
            self.page(f'<p id="refused">Refused: {refused[0]} {html.escape(refused[1].decode())}</p><p><a href="/">Back</a></p>')

    def page(self, content, status=200):
        body = layout.substitute(content=content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def redirect(self, where, session=None):
        self.send_response(303)
        self.send_header("Location", where)
        if session:
            self.send_header("Set-Cookie", f"juice={session}; Path=/; HttpOnly; SameSite=Lax")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", setup["port"]), App)
origin = f"http://localhost:{server.server_port}"
print(f"listening on {server.server_port}", flush=True)
server.serve_forever()
