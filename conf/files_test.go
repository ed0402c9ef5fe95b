package conf

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/daemon/lab/certtest"
)

const everyFile = `
[server]
admin_token_file = "admin.token"
tls_cert_file = "a.pem"
tls_key_file = "a.key"
access_log = "access.json"
[cache]
redis = "rediss://127.0.0.1:6379"
tls_ca_file = "c.pem"
tls_cert_file = "c.pem"
tls_key_file = "c.key"
[history]
tls_ca_file = "d.pem"
tls_cert_file = "d.pem"
tls_key_file = "d.key"
redis_url_file = "history.url"
secret_file = "history.key"
[kv_cache]
spill_dir = "spill"
password_file = "cache.key"
tls_cert_file = "a.pem"
tls_key_file = "a.key"
[[keys]]
name = "a"
file = "client.key"
[[pools]]
strategy = "mine"
workers_file = "workers.toml"
worker_key_file = "worker.key"
tls_ca_file = "b.pem"
[strategies.mine]
path = "mine.wasm"
`

func folder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	certtest.New(t, dir, "a", "a")
	certtest.New(t, dir, "b", "b")
	certtest.New(t, dir, "c", "c")
	certtest.New(t, dir, "d", "d")
	write(t, filepath.Join(dir, "admin.token"), "example-of-a-token\n")
	write(t, filepath.Join(dir, "client.key"), "example-of-a-key-1\n")
	write(t, filepath.Join(dir, "worker.key"), "EMPTY\n")
	write(t, filepath.Join(dir, "cache.key"), "example-of-a-password\n")
	write(t, filepath.Join(dir, "history.key"), "example-of-a-secret\n")
	write(t, filepath.Join(dir, "history.url"), "rediss://127.0.0.1:6379\n")
	write(t, filepath.Join(dir, "workers.toml"), "workers = []\n")
	write(t, filepath.Join(dir, "x.toml"), everyFile)
	return dir
}

// Relative paths start at the file's folder, whatever folder the process runs in.
func TestEveryPathStartsAtTheFile(t *testing.T) {
	dir := folder(t)
	c, err := Load(filepath.Join(dir, "x.toml"))
	if err != nil {
		t.Fatal(err)
	}
	p := c.Pools[0]
	for _, got := range []string{c.History.SecretFile, c.History.RedisURLFile, c.Server.AdminTokenFile, c.Server.TLSCertFile, c.Server.TLSKeyFile,
		c.Server.AccessLog, c.Keys[0].File, p.WorkersFile, p.WorkerKeyFile, p.TLSCAFile,
		c.Cache.TLSCAFile, c.Cache.TLSCertFile, c.Cache.TLSKeyFile,
		c.History.TLSCAFile, c.History.TLSCertFile, c.History.TLSKeyFile,
		c.KVCache.SpillDir, c.KVCache.PasswordFile, c.KVCache.TLSCertFile, c.KVCache.TLSKeyFile} {
		if filepath.Dir(got) != dir {
			t.Errorf("%s is not in %s", got, dir)
		}
	}
	want := []string{"admin.token", "a.pem", "a.key", "client.key", "mine.wasm", "worker.key", "b.pem"}
	for i := range want {
		want[i] = filepath.Join(dir, want[i])
	}
	if got := c.WatchedFiles(); !slices.Equal(got, want) {
		t.Errorf("WatchedFiles: got %q; want %q", got, want)
	}
}

// The state file stands beside the configuration too, and needs not be there.
func TestStateFileStartsAtTheFile(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "x.toml"), `server.state_file = "state"
cache.redis = "redis://127.0.0.1:6379"
history.redis = "off"
pools = [{ workers = [{ url = "http://a" }] }]`)
	c, err := Load(filepath.Join(dir, "x.toml"))
	if err != nil {
		t.Fatal(err)
	}
	if want := filepath.Join(dir, "state"); c.Server.StateFile != want {
		t.Errorf("%s; want %s", c.Server.StateFile, want)
	}
}

// Each file that is named must be there, and the error names it.
func TestMissingFiles(t *testing.T) {
	f := func(name, key string) {
		t.Helper()
		dir := folder(t)
		must(t, os.Remove(filepath.Join(dir, name)))
		_, err := Load(filepath.Join(dir, "x.toml"))
		if err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), key) {
			t.Errorf("without %s: %v", name, err)
		}
	}
	f("a.pem", "server.tls_cert_file")
	f("a.key", "server.tls_key_file")
	f("b.pem", "pools[0].tls_ca_file")
	f("c.pem", "cache.tls_ca_file")
	f("c.key", "cache.tls_key_file")
	f("d.pem", "history.tls_ca_file")
	f("d.key", "history.tls_key_file")
	f("client.key", "keys[0].file")
	f("cache.key", "kv_cache.password_file")
	f("history.key", "history.secret_file")
	f("history.url", "history.redis_url_file")
	f("worker.key", "pools[0].worker_key_file")
	f("workers.toml", "pools[0].workers_file")
}

func TestCertificateOfAnotherKey(t *testing.T) {
	dir := folder(t)
	must(t, os.Rename(filepath.Join(dir, "b.key"), filepath.Join(dir, "a.key")))
	_, err := Load(filepath.Join(dir, "x.toml"))
	if err == nil || !strings.Contains(err.Error(), "is no pair") {
		t.Errorf("got %v", err)
	}
}

func TestBufferBody(t *testing.T) {
	f := func(server string, want int) {
		t.Helper()
		c, err := Parse([]byte("[server]\n"+server+"\n[[pools]]\nworkers = [{url = 'http://a'}]"), "x.toml")
		if err != nil || c.Server.BufferBody != want {
			t.Errorf("%s: got %+v, %v; want %d", server, c, err, want)
		}
	}
	f("", 8<<20)
	f("max_body_bytes = 1000", 1000)
	f("max_body_bytes = 100_000_000", 8<<20)
	f("max_body_bytes = 100_000_000\nbuffer_body_bytes = 100_000_000", 100_000_000)
	f("buffer_body_bytes = 65536", 65536)
	f("max_body_bytes = 1000\nbuffer_body_bytes = 1000", 1000)
}
