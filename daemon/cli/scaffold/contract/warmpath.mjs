// Stands in for the host in tests of a module as built. Written from warmpath's sdk/abi, as warmpath.ts is.
import fs from "node:fs";

// The records: offset and type of each field.
const records = {
  Header: {
    size: 272,
    version: [0, "u32"],
    header_bytes: [4, "u32"],
    row_bytes: [8, "u32"],
    rows: [12, "u32"],
    seq: [16, "u64"],
    now: [24, "i64"],
    random: [32, "u64"],
    prompt_tokens: [40, "u32"],
    prompt_blocks: [44, "u32"],
    block_tokens: [48, "f32"],
    max_tokens: [52, "u32"],
    priority: [56, "i32"],
    flags: [60, "u32"],
    model: [64, "u64"],
    session: [72, "u64"],
    tenant: [80, "u64"],
    bound: [88, "i32"],
    best_row: [92, "i32"],
    best_match: [96, "u32"],
    lambda: [100, "f32"],
    c1: [104, "f32"],
    c2: [108, "f32"],
    inv_bw_l1: [112, "f32"],
    inv_bw_l2: [116, "f32"],
    order_len: [120, "u32"],
    endpoint: [124, "u32"],
    caller: [128, "u64"],
    deadline: [136, "i64"],
    labels: [144, "u32"],
    labels_epoch: [148, "u32"],
    reject_status: [152, "u32"],
    retry_after: [156, "u32"],
    reject_text: [160, "u32"],
    reject_len: [164, "u32"],
    parent: [168, "u64"],
    turn: [176, "u32"],
    since_last: [180, "f32"],
    expected_output: [184, "u32"],
    expected_turns: [188, "u32"],
    last: [192, "i32"],
    parent_row: [196, "i32"],
    configured: [200, "u32"],
    up: [204, "u32"],
    queue_depth: [208, "u32"],
    flows_waiting: [212, "u32"],
    waited: [216, "f32"],
    hold_millis: [220, "u32"],
    prefillers: [224, "u32"],
    pair_row: [228, "i32"],
    left_out: [232, "u32"],
    mean_wait: [236, "f32"],
    mean_slow: [240, "f32"],
    mean_load: [244, "f32"],
    mean_flight: [248, "f32"],
    mean_prompt: [252, "f32"],
    kv_in_flight: [256, "f32"],
    uneven: [260, "u32"],
    gap: [264, "f32"],
    next: [268, "u32"],
  },
  Row: {
    size: 184,
    worker: [0, "u32"],
    state: [4, "u32"],
    predicted: [8, "u32"],
    gpu: [12, "u32"],
    l1: [16, "u32"],
    l2: [20, "u32"],
    running: [24, "u32"],
    waiting: [28, "u32"],
    in_flight: [32, "u32"],
    pending_tokens: [36, "u32"],
    kv_usage: [40, "f32"],
    ttft: [44, "f32"],
    tpot: [48, "f32"],
    metrics_age: [52, "f32"],
    weight: [56, "f32"],
    sessions: [60, "u32"],
    sent: [64, "u64"],
    wait: [72, "f64"],
    slow: [80, "f64"],
    load: [88, "f64"],
    free_gpu: [96, "f32"],
    free_l1: [100, "f32"],
    reuse_gpu: [104, "f32"],
    reuse_l1: [108, "f32"],
    key: [112, "u64"],
    lately: [120, "f32"],
    pending: [124, "f32"],
    cost: [128, "f64"],
    labels: [136, "u64"],
    flight_tokens: [144, "u32"],
    kv_tokens: [148, "u32"],
    price: [152, "f32"],
    rank: [156, "u32"],
    held_tokens: [160, "u32"],
    shared_tokens: [164, "u32"],
    own: [168, "f64"],
    delay: [176, "f64"],
  },
  Outcome: {
    size: 96,
    seq: [0, "u64"],
    now: [8, "i64"],
    model: [16, "u64"],
    session: [24, "u64"],
    tenant: [32, "u64"],
    caller: [40, "u64"],
    key: [48, "u64"],
    worker: [56, "u32"],
    status: [60, "u32"],
    prompt_tokens: [64, "u32"],
    cached_tokens: [68, "i32"],
    output_tokens: [72, "i32"],
    reason: [76, "u32"],
    ttft: [80, "f32"],
    seconds: [84, "f32"],
    believed: [88, "u32"],
    attempts: [92, "u32"],
  },
  KVEvent: {
    size: 48,
    key: [0, "u64"],
    hash: [8, "u64"],
    parent: [16, "u64"],
    now: [24, "i64"],
    worker: [32, "u32"],
    kind: [36, "u32"],
    tier: [40, "u32"],
    tokens: [44, "u32"],
  },
  Talk: {
    size: 64,
    value: [0, "f64"],
    session: [8, "u64"],
    tenant: [16, "u64"],
    caller: [24, "u64"],
    model: [32, "u64"],
    tokens: [40, "u32"],
    seconds: [44, "f32"],
    returns: [48, "f32"],
    silence: [52, "f32"],
    gap: [56, "f32"],
    priority: [60, "i32"],
  },
  Holder: {
    size: 24,
    key: [0, "u64"],
    matched: [8, "u32"],
    row: [12, "i32"],
    blocks: [16, "u32"],
    tail_secs: [20, "f32"],
  },
  Tier: {
    size: 32,
    kind: [0, "u32"],
    flags: [4, "u32"],
    capacity: [8, "u64"],
    used: [16, "u64"],
    token_sec: [24, "f32"],
    reuse: [28, "f32"],
  },
};

const setters = { u32: "setUint32", i32: "setInt32", u64: "setBigUint64", i64: "setBigInt64", f32: "setFloat32", f64: "setFloat64" };

const put = (bytes, at, name, values) => {
  const view = new DataView(bytes.buffer);
  for (const [field, value] of Object.entries(values)) {
    const [offset, type] = records[name][field];
    view[setters[type]](at + offset, value, true);
  }
};

// load makes an instance of the module in a file, with options, as { each: ".02" }, and a frame for n idle workers of slowness
// and weight 1. Fields of 64 bits that are no float take a BigInt.
export async function load(file, n, options = {}) {
  const own = new Map();
  const host = {
    str: () => 0,
    prefix_match: () => 0,
    prefix_hash: () => 0n,
    kv_get: () => 0,
    kv_cas: () => 0,
    kv_incr: () => 0n,
    log: () => 0,
    log_level: () => 0,
    metric: () => 0,
    error: () => 0,
    prefix_best: () => 0,
    prefix_worker: () => 0,
    prefix_match_key: () => 0,
    cache_tiers: () => 0,
    own: () => 0,
    own_of: () => 0,
    kv_get_many: () => 0,
    zone_offset: () => 0,
    cache: () => 0,
    str: () => -1,
    own: (key, value) => own.set(BigInt.asUintN(64, key), value) && 0,
    own_of: (key) => own.get(BigInt.asUintN(64, key)) ?? 0,
  };
  const called = Object.fromEntries(Object.keys(host).map((name) => [name, (...args) => host[name](...args)]));
  const { instance } = await WebAssembly.instantiate(fs.readFileSync(file), { warmpath_v1: called });
  const { memory, wp_frame, wp_configure, wp_pick } = instance.exports;
  const at = wp_frame(n) >>> 0;
  const write = (bytes) => new Uint8Array(memory.buffer).set(bytes, at);

  const texts = Object.entries(options).sort().flat().map((text) => new TextEncoder().encode(text));
  const encoded = texts.flatMap((b) => [b.length, b.length >> 8, b.length >> 16, b.length >> 24, ...b]);
  write(Uint8Array.from(encoded));
  if (wp_configure && wp_configure(encoded.length) !== 0) throw new Error("the options are refused");

  const rows = records.Header.size, order = rows + n * records.Row.size;
  const frame = new Uint8Array(order);
  const header = (values) => put(frame, 0, "Header", values);
  const row = (i, values) => put(frame, rows + i * records.Row.size, "Row", values);
  header({ version: 65539, header_bytes: records.Header.size, row_bytes: records.Row.size, rows: n, random: 1n });
  header({ bound: -1, best_row: -1, last: -1, parent_row: -1, pair_row: -1 });
  for (let i = 0; i < n; i++) row(i, { worker: i, key: BigInt(i + 1), slow: 1, weight: 1 });

  return {
    own, // the strategy's numbers, by the workers' keys
    host, // what the module imports: a test may replace a function
    header, // sets fields of the request
    row, // sets fields of worker i

    // pick returns the worker that the strategy chooses, below 0 if it declines, rejects or holds, its reason, and the
    // alternatives that it names.
    pick() {
      write(frame);
      const answer = wp_pick(), view = new DataView(memory.buffer, at);
      const named = view.getUint32(records.Header.order_len[0], true);
      return {
        row: Number(BigInt.asIntN(32, answer)),
        reason: Number((answer >> 32n) & 0xffffn),
        order: Array.from({ length: named }, (_, i) => view.getUint32(order + 4 * i, true)),
      };
    },

    // records calls an export with records: records("wp_on_first_token", "Outcome", [{ key: 1n, ttft: 0.2 }]).
    records(name, type, list) {
      const bytes = new Uint8Array(list.length * records[type].size);
      list.forEach((values, i) => put(bytes, i * records[type].size, type, values));
      write(bytes);
      instance.exports[name](list.length);
    },
  };
}
