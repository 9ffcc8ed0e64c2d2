// Package lifecycle gives a data folder its identity and refuses folders of
// others.
package lifecycle
