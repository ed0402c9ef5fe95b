//! Energy: seconds to the first token, and joules by the label watts=N of the worker, weighed by an option.
const wp = @import("warmpath.zig");

var per_kilojoule: f64 = 0.05; // seconds that a kilojoule is worth

export fn wp_configure(len: u32) i32 {
    var o = wp.options(len);
    per_kilojoule = o.number("per_kilojoule", 0.05);
    return o.done();
}

export fn wp_reasons() i32 {
    return wp.named(&.{"least seconds and joules"});
}

fn cost(r: *const wp.Header, w: *const wp.Row) f64 {
    const watts = wp.decimal(r.label(w, "watts")) orelse 700;
    const prefill = r.prefill(w);
    return w.wait + prefill + per_kilojoule * watts * prefill / 1000 + 0.01 * wp.float(w.in_flight);
}

fn route(r: *wp.Header, workers: []const wp.Row) u64 {
    var k: wp.Ranking = .{};
    for (workers, 0..) |*w, i| k.enter(i, w, cost(r, w));
    return wp.because(k.choose(r), wp.REASON_OWN);
}

comptime {
    wp.strategy(route);
}
