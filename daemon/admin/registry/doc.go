// Package registry brings strategies' modules from container registries, and packs modules for them. It alone imports
// oras.land/oras-go/v2: of the two well-kept libraries it is the smaller one (0.3 MB of the binary, three modules;
// google/go-containerregistry brings Docker's configuration as a module).
//
// # What is taken?
//
// A manifest by its digest, with one layer of a wasm type as Envoy, Istio and the CNCF's wasm artifact name them, or an
// image whose layer, a tar, has plugin.wasm. An index of several platforms is refused, as a module has none: which of
// its manifests is meant would be a guess.
//
// # What bounds a pull?
//
// Half a minute, [MaxBytes] of the module and four times that of an unpacked layer. Nothing is asked of a registry for
// what is kept by its digest, in memory and in a folder: a daemon starts while the registry is down. A registry on
// loopback is asked without TLS, as other clients do.
package registry
