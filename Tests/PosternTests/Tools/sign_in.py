"""Signs in at a running Postern with clients that others wrote: Authlib for the flow, PyJWT's PyJWKClient for tokens.

Reads a JSON object on standard input (issuer, operator_key, team, team_key (PEM), kid, client_id, redirect_uri, user), and prints a
line for each step. Any other end is an exception.
"""
import json
import secrets
import sys
import time
from urllib.parse import parse_qs, urlsplit

import jwt as pyjwt
import requests
from authlib.integrations.base_client import OAuthError
from authlib.integrations.requests_client import OAuth2Session
from authlib.jose import JsonWebKey, jwt
from authlib.oidc.core import CodeIDToken

setup = json.load(sys.stdin)
issuer, client_id, redirect_uri = setup["issuer"], setup["client_id"], setup["redirect_uri"]


def expect(condition, what):
    if not condition:
        raise AssertionError(what)
    print(what)


def client_secret():
    now = int(time.time())
    return jwt.encode(
        {"alg": "ES256", "kid": setup["kid"]},
        {"iss": setup["team"], "sub": client_id, "aud": issuer, "iat": now, "exp": now + 300},
        setup["team_key"],
    ).decode()


def session(method="client_secret_post"):
    return OAuth2Session(
        client_id, client_secret(), scope="openid email name", redirect_uri=redirect_uri, token_endpoint_auth_method=method,
        code_challenge_method="S256",
    )


metadata = requests.get(issuer + "/.well-known/openid-configuration", timeout=30).json()
expect(metadata["issuer"] == issuer, "the discovery document names the issuer")


def sign_in(client):
    """What the app, the operator's page and Postern do: the app's request, as Authlib writes it, is passed on by the page."""
    nonce, verifier = secrets.token_urlsafe(16), secrets.token_urlsafe(48)
    url, state = client.create_authorization_url(metadata["authorization_endpoint"], nonce=nonce, code_verifier=verifier)
    asked = {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
    body = {
        "user": setup["user"], "scopes": asked["scope"].split(), "real_user_status": 2,
        **{name: asked[name] for name in ("client_id", "redirect_uri", "state", "nonce", "code_challenge", "code_challenge_method")},
    }
    answer = requests.post(
        issuer + "/v1/authorizations", json=body, headers={"Authorization": "Bearer " + setup["operator_key"]}, timeout=30)
    answer.raise_for_status()
    answer = answer.json()
    expect(answer["state"] == state, "state came back unchanged")
    token = client.fetch_token(
        metadata["token_endpoint"], grant_type="authorization_code", code=answer["code"], code_verifier=verifier)
    return answer, token, nonce


def check(id_token, nonce=None, access_token=None):
    """Authlib checks signature, claims and at_hash; PyJWT checks the same token with the keys that it fetched itself."""
    keys = JsonWebKey.import_key_set(requests.get(metadata["jwks_uri"], timeout=30).json())
    claims = jwt.decode(
        id_token, keys, claims_cls=CodeIDToken,
        claims_options={"iss": {"essential": True, "value": issuer}, "aud": {"essential": True, "value": client_id}},
        claims_params={"client_id": client_id, "nonce": nonce, "access_token": access_token},
    )
    claims.validate()
    key = pyjwt.PyJWKClient(metadata["jwks_uri"]).get_signing_key_from_jwt(id_token)
    same = pyjwt.decode(id_token, key.key, algorithms=["RS256"], audience=client_id, issuer=issuer)
    if same != dict(claims):
        raise AssertionError("Authlib and PyJWT read different claims")
    return same


client = session()
answer, token, nonce = sign_in(client)
first = check(answer["id_token"], nonce)
claims = check(token["id_token"], nonce, token["access_token"])
expect(first["sub"] == claims["sub"], "a code was exchanged for tokens that Authlib and PyJWT verify")
expect(claims["is_private_email"] is True and claims["email"] == answer["user"]["email"], "the email claim is the relay address")
expect(claims["real_user_status"] == 2, "the status came with the first token")
expect(answer["user"]["name"]["lastName"] == "Doe", "the name came with the first authorization")

refresh_token = token["refresh_token"]
refreshed = client.refresh_token(metadata["token_endpoint"], refresh_token=refresh_token)
again = check(refreshed["id_token"], access_token=refreshed["access_token"])
expect(again["sub"] == claims["sub"] and again["email"] == claims["email"], "a refresh gave a further identity token")
expect(refreshed["refresh_token"] == refresh_token, "and no new refresh token")

basic = session("client_secret_basic")
answer, token, nonce = sign_in(basic)
check(token["id_token"], nonce, token["access_token"])
expect("user" not in answer, "HTTP Basic is taken too, and the name does not come again")

answer = client.revoke_token(metadata["revocation_endpoint"], token=refresh_token, token_type_hint="Refresh_Token")
expect(answer.status_code == 200, "the refresh token was revoked")
for old in (refresh_token, token["refresh_token"]):
    try:
        session().refresh_token(metadata["token_endpoint"], refresh_token=old)
    except OAuthError as error:
        expect(error.error == "invalid_grant", "afterwards a refresh is invalid_grant")
    else:
        raise AssertionError("a revoked token was refreshed")

answer, token, nonce = sign_in(session())
expect(check(token["id_token"], nonce)["sub"] == claims["sub"], "on return the sub is the same")
expect(answer["user"]["email"] == claims["email"], "and the address, and the name comes again")
