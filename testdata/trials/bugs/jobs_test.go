package bugs

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/warmpath/warmpath/testdata/rig/wire"
	"github.com/warmpath/warmpath/testdata/trials/engine"
)

// A job lives at the worker that took it: what asks for it by its id goes there.
var jobs = []wallCase{
	{"a-video-is-asked-of-the-worker-that-makes-it", job("/v1/videos", true)},
	{"a-file-is-asked-of-the-worker-that-keeps-it", job("/v1/files", true)},
	{"a-batch-is-asked-of-the-worker-that-runs-it", job("/v1/batches", false)},
	{"a-tuning-job-is-asked-of-the-worker-that-runs-it", job("/v1/fine_tuning/jobs", false)},
	{"a-voice-is-asked-of-the-worker-that-keeps-it", job("/v1/audio/voices", false)},
	{"a-job-of-a-vendor-is-asked-of-the-worker-that-took-it", job("/v1/holograms", false)},
}

// site is a worker that keeps what was posted to it.
type site struct {
	n    int
	path string
	mu   sync.Mutex
	ids  []string
}

func (s *site) post(c *wire.Call) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.Method == "POST" && c.Path == s.path {
		id := fmt.Sprintf("job_%d_%d", s.n, len(s.ids))
		s.ids = append(s.ids, id)
		return c.Plain(200, "application/json", fmt.Sprintf(`{"id":%q,"object":"job","status":"queued","model":"sim"}`, id))
	}
	for _, id := range s.ids {
		if strings.HasSuffix(c.Path, "/"+id) || strings.Contains(c.Path, "/"+id+"/") {
			return c.Plain(200, "application/json", fmt.Sprintf(`{"id":%q}`, id))
		}
	}
	return engine.Refuse(c, 404, "not found")
}

// job makes 12 jobs at four workers, and looks at each in three ways.
func job(path string, asForm bool) func(*lab) (string, bool) {
	return func(l *lab) (string, bool) {
		var engines []*engine.Engine
		for n := range 4 {
			s := &site{n: n, path: path}
			engines = append(engines, l.engine(&engine.Engine{Post: s.post, Page: func(c *wire.Call) (bool, bool) {
				if !strings.Contains(c.Path, "/job_") {
					return false, false
				}
				return true, s.post(c)
			}}))
		}
		r := l.router(engines...)
		lost := 0
		for k := range 12 {
			body, kind := `{"model":"sim","input":"x"}`, "application/json"
			if asForm {
				body, kind = form(fmt.Sprintf("a cat %d", k)), "multipart/form-data; boundary=B"
			}
			a := wire.Once(r.Addr, wire.Request("POST", path, body, "Content-Type: "+kind))
			var made struct{ ID string }
			if json.Unmarshal(a.Body, &made) != nil || made.ID == "" {
				return "no job was made: " + a.String(), false
			}
			at := path + "/" + made.ID
			for _, q := range [][]byte{wire.Request("GET", at, ""), wire.Request("GET", at+"/content", ""), wire.Request("DELETE", at, "")} {
				if !served(wire.Once(r.Addr, q)) {
					lost++
				}
			}
		}
		return fmt.Sprintf("%d of 36 lost", lost), lost == 0
	}
}

// form is a form with a model and a prompt.
func form(prompt string) string {
	return "--B\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nsim\r\n--B\r\n" +
		"Content-Disposition: form-data; name=\"prompt\"\r\n\r\n" + prompt + "\r\n--B--\r\n"
}
