#!/usr/bin/env python3
"""A transmitter of the Shared Signals Framework that is polled, written from RFC 8417, 8936, 9493 and SSF 1.0 on PyJWT alone.

It serves its keys at /jwks and its stream at /poll, fails in several ways before it works, and writes what it is told to standard output.
"""
import http.server, json, os, re, time
import jwt
from cryptography.hazmat.primitives.asymmetric import rsa

ISSUER, AUDIENCE, SUBJECT, NOW = os.environ["ISSUER"], os.environ["AUDIENCE"], os.environ["SUBJECT"], int(os.environ["NOW"])
own, other = (rsa.generate_private_key(public_exponent=65537, key_size=2048) for _ in range(2))
jwk = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(own.public_key()))
jwk.update(kid="k1", use="sig", alg="RS256")
BASE = "https://schemas.openid.net/secevent/"


def token(jti, uri, payload, key=own, header=None, **changes):
    claims = {"iss": ISSUER, "aud": AUDIENCE, "iat": NOW, "jti": jti, "txn": "t" + jti,
              "sub_id": {"format": "iss_sub", "iss": ISSUER, "sub": SUBJECT}, "events": {uri: payload}}
    claims.update(changes)
    return jwt.encode(claims, key, "RS256", headers=header or {"kid": "k1", "typ": "secevent+jwt"})


queue = {f"j{n}": token(f"j{n}", BASE + "caep/event-type/session-revoked",
                        {"event_timestamp": NOW - 100 + n, "reason_admin": {"en": "why"}}) for n in range(150)}
queue["last"] = token("last", BASE + "risc/event-type/credential-compromise", {"credential_type": "password"})
queue["stranger"] = token("stranger", BASE + "risc/event-type/account-disabled", {}, key=other)
queue["elsewhere"] = token("elsewhere", BASE + "risc/event-type/account-disabled", {}, aud="com.elsewhere")
queue["identity"] = token("identity", BASE + "risc/event-type/account-disabled", {}, header={"kid": "k1", "typ": "JWT"})
queue["renamed"] = token("another", BASE + "caep/event-type/session-established", {})
queue["garbage"] = "not.a.token"
failures = ["500", "garbage", "close", "redirect"]


class Transmitter(http.server.BaseHTTPRequestHandler):
    def answer(self, status, body, kind="application/json"):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        if status == 302:
            self.send_header("Location", "/jwks")
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        self.answer(200, {"keys": [jwk]})

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.headers.get("Authorization") != "Bearer " + os.environ["TOKEN"]:
            return self.answer(401, {})
        assert self.headers["Content-Type"] == "application/json", self.headers
        assert isinstance(request.get("maxEvents", 0), int) and isinstance(request.get("returnImmediately", False), bool)
        failure = failures.pop(0) if failures else None
        if failure == "close":
            self.close_connection = True
            return
        if failure:
            return self.answer({"500": 500, "garbage": 200, "redirect": 302}[failure], b"<html>\xff")
        for jti in request.get("ack", []):
            print("ack", jti, flush=True)
            queue.pop(jti, None)
        for jti, error in request.get("setErrs", {}).items():
            assert set(error) == {"err", "description"} and re.fullmatch("[a-z_]+", error["err"]), error
            print("err", jti, error["err"], flush=True)
            queue.pop(jti, None)
        sets = dict(list(queue.items())[: request.get("maxEvents", 1000)])
        if not queue:
            print("empty", flush=True)
        self.answer(200, {"sets": sets, "moreAvailable": len(sets) < len(queue)})

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Transmitter)
print("port", server.server_address[1], flush=True)
server.serve_forever()
