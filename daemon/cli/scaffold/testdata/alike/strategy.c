#include "warmpath.h"

static double scale = 2;
static struct wp_text zone;

WP_EXPORT("wp_configure") int32_t configure(uint32_t len) {
  struct wp_options o = wp_options(len);
  scale = wp_number(&o, "scale", 2);
  zone = wp_string(&o, "zone", "b");
  return wp_done(&o);
}

WP_REASONS("asked", "ranked")

WP_EXPORT("wp_wants") uint32_t wants(void) {
  return WP_WANT_PAIR | WP_WANT_CLASSIFY | WP_WANT_FILTER | WP_WANT_PLAN |
         WP_WANT_FIRST_TOKEN | WP_WANT_COMPLETE | WP_WANT_KV_EVENTS;
}

static double number(struct wp_text t) { return (double)(wp_hash(t) >> 11); }

static void values(const struct wp_header *r, const struct wp_row *w) {
  double chance = 0;
  for (int i = 0; i < 100; i++)
    chance += wp_chance(r, .3);
  double all[] = {scale, wp_ttft(r, &w[1]), wp_prefill(r, &w[2]), wp_matched(&w[1]), wp_adapter_load(&w[3]),
                  wp_labeled(r, "zone", zone), wp_labeled(r, "zone", wp_text("none")), number(wp_label(r, &w[2], "zone")),
                  number(wp_label(r, &w[0], "zone")), number(wp_text("acme")), number(wp_text("")),
                  wp_place(r->session, &w[1]), wp_place(wp_hash(wp_caller()), &w[4]), wp_place(7, &w[5]),
                  number(wp_header("x-tier")), number(wp_header("x-none")), number(wp_session()), number(wp_model()),
                  number(wp_tenant()), number(wp_worker_id(2)), chance, wp_random(r, 1000), wp_random(r, 7), wp_random(r, 0)};
  for (uint32_t i = 0; i < sizeof all / sizeof *all; i++)
    wp_own(w[i].key, all[i]);
  wp_count("asked", 1.5);
}

uint64_t route(struct wp_header *r, const struct wp_row *workers) {
  struct wp_ranking k = {0};
  char words[301];
  if (r->rows < 30)
    return wp_to(WP_DECLINE, 0);
  switch (r->seq) {
  case 0:
    values(r, workers);
    break;
  case 1:
    for (uint32_t i = 0; i < r->rows; i++)
      wp_enter(&k, i, &workers[i], i % 5 == 0 ? __builtin_nan("") : (int)wp_ttft(r, &workers[i]));
    return wp_only(wp_bind(wp_because(wp_choose(&k), WP_REASON_OWN + 1)));
  case 2:
    return wp_because(wp_reject(r, 451, "not here", 7), WP_REASON_OWN);
  case 3:
    for (uint32_t i = 0; i < sizeof words; i++)
      words[i] = i < 300 ? 'n' : 0;
    return wp_unavailable(r, words);
  case 4:
    return wp_hold(r, .25);
  case 5:
    return wp_pair(r, 1, r->rows - 1);
  case 6:
    for (uint32_t i = 0; i < 100000; i++)
      wp_then(i % r->rows);
  }
  return wp_to(0, WP_REASON_OWN);
}

static uint64_t filter(struct wp_header *r, const struct wp_row *workers) {
  uint64_t own = wp_labeled(r, "zone", zone);
  switch (r->seq) {
  case 1:
    for (uint32_t i = 0; i < r->rows; i++)
      if (workers[i].labels & own)
        wp_then(i);
    return wp_because(wp_kept(r), WP_REASON_OWN);
  case 2:
    for (uint32_t i = 0; i < r->rows; i++)
      if (wp_is(wp_label(r, &workers[i], "tier"), "none"))
        wp_then(i);
    return wp_kept(r);
  case 3:
    return wp_reject(r, 403, "no licence", 0);
  }
  return wp_to(WP_DECLINE, 0);
}

WP_EXPORT("wp_filter") uint64_t wp_filter(void) { return wp_filtered(filter); }

WP_EXPORT("wp_classify") uint64_t classify(void) {
  if (wp_labeled(wp_request(), "zone", zone))
    return wp_class_of(7, 1);
  return wp_is(wp_header("x-tier"), "gold") ? wp_class_of(3, .5) : wp_class_of(-2, 0);
}

WP_EXPORT("wp_on_first_token") void first_token(uint32_t n) {
  for (const struct wp_outcome *o = wp_outcomes(), *end = o + n; o < end; o++)
    wp_own(o->key, wp_own_of(o->key) + o->ttft);
}

WP_EXPORT("wp_on_complete") void complete(uint32_t n) {
  for (const struct wp_outcome *o = wp_outcomes(), *end = o + n; o < end; o++)
    wp_own(o->key, o->output_tokens);
}

WP_EXPORT("wp_on_kv_event") void kv_event(uint32_t n) {
  for (const struct wp_kv_event *e = wp_events(), *end = e + n; e < end; e++)
    wp_own(e->key, 1000 * e->kind + e->tokens);
}

WP_EXPORT("wp_plan") void plan(uint32_t n) {
  for (struct wp_talk *t = wp_talks(), *end = t + n; t < end; t++)
    t->value = (double)t->gap * t->tokens - t->seconds;
}
