// Image writes an OCI image layout as one tar file, from nothing but the daemon's binaries: no container engine, no
// base image, no network. The same binaries give the same bytes.
//
//	go run . -o warmpath.tar -version v1.2.3 linux/amd64=PATH linux/arm64=PATH
//
// The image runs as user 65532. It has no shell and, unless -ca names a bundle, no authorities of certificates: a
// pod's API server has its own, workers and Redis have tls_ca_file, and Go reads SSL_CERT_FILE where one is mounted.
//
// It is a module of its own, as go-containerregistry is no concern of those who import the SDK. That library, which
// crane and ko are made of, writes the manifests and digests; a writer by hand would be as long as this file.
package main

import (
	"archive/tar"
	"bytes"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

func main() {
	out := flag.String("o", "warmpath.tar", "file to write")
	version := flag.String("version", "dev", "of the binaries")
	ca := flag.String("ca", "", "PEM bundle for /etc/ssl/certs/ca-certificates.crt")
	flag.Parse()
	if err := write(*out, *version, *ca, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

func write(out, version, ca string, binaries []string) error {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, b := range binaries {
		platform, path, ok := strings.Cut(b, "=")
		goos, arch, both := strings.Cut(platform, "/")
		if !ok || !both {
			return fmt.Errorf("%q is no OS/ARCH=PATH", b)
		}
		at := v1.Platform{OS: goos, Architecture: arch}
		image, err := imageOf(at, path, version, ca)
		if err != nil {
			return err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: &at,
			Annotations: map[string]string{"org.opencontainers.image.ref.name": version}}})
	}
	dir, err := os.MkdirTemp("", "image")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if _, err := layout.Write(dir, index); err != nil {
		return err
	}
	return pack(out, dir)
}

// imageOf is the image of one platform: a layer with the binary, and the bundle if there is one.
func imageOf(at v1.Platform, path, version, ca string) (v1.Image, error) {
	files := map[string]string{"usr/local/bin/warmpath": path}
	if ca != "" {
		files["etc/ssl/certs/ca-certificates.crt"] = ca
	}
	content, err := tarOf(files)
	if err != nil {
		return nil, err
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil }
	layer, err := tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	bare := mutate.MediaType(mutate.ConfigMediaType(empty.Image, types.OCIConfigJSON), types.OCIManifestSchema1)
	image, err := mutate.AppendLayers(bare, layer)
	if err != nil {
		return nil, err
	}
	return mutate.ConfigFile(image, configOf(image, at, version))
}

// configOf says what the image runs. Its times are zero.
func configOf(image v1.Image, at v1.Platform, version string) *v1.ConfigFile {
	was, err := image.ConfigFile()
	if err != nil {
		panic("BUG: an image of our own has no config: " + err.Error())
	}
	c := was.DeepCopy()
	c.OS, c.Architecture = at.OS, at.Architecture
	c.Created = v1.Time{Time: time.Unix(0, 0).UTC()}
	c.History = nil
	c.Config = v1.Config{
		User:         "65532:65532",
		Entrypoint:   []string{"/usr/local/bin/warmpath"},
		Cmd:          []string{"serve", "--config", "/etc/warmpath/warmpath.toml"},
		Env:          []string{"PATH=/usr/local/bin", "XDG_CACHE_HOME=/var/cache/warmpath"},
		ExposedPorts: map[string]struct{}{"8080/tcp": {}, "9090/tcp": {}},
		StopSignal:   "SIGTERM",
		Labels: map[string]string{"org.opencontainers.image.title": "warmpath", "org.opencontainers.image.version": version,
			"org.opencontainers.image.licenses": "Apache-2.0"},
	}
	return c
}

// tarOf is a layer with the files and their folders, in order, without owners' names and times.
func tarOf(files map[string]string) ([]byte, error) {
	var content bytes.Buffer
	w := tar.NewWriter(&content)
	folder := func(name string, owner int) error {
		return w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name, Mode: 0o755, Uid: owner, Gid: owner})
	}
	for _, name := range []string{"etc/", "etc/ssl/", "etc/ssl/certs/", "etc/warmpath/", "usr/", "usr/local/",
		"usr/local/bin/", "var/", "var/cache/"} {
		if err := folder(name, 0); err != nil {
			return nil, err
		}
	}
	if err := folder("var/cache/warmpath/", 65532); err != nil {
		return nil, err
	}
	if err := folder("tmp/", 65532); err != nil { // server.overflow_dir
		return nil, err
	}
	for _, name := range []string{"etc/ssl/certs/ca-certificates.crt", "usr/local/bin/warmpath"} {
		path, ok := files[name]
		if !ok {
			continue
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		mode := int64(0o755)
		if strings.HasSuffix(name, ".crt") {
			mode = 0o644
		}
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: mode, Size: int64(len(data))}); err != nil {
			return nil, err
		}
		if _, err := w.Write(data); err != nil {
			return nil, err
		}
	}
	return content.Bytes(), w.Close()
}

// pack writes the layout's files into one tar, in order and without times.
func pack(out, dir string) error {
	f, err := os.Create(out)
	if err != nil {
		return err
	}
	defer f.Close()
	w := tar.NewWriter(f)
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		if err := w.WriteHeader(&tar.Header{Name: filepath.ToSlash(name), Mode: 0o644, Size: int64(len(data))}); err != nil {
			return err
		}
		_, err = w.Write(data)
		return err
	})
	if err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	return f.Close()
}
