// Package operator serves an operator: /api/v1, the page, profiles, and what package metrics has for /metrics.
//
// # The listener
//
// It answers requests that name it by an address, as localhost or by its own name (strangers.go), as on loopback there
// is no token to keep other sites' web pages off it.
//
// Every answer has a struct of its own, as openapi.json is written from these types and a table of the routes
// (TestOpenAPIHasEveryRoute, TestOpenAPIFile write and check it; the daemon's TestTheAPIIsAsItsFileSays calls each
// route).
//
// # The page
//
// Its files are served as they are in page/: plain modules, no build step, nothing from other servers. What is wrong
// is decided here ([Warning]), so that the page and warmpath top say the same. Rows and cells stay the same elements
// from one look to the next, and are written only where their text differs: 256 rows cost some 10 ms of script a
// second. The charts are SVG of our own (chart.js, 120 lines). uPlot (MIT, 50 KB) would draw the four of them, but
// not the hundreds of curves in the cells: each of its charts is a canvas with an element tree of its own. Half of
// our code would stay, and a canvas follows neither the colours of the style sheet nor a screen reader.
//
// # Whether a pool can serve
//
// [Readiness] and [Describe] read the workers' counts at that moment. A [Vigil] logs the two changes that no operator
// may miss: a pool lost its last worker, or no worker lists a model that the pool is to serve.
package operator
