"""Server-to-server notifications at an app that checks them with PyJWT, and at one that checks them with joserfc (Authlib's)."""

import json
import time

import jwt
import requests
from joserfc import jwt as jose
from joserfc.jwk import KeySet

from sandbox import CLIENT, ISSUER, Receiver, ok, running

receiver = Receiver()

with running(receiver=receiver) as sandbox:
    keys = jwt.PyJWKClient(f"{sandbox.url}/auth/keys", cache_keys=True, cooldown_duration=0)
    seen, sub = [], sandbox.sub("anna")["sub"]

    def with_pyjwt(payload):
        try:
            key = keys.get_signing_key_from_jwt(payload)
            return jwt.decode(payload, key.key, algorithms=["RS256"], audience=CLIENT, issuer=ISSUER)
        except (jwt.PyJWKClientError, jwt.InvalidTokenError):
            return None

    def with_joserfc(payload):
        try:
            found = jose.decode(payload, KeySet.import_key_set(requests.get(f"{sandbox.url}/auth/keys").json()), algorithms=["RS256"])
            rules = jose.JWTClaimsRegistry(
                now=lambda: int(time.time()), leeway=5, iss={"essential": True, "value": ISSUER}, aud={"essential": True, "value": CLIENT})
            rules.validate(found.claims)
            return found.claims
        except Exception:
            return None

    def take(read):
        ids = set()

        def handle(payload):
            claims = read(payload)
            if claims is None:
                return 400
            if claims["jti"] in ids:
                seen.append("repeated")
                return 200
            ids.add(claims["jti"])
            event = claims["events"]
            event = json.loads(event) if isinstance(event, str) else event
            seconds = event["event_time"] / 1000 if event["event_time"] > 10**11 else event["event_time"]
            assert abs(seconds - time.time()) < 60 and event["sub"] == sub
            seen.append(event["type"])
            return 200

        return handle

    for name, read in [("pyjwt", with_pyjwt), ("joserfc", with_joserfc)]:
        receiver.handle = take(read)
        for dialect in ["wire", "documentation"]:
            for type in ["email-disabled", "email-enabled", "consent-revoked", "account-deleted", "account-delete", "something-new"]:
                seen.clear()
                sent = sandbox.order("events", type=type, user="anna", client_id=CLIENT, dialect=dialect)
                ok(f"{name} {dialect} {type}", seen == [type] and sent["deliveries"][0]["status"] == 200, sent)
                sandbox.order("reset")
        seen.clear()
        sent = sandbox.order("events", type="email-disabled", user="anna", client_id=CLIENT, times=2)
        ok(f"{name} a duplicate", seen == ["email-disabled", "repeated"] and len(sent["deliveries"]) == 2, sent)
        sandbox.order("failures", on="events", failure="replay")
        sandbox.order("events", type="email-enabled", user="anna", client_id=CLIENT)
        ok(f"{name} replay", seen[-1] == "repeated", seen)
        seen.clear()
        for failure in ["wrong-signature", "unknown-kid", "wrong-issuer", "wrong-audience", "expired"]:
            sandbox.order("failures", on="events", failure=failure)
            sent = sandbox.order("events", type="account-deleted", user="anna", client_id=CLIENT)
            ok(f"{name} {failure}", seen == [] and sent["deliveries"][0]["status"] == 400, sent)
            sandbox.order("reset")
        # Keys that were replaced unannounced are fetched again.
        sandbox.order("keys", count=3)
        sandbox.order("events", type="email-disabled", user="anna", client_id=CLIENT)
        ok(f"{name} after a rotation", seen == ["email-disabled"], seen)
        sandbox.order("reset")

    receiver.handle = lambda payload: 500
    sent = sandbox.order("events", type="email-disabled", user="anna", client_id=CLIENT)
    ok("an app that fails", sent["deliveries"] == [{"status": 500, "detail": "the app refused email-disabled, and Apple does not repeat it"}], sent)
    receiver.server.shutdown()
    receiver.server.server_close()
    sent = sandbox.order("events", type="email-disabled", user="anna", client_id=CLIENT)
    ok("an app that is not there", "status" not in sent["deliveries"][0] and "was not delivered" in sandbox.cause(), sent)
