"""Sign in with Apple with the Apple provider of django-allauth: a whole Django site, from the button to the session."""

import logging

import django
from django.conf import settings

from sandbox import CLIENT, KEY, TEAM, ok, running

logging.disable(logging.CRITICAL)

with running() as sandbox:
    settings.configure(
        SECRET_KEY="only for this test", ALLOWED_HOSTS=["127.0.0.1"], ROOT_URLCONF="__main__", USE_TZ=True,
        DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
        INSTALLED_APPS=[
            "django.contrib.auth", "django.contrib.contenttypes", "django.contrib.sessions", "django.contrib.messages", "allauth",
            "allauth.account", "allauth.socialaccount", "allauth.socialaccount.providers.apple"],
        MIDDLEWARE=[
            "django.contrib.sessions.middleware.SessionMiddleware", "django.contrib.auth.middleware.AuthenticationMiddleware",
            "django.contrib.messages.middleware.MessageMiddleware", "allauth.account.middleware.AccountMiddleware"],
        TEMPLATES=[{"BACKEND": "django.template.backends.django.DjangoTemplates", "APP_DIRS": True, "OPTIONS": {"context_processors": [
            "django.template.context_processors.request", "django.contrib.auth.context_processors.auth",
            "django.contrib.messages.context_processors.messages"]}}],
        AUTHENTICATION_BACKENDS=["allauth.account.auth_backends.AuthenticationBackend"], LOGIN_REDIRECT_URL="/",
        SOCIALACCOUNT_LOGIN_ON_GET=True, SOCIALACCOUNT_STORE_TOKENS=True, SOCIALACCOUNT_QUERY_EMAIL=True,
        EMAIL_BACKEND="django.core.mail.backends.locmem.EmailBackend",
        SOCIALACCOUNT_PROVIDERS={"apple": {"APPS": [{
            "client_id": CLIENT, "secret": KEY, "key": TEAM, "settings": {"certificate_key": sandbox.private_key}}]}})
    django.setup()

    from allauth.socialaccount.adapter import get_adapter
    from allauth.socialaccount.models import SocialAccount, SocialToken
    from allauth.socialaccount.providers.apple.client import AppleOAuth2Client
    from allauth.socialaccount.providers.apple.views import AppleOAuth2Adapter
    from django.core.management import call_command
    from django.http import HttpResponse
    from django.test import Client, RequestFactory
    from django.urls import include, path

    urlpatterns = [path("", lambda request: HttpResponse("home")), path("accounts/", include("allauth.urls"))]
    AppleOAuth2Adapter.authorize_url = f"{sandbox.url}/auth/authorize"
    AppleOAuth2Adapter.access_token_url = f"{sandbox.url}/auth/token"
    AppleOAuth2Adapter.public_key_url = f"{sandbox.url}/auth/keys"
    call_command("migrate", verbosity=0)

    def sign_in(alter=None):
        """A browser presses the button; whether it is then signed in."""
        browser = Client(SERVER_NAME="127.0.0.1")
        there = browser.get("/accounts/apple/login/")
        form = sandbox.form(there["Location"])
        assert form.action == "http://127.0.0.1/accounts/apple/login/callback/", form.action
        back = browser.post("/accounts/apple/login/callback/", {**form.fields, **(alter or {})})
        browser.get(back["Location"])
        return "_auth_user_id" in browser.session

    anna = sandbox.sub("anna")
    ok("sign-in", sign_in())
    account = SocialAccount.objects.get(provider="apple")
    ok("sign-in: sub", account.uid == anna["sub"])
    ok("sign-in: name", account.user.first_name == "Anna" and account.user.last_name == "Müller", account.user.__dict__)
    ok("sign-in: address", account.user.email == anna["private_email"])
    ok("second sign-in", sign_in() and SocialAccount.objects.count() == 1)

    token = SocialToken.objects.get()
    ok("tokens are kept", token.token.startswith("a") and token.token_secret.startswith("r"), token.token)

    # allauth has no call for refresh and revocation of its own: with the client secret that it makes.
    import requests

    request = RequestFactory(SERVER_NAME="127.0.0.1").get("/")
    provider = get_adapter(request).get_provider(request, "apple")
    client = AppleOAuth2Client(
        request, provider.app.client_id, provider.app.secret, "POST", AppleOAuth2Adapter.access_token_url, "http://127.0.0.1/")
    common = {"client_id": client.get_client_id(), "client_secret": client.generate_client_secret()}
    refreshed = requests.post(
        AppleOAuth2Adapter.access_token_url,
        data={**common, "grant_type": "refresh_token", "refresh_token": token.token_secret}).json()
    ok("refresh", AppleOAuth2Adapter.get_verified_identity_data(provider, refreshed["id_token"])["sub"] == anna["sub"])

    # A native app hands its token to the site.
    native = sandbox.order("authorize", user="ben", client_id=CLIENT, nonce="n")
    login = provider.verify_token(request, {"id_token": native["id_token"]})
    ok("native", login.account.uid == sandbox.sub("ben")["sub"] and login.account.extra_data["real_user_status"] == 2)

    revoked = requests.post(f"{sandbox.url}/auth/revoke", data={**common, "token": token.token_secret})
    ok("revoke", revoked.status_code == 200 and revoked.content == b"")
    ok("sign-in after revoke", sign_in())

    sandbox.order("settings", cancel=True)
    ok("cancelled", not sign_in())
    sandbox.order("settings", auto="anna")
    ok("a wrong code", not sign_in({"code": "c0"}) and "was not issued here" in sandbox.cause(), sandbox.cause())
    ok("a wrong state", not sign_in({"state": "another"}))
    for failure in ["status-500", "garbage", "wrong-signature", "unknown-kid", "wrong-issuer", "wrong-audience", "expired"]:
        sandbox.order("failures", on="token", failure=failure)
        ok(failure, not sign_in())
    sandbox.order("clock", advance=7200)
    ok("an expired secret", not sign_in() and "client_secret expired" in sandbox.cause(), sandbox.cause())
    sandbox.order("clock", offset=0)
    sandbox.order("keys", count=3)
    sandbox.order("settings", booleans="string")
    ok("strings, after a rotation", sign_in())
