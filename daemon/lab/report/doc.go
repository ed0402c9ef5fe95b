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
// # Files
//
// figures.go has what a run measured and how each figure is named and shown. stats.go is the statistics. compare.go
// puts runs side by side. write.go writes text and JSON, html.go the page; chart.go computes where its marks go, and
// page.html is its template.
//
// # Why no chart library
//
// go-echarts writes pages that load 1 MB of JavaScript, by default from a network; gonum/plot and go-chart draw SVG
// with colours that are fixed when drawn, so a page that follows the reader's light or dark theme needs two of each.
// What is drawn here is dots, whiskers and bars on one axis: a hundred lines that place them, and a template whose
// colours are CSS variables. Text stays text, so figures can be copied and searched for, and a page of 18 scenarios is
// about 300 KB.
package report
