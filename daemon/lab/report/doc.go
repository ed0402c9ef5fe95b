// Package report writes what runs of the lab measured: a table in the terminal, JSON, and one HTML file that opens
// without a network.
//
// A [Run] is one strategy on one scenario with one seed. Runs of the same scenario and seed see the same requests, so
// strategies are compared pair by pair: [Ratio] divides the means over the seeds that both have, and the interval is
// twice the jackknife's error of that ratio. Means themselves have twice their standard error. Both are about 95 %
// where seeds are many; with under ten they are too narrow by a tenth to a third (Student's t).
//
// The best peer of a figure is the peer with the smallest mean over the seeds that are compared, chosen for each
// scenario and figure: "within 5 %" is measured against a rule that could not have been picked beforehand.
//
// why.md has the reasons and the details, and what lost.
package report
