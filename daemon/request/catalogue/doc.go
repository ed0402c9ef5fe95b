// Package catalogue answers /v1/models: which models a caller sees, as the workers list them. A [Catalogue] makes each
// page once for all who may see the same.
//
// An adapter is used in the moment in which it is loaded, and the workers' lists are some seconds old. lists.go waits
// for lists that are read anew where they would be the ground of a refusal, and where an answer contradicts them.
package catalogue
