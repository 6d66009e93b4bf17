"""Sign in with Apple with the Apple backend of social-auth-core (Python Social Auth): its own code from the redirect to the pipeline."""

from social_core.backends.apple import AppleIdAuth
from social_core.exceptions import SocialAuthBaseException
from social_core.storage import BaseStorage, NonceMixin
from social_core.strategy import BaseStrategy

from sandbox import CLIENT, KEY, TEAM, ok, running

REDIRECT = "http://127.0.0.1:8000/complete/apple-id/"


class Nonces(NonceMixin):
    kept = set()

    @classmethod
    def use(cls, *nonce):
        new = nonce not in cls.kept
        cls.kept.add(nonce)
        return new

    @classmethod
    def consume(cls, *nonce):
        was_there = nonce in cls.kept
        cls.kept.discard(nonce)
        return was_there


class Storage(BaseStorage):
    nonce = Nonces


class Strategy(BaseStrategy):
    """What a web framework does for the library: settings, a session, and the request."""

    def __init__(self, settings):
        super().__init__(Storage)
        self.settings, self.session, self.request = settings, {}, {}

    def get_setting(self, name):
        return self.settings[name]

    def request_data(self, merge=True):
        return self.request

    def request_host(self):
        return "127.0.0.1:8000"

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

    def html(self, content):
        return content


class User:
    is_active = True

    def __init__(self, details, uid):
        self.details, self.uid = details, uid


def keep(backend, details, response, *arguments, uid=None, **more):
    return {"user": User(details, uid)}


with running() as sandbox:

    class Apple(AppleIdAuth):
        JWK_URL = f"{sandbox.url}/auth/keys"
        AUTHORIZATION_URL = f"{sandbox.url}/auth/authorize"
        ACCESS_TOKEN_URL = f"{sandbox.url}/auth/token"
        REVOKE_TOKEN_URL = f"{sandbox.url}/auth/revoke"
        REVOKE_TOKEN_METHOD = "POST"

        def revoke_token_params(self, token, uid):
            client_id, client_secret = self.get_key_and_secret()
            return {"client_id": client_id, "client_secret": client_secret, "token": token}

    settings = {
        "SOCIAL_AUTH_APPLE_ID_CLIENT": CLIENT, "SOCIAL_AUTH_APPLE_ID_TEAM": TEAM, "SOCIAL_AUTH_APPLE_ID_KEY": KEY,
        "SOCIAL_AUTH_APPLE_ID_SECRET": sandbox.private_key, "SOCIAL_AUTH_APPLE_ID_SCOPE": ["email", "name"],
        "SOCIAL_AUTH_PIPELINE": (
            "social_core.pipeline.social_auth.social_details", "social_core.pipeline.social_auth.social_uid", "__main__.keep"),
    }

    def sign_in(backend_class=Apple, alter=None, **changed):
        strategy = Strategy({**settings, **changed})
        backend = backend_class(strategy, redirect_uri=REDIRECT)
        form = sandbox.form(backend.start())
        assert form.action == REDIRECT
        fields = {**form.fields, **(alter or {})}
        strategy.request = fields
        backend = backend_class(strategy, redirect_uri=REDIRECT)
        return backend, backend.auth_complete()

    def refused(**how):
        try:
            sign_in(**how)
        except SocialAuthBaseException as error:
            return f"{type(error).__name__} {error}"
        return None

    backend, user = sign_in()
    anna = sandbox.sub("anna")
    ok("sign-in", user.uid == anna["sub"], user.uid)
    ok("sign-in: details", user.details["email"] == anna["private_email"] and user.details["last_name"] == "Müller", user.details)
    _, again = sign_in()
    ok("second sign-in without a name", again.uid == user.uid and again.details["first_name"] is None, again.details)

    # The library keeps no refresh token of Apple's by itself: an app asks for one with the library's own parameters.
    strategy = Strategy(settings)
    backend = Apple(strategy, redirect_uri=REDIRECT)
    strategy.request = sandbox.form(backend.start()).fields
    backend = Apple(strategy, redirect_uri=REDIRECT)
    tokens = backend.request_access_token(
        backend.access_token_url(), data=backend.auth_complete_params(), headers=backend.auth_headers(), method="POST")
    refreshed = backend.refresh_token(tokens["refresh_token"])
    ok("refresh", backend.decode_id_token(refreshed["id_token"])["sub"] == anna["sub"])
    ok("revoke", backend.revoke_token(tokens["refresh_token"], anna["sub"]) is True)
    try:
        backend.refresh_token(tokens["refresh_token"])
        ok("refresh after revoke", False)
    except SocialAuthBaseException as error:
        ok("refresh after revoke", "revoked at /auth/revoke" in sandbox.cause(), repr(error))
    ok("user again after revoke", sign_in()[1].details["first_name"] == "Anna")

    sandbox.order("settings", cancel=True)
    ok("cancelled", refused() is not None)
    sandbox.order("settings", auto="anna")
    stateless = refused(alter={"state": "another"})
    ok("a wrong state", (stateless or "").startswith("AuthSessionError"), stateless)
    ok("a wrong code", refused(alter={"code": "c0"}) and "was not issued here" in sandbox.cause(), sandbox.cause())
    ok("a wrong team", refused(SOCIAL_AUTH_APPLE_ID_TEAM="TEAMBBBBBB") and "must be the team" in sandbox.cause(), sandbox.cause())
    ok("a wrong key id", refused(SOCIAL_AUTH_APPLE_ID_KEY="KEYBBBBBBB") and "not a key of team" in sandbox.cause(), sandbox.cause())

    class Long(Apple):
        TOKEN_TTL_SEC = 200 * 24 * 60 * 60

    class Old(Apple):
        TOKEN_TTL_SEC = -3

    ok("a secret for too long", refused(backend_class=Long) and "at most six months" in sandbox.cause(), sandbox.cause())
    ok("an expired secret", refused(backend_class=Old) and "client_secret expired" in sandbox.cause(), sandbox.cause())
    for failure in ["status-500", "garbage", "wrong-signature", "unknown-kid", "wrong-issuer", "wrong-audience", "expired"]:
        sandbox.order("failures", on="token", failure=failure)
        ok(failure, refused() is not None)
    sandbox.order("failures", on="keys", failure="no-keys")
    ok("no-keys", refused() is not None)
    sandbox.order("keys", count=3)
    ok("after a rotation", sign_in()[1].uid == anna["sub"])
    sandbox.order("settings", booleans="string")
    ok("booleans as strings", sign_in()[1].details["email"] == anna["private_email"])
