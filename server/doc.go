// Package server builds a node: it opens the data folder, joins the layers
// together in order, serves, and stops everything in reverse. It decides nothing
// itself.
//
// # Start
//
// The order is the order of Node's fields: identity and lock of the folder, the
// embedded store, the metadata log, the broker's registration, the partitions,
// the group coordinator, and last the listeners, so that who can connect is
// served. A step that fails closes the ones before it.
//
// # Stop
//
// Listeners refuse and finish what they accepted; coordinators stop; the metadata
// log stops; the store flushes and marks the stop as clean.
package server
