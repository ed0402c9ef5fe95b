package adapt

import (
	"testing"

	"github.com/warmpath/warmpath/conf"
	"github.com/warmpath/warmpath/daemon/fleet/worker"
)

// TestFoundRoles: a worker of which only the address is known does both, but in a pool of SGLang, whose servers do one
// thing each. One that the file lists without a role does both there too.
func TestFoundRoles(t *testing.T) {
	for connector, want := range map[string]worker.Role{"": worker.Both, "nixl": worker.Both, "sglang": worker.Decodes} {
		p := conf.DefaultPool()
		p.Disaggregation.Connector = connector
		found, listed := conf.WorkerAt("http://10.0.0.1:80"), conf.DefaultWorker()
		p.Workers = []conf.Worker{found, listed}
		s := Specs(&p)
		if s[0].Role != want || s[1].Role != worker.Both || (s[0].Labels["role"] == "decode") != (want == worker.Decodes) {
			t.Errorf("%q: %+v", connector, s)
		}
	}
}
