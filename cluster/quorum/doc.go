// Package quorum keeps one ordered, committed log in the embedded store and says
// who leads it. It is the only importer of the consensus library and knows
// nothing of what the log holds.
package quorum
