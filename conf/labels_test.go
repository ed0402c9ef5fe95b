package conf

import (
	"maps"
	"slices"
	"testing"
)

func TestLabels(t *testing.T) {
	c, err := Parse([]byte(`[[pools]]
workers = [
  {url = "http://a", labels = {tier = "batch", "rack/row" = "b.1"}},
  {url = "http://b", cost = 2.5, labels = {tier = "chat"}},
]`), "x.toml")
	if err != nil {
		t.Fatal(err)
	}
	w := c.Pools[0].Workers
	if want := map[string]string{"tier": "batch", "rack/row": "b.1"}; !maps.Equal(w[0].Labels, want) {
		t.Errorf("labels = %v; want %v", w[0].Labels, want)
	}
	if w[0].Cost != 1 || w[1].Cost != 2.5 {
		t.Errorf("costs = %v, %v; want 1, 2.5", w[0].Cost, w[1].Cost)
	}
	if got, want := Labels(append(w, w...)), []string{"rack/row=b.1", "tier=batch", "tier=chat"}; !slices.Equal(got, want) {
		t.Errorf("Labels = %q; want %q", got, want)
	}
	if got := Labels(nil); len(got) != 0 {
		t.Errorf("Labels of nobody = %q", got)
	}
}

func TestWorkersEqual(t *testing.T) {
	a, b := WorkerAt("http://a"), WorkerAt("http://a")
	if !a.Equal(b) {
		t.Error("one worker is not equal to itself")
	}
	b.Labels = map[string]string{"tier": "batch"}
	if a.Equal(b) {
		t.Error("a label makes no difference")
	}
}
