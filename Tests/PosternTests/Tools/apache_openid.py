"""Signs in at a running Postern through Apache with mod_auth_openidc, which is started here, and signs out again.

Reads a JSON object on standard input (issuer, page, operator_key, folder, ports, client_id, client_secret, algorithm), and prints a
line for each step. Any other end is an exception.
"""
import html
import json
import os
import pathlib
import re
import subprocess
import sys
import time
from urllib.parse import parse_qs, urlsplit

import requests

setup = json.load(sys.stdin)
issuer, folder = setup["issuer"], pathlib.Path(setup["folder"])
MODULES = "/usr/lib/apache2/modules"
# For each port: response type, response mode, how the client authenticates.
SITES = dict(zip(setup["ports"], [
    ("code", None, "client_secret_basic"), ("code", "form_post", "client_secret_post"),
    ("code", "fragment", "client_secret_basic"), ("code id_token", None, "client_secret_post"),
    ("code id_token", "form_post", "client_secret_basic"),
]))


def expect(condition, what):
    if not condition:
        raise AssertionError(what)
    print(what)


def single(text):
    return {name: values[0] for name, values in parse_qs(text).items()}


def site(port):
    response_type, mode, method = SITES[port]
    return f"""
Listen 127.0.0.1:{port}
<VirtualHost 127.0.0.1:{port}>
    ServerName 127.0.0.1:{port}
    OIDCProviderMetadataURL {issuer}/.well-known/openid-configuration
    OIDCClientID {setup["client_id"]}
    OIDCClientSecret {setup["client_secret"]}
    OIDCProviderTokenEndpointAuth {method}
    OIDCRedirectURI http://127.0.0.1:{port}/callback
    OIDCDefaultLoggedOutURL http://127.0.0.1:{port}/bye
    OIDCCryptoPassphrase {"x" * 32}
    OIDCScope "openid email profile"
    OIDCResponseType "{response_type}"
    {f"OIDCResponseMode {mode}" if mode else ""}
    OIDCPKCEMethod S256
    OIDCUserInfoRefreshInterval 0
    <Location /private>
        AuthType openid-connect
        Require valid-user
        ErrorDocument 404 "%{{reqenv:OIDC_CLAIM_iss}} %{{reqenv:OIDC_CLAIM_sub}} %{{reqenv:OIDC_CLAIM_email}} %{{reqenv:OIDC_CLAIM_name}}"
    </Location>
    <Location /callback>
        AuthType openid-connect
        Require valid-user
    </Location>
</VirtualHost>
"""


def configuration():
    modules = ["mpm_event", "authn_core", "authz_core", "authz_user", "auth_openidc"]
    return "\n".join([
        f'ServerRoot "{folder}"', f'PidFile "{folder}/apache.pid"', f'ErrorLog "{folder}/apache.log"', f'DocumentRoot "{folder}"',
        "ServerName 127.0.0.1", "LogLevel warn auth_openidc:info", "User www-data", "Group www-data",
        f'DefaultRuntimeDir "{folder}"', f'Mutex file:{folder} default', "StartServers 1", "ThreadsPerChild 4",
        "MinSpareThreads 1", "MaxSpareThreads 4", "MaxRequestWorkers 4",
    ] + [f"LoadModule {name}_module {MODULES}/mod_{name}.so" for name in modules]) + "".join(map(site, SITES))


def page(path, body):
    """What the backend of the operator's page does."""
    answer = requests.post(
        issuer + path, json=body, headers={"Authorization": "Bearer " + setup["operator_key"]}, timeout=30)
    answer.raise_for_status()
    return answer.json()


def follow(browser, url, stop):
    """Goes on as long as it is led on; where it is led to that begins with `stop`, or the last answer."""
    for _ in range(10):
        answer = browser.get(url, allow_redirects=False, timeout=30)
        if answer.status_code not in (302, 303):
            return answer
        url = answer.headers["Location"]
        if url.startswith(stop):
            return url
    raise AssertionError("led around in a circle")


def call_back(browser, answer, callback):
    """What a browser does with the answer of /auth/continue: the response mode, and what the app says."""
    if answer.status_code == 200:
        fields = re.findall(r'<input type="hidden" name="([^"]*)" value="([^"]*)">', answer.text)
        action = html.unescape(re.search(r'action="([^"]*)"', answer.text)[1])
        back = browser.post(
            action, data={name: html.unescape(value) for name, value in fields}, allow_redirects=False, timeout=30)
        return "form_post", back
    there = answer.headers["Location"]
    if urlsplit(there).fragment:
        # The module's own page does this in its script.
        script = browser.get(there, timeout=30)
        expect("response_mode" in script.text, "the app has a script for the fragment")
        return "fragment", browser.post(
            callback, data={**single(urlsplit(there).fragment), "response_mode": "fragment"}, allow_redirects=False, timeout=30)
    return "query", browser.get(there, allow_redirects=False, timeout=30)


def sign_in(port, user, hides):
    """A browser that is signed in, and what the app got to know: issuer, subject, address, name."""
    browser, home = requests.Session(), f"http://127.0.0.1:{port}"
    there = follow(browser, home + "/private", setup["page"])
    request = single(urlsplit(there).query)["request"]
    asked = page("/v1/authorizations/inspect", {"request": request})
    expect(asked["scopes"] == ["email", "openid", "profile"], "the page knows what the app asks for")
    answer = page("/v1/authorizations", {"request": request, "user": user, "hide_my_email": hides, "amr": ["pwd"]})
    mode, back = call_back(browser, browser.get(answer["continue"], allow_redirects=False, timeout=30), home + "/callback")
    response_type, wanted, method = SITES[port]
    expect(mode == (wanted or ("query" if response_type == "code" else "fragment")), f"answered by {mode}")
    expect(back.status_code in (302, 303), f"Apache took the answer ({back.status_code})")
    shown = browser.get(back.headers["Location"], allow_redirects=False, timeout=30)
    expect(shown.status_code == 404, f"signed {user} in by {response_type}, {mode}, {method}")
    return browser, shown.text.split(" ", 3)


def sign_out(browser, port):
    home = f"http://127.0.0.1:{port}"
    there = follow(browser, f"{home}/callback?logout={home}/bye", setup["page"])
    asked = page("/v1/authorizations/inspect", {"end_session": single(urlsplit(there).query)["end_session"]})
    expect(asked["client_id"] == setup["client_id"] and "user_hint" in asked, "the page knows who is to be signed out")
    back = browser.get(asked["continue"], allow_redirects=False, timeout=30).headers["Location"]
    expect(back == home + "/bye", "back at the app")
    expect(isinstance(follow(browser, home + "/private", setup["page"]), str), "signed out")


(folder / "apache.conf").write_text(configuration())
apache = subprocess.Popen(
    ["/usr/sbin/apache2", "-DFOREGROUND", "-d", str(folder), "-f", str(folder / "apache.conf")], stdin=subprocess.DEVNULL)
try:
    for _ in range(600):
        try:
            requests.get(f"http://127.0.0.1:{setup['ports'][0]}/", timeout=5)
            break
        except requests.ConnectionError:
            if apache.poll() is not None:
                raise AssertionError("Apache ended")
            time.sleep(0.05)
    subjects, addresses = {}, {}
    for port in SITES:
        for user, hides in (("jane", True), ("john", False)):
            browser, (iss, sub, email, name) = sign_in(port, user, hides)
            expect(iss == issuer and name == user.title() + " Doe", "the app knows issuer and name")
            subjects.setdefault(user, set()).add(sub)
            addresses.setdefault(user, set()).add(email)
            sign_out(browser, port)
    expect(len(subjects["jane"]) == 1 and len(subjects["john"]) == 1, "each user has one sub")
    expect(addresses["john"] == {"john@home.example"}, "the address was shared")
    expect(all(address.endswith("@relay.example") for address in addresses["jane"]), "the address was hidden")
except BaseException:
    print((folder / "apache.log").read_text(), file=sys.stderr)
    raise
finally:
    apache.terminate()
    apache.wait()
print("Apache signed in and out")
