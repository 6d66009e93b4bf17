"""Signs in and refreshes at a running Postern as apps do with the libraries of the world, each as it is installed.

Takes the name of a library, reads a JSON object on standard input (issuer, page, operator_key, client_id, client_secret,
public_id, redirect_uri, user), and prints a line for each step. Any other end is an exception.
"""
import base64
import hashlib
import http.server
import json
import os
import secrets
import sys
import threading
from urllib.parse import parse_qs, quote, urlencode, urlsplit

import jwt as pyjwt
import requests

# All is on loopback here: an app out there has https.
os.environ.update(OAUTHLIB_INSECURE_TRANSPORT="1", AUTHLIB_INSECURE_TRANSPORT="1")
setup = json.load(sys.stdin)
issuer, redirect_uri, client_id, client_secret = (setup[n] for n in ("issuer", "redirect_uri", "client_id", "client_secret"))
SCOPES = ["openid", "email", "profile"]


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


def browse(url):
    """What the user's browser does with an app's request: where it comes back to."""
    browser = requests.Session()
    there = browser.get(url, allow_redirects=False, timeout=30).headers["Location"]
    if not there.startswith(setup["page"]):
        raise AssertionError("the request was refused: " + there)
    request = single(urlsplit(there).query)["request"]
    answer = page("/v1/authorizations", {"request": request, "user": setup["user"], "amr": ["pwd"], "acr": "1"})
    return browser.get(answer["continue"], allow_redirects=False, timeout=30).headers["Location"]


def same_user(info, claims):
    expect(info["sub"] == claims["sub"] and info["email"] == claims["email"], "user info has the same user and address")
    expect((info["name"], info["given_name"], info["family_name"]) == ("Jane Doe", "Jane", "Doe"), "and the name")


def discover():
    return requests.get(issuer + "/.well-known/openid-configuration", timeout=30).json()


def user_info(access_token):
    return requests.get(
        discover()["userinfo_endpoint"], headers={"Authorization": "Bearer " + access_token}, timeout=30).json()


def claims_of(id_token, audience):
    key = pyjwt.PyJWKClient(discover()["jwks_uri"]).get_signing_key_from_jwt(id_token)
    return pyjwt.decode(id_token, key.key, algorithms=["RS256"], audience=audience, issuer=issuer)


def requests_oauthlib():
    from oauthlib.oauth2 import TokenExpiredError
    from requests_oauthlib import OAuth2Session

    # It refuses an answer whose scope is not what it asked for.
    metadata, kept = discover(), []
    session = OAuth2Session(client_id, scope=SCOPES, redirect_uri=redirect_uri, pkce="S256")
    url, _ = session.authorization_url(metadata["authorization_endpoint"], nonce="n-1")
    token = session.fetch_token(metadata["token_endpoint"], authorization_response=browse(url), client_secret=client_secret)
    claims = claims_of(token["id_token"], client_id)
    expect(claims["nonce"] == "n-1" and sorted(token["scope"]) == sorted(SCOPES), "signed in")
    same_user(session.get(metadata["userinfo_endpoint"], timeout=30).json(), claims)

    def renewed(found):
        again = claims_of(found["id_token"], client_id)
        expect(again["sub"] == claims["sub"] and found["access_token"] != token["access_token"], "refreshed")
        same_user(user_info(found["access_token"]), again)

    # It names the scope of the session each time.
    basic = requests.auth.HTTPBasicAuth(client_id, client_secret)
    renewed(session.refresh_token(metadata["token_endpoint"], auth=basic))
    renewed(session.refresh_token(metadata["token_endpoint"], client_id=client_id, client_secret=client_secret))
    # By itself, when the token is old.
    old = {**token, "expires_at": 1, "expires_in": -1}
    later = OAuth2Session(
        client_id, token=old, auto_refresh_url=metadata["token_endpoint"], token_updater=kept.append,
        auto_refresh_kwargs={"client_id": client_id, "client_secret": client_secret})
    same_user(later.get(metadata["userinfo_endpoint"], timeout=30).json(), claims)
    renewed(kept[0])
    try:
        OAuth2Session(client_id, token=old).get(metadata["userinfo_endpoint"], timeout=30)
    except TokenExpiredError:
        expect(True, "an old token is noticed")
    else:
        raise AssertionError("an old token was used")


def authlib():
    from authlib.integrations.requests_client import OAuth2Session
    from authlib.jose import JsonWebKey, jwt
    from authlib.oidc.core import CodeIDToken

    metadata = discover()
    keys = JsonWebKey.import_key_set(requests.get(metadata["jwks_uri"], timeout=30).json())
    for method in ["client_secret_basic", "client_secret_post"]:
        client = OAuth2Session(
            client_id, client_secret, scope=" ".join(SCOPES), redirect_uri=redirect_uri, token_endpoint_auth_method=method,
            code_challenge_method="S256", token_endpoint=metadata["token_endpoint"])
        nonce, verifier = secrets.token_urlsafe(16), secrets.token_urlsafe(48)
        url, _ = client.create_authorization_url(metadata["authorization_endpoint"], nonce=nonce, code_verifier=verifier)

        def check(token, **parameters):
            claims = jwt.decode(
                token["id_token"], keys, claims_cls=CodeIDToken,
                claims_options={"iss": {"essential": True, "value": issuer}, "aud": {"essential": True, "value": client_id}},
                claims_params={"client_id": client_id, "access_token": token["access_token"], **parameters})
            claims.validate()
            same_user(client.get(metadata["userinfo_endpoint"], timeout=30).json(), claims)
            return claims

        token = client.fetch_token(authorization_response=browse(url), code_verifier=verifier)
        claims = check(token, nonce=nonce)
        expect(sorted(token["scope"].split()) == sorted(SCOPES), "signed in by " + method)
        for more in [{}, {"scope": " ".join(SCOPES)}]:
            again = client.refresh_token(refresh_token=token["refresh_token"], **more)
            expect(check(again)["sub"] == claims["sub"] and again["access_token"] != token["access_token"], "refreshed")
        # By itself, when the token is old.
        client.token = {**client.token, "expires_at": 1}
        same_user(client.get(metadata["userinfo_endpoint"], timeout=30).json(), claims)
        expect(client.token["expires_at"] > 1, "refreshed by itself")


def pyoidc():
    from oic.oic import Client
    from oic.oic.message import AuthorizationResponse, RegistrationResponse
    from oic.utils.authn.client import CLIENT_AUTHN_METHOD

    for method in ["client_secret_basic", "client_secret_post"]:
        client = Client(client_authn_method=CLIENT_AUTHN_METHOD)
        client.provider_config(issuer)
        client.store_registration_info(RegistrationResponse(
            client_id=client_id, client_secret=client_secret, redirect_uris=[redirect_uri], token_endpoint_auth_method=method))
        client.redirect_uris = [redirect_uri]
        state, nonce = secrets.token_urlsafe(16), secrets.token_urlsafe(16)
        challenge, verifier = client.add_code_challenge()
        asked = client.construct_AuthorizationRequest(request_args={
            "client_id": client_id, "response_type": "code", "scope": SCOPES, "redirect_uri": redirect_uri, "state": state,
            "nonce": nonce, **challenge})
        back = browse(asked.request(client.authorization_endpoint))
        answer = client.parse_response(AuthorizationResponse, info=urlsplit(back).query, sformat="urlencoded")
        token = client.do_access_token_request(
            state=state, authn_method=method,
            request_args={"code": answer["code"], "redirect_uri": redirect_uri, "code_verifier": verifier})
        expect(token["id_token"]["nonce"] == nonce and sorted(token["scope"]) == sorted(SCOPES), "signed in by " + method)
        # The library compares sub with that of the token.
        same_user(client.do_user_info_request(state=state), token["id_token"])
        again = client.do_access_token_refresh(state=state, authn_method=method)
        expect(again["id_token"]["sub"] == token["id_token"]["sub"], "refreshed")
        expect(again["access_token"] != token["access_token"], "with a further access token")
        same_user(client.do_user_info_request(state=state), again["id_token"])


def python_social_auth():
    from social_core.backends.open_id_connect import OpenIdConnectAuth
    from social_core.storage import AssociationMixin, BaseStorage, NonceMixin, UserMixin
    from social_core.strategy import BaseStrategy

    class Association(AssociationMixin):
        kept = {}

        @classmethod
        def store(cls, server_url, association):
            one = cls()
            one.id, one.server_url, one.handle = len(cls.kept), server_url, association.handle
            one.issued, one.lifetime, one.assoc_type = association.issued, association.lifetime, association.assoc_type
            cls.kept[one.id] = one

        @classmethod
        def get(cls, server_url=None, handle=None):
            return [one for one in cls.kept.values() if (one.server_url, one.handle) == (server_url, handle)]

        @classmethod
        def remove(cls, ids_to_delete):
            for number in ids_to_delete:
                del cls.kept[number]

    class Nonces(NonceMixin):
        kept = set()

        @classmethod
        def use(cls, *nonce):
            is_new = nonce not in cls.kept
            cls.kept.add(nonce)
            return is_new

        @classmethod
        def consume(cls, *nonce):
            was_there = nonce in cls.kept
            cls.kept.discard(nonce)
            return was_there

    class Storage(BaseStorage):
        association, nonce = Association, Nonces

    class Strategy(BaseStrategy):
        """What a web framework does for the library: settings, a session, and the request."""

        settings = {
            "SOCIAL_AUTH_OIDC_OIDC_ENDPOINT": issuer, "SOCIAL_AUTH_OIDC_KEY": client_id, "SOCIAL_AUTH_OIDC_SECRET": client_secret,
            "SOCIAL_AUTH_OIDC_USE_PKCE": True,
            "SOCIAL_AUTH_PIPELINE": (
                "social_core.pipeline.social_auth.social_details", "social_core.pipeline.social_auth.social_uid",
                "__main__.keep"),
        }

        def __init__(self):
            super().__init__(Storage)
            self.session, self.request = {}, {}

        def get_setting(self, name):
            return self.settings[name]

        def request_data(self, merge=True):
            return self.request

        def request_host(self):
            return urlsplit(redirect_uri).netloc

        def build_absolute_uri(self, path=None):
            return path

        def session_get(self, name, default=None):
            return self.session.get(name, default)

        def session_set(self, name, value):
            self.session[name] = value

        def session_pop(self, name):
            self.session.pop(name, None)

        def redirect(self, url):
            return url

        def get_backend(self, name, redirect_uri=None, *arguments, **more):
            return OpenIdConnectAuth(self, redirect_uri=redirect_uri)

    class Social(UserMixin):
        is_active, provider = True, "oidc"

        def __init__(self, details, uid, data):
            self.user, self.details, self.uid, self.extra_data, self.saved = self, details, uid, data, 0

        def get_backend(self, strategy):
            return OpenIdConnectAuth

        def get_backend_instance(self, strategy):
            return strategy.get_backend("oidc", redirect_uri)

        def save(self):
            self.saved += 1

    def keep(backend, details, response, *arguments, uid=None, **more):
        return {"user": Social(details, uid, backend.extra_data(None, uid, response, details, {"response": response}))}

    sys.modules["__main__"].keep = keep
    strategy = Strategy()
    url = OpenIdConnectAuth(strategy, redirect_uri=redirect_uri).start()
    strategy.request = single(urlsplit(browse(url)).query)
    backend = OpenIdConnectAuth(strategy, redirect_uri=redirect_uri)
    user = backend.auth_complete()
    expect(user.uid == backend.id_token["sub"], "signed in")
    details = [user.details[name] for name in ("email", "fullname", "first_name", "last_name")]
    expect(details == [backend.id_token["email"], "Jane Doe", "Jane", "Doe"], "with the address and the name")
    # It compares the new identity token with the first one: sub, aud, auth_time and nonce.
    for number in (1, 2):
        before = user.extra_data["access_token"]
        user.refresh_token(strategy)
        expect(user.saved == number and user.extra_data["access_token"] != before, "refreshed")


class Listener:
    """A port of loopback that an app on a desktop listens at while its user signs in (RFC 8252, section 7.3)."""

    def __init__(self):
        came = self.came = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                came.append(self.path)
                self.send_response(200)
                self.end_headers()
                self.wfile.write(b"Go back to the app.")

            def log_message(self, *arguments):
                pass

        self.server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
        self.uri = f"http://127.0.0.1:{self.server.server_port}/oauth2redirect"
        self.thread = threading.Thread(target=self.server.handle_request)
        self.thread.start()

    def answer(self, url):
        requests.get(browse(url), timeout=30)
        self.thread.join()
        self.server.server_close()
        return single(urlsplit(self.came[0]).query)


def appauth():
    """A client of our own that does what AppAuth does: any port of loopback, PKCE, state and nonce always, JSON wanted."""
    metadata = discover()
    secret = lambda: secrets.token_urlsafe(32)

    def post(fields, key=None):
        basic = base64.b64encode(f"{quote(client_id, safe='')}:{quote(key or '', safe='')}".encode()).decode()
        headers = {"Accept": "application/json", "Content-Type": "application/x-www-form-urlencoded"}
        if key:
            headers["Authorization"] = "Basic " + basic
        answer = requests.post(metadata["token_endpoint"], data=urlencode(fields), headers=headers, timeout=30)
        expect(answer.headers["Content-Type"].startswith("application/json"), "the answer is JSON")
        return answer.status_code, answer.json()

    def sign_in(client, key):
        listener = Listener()
        verifier, state, nonce = secret(), secret(), secret()
        challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
        answer = listener.answer(metadata["authorization_endpoint"] + "?" + urlencode({
            "response_type": "code", "client_id": client, "redirect_uri": listener.uri, "scope": " ".join(SCOPES), "state": state,
            "nonce": nonce, "code_challenge": challenge, "code_challenge_method": "S256"}))
        expect(answer["state"] == state and answer["iss"] == issuer, "the answer came to the port where the app listens")
        fields = {
            "grant_type": "authorization_code", "code": answer["code"], "redirect_uri": listener.uri, "code_verifier": verifier}
        if not key:
            fields["client_id"] = client
        status, token = post(fields, key)
        expect(status == 200 and token["token_type"].lower() == "bearer", "signed in")
        claims = claims_of(token["id_token"], client)
        expect(claims["nonce"] == nonce and claims["sub"], "the identity token is of this request")
        same_user(user_info(token["access_token"]), claims)
        return token, claims

    # A public app: each refresh token serves once.
    token, claims = sign_in(setup["public_id"], None)
    known = {token["refresh_token"]}
    for more in [{}, {"scope": " ".join(SCOPES)}, {"scope": "openid"}]:
        fields = {"grant_type": "refresh_token", "refresh_token": token["refresh_token"], "client_id": setup["public_id"]}
        status, token = post({**fields, **more})
        expect(status == 200 and claims_of(token["id_token"], setup["public_id"])["sub"] == claims["sub"], "refreshed in public")
        expect(token["refresh_token"] not in known, "by another refresh token each time")
        known.add(token["refresh_token"])
    expect(sign_in(setup["public_id"], None)[1]["sub"] == claims["sub"], "the same user at another port")
    # One with a secret refreshes, with the scope as it asked and without.
    token, claims = sign_in(client_id, client_secret)
    for more in [{}, {"scope": " ".join(SCOPES)}, {"scope": "openid"}, {"client_id": client_id}]:
        status, again = post({"grant_type": "refresh_token", "refresh_token": token["refresh_token"], **more}, client_secret)
        expect(status == 200 and claims_of(again["id_token"], client_id)["sub"] == claims["sub"], "refreshed")
        expect(again.get("refresh_token", token["refresh_token"]) == token["refresh_token"], "by the same refresh token")
    # Another app's code that waits at the same address is worth nothing without the verifier.
    listener = Listener()
    answer = listener.answer(metadata["authorization_endpoint"] + "?" + urlencode({
        "response_type": "code", "client_id": setup["public_id"], "redirect_uri": listener.uri, "scope": "openid", "state": "s",
        "code_challenge": "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM", "code_challenge_method": "S256"}))
    status, refused = post({
        "grant_type": "authorization_code", "code": answer["code"], "redirect_uri": listener.uri, "client_id": setup["public_id"],
        "code_verifier": secret()})
    expect((status, refused["error"]) == (400, "invalid_grant"), "a code without its verifier is refused")


{one.__name__: one for one in (requests_oauthlib, authlib, pyoidc, python_social_auth, appauth)}[sys.argv[1]]()
print("all steps came out right")
