// Incidents plays what goes wrong at night against running daemons, and reads all that an operator would look at:
//
//	testdata/run trials/incidents -bin bin/warmpath   # -run REGEXP; -dir DIR keeps what was read
//	{"incident":"prefiller-hangs","what":"...","ok":true}
//
// Table has a row for each incident: the configuration, the script that breaks something, and what must then be read.
// A line of says begins with where that is:
//
//	status, top, why   what these commands print
//	page               GET /api/v1/overview, which the page shows: a line for each warning, then the JSON
//	log                the daemon's log
//	metrics            its page of metrics
//	client             the status and the error of each answer that was awaited
//	alert              the names of the alerts, pending or firing, that a Prometheus has by deploy/prometheus/alerts.yml
//
// A regular expression follows, which must be found, or must not with ! behind the surface. Alerts are names, and all
// that there are; one behind alert? may be there. So each row says what is wrong, who is affected and what to do, and
// what would be untrue.
package main
