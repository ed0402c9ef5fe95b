"""boto3 against the SageMaker endpoints of a router."""

import datetime
import json
import os
import threading
import time
import urllib.request

import boto3
import botocore.config
import botocore.exceptions

import checks

LASTING, FAULTY, BUSY = checks.WORKERS, os.environ["WARMPATH_FAULTY"], os.environ["WARMPATH_BUSY"]
HELLO = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 8}


def client(attempts=1):
    return boto3.client(
        "sagemaker-runtime",
        endpoint_url=checks.BASE,
        region_name="eu-west-1",
        aws_access_key_id="none",
        aws_secret_access_key="none",
        config=botocore.config.Config(retries={"total_max_attempts": attempts, "mode": "standard"}, read_timeout=50),
    )


aws = client()


def invoke(endpoint, session=None, body=HELLO, by=None):
    named = {"SessionId": session} if session else {}
    return (by or aws).invoke_endpoint(EndpointName=endpoint, ContentType="application/json", Body=json.dumps(body), **named)


def open_session(endpoint):
    new = invoke(endpoint, "NEW_SESSION", {"requestType": "NEW_SESSION"})["NewSessionId"]
    session, end = new.split("; Expires=")
    end = datetime.datetime.strptime(end, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=datetime.timezone.utc)
    return session, end


def close(endpoint, session, word="CLOSE"):
    closed = invoke(endpoint, session, {"requestType": word})
    assert closed["ClosedSessionId"] == session, closed


def refused(code, status, call, *args, **named):
    """The call's exception, which must be of this code and status."""
    try:
        call(*args, **named)
    except botocore.exceptions.ClientError as e:
        got = e.response["Error"]["Code"], e.response["ResponseMetadata"]["HTTPStatusCode"]
        assert got == (code, status), e.response
        assert e.response["Error"]["Message"] and e.response["ResponseMetadata"]["RequestId"], e.response
        return e
    raise AssertionError(f"no error, want {code}")


def stats(url):
    with urllib.request.urlopen(url + "/sim/stats", timeout=5) as answer:
        return json.load(answer)


def kept():
    return sum(stats(w)["sessions"] for w in LASTING)


def fault(mode):
    body = json.dumps({"mode": mode}).encode()
    urllib.request.urlopen(urllib.request.Request(FAULTY + "/sim/fault", body), timeout=5).read()


def create_use_close():
    before, uses = kept(), [stats(w)["session_uses"] for w in LASTING]
    session, end = open_session("lasting")
    left = (end - datetime.datetime.now(datetime.timezone.utc)).total_seconds()
    assert 900 < left <= 1200, left
    for _ in range(6):
        answer = json.loads(invoke("lasting", session)["Body"].read())
        assert answer["object"] == "chat.completion", answer
    more = sorted(stats(w)["session_uses"] - n for w, n in zip(LASTING, uses))
    assert more == [0, 6] and kept() == before + 1, (more, kept())
    close("lasting", session)
    assert kept() == before
    refused("ValidationError", 400, invoke, "lasting", session)
    refused("ValidationError", 400, close, "lasting", session)


def router_keeps_the_session():
    session, _ = open_session("plain")
    for _ in range(4):
        invoke("plain", session)
    close("plain", session, "CLOSE_SESSION")
    refused("ValidationError", 400, invoke, "plain", session)


def unknown():
    for session in "nobody", "a b", "x" * 257, "-x":
        refused("ValidationError", 400, invoke, "lasting", session)
    refused("ValidationError", 400, invoke, "my ep/ü")


def expired():
    session, end = open_session("brief")
    time.sleep(max(0, (end - datetime.datetime.now(datetime.timezone.utc)).total_seconds()) + 1.1)
    refused("ValidationError", 400, invoke, "brief", session)


def read(endpoint, session=None, tokens=8):
    named = {"SessionId": session} if session else {}
    body = json.dumps(HELLO | {"stream": True, "max_tokens": tokens})
    answer = aws.invoke_endpoint_with_response_stream(EndpointName=endpoint, ContentType="application/json", Body=body, **named)
    assert answer["ContentType"].startswith("text/event-stream"), answer
    return b"".join(event["PayloadPart"]["Bytes"] for event in answer["Body"])


def stream():
    session, _ = open_session("lasting")
    for named in None, session, session:
        text = read("lasting", named)
        assert text.startswith(b"data: {") and text.endswith(b"data: [DONE]\n\n"), text
    close("lasting", session)
    refused("ValidationError", 400, read, "lasting", session)
    refused("ValidationError", 400, read, "lasting", "NEW_SESSION")


def stream_exception():
    fault("cut")
    try:
        read("faulty", tokens=400)
    except botocore.exceptions.EventStreamError as e:
        assert e.response["Error"]["Code"] == "ModelStreamError", e.response
        assert "ErrorCode" not in e.response or e.response["ErrorCode"] == "StreamBroken", e.response
    else:
        raise AssertionError("the stream ended well")
    finally:
        fault("none")


def _424():
    e = refused("ModelError", 424, invoke, "lasting", body=HELLO | {"temperature": -1})
    assert e.response["OriginalStatusCode"] == 400 and "temperature" in e.response["OriginalMessage"], e.response


def _429():
    held = threading.Thread(target=lambda: invoke("busy", body=HELLO | {"max_tokens": 20000}), daemon=True)
    held.start()
    while stats(BUSY)["running"] != 1:
        time.sleep(0.01)
    refused("ModelNotReadyException", 429, invoke, "busy")
    held.join()


def _503():
    refused("ServiceUnavailable", 503, invoke, "down")
    e = refused("ServiceUnavailable", 503, invoke, "down", by=client(attempts=3))
    assert e.response["ResponseMetadata"]["RetryAttempts"] == 2, e.response


def opening_fails():
    fault("open-error")
    try:
        refused("ModelError", 424, open_session, "faulty")
    finally:
        fault("none")


checks.run("python sagemaker", [create_use_close, router_keeps_the_session, unknown, expired, stream, stream_exception, _424, _429, _503, opening_fails])
