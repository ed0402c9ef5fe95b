// Package strategies is a gallery: the strategies that people ask for, each a program in a folder of its own. README.md
// has what each does and costs.
package strategies
