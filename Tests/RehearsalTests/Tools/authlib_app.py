"""Sign in with Apple with Authlib: sign-in, refresh, revocation, keys, and each error of TN3107 as the library gives it to an app."""

import base64
import concurrent.futures
import time

import jwt
import requests
from authlib.integrations.base_client.errors import OAuthError
from authlib.integrations.requests_client import OAuth2Session
from authlib.oidc.core import CodeIDToken, HybridIDToken
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from joserfc import jwt as jose
from joserfc.jwk import KeySet

from sandbox import CLIENT, ISSUER, ok, running

REDIRECT = "http://127.0.0.1:8000/signed-in"


def session(sandbox, client=CLIENT, secret=None):
    return OAuth2Session(
        client, secret or sandbox.secret(client), scope="name email", redirect_uri=REDIRECT,
        token_endpoint_auth_method="client_secret_post", revocation_endpoint_auth_method="client_secret_post", token_endpoint=f"{sandbox.url}/auth/token")


def authorize(sandbox, **more):
    url, state = session(sandbox).create_authorization_url(
        f"{sandbox.url}/auth/authorize", response_mode="form_post", **more)
    form = sandbox.form(url)
    assert form.action == REDIRECT and form.fields["state"] == state
    return form.fields


def exchange(sandbox, code, **how):
    return session(sandbox, **how).fetch_token(grant_type="authorization_code", code=code)


def claims(sandbox, token, kind=CodeIDToken, **params):
    keys = KeySet.import_key_set(requests.get(f"{sandbox.url}/auth/keys").json())
    options = {"iss": {"essential": True, "value": ISSUER}, "aud": {"essential": True, "value": CLIENT}}
    decoded = jose.decode(token, keys, algorithms=["RS256"])
    found = kind(decoded.claims, decoded.header, options, params)
    found.validate(now=int(time.time()), leeway=5)
    return found


def error(body):
    try:
        body()
    except OAuthError as refused:
        return refused.error
    return None


with running() as sandbox:
    metadata = requests.get(f"{sandbox.url}/.well-known/openid-configuration").json()
    ok("discovery", metadata["token_endpoint"] == f"{sandbox.url}/auth/token" and metadata["issuer"] == ISSUER, metadata)

    fields = authorize(sandbox, response_type="code id_token", nonce="n-1")
    hybrid = claims(sandbox, fields["id_token"], HybridIDToken, nonce="n-1", code=fields["code"])
    ok("sign-in: c_hash and nonce", hybrid["c_hash"] and hybrid["email"] == sandbox.sub("anna")["private_email"], hybrid)
    ok("sign-in: user", "Müller" in fields["user"], fields)
    tokens = exchange(sandbox, fields["code"])
    found = claims(sandbox, tokens["id_token"], nonce="n-1", access_token=tokens["access_token"])
    ok("sign-in: at_hash and sub", found["at_hash"] and found["sub"] == sandbox.sub("anna")["sub"], found)
    ok("sign-in: types", found["email_verified"] is True and found["is_private_email"] is True and found["nonce_supported"] is True)
    ok("second sign-in without user", "user" not in authorize(sandbox))

    refreshed = session(sandbox).refresh_token(f"{sandbox.url}/auth/token", refresh_token=tokens["refresh_token"])
    ok("refresh", claims(sandbox, refreshed["id_token"], access_token=refreshed["access_token"])["sub"] == found["sub"])

    # Keys go unannounced, and what they signed is no longer valid.
    before = requests.get(f"{sandbox.url}/auth/keys").json()["keys"]
    sandbox.order("keys", count=3)
    after = requests.get(f"{sandbox.url}/auth/keys").json()["keys"]
    ok("keys are rotated", len(after) == 3 and not {k["kid"] for k in before} & {k["kid"] for k in after}, after)
    try:
        claims(sandbox, tokens["id_token"], access_token=tokens["access_token"])
        ok("a token of an old key", False)
    except Exception as refused:
        ok("a token of an old key", "key" in f"{refused}".lower() or "kid" in f"{refused}".lower(), repr(refused))

    # Each error, with its causes: what the app gets, and what the page says.
    now = int(time.time())
    r, s = 2**250 + 1, 2**251 + 3
    head, body, _ = sandbox.secret().split(".")
    der = f"{head}.{body}." + base64.urlsafe_b64encode(encode_dss_signature(r, s)).rstrip(b"=").decode()
    for name, secret, cause in [
        ("an expired client_secret", sandbox.secret(exp=now - 3), "client_secret expired"),
        ("a client_secret for too long", sandbox.secret(exp=now + 15_778_000), "at most six months"),
        ("a client_secret without exp", sandbox.secret(exp=None), "has no claim exp"),
        ("a client_secret of another sub", sandbox.secret(sub="com.example.other"), "must be the client_id"),
        ("a client_secret of another team", sandbox.secret(iss="TEAMBBBBBB"), "must be the team"),
        ("a client_secret for another aud", sandbox.secret(aud=sandbox.url), "must be the issuer"),
        ("a client_secret of an unknown kid", sandbox.secret(header={"kid": "KEYXXXXXXX"}), "which is not a key of team"),
        ("a client_secret in DER", der, "ASN.1 DER"),
    ]:
        code = authorize(sandbox)["code"]
        ok(f"invalid_client: {name}", error(lambda: exchange(sandbox, code, secret=secret)) == "invalid_client")
        ok(f"cause: {name}", cause in sandbox.cause(), sandbox.cause())
    plain = requests.post(
        f"{sandbox.url}/auth/token", data=f"client_id={CLIENT}&client_secret=a b c", headers={"Content-Type": "application/x-www-form-urlencoded"})
    ok("invalid_client: not percent-encoded", plain.json() == {"error": "invalid_client"} and "percent-encoded" in sandbox.cause())
    ok("no-store", plain.headers["Cache-Control"] == "no-store" and plain.headers["Content-Type"] == "application/json;charset=UTF-8")

    code = authorize(sandbox)["code"]
    ok("invalid_grant: another client", error(lambda: exchange(sandbox, code, client="com.example.other")) == "invalid_grant")
    exchange(sandbox, code)
    ok("invalid_grant: a code twice", error(lambda: exchange(sandbox, code)) == "invalid_grant" and "was used" in sandbox.cause())
    code = authorize(sandbox)["code"]
    sandbox.order("clock", advance=301)
    ok("invalid_grant: an old code", error(lambda: exchange(sandbox, code)) == "invalid_grant" and "expired" in sandbox.cause())
    sandbox.order("clock", offset=0)
    ok("invalid_grant: an unknown refresh token", error(
        lambda: session(sandbox).refresh_token(f"{sandbox.url}/auth/token", refresh_token="r0")) == "invalid_grant")

    json_body = requests.post(f"{sandbox.url}/auth/token", json={"client_id": CLIENT})
    ok("invalid_request: JSON", json_body.status_code == 400 and json_body.json()["error"] == "invalid_request")
    ok("invalid_request: no code", error(lambda: session(sandbox).fetch_token(grant_type="authorization_code", code="")) == "invalid_request")
    basic = OAuth2Session(CLIENT, sandbox.secret(), token_endpoint_auth_method="client_secret_basic")
    ok("invalid_request: Basic", error(
        lambda: basic.fetch_token(f"{sandbox.url}/auth/token", grant_type="authorization_code", code="c")) == "invalid_request")
    ok("unsupported_grant_type", error(
        lambda: session(sandbox).fetch_token(grant_type="password", username="a", password="b")) == "unsupported_grant_type")
    kept = exchange(sandbox, authorize(sandbox)["code"])
    sandbox.order("events", type="consent-revoked", client_id=CLIENT, user="anna")
    ok("invalid_request: the user revoked", error(lambda: session(sandbox).refresh_token(
        f"{sandbox.url}/auth/token", refresh_token=kept["refresh_token"])) == "invalid_request" and "has revoked" in sandbox.cause())

    for name, parameters, code in [
        ("unauthorized_client", {"redirect_uri": "https://app.example/"}, "unauthorized_client"),
        ("invalid_client: authorize", {"client_id": "com.nobody"}, "invalid_client"),
        ("invalid_scope", {"scope": "name phone"}, "invalid_scope"),
        ("invalid_request: authorize", {"response_mode": "query"}, "invalid_request"),
    ]:
        asked = {"client_id": CLIENT, "redirect_uri": REDIRECT, "response_type": "code", "scope": "name", "response_mode": "form_post"}
        refused = requests.get(f"{sandbox.url}/auth/authorize", params={**asked, **parameters})
        ok(name, refused.status_code == 400 and refused.json() == {"error": code}, refused.text)

    sandbox.order("settings", cancel=True)
    ok("user_cancelled_authorize", authorize(sandbox)["error"] == "user_cancelled_authorize")
    sandbox.order("settings", auto="ben")
    ok("another user", claims(sandbox, exchange(sandbox, authorize(sandbox)["code"])["id_token"])["email"] == "ben@example.com")

    # The library's own default for revocation is Basic, which Apple refuses.
    last = exchange(sandbox, authorize(sandbox)["code"])
    revoked = session(sandbox).revoke_token(
        f"{sandbox.url}/auth/revoke", token=last["refresh_token"], token_type_hint="refresh_token")
    ok("revoke", revoked.status_code == 200 and revoked.content == b"", revoked.text)
    ok("invalid_grant: revoked", error(lambda: session(sandbox).refresh_token(
        f"{sandbox.url}/auth/token", refresh_token=last["refresh_token"])) == "invalid_grant")

    # A code that is exchanged by several at once is exchanged once.
    code = authorize(sandbox)["code"]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        outcomes = list(pool.map(lambda _: error(lambda: exchange(sandbox, code)), range(8)))
    ok("a code at once", outcomes.count(None) == 1 and outcomes.count("invalid_grant") == 7, outcomes)

    # An app goes to another team with its users (the team that buys it makes its client secrets with its own key).
    moving = session(sandbox).fetch_token(grant_type="client_credentials", scope="user.migration")

    def migrate(secret, **form):
        return requests.post(
            f"{sandbox.url}/auth/usermigrationinfo", data={"client_id": CLIENT, "client_secret": secret, **form},
            headers={"Authorization": f"Bearer {moving['access_token']}"} if "sub" in form else {})

    given = migrate(sandbox.secret(), sub=sandbox.sub("ben")["sub"], target="TEAMBBBBBB").json()
    now = int(time.time())
    bought = jwt.encode(
        {"iss": "TEAMBBBBBB", "iat": now, "exp": now + 600, "aud": ISSUER, "sub": CLIENT}, sandbox.key("KEYBBBBBBB"), algorithm="ES256",
        headers={"kid": "KEYBBBBBBB"})
    early = migrate(bought, **given)
    ok("migration before the transfer", early.json() == {"error": "invalid_client"}, early.text)
    sandbox.order("transfer", client_id=CLIENT, to="TEAMBBBBBB")
    taken = migrate(bought, **given).json()
    ok("migration", taken["sub"] == sandbox.sub("ben", "TEAMBBBBBB")["sub"] and taken["email"] == "ben@example.com", taken)
    late = claims(sandbox, exchange(sandbox, authorize(sandbox)["code"], secret=bought)["id_token"])
    ok("transfer_sub", late["sub"] == taken["sub"] and late["transfer_sub"] == given["transfer_sub"], late)
    sandbox.order("clock", advance=61 * 86_400)
    ended = migrate(bought, **given)
    ok("migration after 60 days", ended.status_code == 400 and "expired" in sandbox.cause(), sandbox.cause())
    sandbox.order("clock", offset=0)
    sandbox.order("reset")
    sandbox.order("settings", auto="ben")

    # What a service that fails looks like.
    for failure, status in [("status-500", 500), ("status-503", 503)]:
        sandbox.order("failures", on="token", failure=failure)
        try:
            exchange(sandbox, "c")
            ok(failure, False)
        except requests.HTTPError as failed:
            ok(failure, failed.response.status_code == status)
    sandbox.order("failures", on="token", failure="timeout", seconds=300)
    try:
        requests.post(f"{sandbox.url}/auth/token", data={"client_id": CLIENT}, timeout=0.3)
        ok("timeout", False)
    except requests.Timeout:
        ok("timeout", True)
    for failure in ["wrong-signature", "unknown-kid", "wrong-issuer", "wrong-audience", "expired"]:
        sandbox.order("failures", on="token", failure=failure)
        code = authorize(sandbox)["code"]
        bad = exchange(sandbox, code)["id_token"]
        try:
            claims(sandbox, bad)
            ok(failure, False)
        except Exception as refused:
            ok(failure, True)

    before = exchange(sandbox, authorize(sandbox, nonce="one")["code"])["id_token"]
    sandbox.order("failures", on="token", failure="replay")
    again = exchange(sandbox, authorize(sandbox, nonce="two")["code"])["id_token"]
    try:
        claims(sandbox, again, nonce="two")
        ok("replay", False)
    except Exception as refused:
        ok("replay", again == before and "nonce" in f"{refused}", repr(refused))
    sandbox.order("failures", on="keys", failure="no-keys")
    ok("no-keys", requests.get(f"{sandbox.url}/auth/keys").json() == {"keys": []})

    ok("the page", "client_secret" in requests.get(sandbox.url).text)
