package config

import "strings"

// Nearest is the known name that a mistyped one probably means, "" when none is
// close enough.
func Nearest(name string, known []string) string {
	name = strings.ToLower(name)
	best, bestDistance := "", len(name)/4+2
	for _, k := range known {
		if distance := editDistance(name, k, bestDistance); distance < bestDistance {
			best, bestDistance = k, distance
		}
	}
	return best
}

// editDistance counts insertions, deletions, replacements and swaps of
// neighbours; a result of limit or more is only said to be at least limit.
func editDistance(a, b string, limit int) int {
	if len(a)-len(b) >= limit || len(b)-len(a) >= limit {
		return limit
	}
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		before, last, row = last, row, before
		row[0] = i
		smallest := i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
			smallest = min(smallest, row[j])
		}
		if smallest > limit {
			return limit
		}
	}
	return row[len(b)]
}
