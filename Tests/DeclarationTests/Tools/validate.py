# Validates YAML files against a JSON Schema, with jsonschema-rs and PyYAML, which others wrote (both come with schemathesis).
# validate.py SCHEMA FILE…: a line for each file, "valid" or what is wrong.
import json
import re
import sys

import jsonschema_rs
import yaml


class Loader(yaml.SafeLoader):
    """Words of YAML 1.2: null, true and false; yes, no, on, off, numbers and dates are text."""


Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in found if tag == "tag:yaml.org,2002:null"]
    for first, found in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile("^(true|false)$"), list("tf"))

with open(sys.argv[1], encoding="utf-8") as file:
    schema = json.load(file)
assert jsonschema_rs.meta.is_valid(schema)
validator = jsonschema_rs.validator_for(schema)
for path in sys.argv[2:]:
    with open(path, encoding="utf-8") as file:
        try:
            document = yaml.load(file, Loader)
        except yaml.YAMLError:
            print("not YAML")
            continue
    fault = next(iter(validator.iter_errors(document)), None)
    print("valid" if fault is None else " ".join(str(fault.message).split()))
