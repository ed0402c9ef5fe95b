// The @anthropic-ai/sdk package of npm against the router.
import { createRequire } from "node:module";
import { BASE, CITY, MODEL, assert, run, waitRunning } from "./checks.mjs";

const require = createRequire(process.env.WARMPATH_NODE + "/"); // where the packages are installed
const Anthropic = require("@anthropic-ai/sdk").default;

const client = new Anthropic({ baseURL: BASE, apiKey: "none", maxRetries: 0, timeout: 30000 });
const model = MODEL;
const messages = [{ role: "user", content: "Where do the ferries leave?" }];
const use = [{ role: "user", content: "use the tool" }];
const tools = [{ name: "weather", input_schema: CITY }];
const sample = { city: "kalo", days: 7 };

run("node anthropic", {
  async messages() {
    const a = await client.messages.create({ model, messages, system: "Be brief.", max_tokens: 4 });
    assert.equal(a.stop_reason, "max_tokens");
    assert.equal(a.content[0].text.length, 16);
  },
  async stream() {
    const plain = await client.messages.create({ model, messages, max_tokens: 40 });
    let text = "";
    const s = client.messages.stream({ model, messages, max_tokens: 40 }).on("text", (t) => (text += t));
    const final = await s.finalMessage();
    assert.equal(text, plain.content[0].text);
    assert.equal(final.usage.output_tokens, plain.usage.output_tokens);
  },
  async tool() {
    const a = await client.messages.create({ model, messages: use, tools, max_tokens: 200 });
    assert.equal(a.stop_reason, "tool_use");
    assert.deepEqual(a.content[0].input, sample);
    const result = { type: "tool_result", tool_use_id: a.content[0].id, content: "sunny" };
    const turn = [...use, { role: "assistant", content: a.content }, { role: "user", content: [result] }];
    const b = await client.messages.create({ model, messages: turn, tools, max_tokens: 200 });
    assert(b.content[0].text);
  },
  async tool_stream() {
    const s = client.messages.stream({ model, messages, tools, tool_choice: { type: "any" }, max_tokens: 200 });
    assert.deepEqual((await s.finalMessage()).content[0].input, sample);
  },
  async structured() {
    const output_config = { format: { type: "json_schema", schema: CITY } };
    const a = await client.messages.parse({ model, messages, output_config, max_tokens: 200 });
    assert.deepEqual(JSON.parse(a.content[0].text), sample);
  },
  async count_tokens() {
    const a = await client.messages.countTokens({ model, messages });
    const { usage } = await client.messages.create({ model, messages, max_tokens: 1 });
    assert.equal(a.input_tokens, usage.input_tokens + usage.cache_creation_input_tokens + usage.cache_read_input_tokens);
  },
  async models() {
    const ids = [];
    for await (const m of client.models.list()) ids.push(m.display_name);
    assert(ids.includes(model), String(ids));
    for (const name of [model, "org/tiny"]) {
      const m = await client.models.retrieve(name);
      assert.equal(m.id, name);
      assert.equal(m.type, "model");
      assert.equal(m.display_name, name);
    }
    await assert.rejects(client.models.retrieve("org/nobody"), (e) => e.status === 404 && e.error.type === "error");
  },
  async errors() {
    const isShaped = (e) => e.status === 404 && e.error.type === "error" && e.error.error.message !== "";
    await assert.rejects(client.messages.create({ model: "nobody", messages, max_tokens: 4 }), isShaped);
    await assert.rejects(client.messages.countTokens({ model: "nobody", messages }), isShaped);
  },
  async abort_frees_the_slot() {
    await waitRunning(0, "before");
    const properties = Object.fromEntries(Array.from({ length: 1200 }, (_, i) => [`p${i}`, CITY]));
    const wide = [{ name: "wide", input_schema: { type: "object", properties } }];
    const s = await client.messages.create({ model, messages: use, tools: wide, max_tokens: 100000, stream: true });
    for await (const _ of s) {
      await waitRunning(1, "in a stream");
      break; // aborts the request
    }
    await waitRunning(0, "after an abort");
  },
});
