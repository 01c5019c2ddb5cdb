"""REDbot's checks over every route of a running edge, and its digest fields read by a parser of structured fields that is not
ours. Findings that are not explained below fail it.

    python3 -m venv .lint && .lint/bin/pip install -r tests/http-lint/requirements.txt
    .lint/bin/python tests/http-lint/lint.py http://127.0.0.1:8787
"""

import hashlib
import http.client
import json
import sys
from urllib.parse import quote, urlsplit

import http_sf
from httplint import HttpRequestLinter, HttpResponseLinter, levels

# Findings of a level that asks for attention, and why they stay.
EXPLAINED = {
    "DATE_CLOCKLESS": "Cloudflare adds Date; workerd alone does not",
    "NO_DATE_304": "as above",
    "HEADER_SHOULD_NOT_BE_IN_304": "a 304 has every header of its 200: NodeTool's client reads Content-Type from it",
    "STORE_PUBLIC_UNNECESSARY": "the wire contract says public, for caches that want to be told",
    "STATUS_BAD_REQUEST": "the probe asks for it",
}


def ask(origin, method, path, headers):
    connection = http.client.HTTPConnection(urlsplit(origin).netloc, timeout=15)
    connection.putrequest(method, path, skip_accept_encoding=True)
    for name, value in headers.items():
        connection.putheader(name, value)
    connection.endheaders()
    response = connection.getresponse()
    body = response.read()
    connection.close()
    return response, body


def findings(origin, method, path, headers, response, body):
    request = HttpRequestLinter()
    request.process_request_topline(method.encode(), (origin + path).encode(), b"HTTP/1.1")
    request.process_headers([(name.encode(), value.encode()) for name, value in headers.items()])
    request.finish_content(True)
    linter = HttpResponseLinter(no_content=method == "HEAD")
    linter.request = request
    linter.process_response_topline(b"HTTP/1.1", str(response.status).encode(), response.reason.encode())
    linter.process_headers([(name.encode(), value.encode()) for name, value in response.getheaders()])
    if body:
        linter.feed_content(body)
    linter.finish_content(True)
    return [note for note in linter.notes if note.level in (levels.BAD, levels.WARN)]


def check_digest(response, body):
    """The digest field is a dictionary of one byte sequence: the SHA-256 of the body."""
    field = response.getheader("Unencoded-Digest")
    if field is None:
        return None
    members = http_sf.parse(field.encode(), tltype="dictionary")
    digest, _ = members["sha-256"]
    return None if list(members) == ["sha-256"] and digest == hashlib.sha256(body).digest() else field


def probes(origin):
    modules = "/api/sandbox-modules"
    _, index = ask(origin, "GET", modules, {})
    page = json.loads(index)
    module = page["modules"][0]
    named = f"{modules}/{quote(module['specifier'], safe='')}"
    pinned = f"{modules}/{module['graphDigest']}"
    closure = f"/api/sandbox-closures/{module['graphDigest']}"
    for path in (named, pinned, closure, modules, f"/api/manifests/{page['manifest']}", "/api/channels/stable"):
        response, _ = ask(origin, "GET", path, {})
        yield "GET", path, {}
        yield "HEAD", path, {}
        yield "GET", path, {"If-None-Match": response.getheader("ETag")}
    preflight = {"Origin": "https://app.example", "Access-Control-Request-Method": "GET"}
    yield "OPTIONS", named, preflight
    yield "POST", named, {}
    yield "GET", "/healthz", {}
    yield "GET", f"{modules}/absent", {}
    yield "GET", f"{modules}/%zz", {}


def main(origin):
    failed = 0
    seen = set()
    for method, path, headers in probes(origin):
        response, body = ask(origin, method, path, headers)
        notes = findings(origin, method, path, headers, response, body)
        seen.update(type(note).__name__ for note in notes)
        open_notes = [note for note in notes if type(note).__name__ not in EXPLAINED]
        whole = method == "GET" and response.status == 200
        wrong_digest = check_digest(response, body) if whole else None
        for note in open_notes:
            print(f"{method} {path} {response.status}: {type(note).__name__}: {note.summary}")
        if wrong_digest:
            print(f"{method} {path}: {wrong_digest} is not the body's digest")
        failed += len(open_notes) + bool(wrong_digest)
    stale = sorted(set(EXPLAINED) - seen)
    print(f"{failed} findings that are not explained; explained without being found: {stale or 'none'}")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
