//go:build race

package server

// raceEnabled says that allocations cannot be measured and work is slow.
const raceEnabled = true
