#!/usr/bin/env python3
"""A receiver of the Shared Signals Framework, written from RFC 8417, 8935, 8936, 9493 and SSF 1.0 on PyJWT alone.

  ssf_receiver.py push    takes SETs over https; behaves badly first, as BEHAVIOURS says
  ssf_receiver.py poll    fetches them from the URLs in the file HOSTS until WANTED have come

What it takes it writes into the SQLite file DATABASE, once for each jti, in the order in which it came.
"""
import http.server, json, os, sqlite3, ssl, sys, time, urllib.error, urllib.request
import jwt

ISSUER, AUDIENCE = os.environ["ISSUER"], os.environ["AUDIENCE"]
KEYS = jwt.PyJWKSet.from_json(open(os.environ["KEYS"]).read())
db = sqlite3.connect(os.environ["DATABASE"], isolation_level=None, timeout=30)
db.execute("CREATE TABLE IF NOT EXISTS taken (n INTEGER PRIMARY KEY, jti TEXT UNIQUE, subject TEXT, event TEXT, claims TEXT)")


class Refused(Exception):
    """code: one of RFC 8935 section 2.4."""


def check(condition, code, what):
    if not condition:
        raise Refused(code, what)


def take(token):
    """Validates a SET and stores it; the claims."""
    header = jwt.get_unverified_header(token)
    check(header.get("typ") == "secevent+jwt", "invalid_request", "typ")
    check(header.get("alg") == "RS256", "invalid_key", "alg: the CAEP profile wants RS256")
    try:
        key = KEYS[header.get("kid")].key
        claims = jwt.decode(token, key, algorithms=["RS256"], audience=AUDIENCE, issuer=ISSUER,
                            options={"require": ["iss", "iat", "jti", "aud"]})
    except jwt.InvalidIssuerError:
        raise Refused("invalid_issuer", "iss")
    except jwt.InvalidAudienceError:
        raise Refused("invalid_audience", "aud")
    except (jwt.PyJWTError, KeyError) as error:
        raise Refused("invalid_key", str(error))
    check("sub" not in claims and "exp" not in claims, "invalid_request", "sub and exp are not for SETs")
    check(isinstance(claims.get("txn"), str), "invalid_request", "txn")
    events, subject = claims.get("events"), claims.get("sub_id")
    check(isinstance(events, dict) and len(events) == 1, "invalid_request", "events")
    uri, payload = next(iter(events.items()))
    check(isinstance(payload, dict), "invalid_request", "the event is no object")
    members = {"iss_sub": ["iss", "sub"], "email": ["email"], "opaque": ["id"]}
    check(isinstance(subject, dict) and subject.get("format") in members, "invalid_request", "sub_id")
    for name in members[subject["format"]]:
        check(isinstance(subject.get(name), str), "invalid_request", "sub_id." + name)
    if "/caep/" in uri:
        check(isinstance(payload.get("event_timestamp"), int) and payload["event_timestamp"] < 10**11, "invalid_request", "seconds")
        check(isinstance(payload.get("reason_admin"), dict) and payload["reason_admin"], "invalid_request", "reason_admin")
    db.execute("INSERT OR IGNORE INTO taken (jti, subject, event, claims) VALUES (?, ?, ?, ?)",
               (claims["jti"], subject.get("sub") or subject.get("id") or subject.get("email"), uri, json.dumps(claims)))
    return claims


class Receiver(http.server.BaseHTTPRequestHandler):
    behaviours = [word for word in os.environ.get("BEHAVIOURS", "").split(",") if word]

    def answer(self, status, body=None):
        data = b"" if body is None else json.dumps(body).encode()
        self.send_response(status)
        if body is not None:
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Language", "en")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_POST(self):
        token = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        behaviour = Receiver.behaviours.pop(0) if Receiver.behaviours else "take"
        print("request", behaviour, flush=True)
        if behaviour == "slow":
            time.sleep(float(os.environ.get("SLOW", "4")))
            return
        if behaviour == "garbage":
            self.wfile.write(b"\x00\xffnothing that is HTTP\r\n\r\n")
            self.close_connection = True
            return
        if behaviour.startswith("err:"):
            return self.answer(400, {"err": behaviour[4:], "description": "so it is"})
        if behaviour == "400":
            self.send_response(400)
            self.end_headers()
            self.wfile.write(b"{{{ not JSON")
            self.close_connection = True
            return
        if behaviour.isdigit():
            return self.answer(int(behaviour))
        try:
            check(self.headers.get("Content-Type") == "application/secevent+jwt", "invalid_request", "Content-Type")
            check(self.headers.get("Accept") == "application/json", "invalid_request", "Accept")
            check(self.headers.get("Authorization") == os.environ.get("AUTHORIZATION"), "authentication_failed", "Authorization")
            take(token)
        except Refused as refused:
            print("refused", *refused.args, flush=True)
            return self.answer(400, {"err": refused.args[0], "description": refused.args[1]})
        if behaviour == "lost":
            self.close_connection = True
            return
        self.answer(202)

    def log_message(self, *_):
        pass


def push():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(os.environ["CERTIFICATE"], os.environ["KEY"])
    server.socket = context.wrap_socket(server.socket, server_side=True)
    print("port", server.server_address[1], flush=True)
    server.serve_forever()


def poll():
    wanted, turn, acknowledged, errors, forgotten = int(os.environ["WANTED"]), 0, [], {}, False
    # What it forgot to acknowledge comes again.
    while db.execute("SELECT COUNT(*) FROM taken").fetchone()[0] < wanted or acknowledged or forgotten:
        hosts = open(os.environ["HOSTS"]).read().split()
        turn += 1
        body = {"ack": acknowledged, "setErrs": errors, "maxEvents": 7, "returnImmediately": turn % 3 != 0}
        request = urllib.request.Request(
            hosts[turn % len(hosts)], json.dumps(body).encode(),
            {"Content-Type": "application/json", "Authorization": "Bearer " + os.environ["TOKEN"]})
        try:
            answer = json.load(urllib.request.urlopen(request, timeout=40))
        except (OSError, urllib.error.URLError, json.JSONDecodeError):
            # Not answered: what was acknowledged may not have been heard, and is said again.
            time.sleep(0.1)
            continue
        acknowledged, errors, forgotten = [], {}, False
        for jti, token in answer["sets"].items():
            claims = take(token)
            check(claims["jti"] == jti, "invalid_request", "jti")
            # Now and then it forgets to say so, and gets them again.
            if turn % 5:
                acknowledged.append(jti)
            else:
                forgotten = True
        if not answer["sets"] and not answer.get("moreAvailable"):
            time.sleep(0.05)
    print("done", flush=True)


db.execute("PRAGMA journal_mode = WAL")
if sys.argv[1] == "push":
    db.close()
    db = sqlite3.connect(os.environ["DATABASE"], isolation_level=None, timeout=30, check_same_thread=False)
{"push": push, "poll": poll}[sys.argv[1]]()
