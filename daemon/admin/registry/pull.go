package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
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

// pullTime bounds a pull. Tests shorten it.
var pullTime = time.Minute

// Source says where a module is.
type Source struct {
	Ref    string // oci://registry/name@sha256:digest
	Secret string // a file as Docker's config.json; "" = anonymous
	Dir    string // that keeps what was pulled; "" = memory alone
}

// Kept returns the module if it has been pulled before, else nil.
func (s Source) Kept() []byte { return kept.get(s.digest(), s.Dir) }

func (s Source) digest() string { return s.Ref[strings.LastIndex(s.Ref, ":")+1:] }

// Pull asks the registry for the module.
func (s Source) Pull(ctx context.Context) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, pullTime)
	defer cancel()
	wasm, err := s.pull(ctx)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be pulled: %w", s.Ref, s.explain(err))
	}
	kept.put(s.digest(), s.Dir, wasm)
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
	var m struct {
		ocispec.Manifest
		Manifests []ocispec.Descriptor `json:"manifests"` // of an index
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, fmt.Errorf("its manifest (%s) is no JSON; push the module again: %w", d.MediaType, err)
	}
	if m.Manifests != nil {
		return nil, fmt.Errorf("it is an index of %d platforms, and a module has none; name the digest of one: %s",
			len(m.Manifests), platforms(m.Manifests))
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
	host, _, err := net.SplitHostPort(repo.Reference.Host())
	if err != nil {
		host = repo.Reference.Host()
	}
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
	host, _, _ := strings.Cut(strings.TrimPrefix(s.Ref, conf.Registry), "/")
	var dial *net.OpError
	switch {
	case status == http.StatusUnauthorized, status == http.StatusForbidden,
		errors.Is(err, auth.ErrBasicCredentialNotFound):
		return fmt.Errorf("the registry refuses the credentials; have pull_secret name a Docker config.json with an entry "+
			"for %s that may pull: %w", host, err)
	case status == http.StatusNotFound, errors.Is(err, errdef.ErrNotFound):
		return fmt.Errorf("the registry does not have it; push the module there, or correct the digest: %w", err)
	case errors.Is(err, content.ErrMismatchedDigest), errors.Is(err, content.ErrTrailingData),
		strings.Contains(err.Error(), "digest mismatch"):
		return fmt.Errorf("the registry sends other bytes than the digest names; do not trust it: %w", err)
	case errors.Is(err, context.DeadlineExceeded), os.IsTimeout(err):
		return fmt.Errorf("%s has not sent it in time (%v for all); see that it answers, and reload: %w", host, pullTime,
			err)
	case errors.As(err, &dial), status >= 500:
		return fmt.Errorf("%s does not answer as it should; see that it is up and can be reached, and reload: %w", host,
			err)
	}
	return err
}

// platforms lists the manifests of an index.
func platforms(all []ocispec.Descriptor) string {
	var list []string
	for _, d := range all[:min(len(all), 8)] {
		of := "no platform"
		if d.Platform != nil {
			of = d.Platform.OS + "/" + d.Platform.Architecture
		}
		list = append(list, fmt.Sprintf("%s (%s)", d.Digest, of))
	}
	return strings.Join(slices.Compact(list), ", ")
}
