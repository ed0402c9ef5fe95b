package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/credentials"
	"oras.land/oras-go/v2/registry/remote/errcode"

	"github.com/warmpath/warmpath/conf"
)

// MaxBytes bounds a module. A strategy in Go has 2 to 3 MB, one with net/http 11.
const MaxBytes = 16 << 20

const maxManifest = 1 << 20

// pullTime bounds a pull: a process that is told to end during one waits for it. Tests shorten it.
var pullTime = 30 * time.Second

// Source says where a module is.
type Source struct {
	Ref    string // oci://registry/name@sha256:digest
	Secret string // a file as Docker's config.json; "" = anonymous
	Dir    string // that keeps what was pulled; "" = memory alone
}

func (s Source) digest() string { return s.Ref[strings.LastIndex(s.Ref, ":")+1:] }

// Pull asks the registry for the module.
func (s Source) Pull(ctx context.Context) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, pullTime)
	defer cancel()
	wasm, err := s.pull(ctx)
	if err != nil {
		return nil, s.explain(err)
	}
	s.keep(wasm)
	return wasm, nil
}

// pull fetches the manifest and the layer that has the module.
func (s Source) pull(ctx context.Context) ([]byte, error) {
	repo, err := s.repository()
	if err != nil {
		return nil, err
	}
	d, text, err := oras.FetchBytes(ctx, repo, repo.Reference.Reference, oras.FetchBytesOptions{MaxBytes: maxManifest})
	if err != nil {
		return nil, err
	}
	var m struct{ Layers, Manifests []ocispec.Descriptor } // of a manifest, of an index
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, fmt.Errorf("its manifest (%s) is no JSON; push the module again: %w", d.MediaType, err)
	}
	if m.Manifests != nil {
		var list []string
		for _, one := range m.Manifests[:min(len(m.Manifests), 8)] {
			list = append(list, string(one.Digest))
		}
		return nil, fmt.Errorf("it is an index of %d platforms, and a module has none; name the digest of one: %s",
			len(m.Manifests), strings.Join(list, ", "))
	}
	layer, packed, err := layerOf(m.Layers)
	if err != nil {
		return nil, err
	}
	if layer.Size > MaxBytes {
		return nil, fmt.Errorf("its layer has %d bytes; the limit is %d: build the module without debug information",
			layer.Size, MaxBytes)
	}
	blob, err := content.FetchAll(ctx, repo.Blobs(), layer)
	if err != nil || !packed {
		return blob, err
	}
	return unpack(blob)
}

// repository is the client for the source's registry.
func (s Source) repository() (*remote.Repository, error) {
	repo, err := remote.NewRepository(strings.TrimPrefix(s.Ref, conf.Registry))
	if err != nil {
		return nil, fmt.Errorf("it is no name of a module; write oci://registry/name@sha256:digest: %w", err)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone() // with the environment's proxy
	transport.ResponseHeaderTimeout = pullTime / 2
	client := &auth.Client{Client: &http.Client{Transport: transport}, Cache: auth.NewCache()}
	if s.Secret != "" {
		if _, err := os.Stat(s.Secret); err != nil {
			return nil, fmt.Errorf("its pull_secret cannot be read; put a Docker config.json there: %w", err)
		}
		store, err := credentials.NewFileStore(s.Secret)
		if err != nil {
			return nil, fmt.Errorf("its pull_secret is no Docker config.json; write {\"auths\": {...}}: %w", err)
		}
		client.Credential = credentials.Credential(store)
	}
	repo.Client = client
	host := (&url.URL{Host: repo.Reference.Host()}).Hostname()
	repo.PlainHTTP = host == "localhost" || net.ParseIP(host).IsLoopback()
	return repo, nil
}

// explain adds to an error of the library what to do.
func (s Source) explain(err error) error {
	var answer *errcode.ErrorResponse
	status := 0
	if errors.As(err, &answer) {
		status = answer.StatusCode
	}
	var lost *url.Error // a connection, or its certificate
	remedy := ""
	switch {
	case status == http.StatusUnauthorized, status == http.StatusForbidden,
		errors.Is(err, auth.ErrBasicCredentialNotFound):
		remedy = "the registry refuses the credentials; have pull_secret name a Docker config.json with an entry for it: "
	case status == http.StatusNotFound, errors.Is(err, errdef.ErrNotFound):
		remedy = "the registry does not have it; push the module there, or correct the digest: "
	case errors.Is(err, content.ErrMismatchedDigest), errors.Is(err, content.ErrTrailingData),
		strings.Contains(err.Error(), "digest mismatch"):
		remedy = "the registry sends other bytes than the digest names; do not trust it: "
	case errors.Is(err, context.DeadlineExceeded), os.IsTimeout(err):
		remedy = fmt.Sprintf("it has not come within %v; see that the registry answers, and reload: ", pullTime)
	case errors.As(err, &lost), status >= http.StatusTooManyRequests:
		remedy = "the registry does not answer as it should; see that it is up, can be reached and has a certificate of a " +
			"known authority, and reload: "
	}
	return fmt.Errorf("%s cannot be pulled: %s%w", s.Ref, remedy, err)
}
