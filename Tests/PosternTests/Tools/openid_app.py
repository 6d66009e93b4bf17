"""Signs in at a running Postern as OpenID Connect apps do: through /auth/authorize, with Authlib and PyJWT.

Reads a JSON object on standard input (issuer, page, operator_key, team_key (PEM), kid, client_id, client_secret, redirect_uri,
logout_uri, user), and prints a line for each step. Any other end is an exception.
"""
import html
import json
import re
import secrets
import sys
from urllib.parse import parse_qs, urlsplit

import jwt as pyjwt
import requests
from authlib.integrations.requests_client import OAuth2Session
from authlib.jose import JsonWebKey, jwt
from authlib.oauth2.rfc7523 import PrivateKeyJWT
from authlib.oidc.core import CodeIDToken

setup = json.load(sys.stdin)
issuer, client_id, redirect_uri = setup["issuer"], setup["client_id"], setup["redirect_uri"]
metadata = requests.get(issuer + "/.well-known/openid-configuration", timeout=30).json()


def expect(condition, what):
    if not condition:
        raise AssertionError(what)
    print(what)


def single(text):
    return {name: values[0] for name, values in parse_qs(text).items()}


def page(path, body):
    """What the backend of the operator's page does."""
    answer = requests.post(
        issuer + path, json=body, headers={"Authorization": "Bearer " + setup["operator_key"]}, timeout=30)
    answer.raise_for_status()
    return answer.json()


def callback(answer):
    """What comes back to the app: the response mode and the parameters."""
    if answer.status_code == 303:
        parts = urlsplit(answer.headers["Location"])
        return ("fragment", single(parts.fragment)) if parts.fragment else ("query", single(parts.query))
    answer.raise_for_status()
    fields = re.findall(r'<input type="hidden" name="([^"]*)" value="([^"]*)">', answer.text)
    return "form_post", {name: html.unescape(value) for name, value in fields}


def authorize(client, **parameters):
    browser, nonce, verifier = requests.Session(), secrets.token_urlsafe(16), secrets.token_urlsafe(48)
    url, state = client.create_authorization_url(
        metadata["authorization_endpoint"], nonce=nonce, code_verifier=verifier, **parameters)
    there = browser.get(url, allow_redirects=False, timeout=30).headers["Location"]
    expect(there.startswith(setup["page"]), "the request went to the sign-in page")
    request = single(urlsplit(there).query)["request"]
    asked = page("/v1/authorizations/inspect", {"request": request})
    expect(asked["client_id"] == client_id, "the page knows whose it is")
    answer = page("/v1/authorizations", {"request": request, "user": setup["user"], "amr": ["pwd"], "acr": "1"})
    mode, values = callback(browser.get(answer["continue"], allow_redirects=False, timeout=30))
    expect(values["state"] == state and values["iss"] == issuer, "state and iss came back")
    return mode, values, nonce, verifier


def check(id_token, algorithm, nonce, **hashes):
    keys = JsonWebKey.import_key_set(requests.get(metadata["jwks_uri"], timeout=30).json())
    claims = jwt.decode(
        id_token, keys, claims_cls=CodeIDToken,
        claims_options={"iss": {"essential": True, "value": issuer}, "aud": {"essential": True, "value": client_id}},
        claims_params={"client_id": client_id, "nonce": nonce, **hashes},
    )
    claims.validate()
    key = pyjwt.PyJWKClient(metadata["jwks_uri"]).get_signing_key_from_jwt(id_token)
    same = pyjwt.decode(id_token, key.key, algorithms=[algorithm], audience=client_id, issuer=issuer)
    if same != dict(claims) or same["amr"] != ["pwd"] or same["acr"] != "1":
        raise AssertionError("Authlib and PyJWT read different claims")
    return same


def session(method, secret, **more):
    client = OAuth2Session(
        client_id, secret, scope="openid email profile", redirect_uri=redirect_uri, token_endpoint_auth_method=method,
        code_challenge_method="S256", **more)
    if method == "private_key_jwt":
        client.register_client_auth_method(PrivateKeyJWT(metadata["token_endpoint"], headers={"kid": setup["kid"]}))
    return client


subjects = set()
for method, secret in [
    ("client_secret_basic", setup["client_secret"]), ("client_secret_post", setup["client_secret"]),
    ("private_key_jwt", setup["team_key"]),
]:
    for mode, response_type in [
        ("query", "code"), ("fragment", "code"), ("form_post", "code"), ("fragment", "code id_token"),
        ("form_post", "code id_token"),
    ]:
        client = session(method, secret)
        got, values, nonce, verifier = authorize(client, response_mode=mode, response_type=response_type)
        expect(got == mode, f"answered by {mode}")
        if "id_token" in response_type:
            check(values["id_token"], setup["algorithm"], nonce, code=values["code"])
        # Authlib sends a challenge with response_type code alone.
        proof = {"code_verifier": verifier} if response_type == "code" else {}
        token = client.fetch_token(
            metadata["token_endpoint"], grant_type="authorization_code", code=values["code"], **proof)
        claims = check(token["id_token"], setup["algorithm"], nonce, access_token=token["access_token"])
        info = client.get(metadata["userinfo_endpoint"], timeout=30).json()
        expect(info["sub"] == claims["sub"] and info["name"] == "Jane Doe", f"signed in by {method}")
        expect(info["email"] == claims["email"], "user info and token have the relay address")
        subjects.add(claims["sub"])
expect(len(subjects) == 1, "one user has one sub")

there = requests.get(
    metadata["end_session_endpoint"], allow_redirects=False, timeout=30,
    params={"id_token_hint": token["id_token"], "post_logout_redirect_uri": setup["logout_uri"], "state": "bye"},
).headers["Location"]
asked = page("/v1/authorizations/inspect", {"end_session": single(urlsplit(there).query)["end_session"]})
back = requests.get(asked["continue"], allow_redirects=False, timeout=30).headers["Location"]
expect(back == setup["logout_uri"] + "?state=bye", "signed out and back at the app")
