package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// files returns what a tar file holds.
func files(t *testing.T, r io.Reader) (content map[string][]byte, heads map[string]*tar.Header) {
	t.Helper()
	content, heads = map[string][]byte{}, map[string]*tar.Header{}
	for r := tar.NewReader(r); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return content, heads
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		content[h.Name], heads[h.Name] = data, h
	}
}

// descriptor names a blob.
type descriptor struct {
	MediaType string `json:"mediaType"`
	Digest    string `json:"digest"`
	Platform  struct {
		OS   string `json:"os"`
		Arch string `json:"architecture"`
	} `json:"platform"`
	Annotations map[string]string `json:"annotations"`
}

// blob reads the blob of that digest as JSON.
func blob(t *testing.T, layout map[string][]byte, digest string, into any) {
	t.Helper()
	data, ok := layout["blobs/"+strings.Replace(digest, ":", "/", 1)]
	if !ok {
		t.Fatalf("there is no blob %s", digest)
	}
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatal(err)
	}
}

// TestImage reads an image back with nothing of the library that wrote it. BIN, which make sets, is the daemon's binary
// for this machine; without it a script stands in.
func TestImage(t *testing.T) {
	dir := t.TempDir()
	binary := os.Getenv("BIN")
	if binary == "" {
		binary = filepath.Join(dir, "warmpath")
		if err := os.WriteFile(binary, []byte("#!/bin/sh\necho warmpath v9\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ca := filepath.Join(dir, "ca.pem")
	if err := os.WriteFile(ca, []byte("a bundle"), 0o600); err != nil {
		t.Fatal(err)
	}
	var made [2][]byte
	for i := range made {
		out := filepath.Join(dir, "image.tar")
		here := runtime.GOOS + "/" + runtime.GOARCH + "=" + binary
		if err := write(out, "v9", ca, []string{here, "linux/s390x=" + ca}); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		made[i] = data
	}
	if !bytes.Equal(made[0], made[1]) {
		t.Error("the same binaries gave two images")
	}
	layout, _ := files(t, bytes.NewReader(made[0]))
	var index struct{ Manifests []descriptor }
	if err := json.Unmarshal(layout["index.json"], &index); err != nil || len(index.Manifests) != 2 {
		t.Fatalf("index.json: %v, %s", err, layout["index.json"])
	}
	if string(layout["oci-layout"]) == "" || index.Manifests[1].Platform.Arch != "s390x" ||
		index.Manifests[0].Annotations["org.opencontainers.image.ref.name"] != "v9" {
		t.Errorf("index.json: %s", layout["index.json"])
	}
	checkImage(t, layout, index.Manifests[0].Digest)
}

func checkImage(t *testing.T, layout map[string][]byte, digest string) {
	t.Helper()
	var manifest struct {
		Config descriptor
		Layers []descriptor
	}
	blob(t, layout, digest, &manifest)
	var config struct {
		OS, Architecture string
		Config           struct {
			User, StopSignal string
			Entrypoint       []string
		}
		Rootfs struct {
			Diffs []string `json:"diff_ids"`
		}
	}
	blob(t, layout, manifest.Config.Digest, &config)
	if config.Architecture != runtime.GOARCH || config.Config.User != "65532:65532" || len(config.Rootfs.Diffs) != 1 ||
		len(manifest.Layers) != 1 {
		t.Fatalf("config %+v of manifest %+v", config, manifest)
	}
	packed := layout["blobs/"+strings.Replace(manifest.Layers[0].Digest, ":", "/", 1)]
	unpacked, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	content, heads := files(t, unpacked)
	program := strings.TrimPrefix(config.Config.Entrypoint[0], "/")
	if h := heads[program]; h == nil || h.Mode != 0o755 {
		t.Fatalf("the layer has no %s to run: %v", program, heads)
	}
	for _, name := range []string{"var/cache/warmpath/", "tmp/"} {
		if h := heads[name]; h == nil || h.Uid != 65532 {
			t.Errorf("the folder %s is not the user's: %+v", name, h)
		}
	}
	if string(content["etc/ssl/certs/ca-certificates.crt"]) != "a bundle" {
		t.Error("the bundle is not in the layer")
	}
	path := filepath.Join(t.TempDir(), "warmpath")
	if err := os.WriteFile(path, content[program], 0o700); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(path, "--version").CombinedOutput(); err != nil || !strings.HasPrefix(string(out), "warmpath ") {
		t.Errorf("--version: %v\n%s", err, out)
	}
}

func TestRefusesWhatIsNoBinary(t *testing.T) {
	for _, b := range []string{"warmpath", "linux=warmpath", "linux/amd64=" + filepath.Join(t.TempDir(), "absent")} {
		if err := write(filepath.Join(t.TempDir(), "x.tar"), "v9", "", []string{b}); err == nil {
			t.Errorf("%q was taken", b)
		}
	}
}
