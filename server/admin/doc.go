// Package admin serves the broker's HTTP endpoints for operators: health, metrics
// and profiles.
package admin
