// AWS's client for JavaScript against the SageMaker endpoints of a router.
import { createRequire } from "node:module";
import path from "node:path";
import { BASE, assert, run } from "./checks.mjs";

const require = createRequire(path.join(process.env.WARMPATH_NODE, "package.json"));
const { SageMakerRuntimeClient, InvokeEndpointCommand, InvokeEndpointWithResponseStreamCommand } = require("@aws-sdk/client-sagemaker-runtime");

const lasting = process.env.WARMPATH_WORKERS.split(",");
const { WARMPATH_FAULTY: faulty, WARMPATH_BUSY: busy } = process.env;

const client = (maxAttempts) =>
  new SageMakerRuntimeClient({ endpoint: BASE, region: "eu-west-1", maxAttempts, credentials: { accessKeyId: "none", secretAccessKey: "none" } });
const aws = client(1);

const hello = { messages: [{ role: "user", content: "hi" }], max_tokens: 8 };
const input = (EndpointName, SessionId, body) => ({ EndpointName, SessionId, ContentType: "application/json", Body: JSON.stringify(body ?? hello) });
const invoke = (endpoint, session, body, options) => aws.send(new InvokeEndpointCommand(input(endpoint, session, body)), options);
const stats = async (url) => (await fetch(url + "/sim/stats")).json();
const kept = async () => (await Promise.all(lasting.map(stats))).reduce((sum, s) => sum + s.sessions, 0);
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

async function fault(mode) {
  assert.equal((await fetch(faulty + "/sim/fault", { method: "POST", body: JSON.stringify({ mode }) })).status, 200);
}

async function open(endpoint) {
  const { NewSessionId } = await invoke(endpoint, "NEW_SESSION", { requestType: "NEW_SESSION" });
  const [session, end] = NewSessionId.split("; Expires=");
  return [session, Date.parse(end)];
}

async function close(endpoint, session, requestType = "CLOSE") {
  assert.equal((await invoke(endpoint, session, { requestType })).ClosedSessionId, session);
}

// refused wants an exception of this name and status.
async function refused(name, status, promise) {
  let error;
  await promise.catch((e) => (error = e));
  assert(error, "no error, want " + name);
  assert.deepEqual([error.name, error.$metadata?.httpStatusCode], [name, status], error.stack);
  assert(error.message && error.$metadata.requestId, "an error without a message or a request's id");
  return error;
}

async function read(endpoint, session, tokens = 8) {
  const { Body, ContentType } = await aws.send(
    new InvokeEndpointWithResponseStreamCommand(input(endpoint, session, { ...hello, stream: true, max_tokens: tokens })),
  );
  assert(ContentType.startsWith("text/event-stream"), ContentType);
  let text = "";
  for await (const event of Body) text += Buffer.from(event.PayloadPart.Bytes).toString();
  return text;
}

await run("node sagemaker", {
  async create_use_close() {
    const before = await kept();
    const uses = await Promise.all(lasting.map(stats));
    const [session, end] = await open("lasting");
    const left = end - Date.now();
    assert(left > 900e3 && left <= 1200e3, `it ends in ${left} ms`);
    for (let i = 0; i < 6; i++) {
      const answer = JSON.parse((await invoke("lasting", session)).Body.transformToString());
      assert.equal(answer.object, "chat.completion");
    }
    const now = await Promise.all(lasting.map(stats));
    const more = now.map((s, i) => s.session_uses - uses[i].session_uses).sort();
    assert.deepEqual(more, [0, 6]);
    assert.equal(await kept(), before + 1);
    await close("lasting", session);
    assert.equal(await kept(), before);
    await refused("ValidationError", 400, invoke("lasting", session));
    await refused("ValidationError", 400, close("lasting", session));
  },

  async router_keeps_the_session() {
    const [session] = await open("plain");
    for (let i = 0; i < 4; i++) await invoke("plain", session);
    await close("plain", session, "CLOSE_SESSION");
    await refused("ValidationError", 400, invoke("plain", session));
  },

  async unknown() {
    for (const session of ["nobody", "a b", "x".repeat(257), "-x"]) await refused("ValidationError", 400, invoke("lasting", session));
  },

  async expired() {
    const [session, end] = await open("brief");
    await sleep(end - Date.now() + 1100);
    await refused("ValidationError", 400, invoke("brief", session));
  },

  async stream() {
    const [session] = await open("lasting");
    for (const named of [undefined, session, session]) {
      const text = await read("lasting", named);
      assert(text.startsWith("data: {") && text.endsWith("data: [DONE]\n\n"), text);
    }
    await close("lasting", session);
    await refused("ValidationError", 400, read("lasting", session));
    await refused("ValidationError", 400, read("lasting", "NEW_SESSION"));
  },

  async stream_exception() {
    await fault("cut");
    try {
      await assert.rejects(read("faulty", undefined, 400), (e) => e.name === "ModelStreamError" && e.ErrorCode === "StreamBroken");
    } finally {
      await fault("none");
    }
  },

  async 424() {
    const e = await refused("ModelError", 424, invoke("lasting", undefined, { ...hello, temperature: -1 }));
    assert.equal(e.OriginalStatusCode, 400);
    assert.match(e.OriginalMessage, /temperature/);
  },

  async 429() {
    const held = new AbortController();
    const first = invoke("busy", undefined, { ...hello, max_tokens: 100000 }, { abortSignal: held.signal }).catch((e) => e);
    while ((await stats(busy)).running !== 1) await sleep(10);
    await refused("ModelNotReadyException", 429, invoke("busy"));
    held.abort();
    await first;
    while ((await stats(busy)).running !== 0) await sleep(10);
  },

  async 503() {
    await refused("ServiceUnavailable", 503, invoke("down"));
    const e = await refused("ServiceUnavailable", 503, client(3).send(new InvokeEndpointCommand(input("down"))));
    assert.equal(e.$metadata.attempts, 3);
  },

  async opening_fails() {
    await fault("open-error");
    try {
      await refused("ModelError", 424, open("faulty"));
    } finally {
      await fault("none");
    }
  },
});
