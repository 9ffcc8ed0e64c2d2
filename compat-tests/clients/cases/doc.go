// Package cases is CASES.md for the clients in Go: each row brings a Client, in each version that it is built with, and
// Run asks of it what every client is asked.
package cases
