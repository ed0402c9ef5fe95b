const std = @import("std");
const wp = @import("warmpath.zig");

var scale: f64 = 2;
var zone: []const u8 = "b";

export fn wp_configure(len: u32) i32 {
    var o = wp.options(len);
    scale = o.number("scale", 2);
    zone = o.string("zone", "b");
    return o.done();
}

export fn wp_reasons() i32 {
    return wp.named(&.{ "asked", "ranked" });
}

export fn wp_wants() u32 {
    return wp.WANT_PAIR | wp.WANT_CLASSIFY | wp.WANT_FILTER | wp.WANT_PLAN | wp.WANT_FIRST_TOKEN | wp.WANT_COMPLETE | wp.WANT_KV_EVENTS;
}

fn number(text: []const u8) f64 {
    return wp.float(wp.hash(text) >> 11);
}

fn values(r: *const wp.Header, w: []const wp.Row) void {
    var chance: f64 = 0;
    for (0..100) |_| {
        if (r.chance(0.3)) chance += 1;
    }
    const all = [_]f64{
        scale,                              r.ttft(&w[1]),                    r.prefill(&w[2]),
        wp.float(w[1].matched()),           w[3].adapter_load(),              wp.float(r.labeled("zone", zone)),
        wp.float(r.labeled("zone", "none")), number(r.label(&w[2], "zone")),  number(r.label(&w[0], "zone")),
        number("acme"),                     number(""),                       wp.place(r.session, &w[1]),
        wp.place(wp.hash(wp.caller()), &w[4]), wp.place(7, &w[5]),            number(wp.header("x-tier")),
        number(wp.header("x-none")),        number(wp.session()),             number(wp.model()),
        number(wp.tenant()),                number(wp.worker_id(2)),          chance,
        wp.float(r.pick(1000)),             wp.float(r.pick(7)),              wp.float(r.pick(0)),
    };
    for (all, 0..) |value, i| _ = wp.host.own(w[i].key, value);
    wp.count("asked", 1.5);
}

fn route(r: *wp.Header, workers: []const wp.Row) u64 {
    if (workers.len < 30) return wp.to(wp.DECLINE, 0);
    switch (r.seq) {
        0 => values(r, workers),
        1 => {
            var k: wp.Ranking = .{};
            for (workers, 0..) |*w, i| k.enter(i, w, if (i % 5 == 0) std.math.nan(f64) else @trunc(r.ttft(w)));
            return wp.only(wp.bind(wp.because(k.choose(r), wp.REASON_OWN + 1)));
        },
        2 => return wp.because(r.reject(451, "not here", 7), wp.REASON_OWN),
        3 => return r.unavailable(&@as([300]u8, @splat('n'))),
        4 => return r.hold(0.25),
        5 => return r.pair(1, workers.len - 1),
        6 => for (0..100_000) |i| wp.then(r, @intCast(i % workers.len)),
        else => {},
    }
    return wp.to(0, wp.REASON_OWN);
}

fn filter(r: *wp.Header, workers: []const wp.Row) u64 {
    const own = r.labeled("zone", zone);
    switch (r.seq) {
        1 => {
            for (workers, 0..) |w, i| {
                if (w.labels & own != 0) wp.then(r, @intCast(i));
            }
            return wp.because(wp.kept(r), wp.REASON_OWN);
        },
        2 => {
            for (workers, 0..) |*w, i| {
                if (std.mem.eql(u8, r.label(w, "tier"), "none")) wp.then(r, @intCast(i));
            }
            return wp.kept(r);
        },
        3 => return r.reject(403, "no licence", 0),
        else => return wp.to(wp.DECLINE, 0),
    }
}

export fn wp_filter() u64 {
    return wp.filtered(filter);
}

export fn wp_classify() u64 {
    if (wp.request().labeled("zone", zone) != 0) return wp.class_of(7, 1);
    return if (std.mem.eql(u8, wp.header("x-tier"), "gold")) wp.class_of(3, 0.5) else wp.class_of(-2, 0);
}

export fn wp_on_first_token(n: u32) void {
    for (wp.outcomes(n)) |o| _ = wp.host.own(o.key, wp.host.own_of(o.key) + o.ttft);
}

export fn wp_on_complete(n: u32) void {
    for (wp.outcomes(n)) |o| _ = wp.host.own(o.key, @floatFromInt(o.output_tokens));
}

export fn wp_on_kv_event(n: u32) void {
    for (wp.events(n)) |e| _ = wp.host.own(e.key, wp.float(1000 * e.kind + e.tokens));
}

comptime {
    wp.strategy(route);
}

export fn wp_plan(n: u32) void {
    for (wp.talks(n)) |*t| t.value = @as(f64, t.gap) * @as(f64, @floatFromInt(t.tokens)) - @as(f64, t.seconds);
}
