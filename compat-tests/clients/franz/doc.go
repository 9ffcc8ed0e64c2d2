// Package franz is the row of twmb/franz-go in docs/compat.md: producing, consuming, groups and administration.
package franz
