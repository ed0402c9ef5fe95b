"""Tells which model vLLM's stack reads in a request: a line of JSON in, a line of JSON out.

A question is {"type": Content-Type, "body": base64, "cuts": [sizes of the pieces in which the body comes]}. The answer is
{"model": the text}, {"model": null} where the field is missing, or {"error": why} where the worker would answer 400.
A form is read as FastAPI reads it, where of a field that comes twice the last counts; anything else by json.loads.
"""

import asyncio
import base64
import json
import logging
import sys

from starlette.requests import Request

logging.disable(logging.CRITICAL)


def pieces(body, cuts):
    for size in cuts:
        yield body[:size]
        body = body[size:]
    yield body


async def read(kind, body, cuts):
    waiting = list(pieces(body, cuts))

    async def receive():
        piece = waiting.pop(0)
        return {"type": "http.request", "body": piece, "more_body": bool(waiting)}

    scope = {"type": "http", "method": "POST", "path": "/", "query_string": b"", "headers": [(b"content-type", kind)]}
    request = Request(scope, receive)
    if b"form" in kind.lower() or b"multipart" in kind.lower():
        form = await request.form()
        model = form.get("model")
        if model is not None and not isinstance(model, str):
            return {"error": "the model is a file"}
    else:
        model = json.loads(await request.body())
        model = model.get("model") if isinstance(model, dict) else None
        if model is not None and not isinstance(model, str):
            return {"error": "the model is no string"}
    return {"model": model}


for line in sys.stdin:
    asked = json.loads(line)
    try:
        answer = asyncio.run(read(asked["type"].encode("latin-1"), base64.b64decode(asked["body"]), asked.get("cuts", [])))
    except Exception as e:  # whatever it is, the worker serves no model
        answer = {"error": f"{type(e).__name__}: {e}"[:200]}
    print(json.dumps(answer), flush=True)
