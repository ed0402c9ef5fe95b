// Package endpoints follows the EndpointSlices of a Kubernetes service: which pods answer, from the API server's
// own watch, within a second.
//
// # Rules
//
//   - One list, then a watch from its resourceVersion. A watch that ends goes on from the last version that was
//     seen, bookmarks count as seen. 410 Gone, as a status or as an event, means a new list.
//   - A ready endpoint is a worker. One that is terminating, or was ready and is not, is Leaving: it gets no new
//     requests at once, and finishes those that it has. What was never ready is no worker yet.
//   - A pod is one worker, even where a service of two address families lists it in two slices. IPv4 goes first.
//   - An address is one worker. Of entries for one address or one pod a ready one wins, in whatever order they come.
//   - An API server that fails or is silent takes no worker away. The router logs one WARN when an outage begins, with
//     what to do, and one INFO when it ends; between two tries are 0.5 s, doubling up to 30 s, each with jitter.
//   - The token is read for each request, as kubelet replaces it, and the CA for each connection when the file has
//     changed.
//   - A list ends at maxPods pods and maxList bytes, an event at maxEvent bytes.
//
// # Why by hand and not k8s.io/client-go
//
// A static binary of one such informer, by client-go's clientset 0.34 on its own, has 49 MB, where one of net/http
// has 6 MB: the API's types and protobufs are most of it. What is needed of the API is one list, one watch and
// eleven fields of JSON, which discovery.k8s.io/v1 keeps stable. testdata/real/kube runs it against a real API
// server.
//
// why.md has the reasons and the details, and what lost.
package endpoints
