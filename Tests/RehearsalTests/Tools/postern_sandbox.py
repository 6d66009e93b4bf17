"""A running `postern sandbox`, an app beside it, and a browser without a screen, for the scripts beside this one."""

import atexit
import html.parser
import os
import socket
import subprocess
import sys
import threading
import urllib.parse

import requests

LONGEST = 60


def ok(name, condition, detail=""):
    if not condition:
        sys.exit(f"failed {name}: {detail}")
    print(f"ok {name}", flush=True)


class Lines:
    """What a process prints, to wait for."""

    def __init__(self, *command, **environment):
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env={**os.environ, **environment})
        # A script that fails leaves nothing running.
        atexit.register(self.end)
        self.seen, self.changed = [], threading.Condition()
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            with self.changed:
                self.seen.append(line.rstrip())
                self.changed.notify_all()

    def wait(self, text):
        """The first line that was not waited for yet and has this text."""
        with self.changed:
            found = self.changed.wait_for(lambda: next((line for line in self.seen if text in line), None), LONGEST)
            if not found:
                sys.exit(f"failed: no line has {text!r} in {self.seen}")
            self.seen.remove(found)
            return found

    def end(self):
        self.process.terminate()
        return self.process.wait(LONGEST)


class Forms(html.parser.HTMLParser):
    """The forms of a page: action, and fields with their values; buttons apart."""

    def __init__(self, text):
        super().__init__()
        self.all = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        if tag == "form":
            self.all.append({"action": given.get("action"), "fields": {}, "buttons": []})
        elif tag == "input" and self.all and given.get("name"):
            if given.get("type") not in ("radio", "checkbox") or "checked" in given:
                self.all[-1]["fields"][given["name"]] = given.get("value", "")
        elif tag == "button" and self.all and given.get("name"):
            self.all[-1]["buttons"].append((given["name"], given.get("value", "")))


class Browser:
    def __init__(self):
        self.session = requests.Session()

    def get(self, url):
        return self.onward(self.session.get(url, timeout=LONGEST))

    def onward(self, page):
        """Goes where a page leads by itself (Refresh)."""
        while "Refresh" in page.headers:
            target = page.headers["Refresh"].split("url=", 1)[1]
            page = self.session.get(urllib.parse.urljoin(page.url, target), timeout=LONGEST)
        return page

    def submit(self, page, action, button=None, **values):
        """Fills in the form with this action, and presses its button."""
        form = next((form for form in Forms(page.text).all if urllib.parse.urlsplit(form["action"]).path == action
                     and (button is None or button in dict(map(reversed, form["buttons"])))), None)
        if form is None:
            sys.exit(f"failed: no form {action} at {page.url}: {Forms(page.text).all}")
        fields = {**form["fields"], **values}
        if button:
            fields.update(pair for pair in form["buttons"] if pair[1] == button)
        return self.onward(self.session.post(urllib.parse.urljoin(page.url, form["action"]), data=fields, timeout=LONGEST))


class Sandbox:
    """`postern sandbox` on free ports; `facts` has the lines that it prints."""

    def __init__(self, program):
        self.lines = Lines(program, "sandbox", "--port", "0")
        names = ("URL", "KEY", "CLIENT_ID", "CLIENT_SECRET", "SUB", "ADDRESS", "SMTP")
        self.facts = {name: self.lines.wait(f"  {name}=").split("=", 1)[1] for name in names}
        self.url = self.facts["URL"]

    def app(self, source):
        """An app with the facts in its environment; its lines and its address."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        app = Lines(sys.executable, "-W", "ignore", source, PORT=str(port), **self.facts)
        for _ in range(10 * LONGEST):
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                return app, f"http://127.0.0.1:{port}"
            except OSError:
                threading.Event().wait(0.1)
        sys.exit(f"failed: the app does not listen: {app.seen}")

    def order(self, path, **body):
        response = requests.post(f"{self.url}/sandbox/{path}", json=body, timeout=LONGEST)
        if not response.ok:
            sys.exit(f"failed {path}: {response.status_code} {response.text}")
        return response.json() if response.content else None

    def get(self, path, **query):
        return requests.get(f"{self.url}/sandbox/{path}", query, timeout=2 * LONGEST).json()

    def mail(self, to, after=0):
        """The newest mail of a mailbox, once there is one."""
        return self.get("mails", to=to, after=after, wait=LONGEST)["items"][-1]

    def newest(self):
        items = self.get("mails")["items"]
        return items[-1]["number"] if items else 0

    def enter(self, browser, page, inbox):
        """Enters an inbox and the code that is mailed to it; the mail, and the page behind."""
        before = self.newest()
        page = browser.submit(page, "/me/sign-in", email=inbox)
        code = self.mail(inbox, after=before)
        return code, browser.submit(page, "/me/sent", code=code["code"])

    def proceed(self, browser, page, inbox):
        """Does what the pages of Postern ask for, until the app has the user back."""
        while page.url.startswith(self.url):
            if any(form["action"] == "/me/sign-in" for form in Forms(page.text).all):
                page = self.enter(browser, page, inbox)[1]
            else:
                page = browser.submit(page, "/sign-in", button="continue")
        return page
