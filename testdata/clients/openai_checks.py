"""The openai package of PyPI, sync, async and streaming, against the router."""

import asyncio
import io
import json

import openai
from pydantic import BaseModel

from checks import BASE, CITY, MODEL, run, wait_running

sync = openai.OpenAI(base_url=BASE + "/v1", api_key="none", max_retries=0, timeout=30)
ASK = [{"role": "system", "content": "You know harbours. " * 20}, {"role": "user", "content": "Where do the ferries leave?"}]
TOOL = [{"type": "function", "function": {"name": "weather", "parameters": CITY}}]
FLAT = [{"type": "function", "name": "weather", "parameters": CITY, "strict": True}]
USE = [{"role": "user", "content": "use the tool"}]


class City(BaseModel):
    city: str
    days: int


def new_async():
    return openai.AsyncOpenAI(base_url=BASE + "/v1", api_key="none", max_retries=0, timeout=30)


def models():
    assert MODEL in [m.id for m in sync.models.list()]


def models_retrieve():
    for name in (MODEL, "org/tiny"):
        m = sync.models.retrieve(name)
        assert m.id == name and m.object == "model" and m.created > 0, m
    try:
        sync.models.retrieve("org/nobody")
    except openai.NotFoundError as e:
        assert e.code == "model_not_found" and "org/nobody" in e.message, e
    else:
        raise AssertionError("no error")


def chat():
    a = sync.chat.completions.create(model=MODEL, messages=ASK, max_tokens=8)
    assert len(a.choices[0].message.content) == 32, a
    assert a.choices[0].finish_reason == "length" and a.usage.completion_tokens == 8, a


def chat_next_turn_is_cached():
    first = sync.chat.completions.create(model=MODEL, messages=ASK, max_tokens=40)
    more = ASK + [{"role": "assistant", "content": first.choices[0].message.content}, {"role": "user", "content": "And when?"}]
    a = sync.chat.completions.create(model=MODEL, messages=more, max_tokens=4)
    assert a.usage.prompt_tokens_details.cached_tokens > 0, a.usage


def chat_stream_with_usage():
    plain = sync.chat.completions.create(model=MODEL, messages=ASK, max_tokens=50)
    text, usage = "", None
    options = {"include_usage": True}
    for e in sync.chat.completions.create(model=MODEL, messages=ASK, max_tokens=50, stream=True, stream_options=options):
        usage = e.usage or usage
        text += e.choices[0].delta.content or "" if e.choices else ""
    assert text == plain.choices[0].message.content, text
    assert usage and usage.completion_tokens == 50, usage


def chat_n_2():
    a = sync.chat.completions.create(model=MODEL, messages=ASK, max_tokens=4, n=2)
    assert len({c.message.content for c in a.choices}) == 2, a


def completions():
    a = sync.completions.create(model=MODEL, prompt=["one", "two"], max_tokens=4)
    assert [len(c.text) for c in a.choices] == [16, 16], a


def completions_stream():
    text = "".join(e.choices[0].text for e in sync.completions.create(model=MODEL, prompt="one", max_tokens=20, stream=True))
    assert len(text) == 80, text


def responses():
    a = sync.responses.create(model=MODEL, input="Hello", instructions="Be brief.", max_output_tokens=4)
    assert a.status == "incomplete" and len(a.output_text) == 16, a


def responses_stream():
    text, kinds = "", []
    for e in sync.responses.create(model=MODEL, input="Hello", stream=True):
        kinds.append(e.type)
        text += e.delta if e.type == "response.output_text.delta" else ""
    assert kinds[0] == "response.created" and kinds[-1] == "response.completed" and text, kinds


def responses_follow_their_worker():
    for i in range(8):
        a = sync.responses.create(model=MODEL, input=f"Hello, number {i}")
        b = sync.responses.create(model=MODEL, input="And more", previous_response_id=a.id)
        c = sync.responses.create(model=MODEL, input="And again", previous_response_id=b.id)
        assert c.usage.input_tokens > b.usage.input_tokens > a.usage.input_tokens, (a.usage, b.usage, c.usage)


def responses_retrieve():
    for i in range(8):
        a = sync.responses.create(model=MODEL, input=f"Keep this, number {i}")
        assert sync.responses.retrieve(a.id).output_text == a.output_text


def responses_retrieve_streamed():
    for i in range(8):
        last = None
        for e in sync.responses.create(model=MODEL, input=f"Keep that, number {i}", stream=True):
            last = e
        assert sync.responses.retrieve(last.response.id).output_text == last.response.output_text


def responses_background_and_cancel():
    a = sync.responses.create(model=MODEL, input="Take your time", background=True, max_output_tokens=10000)
    assert a.status == "queued", a
    assert sync.responses.cancel(a.id).status == "cancelled"
    wait_running(0, "after a cancel")


def responses_of_nobody():
    for call in (sync.responses.retrieve, sync.responses.cancel, sync.responses.delete, sync.responses.input_items.list):
        try:
            call("resp_0123456789abcdef")
        except openai.APIStatusError as e:
            assert e.status_code in (404, 405), e  # vLLM has neither DELETE nor input_items
        else:
            raise AssertionError(f"{call.__name__} found what is not there")


def responses_tool():
    a = sync.responses.create(model=MODEL, input="use the tool", tools=FLAT)
    call = a.output[0]
    assert call.type == "function_call" and json.loads(call.arguments)["days"] == 7, a
    turn = [{"role": "user", "content": "use the tool"}, call.model_dump(), {"type": "function_call_output", "call_id": call.call_id, "output": "sunny"}]
    b = sync.responses.create(model=MODEL, input=turn, tools=FLAT)
    assert b.output_text, b


def responses_structured():
    a = sync.responses.parse(model=MODEL, input="Which city?", text_format=City)
    assert a.output_parsed == City(city="kalo", days=7), a


def tool():
    a = sync.chat.completions.create(model=MODEL, messages=USE, tools=TOOL)
    call = a.choices[0].message.tool_calls[0]
    assert a.choices[0].finish_reason == "tool_calls" and json.loads(call.function.arguments) == {"city": "kalo", "days": 7}, a
    turn = USE + [a.choices[0].message.model_dump(exclude_none=True), {"role": "tool", "tool_call_id": call.id, "content": "sunny"}]
    b = sync.chat.completions.create(model=MODEL, messages=turn, tools=TOOL)
    assert b.choices[0].message.content, b


def tool_stream():
    with sync.chat.completions.stream(model=MODEL, messages=USE, tools=TOOL, tool_choice="required") as s:
        for _ in s:
            pass
        call = s.get_final_completion().choices[0].message.tool_calls[0]
    assert call.function.name == "weather" and json.loads(call.function.arguments)["city"] == "kalo", call


def structured():
    a = sync.chat.completions.parse(model=MODEL, messages=ASK, response_format=City)
    assert a.choices[0].message.parsed == City(city="kalo", days=7), a


def embeddings():
    packed = sync.embeddings.create(model=MODEL, input=["one", "two"])  # base64 on the wire
    plain = sync.embeddings.create(model=MODEL, input=["one", "two"], encoding_format="float")
    assert len(packed.data) == 2 and len(packed.data[0].embedding) == 64, packed
    assert all(abs(x - y) < 1e-6 for x, y in zip(packed.data[1].embedding, plain.data[1].embedding))


def audio_multipart():
    sound = io.BytesIO(bytes(range(256)) * 2048)  # 512 KB
    sound.name = "speech.wav"
    a = sync.audio.transcriptions.create(model=MODEL, file=sound)
    assert len(a.text) == 4 * 129, len(a.text)


def audio_speech():
    sound = sync.audio.speech.create(model=MODEL, voice="alloy", input="Mind the gap").read()
    assert sound.startswith(b"RIFF") and len(sound) == 44 + 3 * 2400, len(sound)


def images():
    assert sync.images.generate(model=MODEL, prompt="a boat").data[0].b64_json


def errors():
    for call, kind in ((lambda: sync.chat.completions.create(model="nobody", messages=ASK), openai.NotFoundError),
                       (lambda: sync.chat.completions.create(model=MODEL, messages=ASK, temperature=-1), openai.BadRequestError)):
        try:
            call()
        except kind as e:
            assert e.body and e.body["message"], e
        else:
            raise AssertionError("no error")


def abort_frees_the_slot():
    wait_running(0, "before")
    with sync.chat.completions.create(model=MODEL, messages=ASK, max_tokens=100000, stream=True) as s:
        for i, _ in enumerate(s):
            if i == 3:
                wait_running(1, "in a stream")
                break
    wait_running(0, "after an abort")


async def async_chat_and_stream():
    async with new_async() as c:
        plain = await c.chat.completions.create(model=MODEL, messages=ASK, max_tokens=20)
        s = await c.chat.completions.create(model=MODEL, messages=ASK, max_tokens=20, stream=True)
        text = "".join([e.choices[0].delta.content or "" async for e in s if e.choices])
    assert text == plain.choices[0].message.content, text


async def async_32_streams_at_once():
    async with new_async() as c:
        async def one(i):
            messages = [{"role": "user", "content": f"Count from {i}"}]
            s = await c.chat.completions.create(model=MODEL, messages=messages, max_tokens=30, stream=True)
            return "".join([e.choices[0].delta.content or "" async for e in s if e.choices])
        texts = await asyncio.gather(*[one(i) for i in range(32)])
    assert len(set(texts)) == 32 and all(len(t) == 120 for t in texts), texts


async def async_responses_stream():
    async with new_async() as c:
        async with c.responses.stream(model=MODEL, input="Hello") as s:
            async for _ in s:
                pass
            final = await s.get_final_response()
    assert final.status == "completed" and final.output_text, final


async def async_embeddings():
    async with new_async() as c:
        a = await c.embeddings.create(model=MODEL, input="one")
    assert len(a.data[0].embedding) == 64, a


async def async_cancel_frees_the_slot():
    async with new_async() as c:
        # in prefill or queue: no byte of the answer is there yet
        waits = asyncio.create_task(c.chat.completions.create(model=MODEL, messages=ASK, max_tokens=100000))
        try:
            await asyncio.to_thread(wait_running, 1, "in a plain request")
        finally:
            waits.cancel()
        await asyncio.to_thread(wait_running, 0, "after a cancel")
        s = await c.chat.completions.create(model=MODEL, messages=ASK, max_tokens=100000, stream=True)
        async for _ in s:
            break
        await s.close()
        await asyncio.to_thread(wait_running, 0, "after an abort")


run("python openai", [
    models, models_retrieve, chat, chat_next_turn_is_cached, chat_stream_with_usage, chat_n_2, completions, completions_stream,
    responses, responses_stream, responses_follow_their_worker, responses_retrieve, responses_retrieve_streamed,
    responses_of_nobody, responses_tool, responses_structured,
    tool, tool_stream, structured, embeddings, audio_multipart, audio_speech, images, errors, abort_frees_the_slot,
    async_chat_and_stream, async_32_streams_at_once, async_responses_stream, async_embeddings, async_cancel_frees_the_slot,
    responses_background_and_cancel,  # last: what it leaves behind when it fails would be counted by others
])
