"""REDbot's checks of requests to a running edge, and its digest fields read by a parser of structured fields that is not ours.
Findings that are not explained below fail it, and so do explanations of what is not found.

    python3 lint.py http://127.0.0.1:8787 <probes.json

`probes.json` is a list of `{"method", "path", "headers", "status", "digest"}`, the last being
whether the answer has a digest field. tests/http-lint.test.mjs makes it and runs this, with the
packages of requirements.txt, which scripts/setup.sh installs.
"""

import configparser
import hashlib
import http.client
import json
import sys
from urllib.parse import urlsplit

import http_sf
import thor
from httplint import levels
from redbot.resource import HttpResource

# Findings of a level that asks for attention, and why they stay.
EXPLAINED = {
    "DATE_CLOCKLESS": "Cloudflare adds Date; workerd alone does not",
    "NO_DATE_304": "as above",
    "HEADER_SHOULD_NOT_BE_IN_304": "a 304 has every header of its 200: NodeTool's client reads Content-Type from it",
    "STORE_PUBLIC_UNNECESSARY": "the wire contract says public, for caches that want to be told",
    "STATUS_BAD_REQUEST": "the probe asks for it",
}

CONFIG = configparser.ConfigParser()
CONFIG.read_dict({"redbot": {"enable_local_access": "True"}})


def lint(origin, probes):
    """What REDbot finds, one probe after the other: it asks as the probe says, and then for compression, parts and a 304, where
    that makes sense."""
    resources = []

    def go_on():
        if len(resources) == len(probes):
            thor.stop()
            return
        probe = probes[len(resources)]
        resource = HttpResource(CONFIG["redbot"], active_checks_enabled=probe["method"] == "GET")
        resources.append(resource)
        resource.set_request(origin + probe["path"], probe["method"], list(probe["headers"].items()))
        resource.response.request = resource.request
        resource.once("check_done", lambda: thor.schedule(0, go_on))
        resource.check()

    thor.schedule(0, go_on)
    thor.run()
    return resources


def findings(resource, probe):
    """The notes that ask for attention."""
    if not resource.response.complete:
        raise RuntimeError(f"no whole answer: {resource.fetch_error}")
    if resource.response.status_code != probe["status"]:
        raise RuntimeError(f"status {resource.response.status_code}, not {probe['status']}")
    return [note for note in resource.response.notes if note.level in (levels.BAD, levels.WARN)]


def wrong_digest(origin, probe):
    """What is wrong with the digest field, which is a dictionary of one byte sequence, the SHA-256 of the body."""
    connection = http.client.HTTPConnection(urlsplit(origin).netloc, timeout=15)
    connection.request(probe["method"], probe["path"], headers=probe["headers"])
    response = connection.getresponse()
    body = response.read()
    connection.close()
    field = response.getheader("Unencoded-Digest")
    if (field is not None) != probe["digest"]:
        return "absent" if field is None else "present"
    if field is None or probe["method"] == "HEAD":
        return None
    members = http_sf.parse(field.encode(), tltype="dictionary")
    digest, parameters = members["sha-256"]
    right = list(members) == ["sha-256"] and digest == hashlib.sha256(body).digest() and not parameters
    return None if right else field


def main(origin):
    failures = []
    found = set()
    probes = json.load(sys.stdin)
    for probe, resource in zip(probes, lint(origin, probes)):
        name = f"{probe['method']} {probe['path']} {probe['status']} {sorted(probe['headers'])}"
        try:
            notes = findings(resource, probe)
            field = wrong_digest(origin, probe)
        except RuntimeError as error:
            failures.append(f"{name}: {error}")
            continue
        found.update(type(note).__name__ for note in notes)
        failures += [
            f"{name}: {type(note).__name__}: {note.summary}" for note in notes if type(note).__name__ not in EXPLAINED
        ]
        if field is not None:
            failures.append(f"{name}: Unencoded-Digest is wrongly {field}")
    failures += [f"{stale} is explained and was not found" for stale in sorted(set(EXPLAINED) - found)]
    print("\n".join(failures))
    return len(failures) > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
