// Lora: where the adapter runs, unless the queue there takes longer than loading it elsewhere.
#include "warmpath.h"

enum { RUNS = WP_REASON_OWN, LOADS, BASE };

static double handicap; // further seconds of a load

WP_EXPORT("wp_configure") int32_t configure(uint32_t len) {
  struct wp_options o = wp_options(len);
  handicap = wp_number(&o, "handicap", 0);
  return wp_done(&o);
}

WP_REASONS("the adapter runs there", "loads the adapter", "no adapter")

static double cost(const struct wp_header *r, const struct wp_row *w) {
  double load = wp_adapter_load(w);
  if (load > 0)
    load += handicap;
  return wp_ttft(r, w) + load + .01 * w->in_flight;
}

uint64_t route(struct wp_header *r, const struct wp_row *workers) {
  struct wp_ranking k = {0};
  for (uint32_t i = 0; i < r->rows; i++)
    wp_enter(&k, i, &workers[i], cost(r, &workers[i]));
  const struct wp_row *w = k.at[0].worker;
  return wp_because(wp_choose(&k), w->state & WP_ROW_ADAPTER ? RUNS : wp_adapter_load(w) > 0 ? LOADS : BASE);
}
