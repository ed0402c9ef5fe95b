package registry

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/content/oci"
)

// fake is a registry in memory, of one repository "n".
type fake struct {
	*httptest.Server
	mu     sync.Mutex
	blobs  map[string][]byte // and manifests, by digest
	types  map[string]string // of manifests
	status int               // of all answers; 0 = as it should be
	user   string            // and password; "" = anonymous
	spoil  func(b []byte) []byte
	slow   time.Duration // before each answer
}

func newFake(t *testing.T) *fake {
	f := &fake{blobs: map[string][]byte{}, types: map[string]string{}}
	f.Server = httptest.NewServer(f)
	t.Cleanup(f.Close)
	return f
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	select {
	case <-time.After(f.slow):
	case <-r.Context().Done():
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.status != 0 {
		w.WriteHeader(f.status)
		return
	}
	if user, password, _ := r.BasicAuth(); f.user != "" && (user != f.user || password != f.user) {
		w.Header().Set("Www-Authenticate", `Basic realm="here"`)
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	kind, name, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/v2/n/"), "/")
	switch {
	case r.Method == http.MethodPost:
		w.Header().Set("Location", "/v2/n/blobs/uploads/1")
		w.WriteHeader(http.StatusAccepted)
	case r.Method == http.MethodPut:
		b, _ := io.ReadAll(r.Body)
		d := string(digest.FromBytes(b))
		f.blobs[d] = b
		if kind == "manifests" {
			f.types[d] = r.Header.Get("Content-Type")
		}
		w.Header().Set("Docker-Content-Digest", d)
		w.WriteHeader(http.StatusCreated)
	default:
		b, ok := f.blobs[name]
		if !ok {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		if f.spoil != nil {
			b = f.spoil(b)
		}
		w.Header().Set("Content-Type", f.types[name])
		w.Header().Set("Content-Length", fmt.Sprint(len(b)))
		if r.Method == http.MethodGet {
			w.Write(b)
		}
	}
}

func (f *fake) add(b []byte) string {
	d := string(digest.FromBytes(b))
	f.blobs[d] = b
	return d
}

// manifest adds a manifest with these layers, as pairs of a media type and bytes.
func (f *fake) manifest(layers ...string) string {
	m := ocispec.Manifest{MediaType: ocispec.MediaTypeImageManifest, Config: content.NewDescriptorFromBytes("a/b", []byte("{}"))}
	m.SchemaVersion = 2
	for i := 0; i < len(layers); i += 2 {
		f.add([]byte(layers[i+1]))
		m.Layers = append(m.Layers, content.NewDescriptorFromBytes(layers[i], []byte(layers[i+1])))
	}
	return f.document(m.MediaType, m)
}

func (f *fake) document(mediaType string, v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	d := f.add(b)
	f.types[d] = mediaType
	return d
}

func (f *fake) ref(digest string) string {
	return "oci://" + strings.TrimPrefix(f.URL, "http://") + "/n@" + digest
}

// image is a layer with these files, as pairs of a name and bytes.
func image(t *testing.T, packed bool, files ...string) string {
	var b bytes.Buffer
	var to io.WriteCloser = struct {
		io.Writer
		io.Closer
	}{&b, io.NopCloser(nil)}
	if packed {
		to = gzip.NewWriter(&b)
	}
	w := tar.NewWriter(to)
	for i := 0; i < len(files); i += 2 {
		if err := w.WriteHeader(&tar.Header{Name: files[i], Size: int64(len(files[i+1])), Mode: 0o644, Typeflag: tar.TypeReg}); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, files[i+1]); err != nil {
			t.Fatal(err)
		}
	}
	w.Close()
	if packed {
		to.Close()
	}
	return b.String()
}

// TestWhatIsTaken: each form in which others keep modules in registries.
func TestWhatIsTaken(t *testing.T) {
	f := newFake(t)
	for name, d := range map[string]string{
		"CNCF":              f.manifest("application/wasm", "CNCF"),
		"Envoy, Istio":      f.manifest("application/vnd.module.wasm.content.layer.v1+wasm", "Envoy, Istio"),
		"Higress":           f.manifest("application/vnd.module.wasm.spec.v1+yaml", "x", "application/vnd.wasm.content.layer.v1+wasm", "Higress"),
		"docker":            f.manifest("application/vnd.docker.image.rootfs.diff.tar.gzip", image(t, true, "./plugin.wasm", "docker")),
		"OCI image":         f.manifest(ocispec.MediaTypeImageLayerGzip, image(t, true, "etc/plugin.wasm", "no", "plugin.wasm", "OCI image")),
		"OCI, not packed":   f.manifest(ocispec.MediaTypeImageLayer, image(t, false, "plugin.wasm", "OCI, not packed")),
		"the last of two":   f.manifest(ocispec.MediaTypeImageLayer, "x", ocispec.MediaTypeImageLayerGzip, image(t, true, "plugin.wasm", "the last of two")),
		"wasm, not the tar": f.manifest(ocispec.MediaTypeImageLayer, "x", "application/wasm", "wasm, not the tar"),
	} {
		if got, err := (Source{Ref: f.ref(d)}).Pull(t.Context()); err != nil || string(got) != name {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

// TestWhatIsRefused: by name, with what to do.
func TestWhatIsRefused(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "config.json")
	refused := func(what string, f *fake, d string, want ...string) {
		t.Helper()
		from := Source{Ref: f.ref(d), Dir: t.TempDir()}
		if f.user != "" {
			from.Secret = secret
		}
		began := time.Now()
		_, err := from.Pull(t.Context())
		for _, part := range append(want, "/n@sha256:") {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %v; want %q", what, err, part)
			}
		}
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("%s: it took %v", what, took)
		}
		if from.Kept() != nil {
			t.Errorf("%s: it is kept", what)
		}
	}
	f := newFake(t)
	good := f.manifest("application/wasm", "good")
	refused("an index", f, f.document(ocispec.MediaTypeImageIndex, ocispec.Index{Manifests: []ocispec.Descriptor{
		{Digest: "sha256:1", Platform: &ocispec.Platform{OS: "linux", Architecture: "amd64"}}, {Digest: "sha256:2"}}}),
		"it is an index of 2 platforms", "name the digest of one: sha256:1, sha256:2")
	refused("too large", f, f.manifest("application/wasm", strings.Repeat("x", MaxBytes+1)), "its layer has 16777217 bytes; the limit is 16777216")
	refused("unpacks to much", f, f.manifest(ocispec.MediaTypeImageLayerGzip, image(t, true, "plugin.wasm", strings.Repeat("x", MaxBytes+1))),
		"its plugin.wasm has 16777217 bytes; the limit is 16777216")
	refused("a bomb", f, f.manifest(ocispec.MediaTypeImageLayerGzip, image(t, true, "a", strings.Repeat("x", 5*MaxBytes), "plugin.wasm", "x")),
		"no plugin.wasm in the first")
	refused("no module", f, f.manifest("application/vnd.oci.empty.v1+json", "{}"), "its layers are", "warmpath plugin pack")
	refused("two modules", f, f.manifest("application/wasm", "a", "application/wasm", "b"), "its layers are")
	refused("no such file", f, f.manifest(ocispec.MediaTypeImageLayerGzip, image(t, true, "bin/sh", "x")), "no plugin.wasm")
	refused("no tar", f, f.manifest(ocispec.MediaTypeImageLayerGzip, strings.Repeat("no tar", 200)), "is no tar")
	refused("no manifest", f, f.document(ocispec.MediaTypeImageManifest, "text"), "is no JSON")
	refused("not there", f, "sha256:"+strings.Repeat("0", 64), "does not have it", "correct the digest")
	f.spoil = func(b []byte) []byte { return append([]byte(" "), b[1:]...) }
	refused("other bytes", f, good, "sends other bytes than the digest names")
	f.spoil = func(b []byte) []byte {
		if bytes.HasPrefix(b, []byte("{")) {
			return b
		}
		return bytes.Repeat([]byte("y"), len(b))
	}
	refused("another layer", f, good, "sends other bytes than the digest names")
	f.spoil, f.slow = nil, time.Hour
	was := pullTime
	pullTime = time.Second
	refused("slow", f, good, "has not come within 1s", "reload")
	f.slow, pullTime = 0, was
	f.status = http.StatusTooManyRequests
	refused("busy", f, good, "does not answer as it should", "429")
	f.status = 0
	f.user = "robot"
	for text, want := range map[string]string{
		`{"auths": {}}`: "refuses the credentials; have pull_secret name a Docker config.json with an entry for it",
		`{"auths": {"` + strings.TrimPrefix(f.URL, "http://") + `": {"auth": "cm9ib3Q6d3Jvbmc="}}}`: "refuses the credentials", // robot:wrong
		"no JSON": "pull_secret is no Docker config.json",
		"":        "pull_secret",
	} {
		if err := os.WriteFile(secret, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		refused(text, f, good, want)
	}
	if err := os.WriteFile(secret, fmt.Appendf(nil, `{"auths": {%q: {"auth": "cm9ib3Q6cm9ib3Q="}}}`, strings.TrimPrefix(f.URL, "http://")), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := (Source{Ref: f.ref(good), Secret: secret}).Pull(t.Context()); err != nil || string(got) != "good" {
		t.Errorf("with the right credentials: %q, %v", got, err)
	}
	forget()
	os.Remove(secret)
	refused("no secret", f, good, "pull_secret cannot be read")
	f.user = ""
	secure := httptest.NewTLSServer(f) // by a name that is not loopback's, so with TLS, and by an unknown authority
	defer secure.Close()
	_, err := Source{Ref: "oci://localhost.localdomain:" + secure.URL[strings.LastIndex(secure.URL, ":")+1:] + "/n@" + good}.Pull(t.Context())
	if err == nil || !strings.Contains(err.Error(), "has a certificate of a known authority, and reload") {
		t.Errorf("a foreign certificate: %v", err)
	}
	f.Close()
	refused("down", f, f.manifest("application/wasm", "down"), "does not answer as it should; see that it is up")
}

// TestWhatIsKept: in memory and in the folder, by digest, as long as the bytes are those.
func TestWhatIsKept(t *testing.T) {
	f := newFake(t)
	d := f.manifest("application/wasm", "kept")
	from := Source{Ref: f.ref(d), Dir: filepath.Join(t.TempDir(), "pulled")}
	if from.Kept() != nil {
		t.Fatal("it is there before")
	}
	if _, err := from.Pull(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.Close()
	if got := from.Kept(); string(got) != "kept" {
		t.Errorf("in memory: %q", got)
	}
	forget()
	if got := from.Kept(); string(got) != "kept" {
		t.Errorf("in the folder: %q", got)
	}
	forget()
	files, _ := filepath.Glob(filepath.Join(from.Dir, "*"))
	if err := os.WriteFile(files[0], []byte("other"), 0o600); err != nil || len(files) != 1 {
		t.Fatal(err, files)
	}
	if got := from.Kept(); got != nil {
		t.Errorf("bytes that were changed in the folder: %q", got)
	}
	for i := range 3 * maxKept {
		Source{Ref: fmt.Sprintf("oci://h/n@sha256:%064d", i)}.keep([]byte{byte(i)})
	}
	if n := len(kept.modules); n > maxKept {
		t.Errorf("%d in memory; at most %d", n, maxKept)
	}
}

// TestPacked: a packed module goes to a registry as it is, and comes back by its digest, which is the same each time.
func TestPacked(t *testing.T) {
	f, dir := newFake(t), t.TempDir()
	d, err := Pack(t.Context(), dir, "mine.wasm", []byte("mine"))
	if err != nil {
		t.Fatal(err)
	}
	if again, err := Pack(t.Context(), dir, "mine.wasm", []byte("mine")); err != nil || again != d {
		t.Errorf("once more: %s, %v; want %s", again, err, d)
	}
	store, err := oci.NewFromFS(context.Background(), os.DirFS(dir))
	if err != nil {
		t.Fatal(err)
	}
	repo, err := Source{Ref: f.ref(d)}.repository()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := oras.Copy(t.Context(), store, Tag, repo, "v1", oras.DefaultCopyOptions); err != nil {
		t.Fatal(err)
	}
	if got, err := (Source{Ref: f.ref(d)}).Pull(t.Context()); err != nil || string(got) != "mine" {
		t.Errorf("%q, %v", got, err)
	}
}

// forget empties what is kept in memory.
func forget() { kept.modules = nil }
