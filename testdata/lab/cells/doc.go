// Command cells runs the columns of the lab by which prefixaware and kvaware are judged, beside tuned rules of
// others, and prints the table of docs/measured.md: TTFT, mean and P90, over that of the best of them.
//
//	testdata/run lab/cells -first 101 -n 2 -trace FILE
//
// All columns take some ten minutes of two cores a seed. What was measured is kept in a folder, a file a column and
// seed, and is not measured again: so the command can be stopped, and started with more seeds or a new strategy. After
// a change of the rules give -keep a new folder. A column counts when all strategies have run on it; those that were
// not measured are named below the table. -for ends it earlier, -print measures nothing.
package main
