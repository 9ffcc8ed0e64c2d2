// Package metadata holds the typed records of the metadata log and the immutable
// Image that replaying them builds.
package metadata
