"""The relying party of docs/SIGN_IN.md against `postern sandbox`: someone new signs in, twice.

Takes the path of the program and of the app, which the test cut out of the document.
"""
import sys

import requests

from postern_sandbox import Browser, Sandbox, ok

program, source = sys.argv[1:]
sandbox = Sandbox(program)
app, here = sandbox.app(source)
browser, inbox = Browser(), "new@home.example"
first = sandbox.proceed(browser, browser.get(here), inbox)
sub, address = first.text.split()
ok("the app knows a subject and a relay address", len(sub) == 32 and address.endswith("@relay.sandbox.example"), first.text)
again = sandbox.proceed(browser, browser.get(here), inbox)
ok("the next time it is the same", again.text == first.text, again.text)
try:
    browser.get(f"{here}/callback?code=pc_x&state=y")
except requests.ConnectionError:
    pass
app.wait("mismatching_state")
ok("an answer that was not asked for is refused", True)
app.end()
ok("the sandbox ends", sandbox.lines.end() == 0)
