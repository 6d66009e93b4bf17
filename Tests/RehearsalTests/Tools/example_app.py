"""The app of docs/SANDBOX.md against `postern sandbox`: a user signs in with a mailed code, and everything goes wrong once.

Takes the path of the program and of the app, which the test cut out of the document.
"""
import json
import sys
import threading

import requests

from postern_sandbox import LONGEST, Browser, Sandbox, ok

INBOX = "anna@mail.example"
program, source = sys.argv[1:]
sandbox = Sandbox(program)
facts, url = sandbox.facts, sandbox.url
app, here = sandbox.app(source)
team = {"Authorization": f"Bearer {facts['KEY']}"}
order, mail = sandbox.order, sandbox.mail

set_endpoint = requests.put(f"{url}/v1/endpoints", json={"url": f"{here}/events", "client_id": facts["CLIENT_ID"]}, headers=team)
ok("the team sets its endpoint", set_endpoint.ok, set_endpoint.text)
order("users", user="anna", real_user_status=1)

# The first sign-in: a code, consent, and a decision that asks for a check.
anna = Browser()
page = anna.get(f"{here}/sign-in")
ok("the app leads to the page", "/me/sign-in" in page.url or "/sign-in" in page.url, page.url)
code, answer = sandbox.enter(anna, page, INBOX)
ok("the code is shown", code["code"] and code["side"] == "user", code)
sandbox.lines.wait(f"code {code['code']}")
ok("the terminal has the code too", True)
signed_in = sandbox.proceed(anna, answer, INBOX).json()
ok("the app knows the user", len(signed_in["sub"]) == 32, signed_in)
ok("a user about whom nothing is known is asked", signed_in["needs"] == "email_code", signed_in)
letter = mail("anna@mail.example", after=code["number"])
ok("the app's mail arrives without the app's knowing where", letter["subject"] == "Your code", letter)
ok("the user sees who wrote", "support at app.example" in letter["from"], letter["from"])
wrong = anna.get(f"{here}/code?code=0").json()
ok("a wrong code fails", wrong["needs"] == "email_code", wrong)
passed = anna.get(f"{here}/code?code={letter['text'].strip()}").json()
ok("the right code passes", passed["needs"] is None, passed)

# The user answers the mail.
sent = order("mail", reply_to=letter["number"], text="This is Anna.")
ok("the user's answer is accepted", sent["code"] == 250, sent)
got = mail("support@app.example")
ok("the team gets it", got["text"].strip() == "This is Anna." and got["side"] == "team", got)
ok("without the inbox", "anna@mail.example" not in json.dumps(got), got)

# A sensitive action: of a new account it needs a code; after much switching the user signs in again.
paid = anna.get(f"{here}/pay").json()
ok("a payment of a new account needs a code", paid["needs"] == "email_code", paid)
for is_on in (False, True) * 3:
    order("users", user="anna", forwarding=is_on)
    app.wait("event email-enabled" if is_on else "event email-disabled")
page = anna.get(f"{here}/pay")
ok("a payment leads to the sign-in page", page.url.startswith(url), page.url)
answer = sandbox.proceed(anna, page, INBOX)
ok("who signed in again pays", answer.json()["needs"] is None, answer.text)
paid = anna.get(f"{here}/pay").json()
ok("and pays again within the hour", paid["needs"] is None, paid)

# No answer at all.
order("failures", on="decisions", failure="timeout", seconds=20)
paid = anna.get(f"{here}/pay").json()
ok("without an answer, a payment needs a code", paid["needs"] == "email_code", paid)
app.wait("late answer rd_")
ok("the request is repeated", True)
order("failures", on="decisions", failure="lost-answer", seconds=20)
again = sandbox.proceed(anna, anna.get(f"{here}/sign-in"), INBOX)
ok("without an answer, a sign-in goes on", again.json()["needs"] is None, again.text)
app.wait("late answer rd_")
ok("with the same nonce there is an answer, although the first was lost", True)

# What changes, and what is refused.
order("failures", on="deliveries", failure="status-503")
order("users", user="anna", forwarding=False)
app.wait("event email-disabled")
ok("the event comes, though the first delivery failed", True)
forged = requests.post(f"{here}/events", json={"payload": "a.b.c"})
ok("a forged event is refused", forged.status_code == 400, forged.status_code)
address = next(user for user in sandbox.get("users")["items"] if user["user"] == "anna")["address"]
refused = order("mail", **{"from": "support@app.example"}, to=address, subject="Hello", text="Are you there?")
ok("mail is refused as by SMTP", (refused["code"], refused["enhanced"]) == (550, "5.2.1"), refused)
for _ in range(600):
    rejections = anna.get(f"{here}/rejections").json()
    if rejections["items"]:
        break
    threading.Event().wait(0.1)
ok("the team reads why", len(rejections["items"]) > 0, rejections)

# Half a year later.
order("clock", advance=16_000_000)
page = anna.get(f"{here}/pay")
ok("after a long silence the user has to sign in again", page.url.startswith(url), page.url)

# Everything is as at the start.
requests.post(f"{url}/sandbox/reset", timeout=LONGEST).raise_for_status()
users = sandbox.get("users")["items"]
ok("a reset forgets", [user.get("sub") for user in users] == [None, facts["SUB"]], users)
ok("the mailboxes are empty", sandbox.newest() == 0)
app.end()
ok("the sandbox ends", sandbox.lines.end() == 0)
