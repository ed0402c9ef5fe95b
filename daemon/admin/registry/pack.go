package registry

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/content/oci"
	"oras.land/oras-go/v2/errdef"
)

// Tag is that of a packed module in its layout.
const Tag = "latest"

// configType is the media type of a wasm artifact's configuration.
const configType = "application/vnd.wasm.config.v0+json"

// Pack writes an OCI layout of the module to dir, and returns the digest of its manifest: the same for the same module
// and file name.
func Pack(ctx context.Context, dir, file string, wasm []byte) (digest string, err error) {
	store, err := oci.New(dir)
	if err != nil {
		return "", fmt.Errorf("the folder is no OCI layout; give one that is new: %w", err)
	}
	layer, err := pushed(ctx, store, wasmType, wasm)
	if err != nil {
		return "", err
	}
	about, err := json.Marshal(map[string]any{"architecture": "wasm", "os": "wasip1",
		"layerDigests": []string{string(layer.Digest)}})
	if err != nil {
		return "", err
	}
	config, err := pushed(ctx, store, configType, about)
	if err != nil {
		return "", err
	}
	layer.Annotations = map[string]string{ocispec.AnnotationTitle: file} // oras pull writes a file of that name
	manifest, err := oras.PackManifest(ctx, store, oras.PackManifestVersion1_1, "", oras.PackManifestOptions{
		Layers: []ocispec.Descriptor{layer}, ConfigDescriptor: &config,
		ManifestAnnotations: map[string]string{ocispec.AnnotationCreated: "1970-01-01T00:00:00Z"}})
	if err != nil {
		return "", err
	}
	return string(manifest.Digest), store.Tag(ctx, manifest, Tag)
}

// pushed adds bytes to a layout, which may have them.
func pushed(ctx context.Context, store *oci.Store, mediaType string, b []byte) (ocispec.Descriptor, error) {
	d := content.NewDescriptorFromBytes(mediaType, b)
	err := store.Push(ctx, d, bytes.NewReader(b))
	if errors.Is(err, errdef.ErrAlreadyExists) {
		err = nil
	}
	return d, err
}
