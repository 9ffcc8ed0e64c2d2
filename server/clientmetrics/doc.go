// Package clientmetrics takes the metrics that clients push (KIP-714): it tells
// each client which metrics to push and how often, refuses pushes that come too
// early or for an old subscription, and keeps the newest values for the broker's own
// metrics page. Clients, values and their bytes are bounded; a client that is gone
// is forgotten.
package clientmetrics
