package names

import "testing"

func TestHide(t *testing.T) {
	for text, want := range map[string]string{
		"":                                  "",
		"The model `m-3` does not exist.":   "The model `pet` does not exist.",
		"m-3":                               "pet",
		`{"input":"{\"model\":\"m-3\"}"}`:   `{"input":"{\"model\":\"pet\"}"}`,
		"m-3 is full. Try m-3.":             "pet is full. Try pet.",
		`first\nm-3\tlast`:                  `first\npet\tlast`,
		"/v1/models/m-3?x=m-3":              "/v1/models/pet?x=pet",
		"m-3.5, m-30, m-3-x, xm-3, a.m-3":   "m-3.5, m-30, m-3-x, xm-3, a.m-3",
		"m-m-3":                             "m-m-3",
		"length 4096 of (m-3), not of m-3x": "length 4096 of (pet), not of m-3x",
	} {
		if got := Hide(text, "m-3", "pet"); got != want {
			t.Errorf("%s became %s, want %s", text, got, want)
		}
		if got := Hide([]byte(text), "m-3", "pet"); string(got) != want {
			t.Errorf("%s became %s, want %s", text, got, want)
		}
	}
	if got := Hide("cat", "", "pet"); got != "cat" {
		t.Errorf("no model became %s", got)
	}
}
