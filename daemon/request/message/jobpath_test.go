package message

import "testing"

// TestJobPath is the table of which paths name a job, and which of those name no model.
func TestJobPath(t *testing.T) {
	f := func(method, path, id string, stored, creates bool) {
		t.Helper()
		e := Classify(method, path)
		if e.ID != id || e.Job != (id != "") || e.Stored != stored || e.Creates != creates {
			t.Errorf("%s %s: %+v; want %q, stored %v, creates %v", method, path, e, id, stored, creates)
		}
	}
	f("POST", "/v1/videos", "", false, true)
	f("GET", "/v1/videos", "", false, false)
	f("GET", "/v1/videos/video_1", "video_1", true, false)
	f("GET", "/v1/videos/video_1/", "video_1", true, false)
	f("HEAD", "/v1/videos/video_1/content", "video_1", true, false)
	f("DELETE", "/v1/files/file-abc", "file-abc", true, false)
	f("GET", "/v1/fil%65s/file%2Dabc/content", "file-abc", true, false)
	f("GET", "/v1/files/a%20b", "a b", false, false) // it counts, but readers may differ on it
	f("POST", "/v1/batches/abc/cancel", "abc", true, true)
	f("POST", "/v1/videos/abc/remix", "abc", false, true) // it may name a model
	f("POST", "/v1/videos/v1/remix", "v1", false, true)
	f("PUT", "/v1/files/abc", "abc", false, false)
	f("POST", "/v1/vector_stores/vs_1", "vs_1", false, true)
	f("POST", "/v1/vector_stores/search", "", false, true) // an endpoint beside the ids
	f("GET", "/v1/audio/voices", "", false, false)
	f("POST", "/v1/audio/voices", "", false, true)
	f("DELETE", "/v1/audio/voices/alice", "alice", true, false)
	f("GET", "/v1/images/jobs/7", "7", true, false)
	f("POST", "/v1/messages/batches", "", false, true)
	f("GET", "/v1/messages/batches/msgbatch_1/results", "msgbatch_1", true, false)
	for path := range finished {
		f("POST", path, "", false, false)
	}
	for _, path := range []string{"/v1/chat/completions", "/v1/chat/completions/render", "/v1/completions", "/v1/embeddings",
		"/v1/messages", "/v1/rerank", "/v1/load_lora_adapter", "/tokenize", "/v2/embed", "/v1/responses/compact"} {
		f("POST", path, "", false, false)
	}
}
