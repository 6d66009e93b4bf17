"""Clients that three generators make of docs/openapi.yaml, against `postern sandbox`: a decision, and the outcome of its challenge.

Takes the path of the program and of openapi.yaml.
"""
import importlib
import os
import pathlib
import pkgutil
import re
import subprocess
import sys
import tempfile

import aiopenapi3
import httpx2
import requests
import yaml

from postern_sandbox import Sandbox, ok

program, document = sys.argv[1:]
tools = pathlib.Path(sys.executable).parent
sandbox = Sandbox(program)
url, facts = sandbox.url, sandbox.facts
question = {"event": "sign_in", "client_id": facts["CLIENT_ID"], "sub": "test-email-code"}

with tempfile.TemporaryDirectory() as folder:
    sys.path.insert(0, folder)

    # openapi-python-client: a whole client. What it leaves out is an image, this document, and a media type of events.
    made = subprocess.run(
        [tools / "openapi-python-client", "generate", "--path", document, "--output-path", f"{folder}/whole", "--meta", "none"],
        capture_output=True, text=True, env={**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"})
    ok("openapi-python-client takes the document", made.returncode == 0, made.stdout + made.stderr)
    said = made.stdout + made.stderr
    left_out = set(re.findall(r"Unsupported content[ _]type ([^\s),]+)", said))
    ok("it leaves out three media types", left_out == {"image/svg+xml", "application/secevent+jwt", "application/yaml"}, said)
    ok("and nothing for another reason", said.count("WARNING parsing") == 3 and "ERROR" not in said, said)
    import whole
    modules = [module.name for module in pkgutil.walk_packages(whole.__path__, "whole.")]
    for name in modules:
        importlib.import_module(name)
    ok("all of it can be imported", len(modules) > 100, len(modules))
    from whole.api.decisions import decide, report_outcome
    from whole.models import ChallengeOutcome, DecisionRequest
    client = whole.AuthenticatedClient(base_url=url, token=facts["KEY"])
    answer = decide.sync(client=client, body=DecisionRequest.from_dict(question))
    ok("its answer has the challenges", [str(one) for one in answer.challenges][:1] == ["email_code"], answer)
    outcome = ChallengeOutcome.from_dict({"outcome": "challenge_initiated", "challenge": "email_code"})
    ok("its outcome keeps the challenge", outcome.to_dict() == {"outcome": "challenge_initiated", "challenge": "email_code"}, outcome)
    reported = report_outcome.sync_detailed(answer.decision_id, client=client, body=outcome)
    ok("the outcome is taken", reported.status_code == 200, reported)

    # datamodel-code-generator: models for pydantic.
    made = subprocess.run(
        [tools / "datamodel-codegen", "--input", document, "--output", f"{folder}/models.py", "--input-file-type", "openapi",
         "--output-model-type", "pydantic_v2.BaseModel"], capture_output=True, text=True)
    ok("datamodel-code-generator takes the document", made.returncode == 0, made.stderr)
    import models
    sent = requests.post(f"{url}/v1/decisions", json=question, headers={"Authorization": f"Bearer {facts['KEY']}"}, timeout=10)
    read = models.Decision.model_validate_json(sent.text)
    ok("its model reads the answer", read.decision.value == "require_verification" and len(read.challenges) > 0, sent.text)
    back = models.ChallengeOutcome.model_validate({"outcome": "passed", "challenge": "email_code"})
    ok("its model keeps the challenge", back.model_dump(mode="json", exclude_none=True)["challenge"] == "email_code", back)

# aiopenapi3: a client that is made while it runs.
text = yaml.safe_load(pathlib.Path(document).read_text())
text["servers"] = [{"url": url}]

api = aiopenapi3.OpenAPI(f"{url}/openapi.yaml", text, session_factory=httpx2.Client)
api.authenticate(key=facts["KEY"])
answer = api._.decisions.decide(data=question)
ok("aiopenapi3 takes the document, and reads the answer", str(answer.decision) == "require_verification", answer)
taken = api._.decisions.reportOutcome(parameters={"id": answer.decision_id}, data={"outcome": "challenge_initiated", "challenge": "email_code"})
ok("the outcome that it reports is taken", [one.challenge for one in taken.outcomes] == ["email_code"], taken)
ok("the sandbox ends", sandbox.lines.end() == 0)
