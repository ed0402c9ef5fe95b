"""The anthropic package of PyPI against the router."""

import asyncio

import anthropic
from pydantic import BaseModel

from checks import BASE, CITY, MODEL, run, wait_running

sync = anthropic.Anthropic(base_url=BASE, api_key="none", max_retries=0, timeout=30)
ASK = [{"role": "user", "content": "Where do the ferries leave?"}]
USE = [{"role": "user", "content": [{"type": "text", "text": "use the tool"}]}]
TOOL = [{"name": "weather", "description": "of a city", "input_schema": CITY}]


class City(BaseModel):
    city: str
    days: int


def new_async():
    return anthropic.AsyncAnthropic(base_url=BASE, api_key="none", max_retries=0, timeout=30)


def messages():
    a = sync.messages.create(model=MODEL, messages=ASK, system="Be brief.", max_tokens=4)
    assert a.stop_reason == "max_tokens" and len(a.content[0].text) == 16, a
    assert a._request_id, "the SDK finds no request id"


def messages_end_of_their_own():
    a = sync.messages.create(model=MODEL, messages=ASK, max_tokens=4000)
    assert a.stop_reason == "end_turn", a


def next_turn_is_cached():
    first = sync.messages.create(model=MODEL, messages=ASK, system="You know harbours. " * 20, max_tokens=60)
    more = ASK + [{"role": "assistant", "content": first.content[0].text}, {"role": "user", "content": "And when?"}]
    a = sync.messages.create(model=MODEL, messages=more, system="You know harbours. " * 20, max_tokens=4)
    assert a.usage.cache_read_input_tokens > 0, a.usage


def stream():
    plain = sync.messages.create(model=MODEL, messages=ASK, max_tokens=40)
    with sync.messages.stream(model=MODEL, messages=ASK, max_tokens=40) as s:
        text = "".join(s.text_stream)
        final = s.get_final_message()
    assert text == plain.content[0].text and final.usage.output_tokens == plain.usage.output_tokens, (text, final)


def tool():
    a = sync.messages.create(model=MODEL, messages=USE, tools=TOOL, max_tokens=200)
    use = a.content[0]
    assert a.stop_reason == "tool_use" and use.input == {"city": "kalo", "days": 7}, a
    turn = USE + [{"role": "assistant", "content": [use.model_dump(include={"type", "id", "name", "input"})]},
                  {"role": "user", "content": [{"type": "tool_result", "tool_use_id": use.id, "content": "sunny"}]}]
    b = sync.messages.create(model=MODEL, messages=turn, tools=TOOL, max_tokens=200)
    assert b.content[0].text, b


def tool_stream():
    with sync.messages.stream(model=MODEL, messages=ASK, tools=TOOL, tool_choice={"type": "any"}, max_tokens=200) as s:
        for _ in s:
            pass
        final = s.get_final_message()
    assert final.stop_reason == "tool_use" and final.content[0].input == {"city": "kalo", "days": 7}, final


def structured():
    a = sync.messages.parse(model=MODEL, messages=ASK, output_format=City, max_tokens=200)
    assert a.parsed_output == City(city="kalo", days=7), a


def count_tokens():
    a = sync.messages.count_tokens(model=MODEL, messages=ASK)
    b = sync.messages.create(model=MODEL, messages=ASK, max_tokens=1)
    u = b.usage
    assert a.input_tokens == u.input_tokens + u.cache_creation_input_tokens + u.cache_read_input_tokens, (a, u)


def models():
    assert MODEL in [m.display_name for m in sync.models.list()]
    assert sync.models.list()._request_id, "the SDK finds no request id"
    for name in (MODEL, "org/tiny"):
        m = sync.models.retrieve(name)
        assert m.id == name and m.type == "model" and m.display_name == name and m.created_at.year > 2000, m
    try:
        sync.models.retrieve("org/nobody")
    except anthropic.NotFoundError as e:
        assert e.body["type"] == "error" and "org/nobody" in e.body["error"]["message"], e.body
    else:
        raise AssertionError("no error")


def errors():
    for call, kind in ((lambda: sync.messages.create(model="nobody", messages=ASK, max_tokens=4), anthropic.NotFoundError),
                       (lambda: sync.messages.count_tokens(model="nobody", messages=ASK), anthropic.NotFoundError),
                       (lambda: sync.messages.create(model=MODEL, messages=ASK, max_tokens=0), anthropic.BadRequestError)):
        try:
            call()
        except kind as e:
            assert e.body["type"] == "error" and e.body["error"]["message"] and e.request_id, e.body
        else:
            raise AssertionError("no error")


def abort_frees_the_slot():
    wait_running(0, "before")
    tall = [{"role": "user", "content": "use the tool"}]
    wide = [{"name": "wide", "input_schema": {"type": "object", "properties": {f"p{i}": CITY for i in range(1200)}}}]
    with sync.messages.create(model=MODEL, messages=tall, tools=wide, max_tokens=100000, stream=True) as s:
        for i, _ in enumerate(s):
            if i == 3:
                wait_running(1, "in a stream")
                break
    wait_running(0, "after an abort")


async def async_messages_and_stream():
    async with new_async() as c:
        plain = await c.messages.create(model=MODEL, messages=ASK, max_tokens=20)
        async with c.messages.stream(model=MODEL, messages=ASK, max_tokens=20) as s:
            text = "".join([t async for t in s.text_stream])
    assert text == plain.content[0].text, text


async def async_16_streams_at_once():
    async with new_async() as c:
        async def one(i):
            async with c.messages.stream(model=MODEL, messages=[{"role": "user", "content": f"Count from {i}"}], max_tokens=30) as s:
                return "".join([t async for t in s.text_stream])
        texts = await asyncio.gather(*[one(i) for i in range(16)])
    assert len(set(texts)) == 16, texts


run("python anthropic", [
    messages, messages_end_of_their_own, next_turn_is_cached, stream, tool, tool_stream, structured, count_tokens, models, errors,
    abort_frees_the_slot, async_messages_and_stream, async_16_streams_at_once,
])
