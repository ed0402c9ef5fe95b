// The openai package of npm against the router.
import { createRequire } from "node:module";
import { BASE, CITY, MODEL, assert, run, waitRunning } from "./checks.mjs";

const require = createRequire(process.env.WARMPATH_NODE + "/"); // where the packages are installed
const OpenAI = require("openai").default;
const { toFile } = require("openai");

const client = new OpenAI({ baseURL: BASE + "/v1", apiKey: "none", maxRetries: 0, timeout: 30000 });
const model = MODEL;
const messages = [{ role: "user", content: "Where do the ferries leave?" }];
const use = [{ role: "user", content: "use the tool" }];
const tools = [{ type: "function", function: { name: "weather", parameters: CITY } }];
const flat = [{ type: "function", name: "weather", parameters: CITY, strict: true }];
const sample = { city: "kalo", days: 7 };

async function textOf(stream) {
  let text = "";
  for await (const e of stream) text += e.choices[0]?.delta.content ?? "";
  return text;
}

run("node openai", {
  async models() {
    const ids = [];
    for await (const m of client.models.list()) ids.push(m.id);
    assert(ids.includes(model), String(ids));
  },
  async models_retrieve() {
    for (const name of [model, "org/tiny"]) {
      const m = await client.models.retrieve(name);
      assert.equal(m.id, name);
      assert.equal(m.object, "model");
    }
    await assert.rejects(client.models.retrieve("org/nobody"), (e) => e.status === 404 && e.code === "model_not_found");
  },
  async chat() {
    const a = await client.chat.completions.create({ model, messages, max_tokens: 8 });
    assert.equal(a.choices[0].message.content.length, 32);
    assert.equal(a.usage.completion_tokens, 8);
  },
  async chat_stream_with_usage() {
    const plain = await client.chat.completions.create({ model, messages, max_tokens: 50 });
    let text = "";
    let usage;
    const ask = { model, messages, max_tokens: 50, stream: true, stream_options: { include_usage: true } };
    for await (const e of await client.chat.completions.create(ask)) {
      text += e.choices[0]?.delta.content ?? "";
      usage = e.usage ?? usage;
    }
    assert.equal(text, plain.choices[0].message.content);
    assert.equal(usage.completion_tokens, 50);
  },
  async chat_32_streams_at_once() {
    const texts = await Promise.all(
      Array.from({ length: 32 }, async (_, i) => {
        const ask = { model, messages: [{ role: "user", content: `Count from ${i}` }], max_tokens: 30, stream: true };
        return textOf(await client.chat.completions.create(ask));
      }),
    );
    assert.equal(new Set(texts).size, 32);
    assert(texts.every((t) => t.length === 120));
  },
  async completions() {
    const a = await client.completions.create({ model, prompt: "one", max_tokens: 4 });
    assert.equal(a.choices[0].text.length, 16);
    let text = "";
    for await (const e of await client.completions.create({ model, prompt: "one", max_tokens: 4, stream: true })) text += e.choices[0].text;
    assert.equal(text, a.choices[0].text);
  },
  async responses() {
    const a = await client.responses.create({ model, input: "Hello", instructions: "Be brief.", max_output_tokens: 4 });
    assert.equal(a.output_text.length, 16);
  },
  async responses_stream() {
    const kinds = [];
    let text = "";
    for await (const e of await client.responses.create({ model, input: "Hello", stream: true })) {
      kinds.push(e.type);
      if (e.type === "response.output_text.delta") text += e.delta;
    }
    assert.equal(kinds.at(-1), "response.completed");
    assert(text);
  },
  async responses_follow_their_worker() {
    for (let i = 0; i < 8; i++) {
      const a = await client.responses.create({ model, input: `Hello, number ${i}` });
      const b = await client.responses.create({ model, input: "And more", previous_response_id: a.id });
      assert(b.usage.input_tokens > a.usage.input_tokens);
      assert.equal((await client.responses.retrieve(b.id)).output_text, b.output_text);
    }
  },
  async responses_tool() {
    const a = await client.responses.create({ model, input: "use the tool", tools: flat });
    assert.equal(a.output[0].type, "function_call");
    assert.deepEqual(JSON.parse(a.output[0].arguments), sample);
  },
  async responses_structured() {
    const text = { format: { type: "json_schema", name: "city", strict: true, schema: CITY } };
    const a = await client.responses.parse({ model, input: "Which city?", text });
    assert.deepEqual(a.output_parsed ?? JSON.parse(a.output_text), sample);
  },
  async tool() {
    const a = await client.chat.completions.create({ model, messages: use, tools });
    const call = a.choices[0].message.tool_calls[0];
    assert.deepEqual(JSON.parse(call.function.arguments), sample);
    const turn = [...use, a.choices[0].message, { role: "tool", tool_call_id: call.id, content: "sunny" }];
    const b = await client.chat.completions.create({ model, messages: turn, tools });
    assert(b.choices[0].message.content);
  },
  async tool_stream() {
    const s = client.chat.completions.stream({ model, messages: use, tools, tool_choice: "required" });
    const call = (await s.finalChatCompletion()).choices[0].message.tool_calls[0];
    assert.deepEqual(JSON.parse(call.function.arguments), sample);
  },
  async structured() {
    const response_format = { type: "json_schema", json_schema: { name: "city", strict: true, schema: CITY } };
    const a = await client.chat.completions.create({ model, messages, response_format });
    assert.deepEqual(JSON.parse(a.choices[0].message.content), sample);
  },
  async embeddings() {
    const packed = await client.embeddings.create({ model, input: ["one", "two"] }); // base64 on the wire
    const plain = await client.embeddings.create({ model, input: ["one", "two"], encoding_format: "float" });
    assert.equal(packed.data[1].embedding.length, 64);
    packed.data[1].embedding.forEach((x, i) => assert(Math.abs(x - plain.data[1].embedding[i]) < 1e-6));
  },
  async audio_multipart() {
    const file = await toFile(Buffer.alloc(512 << 10, 7), "speech.wav");
    const a = await client.audio.transcriptions.create({ model, file });
    assert.equal(a.text.length, 4 * 129);
  },
  async audio_speech() {
    const a = await client.audio.speech.create({ model, voice: "alloy", input: "Mind the gap" });
    assert.equal((await a.arrayBuffer()).byteLength, 44 + 3 * 2400);
  },
  async images() {
    const a = await client.images.generate({ model, prompt: "a boat" });
    assert(a.data[0].b64_json);
  },
  async errors() {
    await assert.rejects(client.chat.completions.create({ model: "nobody", messages }), { status: 404 });
    await assert.rejects(client.chat.completions.create({ model, messages, temperature: -1 }), { status: 400 });
  },
  async abort_frees_the_slot() {
    await waitRunning(0, "before");
    const s = await client.chat.completions.create({ model, messages, max_tokens: 100000, stream: true });
    for await (const _ of s) {
      await waitRunning(1, "in a stream");
      break; // aborts the request
    }
    await waitRunning(0, "after an abort");
    const stop = new AbortController();
    const plain = client.chat.completions.create({ model, messages, max_tokens: 100000 }, { signal: stop.signal });
    const refused = assert.rejects(plain, OpenAI.APIUserAbortError);
    await waitRunning(1, "in a plain request");
    stop.abort();
    await refused;
    await waitRunning(0, "after an abort of a plain request");
  },
  // Last: what it leaves behind when it fails would be counted by others.
  async responses_background_and_cancel() {
    const a = await client.responses.create({ model, input: "Take your time", background: true, max_output_tokens: 10000 });
    assert.equal(a.status, "queued");
    assert.equal((await client.responses.cancel(a.id)).status, "cancelled");
    await waitRunning(0, "after a cancel");
  },
});
