package registry

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// wasmTypes are the media types of a layer that is a module: of the CNCF, of Envoy and Istio, and an older one.
var wasmTypes = []string{wasmType, "application/vnd.module.wasm.content.layer.v1+wasm",
	"application/vnd.wasm.content.layer.v1+wasm"}

const wasmType = "application/wasm"

// tarTypes are those of a layer of an image.
var tarTypes = []string{ocispec.MediaTypeImageLayerGzip, ocispec.MediaTypeImageLayer,
	"application/vnd.docker.image.rootfs.diff.tar.gzip", "application/vnd.docker.image.rootfs.diff.tar"}

// inImage is the module's file in an image, in its folder at the top.
const inImage = "plugin.wasm"

// layerOf returns the layer that has the module, which may be in a tar. If there are several tars, it is the last one.
func layerOf(layers []ocispec.Descriptor) (layer ocispec.Descriptor, packed bool, err error) {
	var types []string
	found := 0
	for _, l := range layers {
		types = append(types, l.MediaType)
		switch {
		case slices.Contains(wasmTypes, l.MediaType):
			layer, packed, found = l, false, found+1
		case found == 0 && slices.Contains(tarTypes, l.MediaType):
			layer, packed = l, true
		}
	}
	if found > 1 || layer.Digest == "" {
		return layer, false, fmt.Errorf("its layers are %q, and one of %s or a tar with %s is wanted; push what warmpath "+
			"plugin pack writes", types, strings.Join(wasmTypes, ", "), inImage)
	}
	return layer, packed, nil
}

// unpack returns the module in a layer of an image.
func unpack(layer []byte) ([]byte, error) {
	var plain io.Reader = bytes.NewReader(layer)
	if z, err := gzip.NewReader(plain); err == nil {
		plain = z
	} else {
		plain = bytes.NewReader(layer)
	}
	files := tar.NewReader(io.LimitReader(plain, 4*MaxBytes))
	for {
		f, err := files.Next()
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return nil, fmt.Errorf("its last layer has no %s in the first %d bytes; COPY the module there, FROM scratch",
				inImage, 4*MaxBytes)
		case err != nil:
			return nil, fmt.Errorf("its layer is no tar; push what warmpath plugin pack writes: %w", err)
		case path.Clean("/"+f.Name) != "/"+inImage || f.Typeflag != tar.TypeReg:
		case f.Size > MaxBytes:
			return nil, fmt.Errorf("its %s has %d bytes; the limit is %d: build the module without debug information", inImage,
				f.Size, MaxBytes)
		default:
			return io.ReadAll(files)
		}
	}
}
