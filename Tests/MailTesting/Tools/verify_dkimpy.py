#!/usr/bin/env python3
"""Verifies every DIR/*.eml with dkimpy, keys from DIR/dns.tsv; prints a line "file result result ..." for each, top to bottom."""
import pathlib
import sys

import dkim

folder = pathlib.Path(sys.argv[1])
records = dict(line.split("\t", 1) for line in (folder / "dns.tsv").read_text().splitlines())


def txt(name, timeout=5):
    return records.get(name.decode().rstrip("."), "").encode()


for path in sorted(folder.glob("*.eml")):
    message = path.read_bytes()
    results = []
    count = sum(1 for name, _ in dkim.DKIM(message).headers if name.lower() == b"dkim-signature")
    for index in range(count):
        try:
            results.append("pass" if dkim.DKIM(message).verify(idx=index, dnsfunc=txt) else "fail")
        except Exception as error:
            results.append("error:" + type(error).__name__)
    print(path.name, *results)
